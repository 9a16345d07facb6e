"""Test support: queries over the tables t, u and v (correlated_queries.py) in sessions, beside the oracle, and what a new row costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import deltic
from correlated_queries import TABLES, Catalog
from deltic.errors import EvaluationError, FailedView
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.parse_statement import QueryStatement, parse
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Plan
from session_rows import touched_rows

DEFINITIONS = "".join(f"CREATE TABLE {name} (a INT, b INT);" for name in TABLES)
MOST = 2**31 - 1
Row = tuple[int | None, int | None]
Rows = dict[str, Counter[Row]]


def nested(sql: str) -> Plan:
    """The plan with dependent joins."""
    (one,) = parse(sql, "test")
    assert isinstance(one, QueryStatement)
    return bind_tree(one.query, Environment(Catalog(), unnest=lambda join: join))


def fails_or_rows(plan: Plan, tables: Rows) -> Counter[tuple[object, ...]] | None:
    """The rows that the oracle has; None if an expression fails."""
    try:
        return Counter(dict(evaluate(plan, tables).pairs()))
    except EvaluationError:
        return None


def drawn(rng: Random) -> Rows:
    """Some tables are empty, and few rows have the value of which the successor overflows."""
    values = (None, 0, 1, 2, 3, MOST) if rng.random() < 0.5 else (None, 0, 1, 2, 3)
    return {name: Counter((rng.choice(values), rng.choice((None, 0, 1))) for _ in range(rng.choice((0, 1, 4, 8)))) for name in TABLES}


def check(
    queries: dict[str, str], plans: dict[str, Plan], seed: int, shards: int, ticks: int, state: Path | None = None, *, exact: bool = True
) -> set[bool]:
    """Each query in a session of its own, from one content to the next. Returns whether ticks failed.

    exact: whether each tick fails in which the oracle does.
    """
    outcomes = set()
    for name, query in queries.items():
        rng, held = Random(seed), Rows({table: Counter() for table in TABLES})
        script = f"{DEFINITIONS} CREATE MATERIALIZED VIEW answer AS {query}"
        folder = None if state is None else state / name
        session = deltic.Session(state=folder, shards=shards)
        session.sql(script)
        for tick in range(ticks):
            if folder is not None and tick == ticks // 2:
                session.close()
                session = deltic.Session(state=folder, shards=shards + 1)
                session.sql(script)
            new = drawn(rng)
            expected = fails_or_rows(plans[name], new)
            outcomes.add(expected is None)
            changes = [
                (table, [{"a": a, "b": b} for a, b in (held[table] - new[table]).elements()], (new[table] - held[table]).elements())
                for table in TABLES
            ]
            try:
                with session.transaction() as tx:
                    for table, gone, come in changes:
                        tx.delete(table, gone)
                        tx.insert(table, [{"a": a, "b": b} for a, b in come])
            except EvaluationError:
                assert expected is None, (name, new)
            else:
                held = new
                rows = Counter(tuple(row.values()) for row in session.view("answer").rows())
                assert rows == expected or (expected is None and not exact), (name, new)
        session.close()
    return outcomes


def check_looked_up(session: deltic.Session, query: str, n: int, most: int) -> None:
    """A view over tables of n rows touches fewer than `most` rows for a new one."""
    session.sql(DEFINITIONS)
    with session.transaction() as tx:
        for table in TABLES:
            tx.insert(table, [{"a": i, "b": -i if table == "t" else i} for i in range(n)])
    session.sql(f"CREATE MATERIALIZED VIEW answer AS {query}")
    for table in "tu":
        session.sql(f"INSERT INTO {table} VALUES (7, 3)")
        assert touched_rows(session) < most, (query, table)


def check_isolated(query: str, plan: Plan, seed: int, shards: int, error: str = "INT addition") -> set[bool]:
    """Isolated, the view fails after the ticks in which the oracle does, and has its rows after the others; which of both occurred."""
    outcomes, rng, held = set[bool](), Random(seed), Rows({table: Counter() for table in TABLES})
    with deltic.Session(shards=shards, on_view_error="isolate") as session:
        session.sql(f"{DEFINITIONS} CREATE MATERIALIZED VIEW answer AS {query}")
        for _ in range(8):
            new = drawn(rng)
            with session.transaction() as tx:
                for table in TABLES:
                    tx.delete(table, [{"a": a, "b": b} for a, b in (held[table] - new[table]).elements()])
                    tx.insert(table, [{"a": a, "b": b} for a, b in (new[table] - held[table]).elements()])
            held, expected = new, fails_or_rows(plan, new)
            outcomes.add(expected is None)
            if expected is None:
                with pytest.raises(FailedView, match=error):
                    session.view("answer").rows()
            else:
                assert Counter(tuple(row.values()) for row in session.view("answer").rows()) == expected, (query, new)
    return outcomes
