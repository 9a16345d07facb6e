"""How the datasets of Declarative Pipelines projects are refreshed, without a Spark: loading, names, kinds of refresh, errors."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltic.cli import main
from deltic.errors import CatalogError, DelticError, QueryError
from deltic.schema import BIGINT, INT, STRING, Field, Schema
from deltic.types import Type
from pipelines_projects import SPEC, NoSpark, planned, shop, written

pytest.importorskip("pyspark.sql.connect.proto")
pytest.importorskip("yaml")

from deltic.frontends.dataframes import Frames
from deltic.frontends.dataframes.types import row_message
from deltic.projects import load, plan_project
from deltic.projects.messages import _relations


def refreshes(plan: Any) -> dict[str, str]:
    return {key: one.refresh for key, one in plan.datasets.items()}


def test_a_project_is_planned_without_a_spark_if_it_declares_its_sources(tmp_path: Path) -> None:
    spark = NoSpark(Field("name", STRING), Field("big", STRING))
    plan = planned(shop(tmp_path), spark)
    assert refreshes(plan) == {
        "raw_orders": "appended",
        "customers": "incremental",
        "big_orders": "inlined",
        "spend_by_region": "incremental",
        "top_customers": "incremental",
        "daily_orders": "incremental",
        "pages": "appended",
        "origins": "incremental",
        "shop_days": "inlined",
        "days": "incremental",
        "big_by_customer": "incremental",
        "marked": "recomputed",
        "after_marked": "incremental",
    }
    assert spark.questions == 1  # the columns of `marked`
    assert [key.partition(":")[0] for key in plan.sources] == ["json"]
    levels = {key: one.level for key, one in plan.datasets.items()}
    assert levels["marked"] == 1 and levels["after_marked"] == 1 and levels["big_by_customer"] == 0
    daily = plan.datasets["daily_orders"].dataset
    assert daily.partitions == ("day",) and daily.comment == "orders per day" and daily.properties == {"team": "sales", "a.b": "1"}
    assert plan.datasets["marked"].refusal.span.line == 26
    assert set(plan.tables) == {"raw_orders", "pages", "marked", next(iter(plan.sources))}


def test_dry_run_names_kind_file_and_line_and_strict_refuses_what_spark_recomputes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltic.projects import server  # noqa: PLC0415  needs the extra

    sql = "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x;\nCREATE MATERIALIZED VIEW b AS SELECT reflect('A') y;"
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql})
    monkeypatch.setattr(server.Server, "schema", lambda *_: Schema((Field("y", STRING),)))
    assert main(["pipelines", "dry-run", "--spec", str(spec)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "a  incremental  (materialized view, transformations/a.sql:1)"
    assert second.startswith("b  recomputed by Spark  (materialized view, transformations/a.sql:2): transformations/a.sql:2: ")
    assert "reflect" in second
    assert main(["pipelines", "dry-run", "--strict", "--spec", str(spec)]) != 0
    assert "a.sql:2: --strict: b would be recomputed by Spark" in capsys.readouterr().err


def test_names_of_one_to_three_parts_are_one_name(tmp_path: Path) -> None:
    sql = """
        CREATE TEMPORARY VIEW t AS SELECT 1 AS x;
        CREATE MATERIALIZED VIEW main.sales.a AS SELECT x FROM sales.t JOIN t AS u USING (x);
        USE SCHEMA other;
        CREATE MATERIALIZED VIEW b AS SELECT a.x FROM main.sales.a;
        SET CATALOG elsewhere;
        CREATE MATERIALIZED VIEW c AS SELECT b.x FROM main.other.b;
    """
    spec = "catalog: main\nschema: sales\n" + SPEC
    plan = planned(written(tmp_path, {"spark-pipeline.yml": spec, "transformations/a.sql": sql}))
    assert list(plan.datasets) == ["t", "a", "other.b", "elsewhere.other.c"]
    assert set(refreshes(plan).values()) == {"inlined", "incremental"}
    assert plan.datasets["elsewhere.other.c"].dataset.identifier == "`elsewhere`.`other`.`c`"


STREAMS = """
CREATE STREAMING TABLE events (id BIGINT, page STRING) COMMENT 'x';
CREATE FLOW web AS INSERT INTO events BY NAME SELECT * FROM STREAM clicks;
CREATE FLOW app AS INSERT INTO default.events BY NAME SELECT * FROM STREAM(clicks) WHERE page <> '';
CREATE STREAMING TABLE pages AS SELECT page, id % 2 = 0 AS even FROM STREAM events;
CREATE MATERIALIZED VIEW counts AS SELECT even, count(*) AS n FROM pages GROUP BY even;
CREATE TEMPORARY VIEW stream AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW ones AS SELECT s.one FROM stream AS s;
"""


def test_streaming_tables_in_sql_have_flows(tmp_path: Path) -> None:
    spark = NoSpark(Field("id", BIGINT), Field("page", STRING))
    plan = planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": STREAMS}), spark)
    assert refreshes(plan) == {
        "events": "appended",
        "pages": "appended",
        "counts": "incremental",
        "stream": "inlined",
        "ones": "incremental",
    }
    assert [flow.flow.name for flow in plan.datasets["events"].flows] == ["web", "app"]
    assert plan.datasets["pages"].schema.names == ("page", "even")
    assert plan.datasets["pages"].reads == ("events",) and set(plan.tables) == {"pages"}


BAD = {
    "CREATE OR REFRESH MATERIALIZED VIEW a AS SELECT 1": "OR REFRESH is only on Databricks, not in Apache Spark",
    "CREATE STREAMING TABLE a (CONSTRAINT c EXPECT (x > 0)) AS SELECT 1": "a CONSTRAINT with EXPECT is only on Databricks",
    "CREATE PRIVATE MATERIALIZED VIEW a AS SELECT 1": "PRIVATE is only on Databricks",
    "CREATE MATERIALIZED VIEW a LOCATION '/x' AS SELECT 1": "LOCATION of a dataset is not supported, in Apache Spark too",
    "CREATE TABLE a (x INT)": "a.sql:1:1: not a statement of a pipeline",
    "SELECT 1": "a.sql:1:1: not a statement of a pipeline",
    "CREATE MATERIALIZED VIEW a AS SELECT * FROM b; CREATE MATERIALIZED VIEW b AS SELECT * FROM a": "datasets read each other: a → b → a",
    "CREATE MATERIALIZED VIEW a AS SELECT 1 x; CREATE MATERIALIZED VIEW default.a AS SELECT 1 x": "a is defined already, at",
    "CREATE FLOW f AS INSERT INTO a BY NAME SELECT 1": "a.sql:1: there is no dataset",
    "CREATE MATERIALIZED VIEW a AS SELECT * FROM STREAM(b)": "the materialized view a reads a stream",
    "CREATE STREAMING TABLE a AS SELECT 1 AS x": "the flow a into a reads no stream",
    "CREATE STREAMING TABLE a": "a.sql:1: a has no flow",
    "CREATE MATERIALIZED VIEW a AS SELECT nothing FROM missing": "there is no such table",
    "CREATE MATERIALIZED VIEW a.b.c.d AS SELECT 1": "the name of a materialized view has 4 parts",
}


@pytest.mark.parametrize("sql", BAD)
def test_errors_have_file_and_line(tmp_path: Path, sql: str) -> None:
    with pytest.raises(DelticError) as raised:
        planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql}))
    assert BAD[sql] in str(raised.value)


def test_an_error_in_a_module_names_its_line(tmp_path: Path) -> None:
    files = {"spark-pipeline.yml": SPEC, "transformations/a.py": "import pyspark\n\nx = 1 / 0\n"}
    with pytest.raises(DelticError, match=r"transformations/a.py:3: ZeroDivisionError: division by zero"):
        planned(written(tmp_path, files))


VIEW = "@dp.materialized_view(schema='{}')\ndef a():\n    return spark.range(3)"
BAD_MODULES = {
    "@dp.materialized_view\ndef a():\n    return spark.range(3).id()": "transformations/a.py:4: TypeError: 'Column' object is not callable",
    "def a(:": "transformations/a.py:2: SyntaxError: invalid syntax",
    'dp.create_streaming_table("a")\ndp.create_auto_cdc_flow("a", "missing", ["id"], "at")': "a.py:3: a: Spark: [TABLE_OR_VIEW_NOT",
    VIEW.format("id STRING"): "transformations/a.py:2: the query of a does not return the column id that is declared: it returns id BIGINT",
    VIEW.format("id BIGINT, z INT"): "the query of a does not return the column z that is declared",
    VIEW.format("n INT"): "the query of a returns the column id, which is not declared\nexpected: n INT",
}


@pytest.mark.parametrize("module", BAD_MODULES)
def test_errors_of_a_module_have_file_and_line(tmp_path: Path, module: str) -> None:
    files = {"spark-pipeline.yml": SPEC, "transformations/a.py": f"from pyspark import pipelines as dp\n{module}\n"}
    with pytest.raises(DelticError) as raised:
        planned(written(tmp_path, files))
    assert BAD_MODULES[module] in str(raised.value)


def test_a_project_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DelticError, match=r"yml: the project defines no dataset\nexpected: files .* in transformations/\*\*"):
        planned(written(tmp_path, {"spark-pipeline.yml": SPEC}))


def test_a_relative_storage_is_refused(tmp_path: Path) -> None:
    spec = SPEC.replace("file://FOLDER/storage", "out")
    with pytest.raises(DelticError, match=f"storage 'out' is a relative path\n(?:.*\n)*help: file://{tmp_path}/out"):
        planned(written(tmp_path, {"spark-pipeline.yml": spec, "transformations/a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x"}))


def test_a_refresh_policy_is_a_clause_or_a_table_property(tmp_path: Path) -> None:
    sql = """
        CREATE MATERIALIZED VIEW a REFRESH POLICY FULL AS SELECT 1 AS x;
        CREATE MATERIALIZED VIEW b TBLPROPERTIES (deltic.refresh = 'full') AS SELECT 1 AS x;
        CREATE MATERIALIZED VIEW c REFRESH POLICY INCREMENTAL AS SELECT reflect('a') AS x;
        CREATE MATERIALIZED VIEW d REFRESH POLICY INCREMENTAL STRICT AS SELECT x FROM a;
    """
    files = {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql}
    plan = planned(written(tmp_path, files), NoSpark(Field("x", STRING)))
    assert refreshes(plan) == {"a": "recomputed", "b": "recomputed", "c": "recomputed", "d": "incremental"}
    assert plan.datasets["a"].refusal.message == "the refresh policy is FULL"
    files["transformations/a.sql"] = sql.replace("POLICY INCREMENTAL AS", "POLICY INCREMENTAL STRICT AS")
    with pytest.raises(DelticError, match="reflect"):
        planned(written(tmp_path, files), NoSpark(Field("x", STRING)))
    files["transformations/a.sql"] = sql.replace("'full'", "'often'")
    with pytest.raises(DelticError, match=r"invalid deltic\.refresh 'often' of b"):
        planned(written(tmp_path, files), NoSpark(Field("x", STRING)))


def test_explain_shows_plans_and_what_would_be_cheaper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "CREATE MATERIALIZED VIEW a AS SELECT x, count(*) AS n FROM (SELECT 1 AS x) GROUP BY x;"
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql})
    assert main(["pipelines", "explain", "--spec", str(spec)]) == 0
    assert "Aggregate" in capsys.readouterr().out


def test_flows_come_after_the_streaming_tables_that_they_read(tmp_path: Path) -> None:
    exporting = """
