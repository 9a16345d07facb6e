"""Texts with collations in views that change: compared with the oracle, with Python's own grouping by key, on shards and after restarts."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from deltic.connectors.files.sinks import MARKER
from deltic.errors import TypeMismatch, UnknownName, Unsupported
from deltic.types import Type, array_type, text
from tests.support.checked import Checked

TABLE = """
    CREATE TABLE t (
        id INT PRIMARY KEY, g INT, c STRING COLLATE UTF8_LCASE, d STRING COLLATE UTF8_LCASE_RTRIM, a ARRAY<STRING COLLATE UTF8_LCASE>
    );
"""
VIEWS = {
    "grouped": "SELECT c, count(*) AS n, count(DISTINCT d) AS m FROM t GROUP BY c",
    "several": "SELECT c, d, sum(g) AS total FROM t GROUP BY c, d",
    "nested": "SELECT a, count(*) AS n FROM t GROUP BY a",
    "kept": "SELECT DISTINCT c, g FROM t",
    "extremes": "SELECT g, min(c) AS lo, max(d) AS hi, min_by(id, c) AS first, any_value(c) AS some FROM t GROUP BY g",
    "ends": "SELECT g, first(c) AS least, last(d) AS greatest FROM t GROUP BY g",
    "lambdas": "SELECT id, transform(a, x -> x = 'A') AS same, filter(a, x -> x <> 'B') AS rest, exists(a, x -> x > c) AS above FROM t",
    "parts": "SELECT id, get(a, 0) = c AS same, try_element_at(a, -1) AS e, array_join(a, '-') = c AS joined, slice(a, 1, 1) AS s FROM t",
    "written": "SELECT mask(c) AS m, quote(d) AS q, to_json(named_struct('c', c, 'a', a)) AS j, to_csv(named_struct('d', d)) AS v FROM t",
    "patterns": "SELECT id, c RLIKE '[A-B]' AS r, regexp_replace(c, 'S+', '-') AS w, split(c, 'A') = array('', '') AS s FROM t",
    "replaced": "SELECT id, translate(d, 'AB', 'xy') AS t, str_to_map(c, 'Q', 'A') AS s FROM t",
    "chosen": "SELECT id, greatest(c, 'B', 'b') AS hi, least(c, 'B') AS lo, array_max(a) AS m FROM t",
    "sets": "SELECT id, array_distinct(a) AS u, sort_array(a) AS o, array_remove(a, 'A') AS k, array_except(a, array(c)) AS e FROM t",
    "maps": "SELECT id, map('A' COLLATE UTF8_LCASE, g)['a'] AS v, map_filter(map(c, g), (k, v) -> k = 'A') AS f FROM t WHERE c > ''",
    "joined": "SELECT l.id, r.id AS other FROM t l JOIN t r ON l.c = r.c AND l.g = r.g",
    "outer_joined": "SELECT l.id, r.d FROM t l LEFT JOIN (SELECT DISTINCT d FROM t WHERE g = 1) r ON l.d = r.d",
    "first_rows": "SELECT c, id FROM t ORDER BY c DESC, id LIMIT 4",
    "modes": "SELECT g, mode(c) AS m, mode() WITHIN GROUP (ORDER BY d DESC) AS o, count(*) AS n FROM t GROUP BY g",
    "some_modes": "SELECT g, mode(c) FILTER (WHERE c > 'B') AS m, max(c) AS hi FROM t GROUP BY g",
    "modes_of_all": "SELECT mode(c) AS m, listagg(DISTINCT c) AS l FROM t",
    "modes_of_texts": "SELECT c, mode(d) AS m, collect_list(DISTINCT d) AS l, sum(g) AS s FROM t GROUP BY c",
    "lists": "SELECT g, listagg(c) AS l, listagg(DISTINCT c) WITHIN GROUP (ORDER BY c DESC) AS d, listagg(c, NULL) AS n FROM t GROUP BY g",
    "separated": "SELECT g, listagg(c, ',') AS l, listagg(DISTINCT c, '-') WITHIN GROUP (ORDER BY c) AS d FROM t GROUP BY g",
    "defaults": "SELECT id, lag(c, 1, 'Q') OVER (PARTITION BY g ORDER BY id) = 'q' AS q, lead('x', 1, c) OVER (ORDER BY id) AS x FROM t",
    "stacked": "SELECT x, count(*) AS n FROM (SELECT stack(3, c, NULL, 'A') AS x FROM t) GROUP BY x",
    "exploded": "SELECT e, count(*) AS n FROM (SELECT explode(array(c, 'A')) AS e FROM t) GROUP BY e",
    "sums": "SELECT g, sum(length(c) || '' COLLATE UTF8_LCASE) AS s FROM t GROUP BY g",
    "remaining": "SELECT c, g > 0 AS p FROM t WHERE id % 3 > 0 EXCEPT ALL SELECT c, g > 0 FROM t WHERE id % 3 = 0",
    "common": "SELECT c, d FROM t WHERE id % 2 = 0 INTERSECT ALL SELECT c, d FROM t WHERE id % 2 = 1",
    "filtered": "SELECT id, c || 'x' AS cx FROM t WHERE c IN ('A', 'İ', 'straße') OR d = 'b' OR contains(c, 'SS') OR c > 'X'",
    "among": "SELECT id FROM t WHERE c IN (SELECT d COLLATE UTF8_LCASE FROM t WHERE g = 2)",
    "either": "SELECT c FROM t WHERE g = 0 UNION SELECT c FROM t WHERE g = 1",
    "both": "SELECT c, g > 0 AS p FROM t WHERE id % 2 = 0 INTERSECT SELECT c, g > 0 FROM t WHERE id % 2 = 1",
    "neither": "SELECT c FROM t EXCEPT SELECT c FROM t WHERE g = 1",
}
TEXTS = ("a", "A", "a ", "A  ", "b", "B", "", " ", "İ", "i\u0307", "STRASSE", "straße", "ς", "Σ", "σ", "x" * 40, "X" * 40, None)


def script() -> str:
    return TABLE + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items())


def key(text: str | None) -> str | None:
    """By the definition in Spark's source."""
    special = {"İ": "i\u0307", "ς": "σ"}
    return None if text is None else "".join(special.get(one) or one.lower() for one in text)


