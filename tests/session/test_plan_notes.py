"""The notes of `explain` on joins without an equality key and on windows without PARTITION BY are true: rows are counted."""

from __future__ import annotations

import warnings

import pytest

import deltic

ROWS = 1_000
QUERIES = {
    "pairs": "SELECT a.id, b.id AS other FROM a JOIN b ON a.x + b.x = 7",
    "present": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b)",
    "share": "SELECT id, y / sum(y) OVER () AS share FROM a",
    "running": "SELECT id, sum(y) OVER (ORDER BY x) AS s FROM a",
    "ranks": "SELECT id, rank() OVER (ORDER BY x NULLS LAST) AS r, lag(y) OVER (ORDER BY x NULLS LAST) AS before FROM a",
    "numbers": "SELECT id, row_number() OVER (ORDER BY x) AS n FROM a",
    "joined": "SELECT a.id FROM a JOIN b ON a.x = b.x",
    "parts": "SELECT id, rank() OVER (PARTITION BY y ORDER BY x) AS r FROM a",
}
WITHOUT_KEY = {"pairs", "present", "share"}


def noted(session: deltic.Session, view: str, text: str) -> list[str]:
    return [note for note in session.explain(view).json()["notes"] if text in note]


def filled(shards: int) -> deltic.Session:
    session = deltic.Session(shards=shards)
    session.sql("CREATE TABLE a (id BIGINT, x BIGINT, y BIGINT, PRIMARY KEY (id)); CREATE TABLE b (id BIGINT, x BIGINT, PRIMARY KEY (id))")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in QUERIES.items()))
    with session.transaction() as tx:
        tx.insert("a", [{"id": i, "x": i, "y": 1 + i % 10} for i in range(ROWS)])
    return session


@pytest.mark.parametrize("shards", [1, 3])
def test_only_joins_that_read_every_row_have_no_equality_key(shards: int) -> None:
    """One new row on either side, the last in order: joins of windows by their order find their rows."""
    with filled(shards) as session:
        with session.transaction() as tx:
            tx.insert("a", [{"id": ROWS, "x": ROWS, "y": 1}])
            tx.insert("b", [{"id": 1, "x": 5}])
        for view in QUERIES:
            notes = noted(session, view, "no equality key")
            assert bool(notes) == (view in WITHOUT_KEY), (view, notes)
            for operator in session.explain(view).json()["operators"]:
                if operator["operator"].startswith(("join_trace", "semijoin")):
                    is_noted = any(note.startswith(f"operator {operator['id']} ") for note in notes)
                    assert (operator["rows_touched"] >= ROWS) == is_noted, (view, operator)


def test_of_several_shards_one_has_the_rows_of_a_window_without_partitions() -> None:
    with filled(3) as session:
        for view in QUERIES:
            notes = noted(session, view, "PARTITION BY")
            assert bool(notes) == (view in {"share", "running", "ranks", "numbers"}), (view, notes)
        assert noted(session, "ranks", "PARTITION BY") == [
            "view ranks: a window by x#1 nulls last has no PARTITION BY, so the home shard keeps all its rows"
        ]
    with filled(1) as session:
        assert not any(noted(session, view, "PARTITION BY") for view in QUERIES)
