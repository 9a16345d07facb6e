"""Declarative Pipelines projects over Delta: change feeds in, MERGE out, AUTO CDC. The server fetches Delta's jars from Maven Central."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_projects_on_spark import check, rows_of, write

from benchmarks.connect import DELTA, connect_server
from benchmarks.sdp_case import refreshed
from deltic.cli import main
from deltic.errors import QueryError
from pipelines_projects import SPEC, written

errors = pytest.importorskip("pyspark.errors")
pytestmark = [pytest.mark.slow, pytest.mark.spark]

VIEWS = """
CREATE MATERIALIZED VIEW per_customer (customer BIGINT NOT NULL COMMENT 'who', orders BIGINT, amount BIGINT)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS
SELECT customer, count(*) AS orders, sum(amount) AS amount FROM sales GROUP BY customer;
CREATE MATERIALIZED VIEW large USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS
SELECT customer, amount FROM sales WHERE amount > 5;
CREATE MATERIALIZED VIEW small (customer BIGINT NOT NULL COMMENT 'who', most INT) USING delta AS
SELECT customer, max(amount) AS most FROM sales GROUP BY customer;
"""
USERS = """
from pyspark import pipelines as dp

@dp.table
def user_events():
    return spark.readStream.schema("id BIGINT, name STRING, op STRING, at BIGINT").json("FOLDER/events")

@dp.temporary_view
def checked_events():
    return spark.readStream.table("user_events").where("id > 0")

dp.create_streaming_table("users")
dp.create_auto_cdc_flow("users", "user_events", ["id"], "at", apply_as_deletes="op = 'D'", except_column_list=["op", "at"])
dp.create_streaming_table("checked_users", format="delta")
dp.create_auto_cdc_flow("checked_users", "checked_events", ["id"], "at", apply_as_deletes="op = 'D'", column_list=["id", "name"])
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("pyspark.sql.connect.proto")
    with connect_server(tmp_path_factory.mktemp("server"), DELTA) as url:
        yield url


def server_at(remote: str) -> Any:
    from deltic.projects.names import Names  # noqa: PLC0415  needs the extra
    from deltic.projects.server import Server  # noqa: PLC0415  needs the extra

    return Server(Names(), {}, remote)