@pytest.mark.parametrize("shards", [1, 3])
def test_views_compare_by_keys_as_rows_change(shards: int, tmp_path: Path) -> None:
    rng = Random(11)
    checked = Checked(script(), session=deltic.Session(shards=shards, state=tmp_path / "state"))
    rows: dict[int, tuple[Any, ...]] = {}
    for tick in range(8):
        changes: Counter[tuple[Any, ...]] = Counter()
        for id_ in rng.sample(range(30), 12):
            old = rows.pop(id_, None)
            if old is not None:
                changes[old] -= 1
            if old is None or rng.random() < 0.6:
                texts = tuple(rng.choices(TEXTS, k=rng.randrange(3)))
                row = (id_, rng.randrange(3), rng.choice(TEXTS), rng.choice(TEXTS), texts)
                rows[id_] = row
                changes[row] += 1
        checked.tick({"t": {row: n for row, n in changes.items() if n}})
        assert_keys(checked.session, list(rows.values()))
        if tick == 3:
            checked.session.close()
            checked.open(deltic.Session(shards=shards, state=tmp_path / "state"))
    checked.session.close()


def assert_keys(session: deltic.Session, rows: list[tuple[Any, ...]]) -> None:
    """Against groups by key in Python."""
    groups: dict[str | None, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        groups[key(row[2])].append(row)
    grouped = {key(row["c"]): row for row in session.view("grouped").rows()}
    assert {k: row["n"] for k, row in grouped.items()} == {k: len(members) for k, members in groups.items()}
    for k, members in groups.items():
        distinct = {(key(d) or "").rstrip(" ") for _, _, _, d, _ in members if d is not None}
        assert grouped[k]["m"] == len(distinct)
        assert grouped[k]["c"] == max((c for _, _, c, _, _ in members if c is not None), key=str.encode, default=None)
    known = [(row[0], row[1], key(row[2])) for row in rows if row[2] is not None]
    pairs = Counter((left[0], right[0]) for left in known for right in known if left[1:] == right[1:])
    assert Counter((row["id"], row["other"]) for row in session.view("joined").rows()) == pairs
    for group in {row[1] for row in rows}:
        counts = Counter(key(row[2]) for row in rows if row[1] == group and row[2] is not None)
        (mode,) = [row["m"] for row in session.view("modes").rows() if row["g"] == group]
        assert counts[key(mode)] == max(counts.values(), default=0)
    sides = [Counter((key(row[2]), row[1] > 0) for row in rows if (row[0] % 3 > 0) == first) for first in (True, False)]
    assert Counter((key(row["c"]), row["p"]) for row in session.view("remaining").rows()) == sides[0] - sides[1]
    nested = Counter(tuple(map(key, row[4])) for row in rows)
    assert {tuple(map(key, row["a"])): row["n"] for row in session.view("nested").rows()} == nested


def test_a_collation_is_part_of_the_type(tmp_path: Path) -> None:
    for sql in ("STRING COLLATE UTF8_LCASE", "ARRAY<STRUCT<a: STRING COLLATE UTF8_BINARY_RTRIM, b: INTERVAL DAY TO SECOND>>"):
        assert Type.parse(sql).sql == sql
    with pytest.raises(ValueError, match="there is no type"):
        Type.parse("STRING COLLATE NOPE")
    with deltic.Session(state=tmp_path / "state") as session:
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT c, d || 'x' AS e, typeof(a) AS a FROM t")
        with session.transaction() as tx:
            tx.insert("t", [{"id": 1, "g": 0, "c": "A", "d": "B ", "a": ["x"]}])
    with deltic.Session(state=tmp_path / "state") as session:
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT c, d || 'x' AS e, typeof(a) AS a FROM t")
        assert session.view("v").rows() == [{"c": "A", "e": "B x", "a": "array<string collate UTF8_LCASE>"}]
        assert session.view("v").to_arrow().schema.field("e").metadata == {b"deltic.type": b"STRING COLLATE UTF8_LCASE_RTRIM"}
        assert session.view("v").to_arrow().schema.field("e").type == pa.string()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT mode(c) OVER (PARTITION BY g) FROM t", "MODE is not supported for a text with a collation"),
        ("SELECT listagg(c, d) FROM t", "the texts of listagg have different collations"),
        ("SELECT c = d FROM t", "the texts of = have different collations"),
        ("WITH RECURSIVE r AS (SELECT c FROM t UNION SELECT c FROM r) SELECT * FROM r", "recursive queries"),
        ("SELECT initcap(c) FROM t", "initcap does not support UTF8_LCASE"),
        ("SELECT regexp_replace(d, 'a', 'b') FROM t", "regexp_replace does not support UTF8_LCASE_RTRIM"),
        ("SELECT collect_set(c) FROM t", "COLLECT_SET is not supported for a text with a collation"),
        ("SELECT element_at(map(c, 1), 'a') FROM t", "argument 2 of element_at has the wrong type"),
        ("SELECT charindex('a', c) FROM t", "there is no function charindex"),
    ],
)
def test_what_is_not_supported_is_refused(query: str, message: str) -> None:
    with deltic.Session() as session:
        session.sql(TABLE)
        with pytest.raises((Unsupported, TypeMismatch, UnknownName), match=message):
            session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")