from pyspark import pipelines as dp

dp.create_sink("exported", "json", {"path": "FOLDER/exported"})


@dp.append_flow(target="exported")
def export():
    return spark.readStream.table("clicks")


@dp.table(schema="page STRING")
def again():
    return spark.readStream.table("clicks")
"""
    clicks = "CREATE STREAMING TABLE clicks (page STRING) AS SELECT * FROM STREAM source;"
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": exporting, "transformations/b.sql": clicks})
    plan = planned(spec)
    assert next(iter(plan.datasets)) == "clicks"
    from deltic.projects.running import waves  # noqa: PLC0415  needs the extra

    assert [{one.dataset.key for one in wave} for wave in waves(list(plan.datasets.values()))] == [{"clicks"}, {"exported", "again"}]
    assert waves([]) == []


def test_calls_that_wait_together_end_before_an_error_of_one_is_raised() -> None:
    from deltic.projects.server import together  # noqa: PLC0415  needs the extra

    both, done = threading.Barrier(2, timeout=30), list[int]()

    def call(number: int) -> int:
        both.wait()
        if number == 1:
            raise CatalogError("the second")
        done.append(number)
        return number

    with pytest.raises(CatalogError, match="the second"):
        together([partial(call, 0), partial(call, 1)])
    assert done == [0] and together([]) == [] and together([lambda: 7]) == [7]


@pytest.mark.parametrize(
    ("clauses", "refusal"),
    [
        ("USING parquet TBLPROPERTIES (deltic.table = 'live')", "has a format, partitions or clusters"),
        ("PARTITIONED BY (x) TBLPROPERTIES (deltic.table = 'live')", "has a format, partitions or clusters"),
        ("TBLPROPERTIES (deltic.table = 'copy')", "invalid deltic.table 'copy'"),
        ("REFRESH POLICY full TBLPROPERTIES (deltic.table = 'live')", "is recomputed by Spark: the refresh policy is FULL"),
    ],
)
def test_live_tables_are_kept_by_deltic_and_have_no_format(clauses: str, refusal: str, tmp_path: Path) -> None:
    text = f"CREATE MATERIALIZED VIEW v {clauses} AS SELECT 1 AS x;"
    with pytest.raises(CatalogError, match=refusal):
        planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": text}), NoSpark(Field("x", INT)))


@pytest.mark.parametrize("source", [True, False])
def test_columns_that_pyspark_cannot_carry_are_left_to_spark(tmp_path: Path, source: bool) -> None:
    span = Field("span", Type("INTERVAL YEAR TO MONTH"))
    made = "id" if source else "id, array(make_ym_interval(1, id)) AS spans"
    text = f"CREATE MATERIALIZED VIEW a AS SELECT {made} FROM visits; CREATE MATERIALIZED VIEW b AS SELECT count(*) AS n FROM a"
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": text})
    refusal = planned(spec, NoSpark(Field("id", INT), *[span] * source)).datasets["a"].refusal
    type, where = ("INTERVAL YEAR TO MONTH", "span in visits") if source else ("ARRAY<INTERVAL YEAR TO MONTH>", "spans in a")
    assert refusal is not None and refusal.message == f"PySpark cannot carry {type}, the type of {where}"


def test_a_recursive_query_is_incremental_and_its_name_is_not_looked_up(tmp_path: Path) -> None:
    sql = """
