"""Joins on inequalities: the answers of DuckDB after every change, and work in proportion to the change."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.circuit.operators import range_join
from deltic.circuit.operators.range_join import RangeJoin
from deltic.errors import EvaluationError, PlanWarning
from deltic.trace.counters import Counters
from seeds import rotating
from session_rows import touched_rows
from tests.support.parts import slow
from tests.support.range_queries import QUERIES, Change, changes, tables

INTERVALS = ("between", "inside", "flipped", "full", "overlap")
KEYLESS = ("less", "inside", "flipped", "right", "anti", "overlap", "counted", "threshold", "held", "moving")
TYPES = ("BIGINT", "INT", "DATE", "TIMESTAMP_NTZ", "DOUBLE", "DECIMAL(38,2)")

BOUND = 3_000
"""Rows and index entries touched for one changed row: a logarithm for each of 64 cells, in a few batches."""


def shown(rows: list[tuple[object, ...]]) -> list[str]:
    """-0.0 is 0.0, as in keys."""
    return sorted(repr(tuple(0.0 if isinstance(cell, float) and cell == 0 else cell for cell in row)) for row in rows)


def compare(session: deltic.Session, other: duckdb.DuckDBPyConnection, tick: list[Change], names: list[str]) -> None:
    with session.transaction() as tx:
        for table, gone, come in tick:
            fields = session.table(table).schema.names
            tx.delete(table, gone)
            tx.insert(table, [dict(zip(fields, row, strict=True)) for row in come])
            other.execute(f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, [*gone, -1]))})")
            if come:
                other.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", [list(row) for row in come])
    for name in names:
        actual = [tuple(row.values()) for row in session.view(f"v_{name}").rows()]
        assert shown(actual) == shown(other.execute(QUERIES[name]).fetchall()), name


def define(session: deltic.Session, other: duckdb.DuckDBPyConnection, type: str, names: list[str]) -> None:
    for statement in tables(type.replace("TIMESTAMP_NTZ", "TIMESTAMP")):
        other.execute(statement)
    session.sql("; ".join([*tables(type), *(f"CREATE MATERIALIZED VIEW v_{name} AS {QUERIES[name]}" for name in names)]))


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize(
    ("type", "shards", "names", "seed"),
    [
        ("BIGINT", 1, ["flipped", "between", "overlap", "threshold"], 1),
        ("BIGINT", 3, [*KEYLESS], 1),
        *slow(*((type, shards, [*QUERIES], seed) for type in TYPES for shards in (1, 3) for seed in rotating(2))),
    ],
)
def test_joins_are_those_of_duckdb(type: str, shards: int, names: list[str], seed: int) -> None:
    with duckdb.connect() as other, deltic.Session(shards=shards) as session:
        define(session, other, type, names)
        for tick in changes(Random(seed), type, 3 if seed == 1 else 12):
            compare(session, other, tick, names)


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize(("many", "chunk", "few"), [(8, 3, 2), (1, 1, 0), (1 << 15, 2, 1)])
def test_points_are_looked_up_piece_by_piece(many: int, chunk: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of keys with few intervals at once, some of the pieces in cells."""
    for name, value in (("MANY", many), ("CHUNK", chunk), ("FEW", few)):
        monkeypatch.setattr(range_join, name, value)
    names = ["between", "inside", "flipped", "full"]
    with duckdb.connect() as other, deltic.Session() as session:
        define(session, other, "BIGINT", names)
        for tick in changes(Random(many), "BIGINT", 6):
            compare(session, other, tick, names)


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize(
    ("seed", "shards", "again", "names"),
    [
        (5, 3, 2, KEYLESS),
        *slow(*((seed, *each, [*QUERIES]) for seed, each in zip(rotating(5), [(1, 1), (3, 3), (1, 3), (3, 2), (2, 6)], strict=False))),
    ],
)
def test_joins_resume_after_a_restart(seed: int, shards: int, again: int, names: list[str], tmp_path: Path) -> None:
    """With another number of shards, a shard may hold batches with rows of others."""
    ticks = list(changes(Random(seed), "BIGINT", 8))
    with duckdb.connect() as other:
        with deltic.Session(state=tmp_path / "state", shards=shards) as session:
            define(session, other, "BIGINT", names)
            for tick in ticks[:4]:
                compare(session, other, tick, names)
        with deltic.Session(state=tmp_path / "state", shards=again) as session:
            session.sql("; ".join([*tables("BIGINT"), *(f"CREATE MATERIALIZED VIEW v_{name} AS {QUERIES[name]}" for name in names)]))
            for tick in ticks[4:]:
                compare(session, other, tick, names)


