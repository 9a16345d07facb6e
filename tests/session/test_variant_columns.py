"""VARIANT as a column: in views and their state, in nested values, in frames, and refused where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from deltic import Variant
from deltic.errors import ConstraintViolation, DelticError, FrameError, QueryError
from tests.support.checked import check_replaced_rows

SCRIPT = """
CREATE TABLE t (id BIGINT PRIMARY KEY, j STRING, v VARIANT, a ARRAY<VARIANT>, s STRUCT<x: VARIANT, y: INT>, m MAP<STRING, VARIANT>);
CREATE MATERIALIZED VIEW parts AS
    SELECT id, v, v:a AS a, v:a.b[0] AS b, v:k::STRING AS k, try_variant_get(v, '$.a', 'MAP<STRING, INT>') AS m, get(t.a, 0):k AS e,
           s.x AS x, schema_of_variant(v) AS schema, to_json(struct(v, a, s, m)) AS text, is_variant_null(v) AS n
    FROM t;
CREATE MATERIALIZED VIEW parsed AS SELECT id, try_parse_json(j) AS p, CAST(id AS VARIANT) AS i FROM t;
CREATE MATERIALIZED VIEW exploded AS SELECT id, pos, key, value FROM t, LATERAL variant_explode(v);
CREATE MATERIALIZED VIEW kept AS SELECT id, x.pos, x.value:k AS k FROM t, LATERAL variant_explode_outer(v) AS x;
CREATE MATERIALIZED VIEW grouped AS
    SELECT v:k::STRING AS k, count(*) AS n, count(v) AS present, schema_of_variant_agg(v) AS schema FROM t GROUP BY v:k::STRING;
CREATE MATERIALIZED VIEW kept_values AS
    SELECT id % 2 AS g, collect_list(v) AS list, collect_set(v) AS set, first(v) AS first, last(a) AS last, mode(v) AS mode,
           min_by(v, j) AS low, max_by(s, id) AS high, max_by(m, id, 2) AS two, any_value(m) AS some, collect_list(m) AS maps
    FROM t GROUP BY id % 2;
