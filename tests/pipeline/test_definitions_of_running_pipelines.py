"""The session of a running pipeline refuses to change what the pipeline has opened, at the statement; everything else it may define."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.connectors.files.source import FileSource
from deltic.errors import CatalogError, SetupError, SinkError, StateError
from deltic.pipeline import Pipeline
from deltic.pipeline.held_delivery import HeldDelivery
from shop import CUSTOMERS, EXPECTED, LETTERS, ORDERS, SCRIPT, SPEND, SPEND_OUT, TOP, TOP_OUT, Shop, views

READS = "table {} cannot be {}: a running pipeline reads its source"
WRITES = "sink {} cannot be {}: a running pipeline writes it"
WIDER = SPEND.replace("COUNT(*) AS orders", "COUNT(*) AS orders, MAX(o.amount) AS most").replace("CREATE", "CREATE OR REPLACE")
REFUSED = {
    "drop a sink": ("DROP SINK spend_out", 11, WRITES.format("spend_out", "dropped")),
    "drop and create a sink": ("DROP SINK spend_out;" + SPEND_OUT, 11, WRITES.format("spend_out", "dropped")),
    "drop and create a view": ("DROP SINK top_out; DROP VIEW top;" + TOP + TOP_OUT, 11, WRITES.format("top_out", "dropped")),
    "drop a view": ("DROP VIEW top", 11, "view top is read by sink top_out"),
    "create a sink": (
        "CREATE SINK more FROM top USING json OPTIONS (path 'made/more', mode 'changes')",
        13,
        "sink more cannot be created: a running pipeline writes the sinks that it started with",
    ),
    "drop a table": ("DROP SINK top_out; DROP VIEW top; DROP TABLE orders", 11, WRITES.format("top_out", "dropped")),
    "drop an unread table": ("DROP TABLE unread", 12, READS.format("unread", "dropped")),
    "alter a table": ("ALTER TABLE unread ADD COLUMN b INT", 13, READS.format("unread", "changed")),
    "create a table": (
        "CREATE TABLE more (a INT) USING csv OPTIONS (path 'in/more')",
        14,
        "table more with a source cannot be created: a running pipeline reads the sources that it started with",
    ),
    "other columns": (
        WIDER.strip(),
        37,
        "view spend cannot have the columns name STRING, total BIGINT, orders BIGINT, most INT: "
        "a running pipeline writes its changes to sink spend_out",
    ),
}
UNREAD = "CREATE TABLE unread (a INT) USING csv OPTIONS (path 'in/unread');\n"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    (shop.folder / "in/unread").mkdir()
    (shop.folder / "in/more").mkdir()
    return shop


def exact(shop: Shop, pipeline: Pipeline) -> bool:
    return shop.summed() == views(pipeline)["spend"] and shop.snapshot() == views(pipeline)["top"]


@pytest.mark.parametrize("in_memory", [False, True])
def test_what_would_change_a_source_or_sink_is_refused_where_it_is_said(shop: Shop, in_memory: bool) -> None:
    with shop.pipeline(SCRIPT + UNREAD, **({"state": None} if in_memory else {})) as pipeline:
        session = pipeline.session
        shop.fill()
        pipeline.tick()
        epoch = session.epoch
        for number, (statements, column, message) in enumerate(REFUSED.values()):
            with pytest.raises(CatalogError) as error:
                session.sql("CREATE VIEW before AS SELECT 1 AS a;\n" + statements, name="typed")
            assert (error.value.message, error.value.span is not None and error.value.span.column) == (message, column)
            assert error.value.remedy is not None
            assert session.epoch == epoch and "before" not in session._catalog.views
            if number in (2, 5):
                pipeline.tick()
                assert exact(shop, pipeline)
                epoch = session.epoch
        pipeline.run_once()
        assert views(pipeline) == EXPECTED and exact(shop, pipeline)


def test_statements_after_a_tick_are_checked_before_the_tick(shop: Shop) -> None:
    with shop.pipeline(SCRIPT + "CREATE TABLE given (a INT);") as pipeline:
        epoch = pipeline.session.epoch
        with pytest.raises(CatalogError, match="sink top_out cannot be dropped"):
            pipeline.session.sql("INSERT INTO given VALUES (1); DROP SINK top_out")
        assert pipeline.session.epoch == epoch


def test_a_program_as_a_whole_is_checked_too(shop: Shop) -> None:
    shop.fill()
    with shop.pipeline() as pipeline:
        pipeline.run_once()
        with pytest.raises(CatalogError, match="sink top_out cannot be dropped: a running pipeline writes it"):
            pipeline.session.program(SCRIPT.replace(TOP_OUT, ""))
        with pytest.raises(CatalogError, match="sink top_out cannot be changed"):
            pipeline.session.program(SCRIPT.replace("made/top", "made/other"))
        with pytest.raises(CatalogError, match="table orders cannot be changed: a running pipeline reads its source"):
            pipeline.session.program(SCRIPT.replace("in/orders", "in/other"))
        with pytest.raises(StateError, match="its name was orders and is now ORDERS"):  # as without a pipeline
            pipeline.session.program(SCRIPT.replace("TABLE orders", "TABLE ORDERS"))
        pipeline.session.program("-- the same\n" + SCRIPT.replace("LIMIT 2", "LIMIT 1"))
        pipeline.run_once()
        assert exact(shop, pipeline) and len(views(pipeline)["top"]) == 1


def test_other_definitions_are_made(shop: Shop) -> None:
    shop.fill()
    with shop.pipeline() as pipeline:
        session = pipeline.session
        session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t; CREATE SINK IF NOT EXISTS top_out FROM v "
                    "USING json OPTIONS (path 'made/top', mode 'snapshot')")  # fmt: skip
        session.sql("ALTER TABLE t ADD COLUMN b INT")
        pipeline.tick({"t": [{"a": 1, "b": 2, "_weight": 1}]})
        session.sql("DROP VIEW v; DROP TABLE t")
        session.sql(TOP.replace("CREATE", "CREATE OR REPLACE").replace("SELECT id,", "SELECT 1 AS one, id,"))  # of a snapshot
        pipeline.run_once()
        assert exact(shop, pipeline) and views(pipeline)["top"] == Counter({(1, 6, 60): 1, (1, 5, 50): 1})


def test_a_closed_pipeline_refuses_nothing(shop: Shop) -> None:
    with deltic.Session(clock="wall") as session:
        session.sql(ORDERS.format(letters="") + CUSTOMERS + SPEND + TOP + SPEND_OUT)
        with Pipeline.over(session, base=shop.folder), pytest.raises(CatalogError, match="close the pipeline first"):
            session.sql("DROP SINK spend_out")
        session.sql("DROP SINK spend_out")


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_session_has_one_open_pipeline(shop: Shop, in_memory: bool) -> None:
    shop.fill()
    with deltic.Session(clock="wall", state=None if in_memory else str(shop.state)) as session:
        session.sql(ORDERS.format(letters=LETTERS) + CUSTOMERS + SPEND + TOP)
        with Pipeline.over(session, base=shop.folder) as first:
            with pytest.raises(SetupError, match="a pipeline over this session is open") as refused:
                Pipeline.over(session, base=shop.folder)
            assert refused.value.remedy == "close the other one first"
            with pytest.raises(CatalogError, match="running pipeline"):  # the refused one has not released the definitions of the first
                session.sql("DROP VIEW spend; DROP VIEW top; DROP TABLE orders")
            first.run_once()
        with Pipeline.over(session, base=shop.folder) as second:
            first.close()
            with pytest.raises(SetupError):
                Pipeline.over(session, base=shop.folder)
            second.run_once()
            assert views(second) == EXPECTED
    with shop.pipeline(state=None) as own, pytest.raises(SetupError, match="a pipeline over this session is open"):
        Pipeline.over(own.session, base=shop.folder)


def test_a_pipeline_that_cannot_start_leaves_nothing_in_the_session(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SinkError("no room")

    with deltic.Session(clock="wall") as session:
        session.sql(ORDERS.format(letters="") + CUSTOMERS + SPEND + TOP + SPEND_OUT)
        monkeypatch.setattr(HeldDelivery, "begin", fail)
        with pytest.raises(SinkError, match="no room"):
            Pipeline.over(session, base=shop.folder)
        assert session._contents._observers == () and session._commits.guard is None
        session.sql("DROP SINK spend_out")


def test_a_table_dropped_between_the_read_of_a_file_and_its_commit_keeps_its_rows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    table = "CREATE TABLE unread (a INT) USING csv OPTIONS (path 'in/unread');"
    read, refused = FileSource.read, Counter[str]()
    with shop.pipeline(table) as pipeline:

        def read_and_drop(self: FileSource, limit_rows: int) -> Any:
            batch = read(self, limit_rows)
            if batch is not None:
                with pytest.raises(CatalogError) as error:
                    for statement in ("DROP TABLE unread", table):
                        pipeline.session.sql(statement)
                refused[error.value.message] += 1
            return batch

        monkeypatch.setattr(FileSource, "read", read_and_drop)
        pipeline.session.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM unread; DROP VIEW v")
        for number in range(3):
            (shop.folder / f"in/unread/{number}.csv").write_text(f"{number}\n")
            pipeline.run_once()
        pipeline.session.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM unread")
        assert sorted(row["a"] for row in pipeline.session.view("v").rows()) == [0, 1, 2]
        assert refused == {READS.format("unread", "dropped"): 3}


def test_a_pipeline_that_is_gone_without_a_close_guards_nothing(tmp_path: Path) -> None:
    with deltic.Session() as session:
        session.sql(
            """CREATE TABLE u (a INT NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT a FROM u;
            CREATE SINK changes_out FROM v USING parquet OPTIONS (path 'out', mode 'changes')"""
        )
        Pipeline.over(session, base=tmp_path).run_once()
        gc.collect()
        session.sql("DROP SINK changes_out; INSERT INTO u VALUES (1)")
        assert not session._contents._observers
        Pipeline.over(session, base=tmp_path).close()
