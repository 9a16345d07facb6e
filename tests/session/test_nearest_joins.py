"""NEAREST joins: the answers of a lateral query in DuckDB after every change, embedded on shards and from reopened state; errors."""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pytest

import deltic
from tests.support.parts import slow

TABLES = "CREATE TABLE a (id BIGINT, x BIGINT); CREATE TABLE b (n STRING, y BIGINT)"
RANKINGS = {"DISTANCE abs(a.x - b.y)": "abs(a.x - b.y)", "SIMILARITY (a.x - b.y) % 3": "-((a.x - b.y) % 3)", "DISTANCE y": "b.y"}
pytestmark = pytest.mark.filterwarnings("ignore::deltic.errors.PlanWarning")


def queries() -> dict[str, tuple[str, str]]:
    """Ours and DuckDB's."""
    pairs = {}
    for kind in ("", "LEFT "):
        for count, (ours, other) in zip(("", "2", "3"), RANKINGS.items(), strict=True):
            near = f"SELECT * FROM b WHERE {other} IS NOT NULL ORDER BY {other}, n, y NULLS FIRST LIMIT {count or 1}"
            pairs[f"v{len(pairs)}"] = (
                f"SELECT a.id, a.x, b.n, b.y FROM a {kind}JOIN b EXACT NEAREST {count} BY {ours}",
                f"SELECT a.id, a.x, b.n, b.y FROM a {kind}JOIN LATERAL ({near}) b ON true",
            )
    return pairs


@pytest.mark.parametrize(("shards", "ticks"), [(1, 3), (3, 2), *slow((1, 30), (3, 30))])
def test_matches_are_those_of_duckdb(tmp_path: Path, shards: int, ticks: int) -> None:
    rng, pairs = Random(shards * ticks), queries()
    script = "; ".join([TABLES, *(f"CREATE MATERIALIZED VIEW {name} AS {ours}" for name, (ours, _) in pairs.items())])
    rows: dict[str, list[tuple[object, ...]]] = {"a": [], "b": []}
    with duckdb.connect() as other:
        other.execute(TABLES.replace("STRING", "VARCHAR"))
        for _ in range(ticks):
            with deltic.Session(state=tmp_path, shards=shards) as session:
                session.program(script)
                for table in "ab":
                    gone = rng.sample(rows[table], len(rows[table]) // 3)
                    numbers = [rng.choice((None, *range(8))) for _ in range(5)]
                    come = [(rng.randrange(3), x) if table == "a" else (rng.choice("pqr"), x) for x in numbers]
                    for row in gone:
                        rows[table].remove(row)
                    rows[table] += come
                    names = session.table(table).schema.names
                    weighted = [*((row, -1) for row in gone), *((row, 1) for row in come)]
                    session.apply({table: [{**dict(zip(names, row, strict=True)), "_weight": w} for row, w in weighted]})
                    other.execute(f"DELETE FROM {table}")
                    other.executemany(f"INSERT INTO {table} VALUES (?, ?)", [list(row) for row in rows[table]])
                for name, (_, theirs) in pairs.items():
                    actual = sorted(repr(tuple(row.values())) for row in session.view(name).rows())
                    assert actual == sorted(map(repr, other.execute(theirs).fetchall())), name


def test_it_follows_other_joins_and_reads_columns_of_a_query_around_it() -> None:
    with deltic.Session() as session:
        session.sql(f"{TABLES}; CREATE TABLE c (n STRING, price BIGINT)")
        session.sql(
            "INSERT INTO a VALUES (1, 10), (2, 21); INSERT INTO b VALUES ('p', 11), ('q', 20); INSERT INTO c VALUES ('p', 5), ('q', 6)"
        )
        text = "SELECT id, price FROM a JOIN b APPROX NEAREST BY DISTANCE abs(x - y) JOIN c ON b.n = c.n ORDER BY id"
        assert session.query(text).rows() == [{"id": 1, "price": 5}, {"id": 2, "price": 6}]
        text = "SELECT n, (SELECT max(d.id) FROM a d JOIN b e EXACT NEAREST BY DISTANCE abs(e.y - c.price)) AS i FROM c ORDER BY n"
        assert session.query(text).rows() == [{"n": "p", "i": 2}, {"n": "q", "i": 2}]
        assert len(session.query("SELECT * FROM a JOIN b approx").rows()) == 4  # an alias


@pytest.mark.parametrize(
    ("join", "marked", "message"),
    [
        ("RIGHT JOIN b EXACT NEAREST 1 BY DISTANCE y", "EXACT NEAREST 1 BY DISTANCE y", "NEAREST with a RIGHT JOIN is not supported"),
        ("JOIN LATERAL (SELECT * FROM b) b EXACT NEAREST BY DISTANCE y", "EXACT", "NEAREST with LATERAL is not supported"),
        ("JOIN b EXACT NEAREST 0 BY DISTANCE y", "0", "invalid number of rows"),
        ("JOIN b EXACT NEAREST 100001 BY DISTANCE y", "100001", "invalid number of rows"),
        ("JOIN b APPROX NEAREST 1 BY SIMILARITY map(x, y)", "map", "does not support MAP"),
        ("JOIN b APPROX NEAREST 1 BY LENGTH y", "LENGTH", "DISTANCE or SIMILARITY"),
    ],
)
def test_errors_have_their_place(join: str, marked: str, message: str) -> None:
    text = f"SELECT * FROM a {join}"
    with deltic.Session() as session:
        session.sql(TABLES)
        with pytest.raises(deltic.errors.QueryError, match=message) as caught:
            session.query(text)
    assert caught.value.span is not None
    assert caught.value.span.start == text.index(marked)