CREATE MATERIALIZED VIEW unions AS SELECT id, v FROM t UNION ALL SELECT id, s.x FROM t WHERE s.y > 0;
CREATE MATERIALIZED VIEW joined AS SELECT t.v, u.s FROM t JOIN t AS u ON t.id = u.v:id::BIGINT;
CREATE MATERIALIZED VIEW made AS SELECT id, to_variant_object(struct(j, m, a)) AS o, map('v', v) AS mv, array(v, s.x) AS av FROM t;
"""
TEXTS = (
    '{"a":{"b":[1,"x"]},"k":"y"}',
    '{"k":"x","id":1}',
    "[1,2.50,null]",
    '"k"',
    "null",
    '{"k":["x"],"id":2}',
    '{"a":{"b":1,"c":2}}',
    "{}",
)
VALUES = (None, *map(Variant.parse_json, TEXTS), Variant.of({"n": "z" * 300, "id": 3}))


def row(rng: Random, id_: int) -> tuple[Any, ...]:
    some = [rng.choice(VALUES) for _ in range(rng.randrange(3))]
    struct = rng.choice([None, (rng.choice(VALUES), rng.choice([None, 0, 1]))])
    array, entries = rng.choice([None, tuple(some)]), tuple(zip(("k", "l"), some, strict=False))
    return id_, rng.choice((*TEXTS, "{", None)), rng.choice(VALUES), array, struct, rng.choice([None, entries])


@pytest.mark.parametrize("shards", [1, 3])
def test_views_over_variants(shards: int, tmp_path: Path) -> None:
    """Equal to the oracle after each tick, on one shard or three, and after a restart."""
    check_replaced_rows(SCRIPT, row, Random(7), ticks=5, ids=9, shards=shards, state=tmp_path / "state")


def session_of(columns: str, view: str = "SELECT * FROM t") -> deltic.Session:
    session = deltic.Session()
    session.sql(f"CREATE TABLE t ({columns}); CREATE MATERIALIZED VIEW v AS {view}")
    return session


def test_values_that_differ_in_nothing_but_their_bytes_do_not_collapse() -> None:
    session = session_of("v VARIANT")
    one, other = Variant.parse_json("1.50"), Variant.parse_json("1.5")
    with session.transaction() as tx:
        tx.insert("t", [{"v": value} for value in (one, one, other, Variant.of(1), Variant.of(1.0), None, Variant.of(None))])
    with session.transaction() as tx:
        tx.delete("t", [{"v": one}])
    assert len(session.view("v").rows()) == 6
    assert {repr(row["v"]) for row in session.view("v").rows()} == {
        repr(value) for value in (one, other, Variant.of(1), Variant.of(1.0), None, Variant.of(None))
    }


def test_rows_have_variants_and_frames_have_their_parts_as_spark_has_them() -> None:
    session = session_of("v VARIANT, m MAP<STRING, ARRAY<VARIANT>>")
    value = Variant.of({"a": 1})
    with session.transaction() as tx:
        tx.insert("t", [{"v": value, "m": {"k": [value, None]}}, {"v": {"value": value.value, "metadata": value.metadata}, "m": None}])
    one, other = sorted(session.view("v").rows(), key=lambda row: row["m"] is None)
    assert (one, other) == ({"v": value, "m": [("k", [value, None])]}, {"v": value, "m": None})
    assert one["v"].to_python() == {"a": 1}
    table = session.view("v").to_arrow()
    kind = table.schema.field("v").type
    assert kind == pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    assert kind.field("metadata").metadata == {b"variant": b"true"}
    with session.transaction() as tx:
        tx.insert("t", table)
    assert len(session.view("v").rows()) == 4


def test_arrow_columns_of_other_forms() -> None:
    """The parts in the other order, as Parquet's specification has them, in larger types, and within an ARRAY."""
    session = session_of("v VARIANT, a ARRAY<VARIANT>")
    value = Variant.parse_json('{"a":[1]}')
    kind = pa.struct([("metadata", pa.large_binary()), ("value", pa.binary_view())])
    parts = {"metadata": value.metadata, "value": value.value}
    with session.transaction() as tx:
        tx.insert("t", pa.table({"v": pa.array([parts, None], kind), "a": pa.array([[parts, None], []], pa.list_(kind))}))
    assert session.view("v").rows() == [{"v": None, "a": []}, {"v": value, "a": [value, None]}]
    for wrong in (pa.struct([("value", pa.binary())]), pa.struct([*kind, pa.field("typed_value", pa.int64())]), pa.string()):
        with pytest.raises(FrameError, match="column v: found Arrow"), session.transaction() as tx:
            tx.insert("t", pa.table({"v": pa.nulls(1, wrong), "a": pa.array([[]], pa.list_(kind))}))


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (5, FrameError, "row 0, column v: found int 5"),
        ({"a": 1}, ConstraintViolation, "does not fit"),
        ((b"\x0c",), ConstraintViolation, "does not fit"),
        ((b"\x03\xff", b"\x01\x00\x00"), ConstraintViolation, "row 0, column v: bytes that are no VARIANT: they end too early"),
        ((b"\x0c\x01", b"\x02\x00\x00"), ConstraintViolation, "the metadata is not of version 1"),
    ],
)
def test_values_that_are_no_variant_are_refused(value: Any, error: type[DelticError], match: str) -> None:
    session = session_of("v VARIANT, a ARRAY<VARIANT>")
    with pytest.raises(error, match=match) as caught, session.transaction() as tx:
        tx.insert("t", [{"v": value, "a": None}])
    assert "deltic.Variant" in str(caught.value)
    with pytest.raises(ConstraintViolation, match="column a"), session.transaction() as tx:
        tx.insert("t", [{"v": None, "a": [value]}])
    damaged = pa.table({"v": pa.array([(b"\x03\xff", b"\x01\x00\x00")], pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))})
    with pytest.raises(ConstraintViolation, match="row 0, column v"), session.transaction() as tx:
        tx.insert("t", damaged.append_column("a", pa.nulls(1, session.view("v").to_arrow().schema.field("a").type)))


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("SELECT DISTINCT v FROM t", "DISTINCT does not support VARIANT: a VARIANT cannot be compared"),
        ("SELECT v, count(*) FROM t GROUP BY v", "a VARIANT cannot be compared"),
        ("SELECT v FROM t UNION SELECT v FROM t", "a VARIANT cannot be compared"),
        ("SELECT v FROM t EXCEPT ALL SELECT v FROM t", "a VARIANT cannot be compared"),
        ("SELECT v FROM t ORDER BY v LIMIT 1", "a VARIANT cannot be compared"),
        ("SELECT a.v FROM t a JOIN t b ON a.v = b.v", "a VARIANT cannot be compared"),
        ("SELECT v = '1' FROM t", "a VARIANT cannot be compared"),
        ("SELECT v IN (v) FROM t", "a VARIANT cannot be compared"),
        ("SELECT nullif(v, v) FROM t", "a VARIANT cannot be compared"),
        ("SELECT array_distinct(array(v)) FROM t", "a VARIANT cannot be compared"),
        ("SELECT greatest(v, v) FROM t", "a VARIANT cannot be compared"),
        ("SELECT map(v, 1) FROM t", "the key of a MAP cannot be VARIANT"),
        ("SELECT hash(v) FROM t", "argument 1 of hash has the wrong type"),
        ("SELECT max(v) FROM t", "MAX does not accept VARIANT"),
        ("SELECT max_by(1, v) FROM t", "MAX_BY does not accept VARIANT"),
        ("SELECT collect_list(DISTINCT v) FROM t", "DISTINCT does not support VARIANT"),
        ("SELECT sum(v) FROM t", "SUM does not accept VARIANT"),
        ("SELECT v + 1 FROM t", "VARIANT"),
        ("SELECT coalesce(v, 1) FROM t", "no common type"),
        ("SELECT t.v.a FROM t", "VARIANT has no field a"),
        ("SELECT v['a'] FROM t", "VARIANT"),
        ("SELECT explode(v) FROM t", r"explode\(\) does not accept VARIANT"),
        ("SELECT size(v) FROM t", "VARIANT"),
        ("SELECT variant_explode(v) FROM t", r"variant_explode\(\) is allowed in FROM only"),
        ("SELECT k FROM t LATERAL VIEW variant_explode(v) e AS p, k, w", "is allowed in FROM only"),
        ("SELECT parse_json(1)", "expected: STRING, found INT"),
        ("SELECT CAST(struct(1) AS VARIANT)", "cannot cast STRUCT<col1: INT> to VARIANT"),
        ("SELECT CAST(INTERVAL '1' DAY AS VARIANT)", "cannot cast INTERVAL DAY to VARIANT"),
        ("SELECT CAST(v AS INTERVAL DAY) FROM t", "cannot cast VARIANT to INTERVAL DAY"),
        ("SELECT CAST(v AS MAP<INT, INT>) FROM t", "cannot cast VARIANT to MAP<INT, INT>"),
        ("SELECT to_variant_object(map(1, 2))", r"argument 1 of to_variant_object is MAP<INT, INT>"),
        ("SELECT to_variant_object(1)", "argument 1 of to_variant_object is INT"),
        ("SELECT variant_get(v, 'a') FROM t", "invalid path 'a'"),
        ("SELECT variant_get(v, '$.a', 'foo') FROM t", "the type FOO is not supported"),
        ("SELECT v: FROM t GROUP", "syntax error"),
        ("SELECT v:a['x FROM t", "unterminated quote"),
    ],
)
def test_what_spark_refuses_is_refused(query: str, match: str) -> None:
    session = session_of("v VARIANT")
    with pytest.raises(QueryError, match=match):
        session.sql(f"CREATE MATERIALIZED VIEW w AS {query}")