@pytest.mark.slow
@pytest.mark.spark
def test_joins_on_spark_are_those_of_duckdb(spark: Any, tmp_path: Path) -> None:
    with duckdb.connect() as other, deltic.Session(spark=spark, state=tmp_path / "state", shards=3) as session:
        define(session, other, "BIGINT", [*KEYLESS])
        for tick in changes(Random(1), "BIGINT", 4):
            compare(session, other, tick, [*KEYLESS])


def sizes(session: deltic.Session, view: str) -> list[tuple[list[int], list[int]]]:
    """For each range join of a view the rows of its left and of its right side, shard by shard."""
    circuit = session._definitions.circuit
    needed = circuit.upstream(frozenset((circuit.views[view],)))
    joins = [node.operator for node in circuit.nodes if node.id in needed and isinstance(node.operator, RangeJoin)]
    held = [[[len(spine.scan(Counters())) for spine in session._runtime.snapshot(name)] for name in (j.left, j.right)] for j in joins]
    return [(left, right) for left, right in held]


def test_without_keys_one_side_is_spread_and_every_shard_has_the_other() -> None:
    """The intervals, or the right side; the side of one row; and a relation beside a stream."""
    with deltic.Session(shards=3) as session:
        session.sql("; ".join([*tables("BIGINT"), "CREATE STREAM s (at BIGINT, v BIGINT)"]))
        queries = {name: QUERIES[name] for name in ("inside", "flipped", "right", "threshold", "between")}
        queries["one"] = "SELECT id FROM a WHERE (SELECT max(y) FROM b) BETWEEN a.x AND a.w"
        queries["passing"] = "SELECT a.id, s.v FROM s JOIN a ON s.at < a.x"
        queries["both"] = "SELECT 1 AS c FROM (SELECT max(y) AS y FROM b) AS p JOIN (SELECT min(x) AS x FROM a) AS q ON p.y > q.x"
        session.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in queries.items()))
        with session.transaction() as tx:
            tx.insert("a", [{"id": i, "k": i % 3, "x": i, "w": 1000} for i in range(300)])
            tx.insert("b", [{"id": i, "k": 1, "y": i, "z": i + 2} for i in range(90)])
        for name, copied, spread in (
            ("inside", 180, 300),
            ("flipped", 180, 300),
            ("right", 90, 300),
            ("threshold", 1, 300),
            ("one", 1, 600),
        ):
            (left, right), *more = sizes(session, name)
            assert [extreme for _, extreme in more] == [[1, 1, 1]] * (name == "right"), "of the rows without a match"
            everywhere, divided = (left, right) if left == [copied] * 3 else (right, left)
            assert everywhere == [copied] * 3, name
            assert sum(divided) == spread and min(divided) > spread // 6, name
        assert [sorted(side) for side in sizes(session, "both")[0]] == [[0, 0, 1], [0, 0, 1]]
        assert sizes(session, "passing") == [([0, 0, 0], [300, 300, 300])]
        assert all(sum(left) == 300 and sum(right) == 180 for left, right in sizes(session, "between"))
        assert len(session.view("inside").rows()) == 90 and len(session.view("right").rows()) == sum(range(2, 92))