CREATE MATERIALIZED VIEW edges AS SELECT * FROM VALUES (1, 2), (2, 3) AS t(a, b);
CREATE MATERIALIZED VIEW reached AS WITH RECURSIVE r(a, b) AS (
    SELECT a, b FROM edges UNION ALL SELECT r.a, e.b FROM r JOIN edges e ON r.b = e.a WHERE r.a < 9
) SELECT a, count(*) AS n FROM r GROUP BY a;
"""
    spark = NoSpark()
    plan = planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql}), spark)
    assert refreshes(plan) == {"edges": "incremental", "reached": "incremental"} and spark.questions == 0


def test_what_spark_gets_of_a_text_over_views_of_texts_is_one_message_with_references(tmp_path: Path) -> None:
    """Spark takes references of a text alone, not those of a message that has some already."""
    sql = """
CREATE MATERIALIZED VIEW stored AS SELECT * FROM VALUES (1, 'a') AS t(id, name);
CREATE TEMPORARY VIEW few AS SELECT * FROM stored WHERE id < 9;
CREATE TEMPORARY VIEW fewer AS SELECT few.* FROM few JOIN stored USING (id);
CREATE MATERIALIZED VIEW marked AS SELECT uuid() AS u, stored.id FROM fewer JOIN stored ON fewer.id = stored.id;
"""
    python = """