def test_feeds_merges_and_keyed_tables(remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": VIEWS, "transformations/b.py": USERS})
    server = server_at(remote)

    def run(*options: str) -> list[str]:
        assert main(["pipelines", "run", "--spec", str(spec), "--remote", remote, *options]) == 0
        return capsys.readouterr().out.splitlines()

    def users(third: str = "cleo") -> None:
        for name in ("users", "checked_users"):
            server.session.catalog.refreshTable(name)  # a session keeps the list of the files that it has read
            assert rows_of(server.table(name).select("id", "name")) == {(1, "ann"): 1, (3, third): 1}

    server.sql("CREATE TABLE sales (id BIGINT, customer BIGINT, amount INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    server.sql("INSERT INTO sales SELECT id, id % 4, CAST(id AS INT) FROM range(12)")
    events = [(1, "an", "I", 1), (2, "bob", "I", 1), (2, None, "D", 5), (3, "cleo", "I", 2)]
    write(tmp_path / "events" / "1.json", [dict(zip(("id", "name", "op", "at"), row, strict=True)) for row in events])
    run()
    assert check(spec, remote) == {"per_customer": 4, "large": 6, "small": 4}
    server.sql("UPDATE sales SET amount = amount + 10 WHERE id = 3")
    server.sql("DELETE FROM sales WHERE customer = 1")
    server.sql("INSERT INTO sales VALUES (90, 7, 7), (91, 7, 7)")
    events = [(2, "late", "U", 3), (1, "ann", "U", 9)]
    write(tmp_path / "events" / "2.json", [dict(zip(("id", "name", "op", "at"), row, strict=True)) for row in events])
    told = run()
    assert "per_customer: incremental, 3 keys merged" in told and "large: incremental, 3 different rows merged" in told, told
    assert "small: incremental, 4 rows written" in told, told
    assert check(spec, remote) == {"per_customer": 4, "large": 8, "small": 4}
    users()
    for name, engine in (("per_customer", "Apache-Spark"), ("large", "Apache-Spark"), ("small", "delta-rs")):
        (last,) = server.sql(f"DESCRIBE HISTORY {name} LIMIT 1")
        assert last["operation"] == ("WRITE" if name == "small" else "MERGE") and last["engineInfo"].startswith(engine), last
        assert name == "large" or ("customer", "bigint", "who") in map(tuple, server.sql(f"DESCRIBE {name}"))
        assert server.table(name).schema["customer"].nullable == (name == "large")
    told = run()
    assert {f"{name}: unchanged" for name in ("per_customer", "large", "small")} <= set(told), told
    server.sql("DELETE FROM sales WHERE id = 91")  # one of two equal rows of `large`
    events = [(2, "later", "U", 4), (3, "chloe", "U", 3), (3, "cleo", "U", 1)]
    write(tmp_path / "events" / "3.json", [dict(zip(("id", "name", "op", "at"), row, strict=True)) for row in events])
    assert "large: incremental, 1 different rows merged" in run()
    users("chloe")
    assert check(spec, remote) == {"per_customer": 4, "large": 7, "small": 4}
    server.sql("ALTER TABLE sales SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    server.sql("DELETE FROM sales WHERE id = 90")
    server.sql("ALTER TABLE sales SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    assert any(line.startswith("sales: compared with the rows that Deltic holds, since its change feed has a gap") for line in run())
    assert check(spec, remote) == {"per_customer": 3, "large": 6, "small": 3}
    server.sql("DELETE FROM per_customer")
    run("--full-refresh", "users,checked_users,per_customer")
    users("chloe")
    assert check(spec, remote) == {"per_customer": 3, "large": 6, "small": 3}
    server.close()


def test_new_rows_of_a_streaming_table_are_read_once(remote: str, tmp_path: Path) -> None:
    flows = """
        CREATE STREAMING TABLE copied USING delta AS SELECT * FROM STREAM clicks;
        CREATE STREAMING TABLE unfed USING delta TBLPROPERTIES (delta.enableChangeDataFeed = false) AS SELECT * FROM STREAM clicks;
        CREATE MATERIALIZED VIEW pages USING delta AS SELECT page, count(*) AS n FROM copied GROUP BY page;
    """
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": flows})
    server = server_at(remote)
    server.sql("CREATE TABLE clicks (page STRING) USING delta")
    server.sql("INSERT INTO clicks SELECT concat('p', id % 3) FROM range(30)")
    assert refreshed(spec, remote)["rows_read"] == 30
    server.sql("INSERT INTO clicks VALUES ('p0'), ('p9')")
    assert refreshed(spec, remote)["rows_read"] == 2
    assert rows_of(server.table("pages")) == {("p0", 11): 1, ("p1", 10): 1, ("p2", 10): 1, ("p9", 1): 1}
    properties = {name: server.sql(f"SHOW TBLPROPERTIES {name} ('delta.enableChangeDataFeed')")[0]["value"] for name in ("copied", "unfed")}
    assert properties == {"copied": "true", "unfed": "false"}
    server.close()


@pytest.mark.parametrize("format", ["delta", "parquet"])
def test_a_streaming_table_with_other_columns_keeps_its_rows(
    remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    server = server_at(remote)
    flow, view = (
        "CREATE STREAMING TABLE grown USING {0} AS SELECT {1} FROM STREAM steps;",
        "CREATE MATERIALIZED VIEW {0} AS SELECT {1} FROM grown;",
    )

    def run(*statements: str, refused: str = "", options: tuple[str, ...] = ()) -> None:
        spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": "\n".join(statements)})
        code = main(["pipelines", "run", "--spec", str(spec), "--remote", remote, *options])
        error = capsys.readouterr().err
        assert code == (1 if refused else 0) and refused in error, error

    for name in ("steps", "grown", "counted"):
        server.sql(f"DROP TABLE IF EXISTS {name}")
    server.sql("CREATE TABLE steps (id BIGINT, name STRING) USING delta")
    server.sql("INSERT INTO steps VALUES (1, 'a'), (2, 'b')")
    run(flow.format(format, "id"), view.format("counted", "id"))
    server.sql("INSERT INTO steps VALUES (3, 'c')")
    run(flow.format(format, "id, name"), view.format("counted", "id, name"))
    assert rows_of(server.table("counted").select("id", "name")) == {(1, None): 1, (2, None): 1, (3, "c"): 1}
    server.sql("INSERT INTO steps VALUES (4, 'd')")
    run(flow.format(format, "name"), view.format("counted", "name"))
    server.session.catalog.refreshTable("counted")
    assert rows_of(server.table("counted")) == {(None,): 2, ("c",): 1, ("d",): 1}
    run(flow.format(format, "length(name) AS name"), view.format("counted", "name"), refused="the table grown has the column name STRING")
    both = ("--full-refresh", "grown", "--refresh", "counted")
    run(flow.format(format, "length(name) AS name"), view.format("counted", "name"), options=both)
    server.session.catalog.refreshTable("counted")
    assert rows_of(server.table("counted")) == {(1,): 4}
    server.close()


@pytest.mark.parametrize("format", ["delta", "parquet"])
def test_a_view_with_other_columns_is_never_empty(remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    """Its table may be missing for a moment, in files alone; it has the rows of before or of after."""
    server, reader = server_at(remote), server_at(remote)
    for name in ("numbers", "shown"):
        server.sql(f"DROP TABLE IF EXISTS {name}")
    server.sql("CREATE TABLE numbers USING delta AS SELECT id, id % 3 AS g FROM range(30)")
    ended, seen, missing, overtaken = threading.Event(), list[int](), list[str](), list[str]()

    def read() -> None:
        while not ended.is_set():
            try:
                seen.append(reader.sql("REFRESH TABLE shown") or reader.table("shown").count())
            except (QueryError, errors.PySparkException) as error:
                # Delta refuses a read whose plan was made before a change of the schema, whoever changed it; a reader asks again.
                (overtaken if "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS" in str(error) else missing).append(str(error))

    def run(columns: str, partitions: str = "", comment: str = "") -> None:
        text = f"CREATE MATERIALIZED VIEW shown USING {format} {partitions} COMMENT '{comment}' AS SELECT {columns} FROM numbers"
        spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": text})
        assert main(["pipelines", "run", "--spec", str(spec), "--remote", remote]) == 0
        server.session.catalog.refreshTable("shown")
        assert check(spec, remote) == {"shown": server.table("shown").count()}
        about = {row[0]: row[1] for row in server.sql("DESCRIBE EXTENDED shown")}
        assert about["Comment"] == comment and ("# Partition Information" in about) == bool(partitions), about

    run("id")
    thread = threading.Thread(target=read)
    thread.start()
    try:
        run("id, g", comment="two")
        run("CAST(id AS STRING) AS id, g", comment="other")
        run("CAST(id AS STRING) AS id, g", "PARTITIONED BY (g)", comment="other")
        run("g", comment="fewer")
    finally:
        ended.set()
        thread.join()
    assert "shown: other columns" in capsys.readouterr().out
    assert set(seen) == {30} and len(seen) > 10, seen
    assert len(missing) < len(seen) / 2 and (format == "parquet" or not missing), missing
    assert len(overtaken) <= 4, overtaken  # one reader, and four of the runs change the table
    server.close()
    reader.close()