@pytest.mark.parametrize("table", ["CREATE TABLE u (v VARIANT PRIMARY KEY)", "CREATE TABLE u (m MAP<VARIANT, INT>)"])
def test_a_variant_is_no_key(table: str) -> None:
    with pytest.raises(QueryError, match="VARIANT"):
        deltic.Session().sql(table)


def test_a_cast_that_fails_names_the_value_and_its_place() -> None:
    session = session_of("v VARIANT", "SELECT v:a::INT AS a FROM t")
    with pytest.raises(DelticError, match=r"the value \"x\" of type VARIANT cannot be cast to INT") as caught, session.transaction() as tx:
        tx.insert("t", [{"v": Variant.of({"a": "x"})}])
    assert "v:a::INT" in str(caught.value)
    assert session.view("v").rows() == []


def test_python_functions_take_and_return_variants() -> None:
    session = deltic.Session()
    session.sql("CREATE TABLE t (v VARIANT, a ARRAY<VARIANT>)")
    session.register("keys", lambda v: sorted(v.to_python()), returns="ARRAY<STRING>")
    session.register("wrapped", lambda a: Variant.of({"all": a}), returns="VARIANT")
    session.sql("CREATE MATERIALIZED VIEW w AS SELECT keys(v) AS k, wrapped(a) AS o FROM t")
    with session.transaction() as tx:
        tx.insert("t", [{"v": Variant.of({"b": 1, "a": 2}), "a": [Variant.of(1), Variant.of("x")]}])
    assert session.view("w").rows() == [{"k": ["a", "b"], "o": Variant.of({"all": [1, "x"]})}]
    session.register("damaged", lambda v: (b"\x03\xff", b"\x01\x00\x00"), returns="VARIANT")
    with pytest.raises(DelticError, match="returned"):
        session.sql("CREATE MATERIALIZED VIEW d AS SELECT damaged(v) AS k FROM t")