def test_columns_of_different_collations_do_not_agree() -> None:
    with deltic.Session() as session:
        session.sql(TABLE)
        for call in ("stack(2, c, d)", "lag(c, 1, d) OVER (ORDER BY id)"):
            with pytest.raises(TypeMismatch, match="have different collations"):
                session.query(f"SELECT {call} AS x FROM t")


def test_a_primary_key_with_a_collation_is_refused() -> None:
    with deltic.Session() as session, pytest.raises(Unsupported, match="a PRIMARY KEY of STRING COLLATE UTF8_LCASE is not supported"):
        session.sql("CREATE TABLE u (k STRING COLLATE UTF8_LCASE, PRIMARY KEY (k))")


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_files_bring_and_take_texts_with_collations(format_: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    if format_ == "parquet":
        pq.write_table(pa.table({"c": ["Ab", "aB"]}), tmp_path / "in" / "rows.parquet")
    else:
        (tmp_path / "in" / f"rows.{format_}").write_text('{"c": "Ab"}\n{"c": "aB"}\n' if format_ == "json" else "c\nAb\naB\n")
    options = "OPTIONS (path 'in', header 'true')" if format_ == "csv" else "OPTIONS (path 'in')"
    program = f"""
        CREATE TABLE t (c STRING COLLATE UTF8_LCASE) USING {format_} {options};
        CREATE MATERIALIZED VIEW v AS SELECT c, count(*) AS n FROM t GROUP BY c;
        CREATE SINK s FROM v USING {format_} OPTIONS (path 'out', mode 'changes');
    """
    with deltic.Pipeline(program, state=tmp_path / "state", base=tmp_path) as pipeline:
        pipeline.run_once()
    (written,) = [path for path in (tmp_path / "out").iterdir() if path.suffix == f".{format_}" and path.name != MARKER]
    if format_ == "parquet":
        assert pq.read_table(written).select(["c", "n"]).to_pylist() == [{"c": "aB", "n": 2}]
    else:
        assert "aB" in written.read_text() and "Ab" not in written.read_text()


def test_spark_reads_a_column_with_its_collation() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    spark = pytest.importorskip("deltic.runtimes.spark.types")
    assert spark.spark_type(text("UTF8_LCASE")) == types.StringType("UTF8_LCASE") != types.StringType()
    assert spark.spark_type(array_type(text("UTF8_LCASE_RTRIM"))) == types.ArrayType(types.StringType("UTF8_LCASE_RTRIM"))
