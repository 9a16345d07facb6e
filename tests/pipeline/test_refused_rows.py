"""Rows that do not fit what their table has are dead letters, and all others are applied: against a table in plain Python."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from deltic.circuit.operators import table as table_operator
from deltic.connectors.files import source as file_source
from deltic.connectors.source import SourceBatch
from deltic.errors import AbsentRow, FrameError
from deltic.pipeline import refused as refused_rows
from deltic.pipeline.dead_letters import DeadLetters
from deltic.pipeline.feeds import Load
from deltic.pipeline.refused import without_refused_rows
from seeds import rotating
from tests.support.parts import slow

KEYED = """
    CREATE TABLE t (id INT NOT NULL, a STRING, PRIMARY KEY (id))
        USING csv OPTIONS (path 'in', header true, op_column '_op', on_error 'dead_letter', dead_letter_path 'letters');
    CREATE MATERIALIZED VIEW v AS SELECT id, a FROM t;
"""
MULTISET = KEYED.replace(" NOT NULL, a STRING, PRIMARY KEY (id)", ", a STRING")
SEEDS = [(1, 1, 1000), (2, 3, 7), *slow(*((seed, 1 + seed % 3, (1, 5, 7, 1000)[seed % 4]) for seed in rotating(12)))]
Operation = tuple[str, int, str]


def refused(operations: list[Operation], keyed: bool) -> tuple[list[int], Counter[tuple[int, str]]]:
    """(the positions of those that the table refuses, its rows in the end)."""
    rows, bad = Counter[tuple[int, str]](), []
    for i, (op, id_, a) in enumerate(operations):
        held = [row for row in rows.elements() if row[0] == id_] if keyed else [(id_, a)] * rows[id_, a]
        other = keyed and op == "delete" and a != "" and held != [(id_, a)]  # a delete of a whole row, not by key
        if (op == "insert" and keyed and held) or (op in ("delete", "update") and not held) or other:
            bad.append(i)
            continue
        if keyed and held:
            rows -= Counter(held)
        if op != "delete":
            rows[id_, a] += 1
        elif not keyed:
            rows -= Counter([(id_, a)])
    return bad, rows


def write(folder: Path, number: int, operations: list[Operation]) -> None:
    folder.mkdir(exist_ok=True)
    lines = [f"{op},{id_},{a}" for op, id_, a in operations]
    (folder / f"{number:03}.csv").write_text("\n".join(["_op,id,a", *lines]) + "\n")


def letters(folder: Path) -> list[tuple[str, int]]:
    paths = sorted((folder / "letters").glob("letters-*")) if (folder / "letters").exists() else []
    found = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    assert all("table t " in one["reason"] and one["column"] is None and json.loads(one["text"])["id"] >= 0 for one in found)
    return [(Path(one["file"]).name, one["row"]) for one in found]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(("seed", "shards", "rows_per_tick"), SEEDS)
def test_the_other_rows_are_applied(
    seed: int, shards: int, rows_per_tick: int, keyed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a restart after each few files, also where an attempt lists only few of the rows."""
    listed = Random(seed).choice((1, 3, 1000))
    monkeypatch.setattr(refused_rows, "LISTED", listed)
    monkeypatch.setattr(refused_rows, "MOST_LISTED", 2 * listed)
    rng, operations, places, before = Random(seed), list[Operation](), list[tuple[str, int]](), 0
    ops = ("insert", "upsert", "update", "delete") if keyed else ("insert", "delete")
    for number in range(9):
        more = [(rng.choice(ops), rng.randrange(12), rng.choice("xy")) for _ in range(rng.randrange(1, 30))]
        more = [(op, id_, "" if keyed and op == "delete" and rng.random() < 0.6 else a) for op, id_, a in more]
        write(tmp_path / "in", number, more)
        operations += more
        places += [(f"{number:03}.csv", i + 1) for i in range(len(more))]
        if number % 3 != 2:
            continue
        state = str(tmp_path / "state")
        with deltic.Pipeline(
            KEYED if keyed else MULTISET, state=state, shards=shards, base=tmp_path, rows_per_tick=rows_per_tick
        ) as pipeline:
            counted = pipeline.run_once().letters
            bad, rows = refused(operations, keyed)
            assert Counter(tuple(row.values()) for row in pipeline.session.view("v").rows()) == rows
            assert Counter(letters(tmp_path)) == Counter(places[i] for i in bad)
            assert sum(counted.values()) == len(bad) - before
            before = len(bad)
    assert len(bad) > 10


