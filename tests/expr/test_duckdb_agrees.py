"""DuckDB as a second opinion, where its semantics are Spark's: comparisons, logic, dates and string functions on edge values."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from deltic.errors import EvaluationError
from deltic.expr.functions import resolve
from deltic.schema import BOOLEAN
from expr_terms import COLUMN, Term, alike, call, edge_rows, infix, literal, number, outcome, string, table_of

ROWS = edge_rows(80, seed=3)
PAIRS = ("ij", "lm", "il", "xy", "fg", "pq", "sa")


def agreeing() -> list[Term]:
    terms = [infix(symbol, COLUMN[c], COLUMN[d]) for symbol in ("=", "<>", "<", "<=", ">", ">=") for c, d in PAIRS]
    terms += [infix(symbol, COLUMN["dt"], COLUMN["du"]) for symbol in ("=", "<", ">=")]
    terms += [infix(word, infix("<", COLUMN["i"], COLUMN["j"]), c) for word in ("and", "or") for c in (COLUMN["b"], literal(None, BOOLEAN))]
    terms += [call(name, COLUMN[c], COLUMN[d]) for name in ("coalesce", "nullif") for c, d in ("ij", "pq", "sa")]
    terms += [call(name, COLUMN["s"]) for name in ("length", "trim", "reverse")] + [infix("||", COLUMN["s"], COLUMN["a"])]
    terms += [
        call("replace", COLUMN["s"], string("a"), string("xy")),
        call("left", COLUMN["s"], number(2)),
        call("concat_ws", string("-"), COLUMN["s"], COLUMN["a"]),
    ]
    terms += [call(name, COLUMN["dt"]) for name in ("year", "quarter", "month", "day", "dayofyear", "weekofyear", "last_day")]
    terms += [
        Term(f"(s LIKE {string(p).sql})", resolve("like", [COLUMN["s"].expr, string(p).expr])) for p in ("a%", "%b%", "_", "a_c", "%ß%")
    ]
    terms += [call("hex", COLUMN[c]) for c in ("s", "u", "l")] + [call("levenshtein", COLUMN["u"], COLUMN["k"])]
    terms += [call("translate", COLUMN["s"], string(b), string(c)) for b, c in (("abc", "xyz"), ("abca", "1"), ("ßΣ𝒳", "sS1"))]
    return terms


@pytest.fixture(scope="module")
def database() -> Any:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("edges", table_of(ROWS))
    return connection


@pytest.mark.parametrize("term", agreeing(), ids=lambda term: term.sql)
def test_duckdb_agrees(database: Any, term: Term) -> None:
    theirs = [row[0] for row in database.execute(f"SELECT {term.sql} FROM edges").fetchall()]
    for actual, row in zip(theirs, ROWS, strict=True):
        ours = outcome(term.expr, row)
        assert not isinstance(ours, EvaluationError)
        assert alike(actual, ours), (term.sql, actual, ours)