from pyspark import pipelines as dp

@dp.materialized_view
def told():
    return spark.sql("SELECT uuid() AS u, d.id FROM {d} d JOIN few ON d.id = few.id", d=spark.table("fewer"))
"""
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql, "transformations/b.py": python})
    spark = Asked(Field("u", STRING), Field("id", INT))
    plan = planned(spec, spark)
    assert plan.datasets["marked"].refresh == plan.datasets["told"].refresh == "recomputed"
    for message in (*spark.asked, *(one.flows[0].message for one in plan.datasets.values())):
        for relation in _relations(message):
            assert relation.with_relations.root.WhichOneof("rel_type") in (None, "sql")
    marked, told = (_references(plan.datasets[key].flows[0].message) for key in ("marked", "told"))
    assert marked == {"fewer": {"few": {}}} and set(told) > {"few"} and {"few": {}} in told.values()
    empty = [_references(message) for message in spark.asked]
    assert {"fewer": {"few": {"stored": {}}, "stored": {}}, "stored": {}} in empty, empty


class Asked(NoSpark):
    """Keeps the relations whose columns it is asked for."""

    def __init__(self, *fields: Field) -> None:
        super().__init__(*fields)
        self.asked: list[Any] = []

    def schema(self, message: Any, names: Any, settings: Any) -> Schema:
        self.asked.append(message)
        return super().schema(message, names, settings)


def _references(message: Any) -> dict[str, Any]:
    """The names that stand for relations in a text, each with those in its own."""
    found: dict[str, Any] = {}
    for relation in _relations(message):
        for one in relation.with_relations.references if relation is not message or relation.HasField("with_relations") else ():
            found.setdefault(one.subquery_alias.alias, _references(one.subquery_alias.input))
        if relation.HasField("with_relations"):
            break
    return found


class Table:
    """A Spark that has one table."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails, self.asked = fails, list[Any]()

    def rows_of(self, message: Any) -> tuple[pa.Table, Any]:
        self.asked.append(message)
        if self.fails:
            raise QueryError("Spark: [TABLE_OR_VIEW_NOT_FOUND] there is no regions")
        count = 0 if message.HasField("limit") else 2
        rows = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["north", "south"]}).slice(0, count)
        return rows, row_message(Schema((Field("id", INT), Field("name", STRING))))