def test_names_of_paths_are_those_of_spark() -> None:
    session = session_of("v VARIANT", "SELECT v:a.b[0]::INT, v:`k y`, v:c['d'], v:[1] FROM t")
    assert session.view("v").schema.names == ("b", "k y", "d", "variant_get(v, $[1])")


def test_files_of_json_and_parquet(tmp_path: Path) -> None:
    """JSON takes any value; Parquet the parts in any order, also NOT NULL, as Spark writes them. What is no VARIANT is a dead letter."""
    value = Variant.of({"a": [1]})
    lines = ('{"id":1,"v":{"a":[1]}}', '{"id":2,"v":null}', '{"id":3}', '{"id":4,"a":[1.50,null]}', '{"id":5,"v":{"a":1,"a":2}}')
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "a.json").write_text("\n".join((*lines, '{"id":6,"v":"\\ud83d"}', '{"id":7,"v":NaN}', "")))
    (tmp_path / "parquet").mkdir()
    parts = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
    for i, kind in enumerate(
        (pa.struct(parts), pa.struct(parts[::-1]), session_of("v VARIANT").view("v").to_arrow().schema.field("v").type)
    ):
        rows = [{"value": value.value, "metadata": value.metadata}, None, {"value": b"\x03\xff", "metadata": b"\x01\x00\x00"}]
        table = pa.table({"id": pa.array([10 * i, 10 * i + 1, 10 * i + 2], pa.int32()), "v": pa.array(rows, kind)})
        pq.write_table(table, tmp_path / "parquet" / f"{i}.parquet")
    letters = "append_only true, on_error 'dead_letter', dead_letter_path 'letters'"
    script = f"""
        CREATE TABLE j (id INT, v VARIANT, a ARRAY<VARIANT>) USING json OPTIONS (path 'json', {letters});
        CREATE TABLE p (id INT, v VARIANT) USING parquet OPTIONS (path 'parquet', {letters});
        CREATE MATERIALIZED VIEW vj AS SELECT * FROM j;
        CREATE MATERIALIZED VIEW vp AS SELECT * FROM p;
        CREATE SINK sj FROM vj USING json OPTIONS (path 'out', mode 'snapshot');
        CREATE SINK sp FROM vp USING parquet OPTIONS (path 'written', mode 'snapshot');
    """
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
    state = deltic.open(str(tmp_path / "state"))
    rows = {row["id"]: (row["v"], row["a"]) for row in state.view("vj").rows()}
    nan = Variant.of(float("nan"))
    half = [Variant.parse_json("1.50"), Variant.of(None)]
    assert rows == {1: (value, None), 2: (Variant.of(None), None), 3: (None, None), 4: (None, half), 7: (nan, None)}
    assert {row["id"]: row["v"] for row in state.view("vp").rows()} == {0: value, 1: None, 10: value, 11: None, 20: value, 21: None}
    reasons = "".join(file.read_text() for file in sorted((tmp_path / "letters").iterdir()))
    assert reasons.count("bytes that are no VARIANT: they end too early") == 3
    assert "the name 'a' comes twice in an object" in reasons and "half of a surrogate pair" in reasons
    written = [json.loads(line) for line in (tmp_path / "out" / "snapshot.json").read_text().splitlines()]
    assert written[0] == {"id": 1, "v": {"a": [1]}, "a": None} and written[3] == {"id": 4, "v": None, "a": [1.5, None]}
    assert pq.read_table(tmp_path / "written" / "snapshot.parquet").column("v").to_pylist()[0] == value._asdict()


