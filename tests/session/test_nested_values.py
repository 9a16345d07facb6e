"""ARRAY, MAP and STRUCT in views: fields, elements, rows of elements, constructors; one shard, three, and after a restart."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import deltic
from deltic.connectors.files.writing import encoded
from deltic.errors import ConstraintViolation, EvaluationError, FrameError, QueryError
from deltic.session.state_query import StateQueries
from tests.support.checked import check_replaced_rows

SCRIPT = """
CREATE TABLE t (
    id BIGINT NOT NULL,
    s STRUCT<a: INT, b: STRUCT<c: STRING, d: ARRAY<DOUBLE>>>,
    a ARRAY<STRUCT<k: STRING, n: INT>>,
    m MAP<STRING, ARRAY<INT>>,
    PRIMARY KEY (id)
);
CREATE MATERIALIZED VIEW parts AS
    SELECT id, s.a, t.s.b.c, s.b.d AS d, try_element_at(a, 1).k AS k, a.n AS ns, try_element_at(m, 'x') AS x, m['y'] AS y, size(a) AS many,
           map_keys(m) AS keys, CAST(s AS STRING) AS text, CAST(a AS ARRAY<STRUCT<p: STRING, q: BIGINT>>) AS wide
    FROM t;
CREATE MATERIALIZED VIEW elements AS SELECT id, explode(a) AS e FROM t;
CREATE MATERIALIZED VIEW numbered AS SELECT id, pos, e.k FROM t LATERAL VIEW OUTER posexplode(a) AS pos, e;
CREATE MATERIALIZED VIEW entries AS SELECT id, explode(m) FROM t;
CREATE MATERIALIZED VIEW inlined AS SELECT id, inline_outer(a) FROM t;
CREATE MATERIALIZED VIEW counted AS
    SELECT e.k, count(*) AS n, sum(e.n) AS total FROM t LATERAL VIEW explode(a) AS e WHERE e.n > 0 GROUP BY e.k;
CREATE MATERIALIZED VIEW made AS
    SELECT array(id, s.a) AS xs, named_struct('i', id, 's', s) AS st, map('id', id, 'a', s.a) AS mm, array(struct(id, m)) AS deep FROM t;
