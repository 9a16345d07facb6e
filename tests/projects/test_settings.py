"""Settings under which Spark means something else by a query: such views are left to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from deltic.errors import CatalogError
from deltic.schema import BIGINT, STRING, TIMESTAMP, Field
from pipelines_projects import SPEC, NoSpark, planned, written

pytest.importorskip("pyspark.sql.connect.proto")
pytest.importorskip("yaml")

FIELDS = (Field("id", BIGINT), Field("page", STRING), Field("at", TIMESTAMP), Field("until", TIMESTAMP))
ZONE = "spark.sql.session.timeZone"


def refreshes(folder: Path, sql: str, settings: Mapping[str, str], *, of_project: bool = True) -> dict[str, str]:
    """Of each view how it is refreshed, or why Deltic does not keep it. of_project: the project has the settings, not the server."""
    configuration = "configuration:\n" + "".join(f'  {key}: "{value}"\n' for key, value in settings.items())
    spec = SPEC + configuration if settings and of_project else SPEC
    spark = NoSpark(*FIELDS)
    spark.meanings = {} if of_project else dict(settings)
    plan = planned(written(folder, {"spark-pipeline.yml": spec, "transformations/a.sql": sql}), spark)
    return {key: one.refresh if one.refusal is None else one.refusal.message for key, one in plan.datasets.items()}


def view(query: str) -> str:
    return f"CREATE MATERIALIZED VIEW v AS SELECT {query} FROM visits;"


@pytest.mark.parametrize("of_project", [True, False])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.caseSensitive", "True"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
    ],
)
def test_other_meanings_are_left_to_spark(tmp_path: Path, key: str, value: str, of_project: bool) -> None:
    assert refreshes(tmp_path, view("CAST(page AS INT) AS n"), {key: value}, of_project=of_project) == {
        "v": f"it runs with {key} = {value}"
    }
    default = {"spark.sql.ansi.enabled": "TRUE", "spark.sql.caseSensitive": "false", "spark.sql.shuffle.partitions": "3"}
    assert refreshes(tmp_path, view("CAST(page AS INT) AS n"), default, of_project=of_project) == {"v": "incremental"}


def test_settings_of_one_file(tmp_path: Path) -> None:
    sql = "CREATE MATERIALIZED VIEW u AS SELECT id FROM visits; SET spark.sql.ansi.enabled = false;" + view("CAST(page AS INT) AS n")
    assert refreshes(tmp_path, sql, {}) == {"u": "incremental", "v": "it runs with spark.sql.ansi.enabled = false"}


KEPT = (
    "max(at) AS m, count(*) AS n",
    "coalesce(at, until) AS c, at <= until AS l, at BETWEEN until AND at AS b, at <=> until AS s, at IS NULL AS x",
    "named_struct('at', at) AS s, array(at, until) AS a, unix_micros(at) AS u, CAST(at AS TIMESTAMP) AS same",
    "if(id > 1, at, until) AS i, greatest(at, until) AS g, row_number() OVER (PARTITION BY id ORDER BY at) AS r",
)
ZONED = {
    "date_trunc('DAY', at) AS d": "date_trunc depends on",
    "CAST(at AS STRING) AS s": "a cast depends on",
    "CAST(at AS DATE) AS s": "a cast depends on",
    "CAST(page AS TIMESTAMP) AS s": "a cast depends on",
    "at > TIMESTAMP '2024-01-01 00:00:00' AS late": "a TIMESTAMP depends on",
    "at + INTERVAL 1 DAY AS next": "depends on",
    "from_unixtime(id) AS f": "depends on",
    "unix_timestamp(page) AS u": "depends on",
    "hour(at) AS h": "depends on",
    "max(to_json(named_struct('at', at))) AS j": "depends on",
    "map(page, CAST(at AS TIMESTAMP_NTZ)) AS m": "depends on",
    "id, Current_Timezone() AS z": "current_timezone depends on",
}


@pytest.mark.parametrize("query", [*KEPT, *ZONED])
def test_what_depends_on_the_zone_is_left_to_spark(tmp_path: Path, query: str) -> None:
    (said,) = refreshes(tmp_path, view(query), {ZONE: "America/New_York"}).values()
    if query in KEPT:
        assert said == "incremental"
    else:
        assert ZONED[query] in said and said.endswith("depends on the time zone, America/New_York"), said
    for zone in ("UTC", "Etc/UTC", "+00:00"):
        assert refreshes(tmp_path, view(query), {ZONE: zone}) == {"v": "incremental"}


def test_a_keyed_table_under_another_meaning_is_refused(tmp_path: Path) -> None:
    text = """
from pyspark import pipelines as dp

dp.create_streaming_table("users")
dp.create_auto_cdc_flow(target="users", source="visits", keys=["id"], sequence_by="hour(at)")
"""
    spec = SPEC + f'configuration:\n  {ZONE}: "Asia/Tokyo"\n'
    with pytest.raises(CatalogError, match=r"a.py:5: users: hour depends on the time zone, Asia/Tokyo"):
        planned(written(tmp_path, {"spark-pipeline.yml": spec, "transformations/a.py": text}), NoSpark(*FIELDS))


@pytest.mark.slow
@pytest.mark.spark
def test_an_error_of_a_query_is_told_once(tmp_path: Path) -> None:
    """A Spark that the command starts prints no trace of what it answers, such as to a setting that it was started with."""
    spec = SPEC + f"configuration:\n  spark.sql.warehouse.dir: {tmp_path}/warehouse\n"
    written(tmp_path, {"spark-pipeline.yml": spec, "transformations/a.sql": "CREATE MATERIALIZED VIEW v AS SELECT nosuch FROM range(3);"})
    command = [str(Path(sys.executable).with_name("deltic")), "pipelines", "dry-run"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    told = done.stdout + done.stderr
    assert told.count("nosuch") == 2, "the message, and the line with carets: " + told
    assert "org.apache.spark.sql" not in told and "WITH_SUGGESTION" not in told, told
