"""Definitions that the session of a running pipeline makes: the next tick reads and writes what is then defined."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import deltic
from deltic.errors import SinkError
from deltic.pipeline import Pipeline

TABLE = "CREATE TABLE t (id INT, s STRING, PRIMARY KEY (id)) USING json OPTIONS (path 'in');"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s;"
REDEFINED = VIEW.replace("count(*) AS n", "10 + count(*) AS n")
SINK = "CREATE SINK out FROM v USING json OPTIONS (path 'out', mode 'changes');"
SNAPSHOT = "CREATE SINK now FROM v USING json OPTIONS (path 'now', mode 'snapshot');"


class Visits:
    """A pipeline with a file for each row."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.put("in", {"id": 1, "s": "a"})

    def put(self, table: str, row: dict[str, object]) -> None:
        (self.folder / table).mkdir(exist_ok=True)
        (self.folder / table / f"{len(list((self.folder / table).iterdir()))}.json").write_text(json.dumps(row))

    def pipeline(self, script: str, *, in_memory: bool = False) -> Pipeline:
        return Pipeline(script, state=None if in_memory else self.folder / "state", base=self.folder)

    def summed(self) -> dict[tuple[str, int], int]:
        """The sum of the changes that the sink has received."""
        total: Counter[tuple[str, int]] = Counter()
        for path in (self.folder / "out").glob("changes-*"):
            for row in map(json.loads, path.read_text().splitlines()):
                total[row["s"], row["n"]] += row["_weight"]
        return {row: weight for row, weight in total.items() if weight}

    def snapshot(self) -> set[tuple[str, int]]:
        return {(row["s"], row["n"]) for row in map(json.loads, (self.folder / "now" / "snapshot.json").read_text().splitlines())}


@pytest.fixture
def visits(tmp_path: Path) -> Visits:
    return Visits(tmp_path)


@pytest.mark.parametrize("ticks", [0, 1, 2])
def test_the_sinks_of_a_view_that_is_redefined_get_the_difference(visits: Visits, ticks: int) -> None:
    with visits.pipeline(TABLE + VIEW + SINK + SNAPSHOT) as pipeline:
        pipeline.run_once()
        pipeline.session.sql(REDEFINED.replace("CREATE", "CREATE OR REPLACE"))
        for i in range(ticks):
            visits.put("in", {"id": 10 + i, "s": "b"})
            pipeline.run_once()
    with visits.pipeline(TABLE + REDEFINED + SINK + SNAPSHOT) as pipeline:
        visits.put("in", {"id": 20, "s": "c"})
        pipeline.run_once()
        expected = {(row["s"], row["n"]) for row in pipeline.session.view("v").rows()}
    assert expected == {("a", 11), ("c", 11)} | ({("b", 10 + ticks)} if ticks else set())
    assert visits.summed() == dict.fromkeys(expected, 1) and visits.snapshot() == expected


@pytest.mark.parametrize("then", [VIEW, REDEFINED], ids=["the view as before", "another one of these columns"])
def test_a_sink_gets_no_other_columns(visits: Visits, then: str) -> None:
    """Until the view has its columns again: then the sink gets what has changed meanwhile."""
    message = "with the columns s STRING, n BIGINT; now it has page STRING, n BIGINT"
    renamed = VIEW.replace("s, ", "s AS page, ")
    with visits.pipeline(TABLE + VIEW + SINK) as pipeline:
        pipeline.run_once()
        pipeline.session.sql(renamed.replace("CREATE", "CREATE OR REPLACE"))
        pipeline.session.insert("t", [{"id": 5, "s": "e"}])
        for _ in range(2):
            with pytest.raises(SinkError, match=message):
                pipeline.run_once()
    with pytest.raises(SinkError, match=message):
        visits.pipeline(TABLE + renamed + SINK)
    with deltic.Session(state=visits.folder / "state") as session:
        session.program(TABLE + then + SINK)
    with visits.pipeline(TABLE + then + SINK) as pipeline:
        expected = {(row["s"], row["n"]) for row in pipeline.session.view("v").rows()}
    assert visits.summed() == dict.fromkeys(expected, 1) and {s for s, _ in expected} == {"a", "e"}


def test_a_redefined_view_without_its_earlier_rows_is_an_error_of_its_sink(visits: Visits) -> None:
    with visits.pipeline(TABLE + VIEW + SINK, in_memory=True) as pipeline:
        pipeline.run_once()
        pipeline.session.sql(REDEFINED.replace("CREATE", "CREATE OR REPLACE"))
        with pytest.raises(SinkError, match="view v was redefined, and what it contained before is not known"):
            pipeline.run_once()
    assert visits.summed() == {("a", 1): 1}


@pytest.mark.parametrize("in_memory", [False, True])
def test_tables_and_sinks_that_are_created_and_dropped_are_read_and_written_from_the_next_tick_on(visits: Visits, in_memory: bool) -> None:
    with visits.pipeline(TABLE + VIEW, in_memory=in_memory) as pipeline:
        pipeline.run_once()
        visits.put("more", {"id": 7})
        pipeline.session.sql("CREATE TABLE more (id INT) USING json OPTIONS (path 'more');" + SINK)
        progress = pipeline.tick()
        assert progress is not None and progress.rows_in == {"more": 1} and visits.summed() == {("a", 1): 1}
        pipeline.session.sql("DROP SINK out; DROP VIEW v; DROP TABLE t")
        visits.put("in", {"id": 2, "s": "b"})
        assert pipeline.run_once().ticks == 0 and visits.summed() == {("a", 1): 1}
        pipeline.session.sql(TABLE)
        assert pipeline.run_once().rows_in == {"t": 2}, "its files are read again"
        assert pipeline.run_once().ticks == 0