CREATE MATERIALIZED VIEW over_made AS SELECT st.s.b.c AS c, count(*) AS n, max(xs) AS top FROM made GROUP BY st.s.b.c;
CREATE MATERIALIZED VIEW unions AS SELECT s AS v FROM t UNION SELECT named_struct('a', 1L, 'b', NULL) FROM t;
"""


def value(rng: Random) -> tuple[Any, ...]:
    """A row but for its id."""
    words = (None, "", "x", "y", "é\0z")
    inner = rng.choice([None, (rng.choice(words), rng.choice([None, (), (0.5, None), (1.0,)]))])
    s = rng.choice([None, (rng.choice([None, 1, -1]), inner)])
    a = rng.choice([None, tuple(rng.choice([None, (rng.choice(words), rng.choice([None, 0, 1, 2]))]) for _ in range(rng.randrange(4)))])
    keys = rng.sample(["x", "y", "z"], rng.randrange(4))
    m = rng.choice([None, tuple((key, rng.choice([None, (), (1, None, 3)])) for key in keys)])
    return s, a, m


@pytest.mark.parametrize("shards", [1, 3])
def test_views_over_nested_columns(shards: int, tmp_path: Path) -> None:
    check_replaced_rows(SCRIPT, lambda rng, id_: (id_, *value(rng)), Random(11), ticks=6, ids=14, shards=shards, state=tmp_path / "state")


def session_of(columns: str, view: str) -> deltic.Session:
    session = deltic.Session()
    session.sql(f"CREATE TABLE t ({columns}); CREATE MATERIALIZED VIEW v AS {view}")
    return session


def test_an_index_outside_an_array_fails_the_tick_by_its_place() -> None:
    session = session_of("a ARRAY<INT>", "SELECT a[1] AS x FROM t")
    session.apply({"t": [{"a": [1, 2], "_weight": 1}]})
    with pytest.raises(EvaluationError, match=r"the index 1 is not in an ARRAY of 1 elements"):
        session.apply({"t": [{"a": [5], "_weight": 1}]})
    assert session.view("v").rows() == [{"x": 2}]


@pytest.mark.parametrize(
    ("columns", "rows", "error", "match"),
    [
        ("a ARRAY<INT>", [{"a": [1, "x"]}], ConstraintViolation, r"row 0, column a: \[1, 'x'\] does not fit"),
        ("a ARRAY<INT>", [{"a": [1]}, {"a": [2**31]}], ConstraintViolation, "row 1, column a"),
        ("a ARRAY<INT>", [{"a": 5}], FrameError, "found int 5"),
        ("s STRUCT<a: INT, b: INT>", [{"s": {"a": 1}}], ConstraintViolation, "does not fit"),
        ("s STRUCT<a: INT>", [{"s": {"a": 1, "z": 2}}], ConstraintViolation, "does not fit"),
        ("m MAP<STRING, INT>", [{"m": [("a", 1), ("a", 2)]}], ConstraintViolation, "a MAP with a key that is NULL, or there twice"),
        ("a ARRAY<BOOLEAN>", [{"a": [1]}], ConstraintViolation, "does not fit"),
    ],
)
def test_rows_that_do_not_fit_a_nested_column_are_refused(columns: str, rows: list[Any], error: type[Exception], match: str) -> None:
    session = session_of(columns, "SELECT * FROM t")
    with pytest.raises(error, match=match), session.transaction() as tx:
        tx.insert("t", rows)
    assert session.view("v").rows() == []


def test_arrow_columns_come_in_as_they_are_and_as_their_kin() -> None:
    session = session_of("a ARRAY<BIGINT>, s STRUCT<x: DOUBLE, y: ARRAY<STRING>>", "SELECT * FROM t")
    wide = pa.table(
        {
            "a": pa.array([[1, 2], None], pa.large_list(pa.int8())),
            "s": pa.array([{"X": 1.5, "Y": ["p", None]}, None], pa.struct([("X", pa.float32()), ("Y", pa.list_(pa.large_string()))])),
        }
    )
    with session.transaction() as tx:
        tx.insert("t", wide)
    assert session.view("v").to_arrow().schema.field("a").type == pa.list_(pa.int64())
    actual = sorted(session.view("v").rows(), key=lambda row: row["a"] or [])
    assert actual == [{"a": None, "s": None}, {"a": [1, 2], "s": {"x": 1.5, "y": ["p", None]}}]
    with pytest.raises(FrameError, match="column s: found Arrow struct"), session.transaction() as tx:
        tx.insert("t", wide.set_column(1, "s", pa.array([{"x": 1.5}] * 2)))


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("SELECT DISTINCT m FROM t", "DISTINCT does not support"),
        ("SELECT m FROM t UNION SELECT m FROM t", "UNION does not support"),
        ("SELECT m FROM t ORDER BY m LIMIT 1", "ORDER BY does not support"),
        ("SELECT max(m) AS x FROM t", "MAX does not accept MAP"),
        ("SELECT collect_set(m) AS x FROM t", "COLLECT_SET does not accept MAP"),
        ("SELECT mode(m) AS x FROM t", "MODE does not accept MAP"),
        ("SELECT m = m AS x FROM t", "= does not support"),
        ("SELECT count(DISTINCT m) AS x FROM t", "does not support MAP"),
        ("SELECT s.z FROM t", "STRUCT<a: INT> has no field z"),
        ("SELECT s[0] AS x FROM t", "argument 1 of"),
        ("SELECT upper(s) AS x FROM t", "argument 1 of upper has the wrong type"),
        ("SELECT a + 1 AS x FROM t", "does not accept ARRAY<INT> and INT"),
        ("SELECT explode(s) AS x FROM t", "explode\\(\\) does not accept STRUCT"),
        ("SELECT array(1, 'x', s) AS x FROM t", "no common type"),
        ("SELECT CAST(s AS INT) AS x FROM t", "cannot cast STRUCT<a: INT> to INT"),
        ("SELECT CAST(NULL AS ARRAY<INT) AS x FROM t", "expected: >"),
        ("SELECT CAST(NULL AS STRUCT<a: INT NOT NULL>) AS x FROM t", "NOT NULL is not supported within a type"),
        ("SELECT CAST(NULL AS STRUCT<a: INT, A: INT>) AS x FROM t", "two fields of a STRUCT are called a"),
        ("SELECT CAST(NULL AS MAP<MAP<INT, INT>, INT>) AS x FROM t", "the key of a MAP cannot be"),
        ("SELECT map(NULL, 1) AS x FROM t", r"(?s)the key of a MAP cannot be NULL\n.*\^"),
        ("SELECT transform_keys(m, (k, v) -> NULL) AS x FROM t", r"(?s)the key of a MAP cannot be NULL\n.*\^"),
        ("SELECT map_from_entries(array(struct(NULL, a))) AS x FROM t", r"(?s)the key of a MAP cannot be NULL\n.*\^"),
        ("SELECT map_from_arrays(array(NULL), array(a)) AS x FROM t", r"(?s)the key of a MAP cannot be NULL\n.*\^"),
    ],
)
def test_what_has_no_meaning_is_refused_by_its_place(query: str, match: str) -> None:
    with pytest.raises(QueryError, match=match):
        session_of("m MAP<STRING, INT>, s STRUCT<a: INT>, a ARRAY<INT>", query)


def test_try_cast_makes_null_of_the_part_that_fails() -> None:
    session = session_of("a ARRAY<STRING>", "SELECT TRY_CAST(a AS ARRAY<INT>) AS x FROM t")
    session.apply({"t": [{"a": ["1", "x", None], "_weight": 1}]})
    assert session.view("v").rows() == [{"x": [1, None, None]}]


@pytest.mark.parametrize("shards", [1, 3])
def test_nulls_without_a_type_in_nested_values(shards: int, tmp_path: Path) -> None:
    """Arrow has no buffer for a column whose type is that of NULL."""
    values = "array(NULL) AS a, array(NULL, array(NULL)) AS b, map(1, NULL) AS m, named_struct('x', NULL, 'y', array()) AS s"
    expected = {"a": [None], "b": [None, [None]], "m": [(1, None)], "s": {"x": None, "y": []}}
    with deltic.Session(shards=shards, state=tmp_path / "state") as session:
        assert session.query(f"SELECT {values}").rows() == [expected]
        assert session.query("SELECT coalesce(CASE WHEN id > 1 THEN array(NULL) END, array()) AS v FROM range(1, 3)").rows() == [
            {"v": []},
            {"v": [None]},
        ]
        session.sql(f"""
            CREATE TABLE t (id INT PRIMARY KEY, a ARRAY<ARRAY<INT>>, m MAP<INT, STRING>, s STRUCT<x: STRING, y: ARRAY<INT>>);
            CREATE MATERIALIZED VIEW made AS SELECT id, {values} FROM t;
            CREATE MATERIALIZED VIEW counted AS
                SELECT array(NULL, CASE WHEN id > 1 THEN array(NULL) END) AS k, count(*) AS n FROM t GROUP BY k;
            INSERT INTO t VALUES
                (1, array(NULL), map(1, NULL), named_struct('x', NULL, 'y', array(NULL))), (2, array(array(NULL), array()), NULL, NULL)""")
        first = {"id": 1, "a": [None], "m": [(1, None)], "s": {"x": None, "y": [None]}}
        assert session.query("SELECT * FROM t ORDER BY id").rows() == [first, {"id": 2, "a": [[None], []], "m": None, "s": None}]
        session.sql("DELETE FROM t WHERE a = array(NULL)")
        assert session.view("made").rows() == [{"id": 2, **expected}]
    queries = StateQueries(tmp_path / "state")
    assert queries.query("SELECT * FROM counted").rows() == [{"k": [None, [None]], "n": 1}]
    queries.close()


def test_a_change_of_one_row_writes_one_value(tmp_path: Path) -> None:
    session = deltic.Session(state=tmp_path / "state")
    session.sql("CREATE TABLE t (id INT, a ARRAY<INT>, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    with session.transaction() as tx:
        tx.insert("t", [{"id": i, "a": list(range(i, i + 20))} for i in range(1000)])
    written = sum(file.stat().st_size for file in (tmp_path / "state").rglob("*") if file.is_file())
    with session.transaction() as tx:
        tx.upsert("t", [{"id": 7, "a": [1]}])
    after = sum(file.stat().st_size for file in (tmp_path / "state").rglob("*") if file.is_file())
    assert after - written < written / 10
    assert session.view("v").lookup(7) == [{"id": 7, "a": [1]}]
    session.close()


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_files_hold_nested_values(format: str, tmp_path: Path) -> None:
    columns = "id INT, a ARRAY<STRUCT<d: DATE, x: DOUBLE>>, m MAP<INT, STRING>, b BINARY, n TIMESTAMP_NTZ"
    rows = [
        {"id": 1, "a": [{"d": None, "x": 1.5}, None], "m": [(1, 'q"'), (2, None)], "b": b"\x00\xff", "n": None},
        {"id": 2, "a": [], "m": [], "b": b"", "n": None},
        {"id": 3, "a": None, "m": None, "b": None, "n": None},
    ]
    written = tmp_path / "out"
    script = f"""
        CREATE TABLE t ({columns}) USING {format} OPTIONS (path 'in');
        CREATE MATERIALIZED VIEW v AS SELECT * FROM t;
        CREATE SINK o FROM v USING {format} OPTIONS (path 'out', mode 'snapshot');
    """
    (tmp_path / "in").mkdir()
    arrow = session_of(columns, "SELECT * FROM t")
    with arrow.transaction() as tx:
        tx.insert("t", rows)
    (tmp_path / "in" / f"a.{format}").write_bytes(b"".join(map(bytes, encoded(arrow.view("v").to_arrow(), format))))
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
        assert sorted(pipeline.session.view("v").rows(), key=lambda row: row["id"]) == rows
    assert any(written.iterdir())