def test_a_row_that_is_refused_is_none_for_those_after_it(tmp_path: Path) -> None:
    write(
        tmp_path / "in",
        0,
        [("delete", 1, ""), ("insert", 1, "x"), ("insert", 1, "y"), ("delete", 1, ""), ("delete", 1, ""), ("insert", 1, "z")],
    )
    with deltic.Pipeline(KEYED, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
        assert pipeline.session.view("v").rows() == [{"id": 1, "a": "z"}]
    assert letters(tmp_path) == [("000.csv", 1), ("000.csv", 3), ("000.csv", 5)]


def test_without_dead_letters_the_first_row_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, [("insert", 1, "x"), ("delete", 7, ""), ("insert", 1, "y")])
    script = KEYED.replace(", on_error 'dead_letter', dead_letter_path 'letters'", "")
    with (
        deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline,
        pytest.raises(AbsentRow, match=r"000\.csv, row 2: table t has no row id=7"),
    ):
        pipeline.run_once()


def test_many_refused_rows_take_few_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0
    commit = deltic.Pipeline._try_commit

    def counted(*arguments: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return commit(*arguments)

    monkeypatch.setattr(deltic.Pipeline, "_try_commit", counted)
    write(tmp_path / "in", 0, [("delete", i, "") if i % 2 else ("insert", i, "x") for i in range(5_000)])
    with deltic.Pipeline(KEYED, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
        assert len(pipeline.session.view("v")) == 2_500
    assert len(letters(tmp_path)) == 2_500 and attempts == 3


def test_rows_that_tasks_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read here if some are refused: the loads have the same rows and letters."""
    monkeypatch.setattr(file_source, "LARGE_BYTES", 1)
    (tmp_path / "in").mkdir()
    ops = ["insert", "insert", "delete", "insert", "delete"]
    changes = pa.table({"_op": ops, "id": pa.array([1, 2, 9, 1, 2], pa.int32()), "a": ["x", "y", None, "z", None]})
    pq.write_table(changes, tmp_path / "in/a.parquet")
    script = KEYED.replace("USING csv", "USING parquet").replace("header true, ", "")
    loads = []
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        (feed,) = pipeline._feeds
        for spread in (False, True):
            if spread:
                assert feed.source.spread(lambda function, count: [function(i) for i in range(count)])  # type: ignore[attr-defined]
            pipeline._restore()
            feed.source.refresh(force=True)
            batch = feed.source.read(100)
            assert batch is not None and isinstance(batch.changes, pa.Table) != spread
            error = AbsentRow("absent")
            error.table, error.ordinal, error.refused = "t", 2, ((2, "no row"), (3, "a row is there"))
            without = without_refused_rows(error, [Load(feed.table, batch)], lambda table: table == "t")
            assert without is not None
            (load,) = without
            assert load.changes is not None
            loads.append((load.changes.to_pylist(), load.batch.dead_letters, [str(load.origin(i)) for i in range(3)]))
    assert loads[0] == loads[1]
    assert [row["id"] for row in loads[0][0]] == [1, 2, 2] and [letter.row for letter in loads[0][1]] == [3, 4]
    assert loads[0][2][2].endswith("a.parquet, row 5")


def test_an_attempt_for_each_of_many_refused_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their numbers are those in the file, however often rows before them were taken out."""
    monkeypatch.setattr(refused_rows, "LISTED", 1)
    monkeypatch.setattr(refused_rows, "MOST_LISTED", 1)
    monkeypatch.setattr(DeadLetters, "stage", partialmethod(_stage_last, DeadLetters.stage))
    write(tmp_path / "in", 0, [("delete", i, "") if i % 10 else ("insert", i, "x") for i in range(1_200)])
    with deltic.Pipeline(KEYED, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        assert pipeline.run_once().letters == {"t": 1_080}
        assert len(pipeline.session.view("v")) == 120
    assert letters(tmp_path) == [("000.csv", i + 1) for i in range(1_200) if i % 10]


def _stage_last(letters: DeadLetters, stage: Callable[..., dict[str, Any]], epoch: int, loads: Sequence[Load]) -> dict[str, Any]:
    """Only those of the attempt that commits: all are written again for each, which takes long."""
    return stage(letters, epoch, loads if sum(len(load.batch.dead_letters) for load in loads) == 1_080 else [])


def test_only_a_pipeline_with_dead_letters_lists_refused_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    listed = table_operator.refused
    monkeypatch.setattr(table_operator, "refused", lambda *arguments: calls.append(arguments[-1]) or listed(*arguments))
    session = deltic.Session()
    session.program("CREATE TABLE t (id INT NOT NULL, PRIMARY KEY (id))")
    with pytest.raises(AbsentRow) as raised:
        session.apply({"t": [{"id": i, "_op": "delete"} for i in range(3)]})
    assert raised.value.refused == () and calls == []
    write(tmp_path / "in", 0, [("delete", 7, "")])
    with deltic.Pipeline(KEYED, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
    assert calls == [1_000]


def test_reasons_are_short(tmp_path: Path) -> None:
    """Of a row that its table refuses, and of one that does not parse."""
    long = "k" * 50_000
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text(f"_op,id,n\ndelete,{long},1\ninsert,b,{long}\n")
    with deltic.Pipeline(
        KEYED.replace("id INT NOT NULL, a STRING", "id STRING NOT NULL, n INT").replace("id, a", "id"), base=tmp_path
    ) as one:
        assert one.run_once().letters == {"t": 2}
    (path,) = (tmp_path / "letters").glob("letters-*")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(one["row"] for one in found) == [1, 2]
    assert all(len(one["reason"]) <= 2_000 and len(one["text"]) <= 10_000 for one in found)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("rows_per_tick", [2, 100])
def test_a_source_of_weights_stops(rows_per_tick: int, keyed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights have no order, so that none of the rows is the one to leave out."""
    read = file_source.FileSource.read

    def weighed(source: file_source.FileSource, limit: int) -> SourceBatch | None:
        batch = read(source, limit)
        if batch is None or not isinstance(batch.changes, pa.Table):
            return batch
        weights = pa.array([1 if op == "insert" else -1 for op in batch.changes["_op"].to_pylist()], pa.int64())
        return replace(batch, changes=batch.changes.drop_columns(["_op"]).append_column("_weight", weights))

    monkeypatch.setattr(file_source.FileSource, "read", weighed)
    write(tmp_path / "in", 0, [("insert", 1, "x"), ("insert", 2, "x"), ("delete", 3, "x"), ("insert", 4, "x")])
    with (
        deltic.Pipeline(
            KEYED if keyed else MULTISET, state=str(tmp_path / "state"), base=tmp_path, rows_per_tick=rows_per_tick
        ) as pipeline,
        pytest.raises(AbsentRow, match=r"000\.csv, row 3: table t has no row id=3"),
    ):
        pipeline.run_once()
    assert letters(tmp_path) == []


STREAM = KEYED.replace("TABLE t (id INT NOT NULL, a STRING, PRIMARY KEY (id))", "STREAM t (id INT NOT NULL, a STRING)")
REMOVALS = [("insert", 1, "x"), ("delete", 1, "x"), ("insert", 2, "y"), ("update", 2, "z"), ("upsert", 3, "z")]


@pytest.mark.parametrize("rows_per_tick", [1, 100])
def test_a_stream_only_takes_inserts(rows_per_tick: int, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, REMOVALS)
    script = STREAM.replace("SELECT id, a FROM t", "SELECT count(*) AS n FROM t")
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path, rows_per_tick=rows_per_tick) as pipeline:
        summary = pipeline.run_once()
        assert summary.rows_in == {"t": 5} and summary.letters == {"t": 3}
    found = [json.loads(line) for path in sorted((tmp_path / "letters").glob("letters-*")) for line in path.read_text().splitlines()]
    assert [(Path(one["file"]).name, one["row"], one["column"], one["reason"]) for one in found] == [
        ("000.csv", row, "_op", f"{op}, but rows of a stream can only be inserted; expected: insert")
        for row, op in ((2, "delete"), (4, "update"), (5, "upsert"))
    ]


def test_a_delete_from_a_stream_is_an_error_with_its_row(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, REMOVALS)
    script = STREAM.replace(", on_error 'dead_letter', dead_letter_path 'letters'", "")
    place = r"table t, file .*000\.csv, row 2, column _op: delete, but rows of a stream can only be inserted"
    with (
        deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline,
        pytest.raises(FrameError, match=rf"{place}(.|\n)*help: make t a table"),
    ):
        pipeline.run_once()