@pytest.mark.parametrize("n", [3, 60])
def test_a_point_finds_each_interval_once_after_resharding(n: int, tmp_path: Path) -> None:
    """Few intervals, and many: they are read in two ways."""
    script = "; ".join([*tables("BIGINT"), f"CREATE MATERIALIZED VIEW v AS {QUERIES['held']}"])
    for shards, x in ((3, 50), (2, 60)):
        with deltic.Session(state=tmp_path / "state", shards=shards) as session:
            session.sql(script)
            with session.transaction() as tx:
                if shards == 3:
                    tx.insert("b", [{"id": i, "k": 1, "y": i - n, "z": 100 + i} for i in range(n)])
                tx.upsert("a", [{"id": 1, "k": 1, "x": x, "w": None}])
            assert len(session.view("v").rows()) == n
            session.sql(f"UPDATE a SET x = {200 + x}")
            assert session.view("v").rows() == []
            session.sql(f"UPDATE a SET x = {x}")


def test_a_point_finds_each_interval_once_where_shards_have_more_and_less() -> None:
    """Each reads the few intervals that it has, or looks the point up in cells. The entries of an interval are on two shards: without its
    key it is divided by all words.
    """
    query = "SELECT y, z FROM b WHERE (SELECT max(x) FROM a) BETWEEN y AND z"
    with deltic.Session(shards=3) as session:
        session.sql("; ".join([*tables("BIGINT"), f"CREATE MATERIALIZED VIEW v AS {query}"]))
        session.insert("a", [{"id": 1, "k": 1, "x": 0, "w": None}])
        for n in range(1, 40):
            session.insert("b", [{"id": n, "k": 1, "y": -n, "z": n}])
            for x, held in ((200, 0), (0, n), (-200, 0), (n - 1, min(n, 2)), (0, n)):
                session.sql(f"UPDATE a SET x = {x}")
                assert len(session.view("v").rows()) == held, (n, x)


UNKEYED = (
    "SELECT a.x, b.y, b.z FROM a JOIN b ON a.x BETWEEN b.y AND b.z",
    "SELECT a.x, w.y, w.z FROM a JOIN (SELECT y, lead(y) OVER (ORDER BY y, id) AS z FROM b) AS w ON a.x >= w.y AND a.x < w.z",
    """SELECT m.x, w.y, w.z FROM (SELECT max(x) AS x FROM a) AS m
        JOIN (SELECT y, z FROM b ORDER BY z, id LIMIT 40) AS w ON m.x BETWEEN w.y AND w.z""",
)
"""Joins without keys, of intervals that are divided among the shards by all of their words."""


@pytest.mark.parametrize(("seed", "shards"), [(7, 5), (10, 4), *slow(*((seed, 2 + seed % 4) for seed in rotating(40)))])
def test_intervals_without_the_key_of_their_table_are_those_of_duckdb(seed: int, shards: int) -> None:
    """The shards have between none and dozens of them."""
    rng, spread = Random(seed), (10, 100)[seed % 2]
    with duckdb.connect() as other, deltic.Session(shards=shards) as session:
        for statement in tables("BIGINT"):
            other.execute(statement)
        session.sql("; ".join([*tables("BIGINT"), *(f"CREATE MATERIALIZED VIEW v{i} AS {query}" for i, query in enumerate(UNKEYED))]))
        for number in range(25):
            y = rng.randint(-spread, spread)
            point, interval = (number, 1, rng.randint(-spread, spread), 0), (number, 1, y, y + rng.randint(0, spread))
            dropped = rng.randint(-10, number)
            with session.transaction() as tx:
                for table, row in (("a", point), ("b", interval)):
                    tx.delete(table, [dropped] if 0 <= dropped < number and rows_of(other, table, dropped) else [])
                    tx.insert(table, [dict(zip(session.table(table).schema.names, row, strict=True))])
                    other.execute(f"DELETE FROM {table} WHERE id = {dropped}")
                    other.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", list(row))
            for i, query in enumerate(UNKEYED):
                actual = [tuple(row.values()) for row in session.view(f"v{i}").rows()]
                assert shown(actual) == shown(other.execute(query).fetchall()), (number, query)


def rows_of(other: duckdb.DuckDBPyConnection, table: str, key: int) -> list[tuple[object, ...]]:
    return other.execute(f"SELECT * FROM {table} WHERE id = {key}").fetchall()


