"""Functions of users: those that read tables, named arguments, LEFT JOIN LATERAL, aggregates of distinct rows; beside views without."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltic
from deltic.errors import DelticError
from seeds import rotating

TABLES = """
    CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT, s STRING);
    CREATE TABLE u (k INT, y INT);
    CREATE FUNCTION weighed(a INT, b INT DEFAULT 10, c INT DEFAULT 100) RETURN a + b * c;
    CREATE FUNCTION most(wanted INT) RETURNS INT RETURN (SELECT max(y) FROM u WHERE k = wanted);
    CREATE FUNCTION n_of(k INT) RETURN SELECT count(*) FROM u WHERE u.k = n_of.k;
    CREATE FUNCTION exceeded(v INT) RETURNS BOOLEAN
        RETURN EXISTS (SELECT 1 FROM u WHERE y > v * 2) AND v NOT IN (SELECT y FROM u WHERE y IS NOT NULL);
    CREATE FUNCTION rows_of(wanted INT, least INT DEFAULT 0) RETURNS TABLE (y INT) RETURN SELECT y FROM u WHERE k = wanted AND y >= least;
    CREATE FUNCTION count_of(wanted INT) RETURNS TABLE (n BIGINT, m INT) RETURN SELECT count(*), max(y) FROM u WHERE k = wanted;