def test_csv_has_no_form_for_a_variant(tmp_path: Path) -> None:
    script = "CREATE TABLE t (v VARIANT) USING csv OPTIONS (path 'in')"
    with pytest.raises(DelticError, match="CSV has no form for the column v of VARIANT"):
        deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path).run_once()
    assert not (tmp_path / "state").exists()


def test_a_nested_column_of_kindred_types_in_parquet(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table(
        {"a": pa.array([[1, None], None, [3]], pa.large_list(pa.int32())), "s": pa.array([{"X": 1}] * 3, pa.struct([("X", pa.int8())]))}
    )
    pq.write_table(table, tmp_path / "in" / "a.parquet", store_schema=True)
    script = """
        CREATE TABLE t (a ARRAY<BIGINT>, s STRUCT<x: INT>) USING parquet OPTIONS (path 'in', append_only true);
        CREATE MATERIALIZED VIEW v AS SELECT * FROM t;
    """
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
    rows = deltic.open(str(tmp_path / "state")).view("v").rows()
    assert sorted((row["a"] or [] for row in rows), key=len) == [[], [3], [1, None]] and {row["s"]["x"] for row in rows} == {1}


def test_arrays_for_spark_have_parts_that_are_not_null() -> None:
    pytest.importorskip("pyspark")
    from deltic.runtimes.spark.arrays import for_spark, in_spark  # noqa: PLC0415  needs the extra

    session = session_of("v VARIANT, a ARRAY<VARIANT>, s STRUCT<x: ARRAY<VARIANT>, y: INT>, m MAP<STRING, VARIANT>, i INT")
    one = Variant.of("x")
    with session.transaction() as tx:
        tx.insert(
            "t", [dict.fromkeys("vasmi"), {"v": one, "a": [one, None], "s": {"x": [None, one], "y": 1}, "m": {"k": None, "l": one}, "i": 5}]
        )
    table = session.view("v").to_arrow().combine_chunks()
    for column in table.columns:
        for array in (column.chunk(0), column.chunk(0).slice(1)):
            found = for_spark(array)
            found.validate(full=True)
            assert found.type == in_spark(array.type) and found.to_pylist() == array.to_pylist()
            assert "not null" in str(found.type) or found.type == pa.int32()


def test_constants_and_functions_of_variants_and_their_state(tmp_path: Path) -> None:
    script = """
        CREATE TABLE t (id INT PRIMARY KEY, v VARIANT);
        CREATE FUNCTION f(x VARIANT) RETURNS STRING RETURN x:a::STRING;
        CREATE MATERIALIZED VIEW c AS
            SELECT id, coalesce(v, parse_json('{"a":[1]}')) AS x, array(parse_json('1'), NULL) AS z, f(v) AS f FROM t;
        CREATE MATERIALIZED VIEW e AS SELECT * FROM variant_explode(parse_json('{"b":1,"a":null}'));
        CREATE MATERIALIZED VIEW r AS SELECT v:a::INT AS a FROM VALUES (parse_json('{"a":1}')), (NULL) AS q(v);
    """
    for i in range(2):
        with deltic.Session(state=tmp_path / "state") as session:
            session.sql(script)
            with session.transaction() as tx:
                tx.insert("t", [{"id": i, "v": Variant.of({"a": i}) if i else None}])
            rows = [(row["x"].to_json(), row["z"], row["f"]) for row in session.view("c").rows()]
            z = [Variant.of(1), None]
            assert rows == [('{"a":[1]}', z, None), ('{"a":1}', z, "1")][: i + 1]
            assert [(row["pos"], row["key"], str(row["value"])) for row in session.view("e").rows()] == [(0, "a", "null"), (1, "b", "1")]
            assert {row["a"] for row in session.view("r").rows()} == {1, None}
            assert """VARIANT '{"a":[1]}'""" in str(session.explain("c"))