LOOP = """
from pyspark import pipelines as dp

regions = spark.table("regions")
assert regions.columns == ["id", "name"]
for region in regions.collect():
    @dp.materialized_view(name=f"sales_{region.name}")
    def sales(chosen=region.id):
        READ
        return spark.table("sales").where(f"region = {chosen}")
"""


def looped(folder: Path, outside: Table, read: str = "") -> list[str]:
    spec = written(folder, {"spark-pipeline.yml": SPEC, "transformations/a.py": LOOP.replace("READ", read)})
    project = load(spec, Frames(lambda: None), lambda _: outside)  # type: ignore[arg-type, return-value]
    assert os.environ.get("SPARK_CONNECT_MODE_ENABLED") is None
    return list(plan_project(project, NoSpark(Field("region", INT)), offline=True).datasets)


def test_a_module_may_read_tables_outside_of_its_functions(tmp_path: Path) -> None:
    outside = Table()
    assert looped(tmp_path, outside) == ["sales_north", "sales_south"] and len(outside.asked) == 2


def test_the_functions_of_a_module_may_not(tmp_path: Path) -> None:
    outside = Table()
    with pytest.raises(DelticError, match="cannot look at data"):
        looped(tmp_path, outside, 'spark.table("regions").count()')
    assert len(outside.asked) == 2


def test_errors_of_what_a_module_reads_have_its_place(tmp_path: Path) -> None:
    with pytest.raises(DelticError, match=r"transformations/a.py:5: .*TABLE_OR_VIEW_NOT_FOUND"):
        looped(tmp_path, Table(fails=True))


def test_a_name_of_more_than_three_parts_is_refused_with_the_place_of_its_reader(tmp_path: Path) -> None:
    module = 'from pyspark import pipelines as dp\n\n@dp.materialized_view\ndef v():\n    return spark.read.table("w.x.y.z")\n'
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": module})
    with pytest.raises(CatalogError, match=r"transformations/a.py:3: the name w.x.y.z has 4 parts\nexpected: at most three"):
        planned(spec)


def test_names_in_sql_may_have_dots(tmp_path: Path) -> None:
    sql = "CREATE MATERIALIZED VIEW `a.b` AS SELECT 1 AS x;\nCREATE MATERIALIZED VIEW c AS SELECT x FROM `a.b`;"
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql})
    assert refreshes(planned(spec)) == {"a.b": "incremental", "c": "incremental"}


def test_a_source_that_is_not_there_is_an_error_with_the_place_of_its_reader(tmp_path: Path) -> None:
    sql = "CREATE MATERIALIZED VIEW a AS SELECT 1 AS id;\nCREATE MATERIALIZED VIEW b AS SELECT count(*) AS n FROM nothing;"
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": sql})
    with pytest.raises(QueryError, match=r"^\[DELTIC-1000\] transformations/a.sql:2: b: Spark: \[TABLE_OR_VIEW_NOT_FOUND\]"):
        planned(spec)
