"""ASOF joins: the answers of DuckDB after every change, ties by the least row, errors with their place."""

from __future__ import annotations

from random import Random

import duckdb
import pytest

import deltic
from seeds import rotating
from session_rows import touched_rows
from tests.support.parts import slow

COLUMNS = "a.id AS i, b.t, b.v"
KINDS = {
    "inner": ("ASOF JOIN", "ASOF JOIN"),
    "left": ("LEFT ASOF JOIN", "ASOF LEFT JOIN"),
    "right": ("RIGHT ASOF JOIN", "ASOF RIGHT JOIN"),
    "full": ("ASOF FULL OUTER JOIN", "ASOF FULL JOIN"),
}


def queries() -> dict[str, tuple[str, str]]:
    """Ours and DuckDB's."""
    pairs = {}
    for name, (ours, other) in KINDS.items():
        for number, comparison in enumerate(("a.t >= b.t", "a.t > b.t", "a.t <= b.t", "b.t > a.t")):
            text = f"SELECT {COLUMNS} FROM a {ours} b MATCH_CONDITION ({comparison}) ON a.k = b.k"
            pairs[f"{name}{number}"] = text, f"SELECT {COLUMNS} FROM a {other} b ON a.k = b.k AND {comparison}"
    pairs["keyless"] = (
        f"SELECT {COLUMNS} FROM a LEFT ASOF JOIN b AS b MATCH_CONDITION (a.t >= b.t)",
        f"SELECT {COLUMNS} FROM (SELECT 1 AS one, * FROM a) a ASOF LEFT JOIN (SELECT 1 AS one, min(v) AS v, t FROM b GROUP BY t) b "
        "ON a.one = b.one AND a.t >= b.t",
    )
    return pairs


@pytest.mark.parametrize(
    ("shards", "seed", "names"), [(1, 1, ["left0"]), *slow(*((1 + seed % 3, seed, [*queries()]) for seed in rotating(6)))]
)
def test_matches_are_those_of_duckdb(shards: int, seed: int, names: list[str]) -> None:
    """Times are unique in each key; v follows from key and time, so that ties between keys have one answer."""
    rng, pairs = Random(seed), queries()
    tables = "CREATE TABLE a (id BIGINT, k BIGINT, t BIGINT); CREATE TABLE b (k BIGINT, t BIGINT, v BIGINT)"
    with duckdb.connect() as other, deltic.Session(shards=shards) as session:
        other.execute(tables)
        session.sql("; ".join([tables, *(f"CREATE MATERIALIZED VIEW v_{name} AS {pairs[name][0]}" for name in names)]))
        rows: dict[str, set[tuple[int | None, ...]]] = {"a": set(), "b": set()}
        for tick in range(2 if seed == 1 else 10):
            for table in "ab":
                gone = {row for row in sorted(rows[table], key=repr) if rng.random() < 0.4}
                keys = [(rng.choice((None, 0, 1)), rng.choice((None, *range(12)))) for _ in range(6)]
                come = {(100 * tick + i, k, t) if table == "a" else (k, t, (k or 0) * 100 + (t or 0)) for i, (k, t) in enumerate(keys)}
                come -= rows[table]
                rows[table] = rows[table] - gone | come
                names_of = session.table(table).schema.names
                changes = [{**dict(zip(names_of, row, strict=True)), "_weight": w} for part, w in ((gone, -1), (come, 1)) for row in part]
                session.apply({table: changes})
                other.execute(f"DELETE FROM {table}")
                other.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", [list(row) for row in rows[table]])
            for name in names:
                actual = sorted(repr(tuple(row.values())) for row in session.view(f"v_{name}").rows())
                assert actual == sorted(map(repr, other.execute(pairs[name][1]).fetchall())), (name, tick)


def test_ties_are_broken_by_the_least_row_and_few_rows_are_touched() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, t BIGINT, PRIMARY KEY (id)); CREATE TABLE b (t BIGINT, v STRING)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT id, v FROM a ASOF JOIN b MATCH_CONDITION (a.t >= b.t)")
        session.apply({"a": [{"id": i, "t": i, "_weight": 1} for i in range(2_000)]})
        session.sql("INSERT INTO b VALUES (0, 'first'), (1900, 'z'), (1900, 'm')")
        assert {row["v"] for row in session.view("v").rows() if row["id"] >= 1900} == {"m"}
        session.sql("INSERT INTO b VALUES (1890, 'new')")
        assert sum(row["v"] == "new" for row in session.view("v").rows()) == 10
        assert session.last_tick is not None
        assert touched_rows(session) < 1_000


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a ASOF JOIN b ON a.t = b.t", "ON", "MATCH_CONDITION"),
        ("a ASOF JOIN b MATCH_CONDITION (a.t = b.t)", "a.t = b.t", "not one comparison"),
        ("a ASOF JOIN b MATCH_CONDITION (a.t >= a.id)", "a.t >= a.id", "does not compare both sides"),
        ("a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) ON a.id < b.t", "a.id < b.t", "not an equality"),
        ("a ASOF JOIN b MATCH_CONDITION (CAST(a.t AS STRING) >= b.v)", "CAST", "STRING"),
        ("a LEFT SEMI ASOF JOIN b MATCH_CONDITION (a.t >= b.t)", "LEFT SEMI", "LEFT SEMI in an ASOF JOIN"),
        ("a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) USING (t)", "ASOF", "USING in an ASOF JOIN"),
    ],
)
def test_errors_have_their_place(text: str, place: str, message: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, t BIGINT); CREATE TABLE b (t BIGINT, v STRING)")
        query = f"SELECT a.id FROM {text}"
        with pytest.raises(deltic.errors.DelticError, match=message) as raised:
            session.query(query)
        assert raised.value.span is not None
        assert query[raised.value.span.start :].startswith(place)