def test_a_bound_that_overflows_fails_only_where_it_is_compared() -> None:
    with deltic.Session() as session:
        session.sql("; ".join(tables("BIGINT")))
        condition = "a.k = b.k AND a.x < b.y + 5 AND a.id > 0"
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT a.id AS i, b.id AS j FROM a JOIN b ON {condition}")
        session.sql(f"INSERT INTO b VALUES (1, 1, {2**63 - 1}, 0), (2, 2, 4, 0), (3, NULL, {2**63 - 1}, 0)")
        session.sql("INSERT INTO a VALUES (1, 2, 9, 0), (2, 3, 1, 0)")
        assert list(session.view("v").rows()) == []
        with pytest.raises(deltic.errors.ArithmeticOverflow, match="BIGINT addition"):
            session.sql("INSERT INTO a VALUES (3, 1, 7, 0)")
        session.sql("DELETE FROM b WHERE id = 1")
        session.sql("INSERT INTO a VALUES (3, 1, 7, 0)")
        assert list(session.view("v").rows()) == []


def test_ranges_have_no_warning_and_strings_have_one() -> None:
    with deltic.Session() as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql("; ".join([*tables("INT"), "CREATE MATERIALIZED VIEW v AS SELECT a.id FROM a JOIN b ON a.x < b.y"]))
        explained = str(session.explain("v"))
        assert "Join inner where (x#1 < y#2)" in explained and "range_join" in explained and "every row" not in explained
        with pytest.raises(PlanWarning, match="no equality joins b"):
            session.sql("CREATE MATERIALIZED VIEW w AS SELECT a.id FROM a JOIN b ON CAST(a.x AS STRING) < CAST(b.y AS STRING)")


def touched(session: deltic.Session) -> int:
    assert session.last_tick is not None
    return touched_rows(session)


@pytest.mark.parametrize(
    ("n", "names", "shards"),
    [
        (10_000, ["inside"], 1),
        (10_000, ["inside"], 3),
        *slow((10_000, [*INTERVALS], 1), (1_000_000, [*INTERVALS], 1), (1_000_000, ["inside", "overlap"], 3)),
    ],
)
def test_a_changed_row_costs_the_logarithm_and_its_matches(n: int, names: list[str], shards: int) -> None:
    """On several shards a changed row of the side that all of them have is looked up on each."""
    with deltic.Session(shards=shards) as session:
        session.sql("; ".join([*tables("BIGINT"), *(f"CREATE MATERIALIZED VIEW v_{name} AS {QUERIES[name]}" for name in names)]))
        ids, weights = np.arange(n), np.ones(n, np.int64)
        session.apply(
            {
                "a": pa.table({"id": ids, "k": ids % 3, "x": ids * 10, "w": ids * 10 + 5, "_weight": weights}),
                "b": pa.table({"id": ids, "k": ids % 3, "y": ids * 10 - 15, "z": ids * 10 + 15, "_weight": weights}),
            }
        )
        assert len(session.view("v_inside").to_arrow()) == 3 * n - 2
        for statement in (
            f"INSERT INTO a VALUES ({n}, 1, {5 * n}, {5 * n + 1})",
            f"INSERT INTO b VALUES ({n}, 1, {5 * n}, {5 * n + 10})",
            f"DELETE FROM b WHERE id = {n // 2}",
            f"UPDATE a SET x = x + 7 WHERE id = {n // 3}",
        ):
            session.sql(statement)
            assert touched(session) < BOUND * len(names) * shards, statement