"""
PAIRS = [
    ("SELECT id, weighed(x, c => k) AS v, weighed(c => 1, a => k) AS w FROM t", "SELECT id, x + 10 * k AS v, k + 10 AS w FROM t"),
    ("SELECT id, most(k) AS m FROM t", "SELECT id, (SELECT max(y) FROM u WHERE u.k = t.k) AS m FROM t"),
    (
        "SELECT id FROM t WHERE most(wanted => k + 1) > x OR k = 2",
        "SELECT id FROM t WHERE (SELECT max(y) FROM u WHERE u.k = t.k + 1) > x OR k = 2",
    ),
    (
        "SELECT id, most(most(k)) AS m FROM t",
        "SELECT id, (SELECT max(y) FROM u WHERE u.k = (SELECT max(y) FROM u WHERE u.k = t.k)) AS m FROM t",
    ),
    ("SELECT k, most(max(x)) AS m FROM t GROUP BY k", "SELECT k, (SELECT max(y) FROM u WHERE u.k = max(t.x)) AS m FROM t GROUP BY k"),
    ("SELECT sum(most(k)) AS m FROM t", "SELECT sum((SELECT max(y) FROM u WHERE u.k = t.k)) AS m FROM t"),
    (
        "SELECT id FROM t WHERE exceeded(x)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE y > x * 2) AND x NOT IN (SELECT y FROM u WHERE y IS NOT NULL)",
    ),
    (
        "WITH u AS (SELECT 1 AS k, 99 AS y) SELECT id, most(t.k) AS m FROM t",
        "SELECT id, (SELECT max(y) FROM u WHERE u.k = t.k) AS m FROM t",
    ),
    ("SELECT id, r.y FROM t LEFT JOIN LATERAL rows_of(t.k) AS r", "SELECT id, u.y FROM t LEFT JOIN u ON t.k = u.k AND y >= 0"),
    (
        "SELECT id, r.y FROM t LEFT JOIN LATERAL rows_of(least => 1, wanted => t.k) AS r ON r.y < t.x",
        "SELECT id, u.y FROM t LEFT JOIN u ON t.k = u.k AND y >= 1 AND y < x",
    ),
    ("SELECT id, r.y FROM t JOIN LATERAL rows_of(t.k) AS r ON r.y < t.x", "SELECT id, u.y FROM t JOIN u ON t.k = u.k AND y >= 0 AND y < x"),
    (
        "SELECT id, r.* FROM t LEFT JOIN LATERAL count_of(t.k) AS r ON r.n > 1",
        "SELECT id, n, m FROM t LEFT JOIN (SELECT k AS j, count(*) AS n, max(y) AS m FROM u GROUP BY k HAVING n > 1) ON j = k",
    ),
    ("SELECT k, total(DISTINCT x) AS d, total(x) AS s FROM t GROUP BY k", "SELECT k, sum(DISTINCT x) AS d, sum(x) AS s FROM t GROUP BY k"),
    (
        "SELECT following(DISTINCT x) AS d, following(DISTINCT x) FILTER (WHERE k = 1) AS f, following(x) AS s FROM t",
        "SELECT sum(DISTINCT x) AS d, sum(DISTINCT x) FILTER (WHERE k = 1) AS f, sum(x) AS s FROM t",
    ),
    (
        "SELECT id, w.word FROM t LATERAL VIEW OUTER words(s) w",
        "SELECT id, w AS word FROM t LATERAL VIEW OUTER explode(split(nullif(s, ''), ' ')) v AS w",
    ),
    (
        "SELECT id, w.word FROM t LEFT JOIN LATERAL words(least => 0, text => s) w",
        "SELECT id, w AS word FROM t LATERAL VIEW OUTER explode(split(nullif(s, ''), ' ')) v AS w",
    ),
    (
        "SELECT id, w.word FROM t LEFT JOIN LATERAL words(s) w ON w.length < t.x",
        "SELECT id, w AS word FROM t LEFT JOIN (SELECT id AS j, x AS z, w FROM t LATERAL VIEW explode(split(nullif(s, ''), ' ')) v AS w)"
        " ON j = id AND length(w) < x",
    ),
]
"""A query with functions, and one without that means the same."""


class Words:
    def eval(self, text: str | None, least: int = 0) -> Iterator[tuple[str, int]]:
        for word in (text or "").split():
            if len(word) >= least:
                yield word, len(word)


def total(x: pa.Array) -> int | None:
    value: int | None = pc.sum(x).as_py()
    return value


class Following:
    """A sum that takes rows back."""

    state = "n BIGINT, total BIGINT"

    def __init__(self) -> None:
        self.n = self.total = 0

    def step(self, x: int | None) -> None:
        self.n, self.total = self.n + (x is not None), self.total + (x or 0)

    def retract(self, x: int | None) -> None:
        self.n, self.total = self.n - (x is not None), self.total - (x or 0)

    def finish(self) -> int | None:
        return self.total if self.n else None


def _defined(session: deltic.Session) -> deltic.Session:
    session.register("words", Words, returns="word STRING, length INT")
    session.register("total", total, returns=int, aggregate=True)
    session.register("following", Following, returns=int)
    views = (
        f"CREATE MATERIALIZED VIEW {name}{i} AS {query};" for i, pair in enumerate(PAIRS) for name, query in zip("ab", pair, strict=True)
    )
    script = TABLES.replace("TABLE ", "TABLE IF NOT EXISTS ", 2).replace("FUNCTION ", "FUNCTION IF NOT EXISTS ")
    session.sql(script + "".join(views).replace("MATERIALIZED VIEW ", "MATERIALIZED VIEW IF NOT EXISTS "))
    return session


def _rows(session: deltic.Session, view: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in session.view(view).rows())


def _run(open_session: Callable[[], deltic.Session], seed: int, ticks: int, restart: bool) -> None:
    rng, session = random.Random(seed), _defined(open_session())
    ids, pairs = set[int](), list[dict[str, Any]]()
    for _ in range(ticks):
        if restart:
            session.close()
            session = _defined(open_session())
        with session.transaction() as tx:
            gone = rng.sample(sorted(ids), min(2, len(ids)))
            tx.delete("t", gone)
            ids.difference_update(gone)
            for id in rng.sample(range(20), 4):
                s = rng.choice((None, "", "a", "a bb", "ccc a"))
                tx.upsert("t", [{"id": id, "k": rng.choice((None, 0, 1, 2)), "x": rng.choice((None, 0, 1, 2, 5)), "s": s}])
                ids.add(id)
            for _ in range(min(2, len(pairs))):
                tx.delete("u", [pairs.pop(rng.randrange(len(pairs)))])
            added = [{"k": rng.choice((None, 0, 1, 2)), "y": rng.choice((None, -1, 0, 1, 2, 3))} for _ in range(3)]
            tx.insert("u", added)
            pairs += added
        for i, (query, _) in enumerate(PAIRS):
            assert _rows(session, f"a{i}") == _rows(session, f"b{i}"), query
    session.close()


@pytest.mark.parametrize("shards", [1, 3])
def test_functions_over_tables_under_changes(shards: int) -> None:
    _run(lambda: deltic.Session(shards=shards), shards, 5, False)


def test_functions_over_tables_after_restarts(tmp_path: Path) -> None:
    _run(lambda: deltic.Session(state=str(tmp_path / "state")), 7, 3, True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", rotating(10))
def test_more_functions_over_tables_under_changes(seed: int) -> None:
    _run(lambda: deltic.Session(shards=1 + seed % 3), seed, 12, False)


ERRORS = [
    ("SELECT weighed(b => 1)", "the argument 'a' of weighed is missing"),
    ("SELECT weighed(a => 1, 2)", "an argument without a name follows one with a name"),
    ("SELECT weighed(1, a => 2)", "the argument 'a' is given twice"),
    ("SELECT weighed(1, d => 2)", "weighed has no parameter 'd'"),
    ("SELECT abs(expr => 3)", "named arguments are for functions of users, mask and explode"),
    ("SELECT a => 3 FROM t", "an argument with a name is not allowed here"),
    ("SELECT total(x) WITHIN GROUP (ORDER BY x) FROM t", "WITHIN GROUP is not supported for a function in Python"),
    ("SELECT * FROM t RIGHT JOIN LATERAL rows_of(t.k) AS r", "this join with LATERAL is not supported"),
    ("SELECT transform(array(1), v -> most(v)) FROM t", "a subquery is not supported in a lambda"),
    ("SELECT t.id FROM t WHERE array(most(1))[0] = (SELECT most(t.nothing))", "there is no table 't' in FROM"),
]


def test_errors_of_functions_over_tables() -> None:
    with _defined(deltic.Session()) as session:
        for query, message in ERRORS:
            with pytest.raises(DelticError, match=message):
                session.query(query)
        for script, message in (
            ("CREATE FUNCTION f(a INT) RETURN (SELECT nothing FROM u)", "there is no column 'nothing'"),
            ("CREATE FUNCTION f(a INT) RETURN (SELECT f(a) FROM u)", "there is no function f"),
            ("CREATE FUNCTION f(a INT) RETURN SELECT k, y FROM u", "a subquery that is a value has several columns"),
        ):
            with pytest.raises(DelticError, match=message):
                session.sql(script)