@pytest.mark.parametrize("n", [10_000, *slow(1_000_000)])
def test_a_moved_threshold_touches_the_rows_between_the_old_and_the_new(n: int) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, x BIGINT, PRIMARY KEY (id)); CREATE TABLE b (id BIGINT, y BIGINT, PRIMARY KEY (id))")
        session.sql("CREATE MATERIALIZED VIEW above AS SELECT id FROM a WHERE x > (SELECT avg(y) FROM b)")
        session.sql("CREATE MATERIALIZED VIEW number AS SELECT count(*) AS n FROM a WHERE x > (SELECT avg(y) FROM b)")
        ids, weights = np.arange(n), np.ones(n, np.int64)
        session.apply({"a": pa.table({"id": ids, "x": ids, "_weight": weights}), "b": pa.table({"id": [1], "y": [n // 2], "_weight": [1]})})
        assert len(session.view("above").rows()) == n - n // 2 - 1
        session.sql(f"UPDATE b SET y = {n // 2 + 20}")
        assert len(session.view("above").rows()) == n - n // 2 - 21
        assert touched(session) < 600


@pytest.mark.parametrize("n", [10_000, *slow(1_000_000)])
def test_a_moved_threshold_of_one_key_touches_the_rows_between_too(n: int) -> None:
    """With all columns of the primary key compared with constants there is at most one row; otherwise several rows are an error."""
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE a (id BIGINT, x BIGINT, PRIMARY KEY (id)); CREATE TABLE b (k STRING, i INT, y BIGINT, PRIMARY KEY (k, i))"
        )
        threshold = "(SELECT y FROM (SELECT y FROM b AS c WHERE 'low' = c.k AND y IS NOT NULL AND i = 2) WHERE y < 900000000)"
        session.sql(f"CREATE MATERIALIZED VIEW above AS SELECT id FROM a WHERE x > {threshold}")
        session.sql(f"CREATE MATERIALIZED VIEW number AS SELECT count(*) AS n, {threshold} AS y FROM a WHERE x >= {threshold}")
        session.sql("CREATE MATERIALIZED VIEW several AS SELECT (SELECT y FROM b WHERE k = 'low') AS y")
        ids, weights = np.arange(n), np.ones(n, np.int64)
        session.apply({"a": pa.table({"id": ids, "x": ids, "_weight": weights})})
        assert not session.view("above").rows() and session.view("number").rows() == [{"n": 0, "y": None}]
        session.sql(f"INSERT INTO b VALUES ('low', 2, {n // 2}), ('high', 2, 7), ('high', 3, 8)")
        for y in (n // 2 + 20, n // 2 + 7, n // 2 + 27):
            session.sql(f"UPDATE b SET y = {y} WHERE k = 'low'")
            assert touched(session) < 1_000
            assert len(session.view("above").rows()) == n - y - 1
            assert session.view("number").rows() == [{"n": n - y, "y": y}]
        session.sql("DELETE FROM b WHERE k = 'low'")
        assert not session.view("above").rows() and session.view("number").rows() == [{"n": 0, "y": None}]
        with pytest.raises(EvaluationError, match="has 2 rows"):
            session.sql("INSERT INTO b VALUES ('low', 2, 1), ('low', 3, 1)")


def test_of_several_comparisons_the_first_looks_rows_up() -> None:
    """A new row of `a` is below 10 values of y, and below all of z."""
    n, queries = 2_000, {}
    for kind, text in (
        ("inner", "SELECT a.id, b.id AS j FROM a JOIN b ON {}"),
        ("anti", "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {})"),
    ):
        for order, (one, other) in (("few", ("a.x < b.y", "a.w < b.z")), ("all", ("a.w < b.z", "a.x < b.y"))):
            queries[f"{kind}_{order}"] = text.format(f"{one} AND {other}")
    with deltic.Session() as session:
        session.sql("; ".join(tables("BIGINT")))
        with pytest.warns(PlanWarning, match="one comparison looks up rows of .*, and no equality") as caught:
            session.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in queries.items()))
        assert len(caught) == len(queries)
        with session.transaction() as tx:
            tx.insert("b", [{"id": i, "k": 1, "y": i, "z": n + i} for i in range(n)])
        session.sql(f"INSERT INTO a VALUES (1, 1, {n - 11}, 5)")
        work = {name: work_of(session, name) for name in queries}
        assert all(("all" in name) == (count > n) for name, count in work.items()) and max(work["inner_few"], work["anti_few"]) < 300, work
        assert len(session.view("inner_few").rows()) == 10 and session.view("anti_all").rows() == []
        for name in queries:
            (note,) = session.explain(name).json()["notes"]
            assert note.endswith("one comparison looks rows up; the other conditions are tested on all that satisfy it")


def test_an_anti_join_by_intervals_keeps_the_number_of_matches() -> None:
    """A row of `a` in all of the intervals costs its matches when it comes, and one more interval little; the state has no pairs."""
    n = 1_000
    with deltic.Session() as session:
        session.sql("; ".join([*tables("BIGINT"), f"CREATE MATERIALIZED VIEW v AS {QUERIES['anti']}"]))
        with session.transaction() as tx:
            tx.insert("b", [{"id": i, "k": 1, "y": -i, "z": i} for i in range(n)])
        session.sql("INSERT INTO a VALUES (1, 1, 0, 0), (2, 1, 0, 0)")
        assert 2 * n <= work_of(session, "v") < 4 * 2 * n
        session.sql(f"INSERT INTO b VALUES ({n}, 1, -5, 5)")
        assert 0 < work_of(session, "v") < BOUND
        state = {o["id"]: o["state_rows"] for o in session.explain("v").json()["operators"] if o["operator"] == "trace_append"}
        assert sorted(state.values())[-1] == 2 * (n + 1) and sum(state.values()) < 2 * (n + 1) + 10, state
        session.sql("DELETE FROM b WHERE true")
        assert len(session.view("v").rows()) == 2


def work_of(session: deltic.Session, view: str) -> int:
    """Rows that the view's operators touched in the last tick."""
    return sum(operator["rows_touched"] for operator in session.explain(view).json()["operators"])


def test_an_open_bound_lets_null_pass() -> None:
    """`u.a > t.a OR t.a IS NULL` is TRUE of every u.a, NULL too; so no range is looked up by it."""
    queries = {
        "pairs": "SELECT t.n, u.n AS m FROM t JOIN u ON u.a > t.a OR t.a IS NULL",
        "exists": "SELECT n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a > t.a OR t.a IS NULL)",
        "not exists": "SELECT n FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a > t.a OR t.a IS NULL)",
        "overlap": "SELECT t.n, u.n AS m FROM t JOIN u ON t.a <= u.n AND (u.a <= t.n OR t.n IS NULL)",
        "overlap of open ends": "SELECT t.n, u.n AS m FROM t JOIN u ON (t.a <= u.n OR u.n IS NULL) AND (u.a <= t.n OR t.n IS NULL)",
    }
    rows = [{"n": n, "a": a} for n in (None, 1, 3) for a in (None, 0, 1, 2)]
    with deltic.Session() as session, duckdb.connect() as database, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.sql("CREATE TABLE t (n INT, a INT); CREATE TABLE u (n INT, a INT)")
        database.sql("CREATE TABLE t (n INT, a INT); CREATE TABLE u (n INT, a INT)")
        for number, query in enumerate(queries.values()):
            session.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
        for row in rows:
            for table in "tu":
                session.apply({table: [{**row, "_weight": 1}]})
                database.execute(f"INSERT INTO {table} VALUES (?, ?)", [row["n"], row["a"]])
        for number, (name, query) in enumerate(queries.items()):
            found = Counter(tuple(row.values()) for row in session.view(f"v{number}").rows())
            assert found == Counter(database.sql(query).fetchall()), name


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
def test_a_condition_on_a_count_of_one_side_is_tested_before_rows_are_looked_up() -> None:
    """The count is NULL without rows, and its default a column that the condition reads."""
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE t (id BIGINT, k BIGINT, x BIGINT); CREATE TABLE u (y BIGINT); CREATE TABLE w (k BIGINT);
            CREATE MATERIALIZED VIEW v AS SELECT id, y FROM t JOIN u ON y > x WHERE (SELECT count(*) FROM w WHERE w.k = t.k) >= 2
        """)
        session.insert("t", [{"id": id_, "k": id_, "x": 0} for id_ in range(9)])
        session.insert("u", [{"y": y} for y in range(1, 1_001)])
        session.insert("w", [{"k": 4}])
        assert session.view("v").rows() == [] and touched_rows(session) < 100
        session.insert("w", [{"k": 4}])
        assert session.view("v").rows() == [{"id": 4, "y": y} for y in range(1, 1_001)]
        session.insert("w", [{"k": 4}])
        assert len(session.view("v").rows()) == 1_000 and touched_rows(session) < 100
