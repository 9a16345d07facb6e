"""Sinks: every epoch once, whole and durable; a folder is one sink's; what they write adds up to the view."""

from __future__ import annotations

import errno
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltic import disk
from deltic.connectors.files.sinks import MARKER, ChangesSink, SnapshotSink
from deltic.connectors.sink import Owner
from deltic.errors import SinkError
from deltic.schema import BIGINT, Field, Schema, TableSchema
from file_data import EVERY, as_json, random_rows, read, rows, same, summed
from goldens import Goldens

FileSink = TypeVar("FileSink", ChangesSink, SnapshotSink)
OWN = Owner("ab12", "out", "changes", "totals")
CHANGE = pa.table({"k": [1, 2], "s": ["a", None], "_weight": [1, -1]})


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MARKER}


def changes_sink(folder: Path, format: str = "json", **owner: Any) -> ChangesSink:
    return claimed(ChangesSink(str(folder), format, replace(OWN, **owner)))


def claimed(sink: FileSink) -> FileSink:
    sink.claim()
    return sink


def test_a_change_is_a_file_with_weights_and_the_epoch(tmp_path: Path) -> None:
    changes_sink(tmp_path / "new" / "out").deliver(12, CHANGE)
    assert files(tmp_path / "new" / "out") == {
        "changes-000000000012.json": b'{"k":1,"s":"a","_weight":1,"_epoch":12}\n{"k":2,"s":null,"_weight":-1,"_epoch":12}\n'
    }


def test_csv_with_a_header_and_a_separator(tmp_path: Path) -> None:
    claimed(ChangesSink(f"file://{tmp_path}", "csv", OWN, header=True, sep=";")).deliver(3, CHANGE)
    assert files(tmp_path) == {"changes-000000000003.csv": b'"k";"s";"_weight";"_epoch"\n1;"a";1;3\n2;;-1;3\n'}


def test_parquet_has_the_types(tmp_path: Path) -> None:
    changes_sink(tmp_path, "parquet").deliver(3, CHANGE)
    assert pq.read_table(tmp_path / "changes-000000000003.parquet") == CHANGE.append_column("_epoch", pa.array([3, 3]))


def test_an_empty_change_writes_no_file(tmp_path: Path) -> None:
    changes_sink(tmp_path).deliver(1, CHANGE.slice(0, 0))
    assert files(tmp_path) == {}


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_delivery_again_changes_nothing_in_whatever_order_its_rows_come(tmp_path: Path, format: str) -> None:
    changes_sink(tmp_path, format).deliver(1, CHANGE)
    before = {path: os.stat(path) for path in tmp_path.iterdir()}
    changes_sink(tmp_path, format).deliver(1, CHANGE)
    changes_sink(tmp_path, format).deliver(1, CHANGE.take([1, 0]))
    after = {path: os.stat(path) for path in tmp_path.iterdir()}
    assert {path: (s.st_ino, s.st_mtime_ns) for path, s in before.items()} == {path: (s.st_ino, s.st_mtime_ns) for path, s in after.items()}


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_file_is_never_altered(tmp_path: Path, format: str) -> None:
    sink = changes_sink(tmp_path, format)
    sink.deliver(1, CHANGE)
    before = files(tmp_path)
    for other in (CHANGE.slice(1), CHANGE.set_column(0, "k", pa.array([1, 3]))):
        with pytest.raises(SinkError, match=r"changes-000000000001\.\w+ exists and does not contain"):
            sink.deliver(1, other)
    assert files(tmp_path) == before


def test_a_torn_file_is_not_mistaken_for_the_change(tmp_path: Path) -> None:
    sink = changes_sink(tmp_path, "parquet")
    (tmp_path / "changes-000000000001.parquet").write_bytes(b"PAR1")
    with pytest.raises(SinkError, match="exists and does not contain"):
        sink.deliver(1, CHANGE)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_snapshot_is_the_last_content(tmp_path: Path, format: str) -> None:
    sink = claimed(SnapshotSink(str(tmp_path), format, replace(OWN, mode="snapshot")))
    for epoch, ids in enumerate(([1, 2, 3], [], [4])):
        content = pa.table({"id": pa.array(ids, pa.int64())})
        sink.deliver(epoch, content)
        assert list(files(tmp_path)) == [f"snapshot.{format}"]
        back = read(tmp_path, TableSchema("t", Schema((Field("id", BIGINT),))), format)
        assert [row["id"] for row in rows(back)] == ids


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_the_sum_of_the_changes_is_the_view(tmp_path: Path, format: str) -> None:
    chance = random.Random(1)
    view: Counter[str] = Counter()
    held: list[dict[str, Any]] = []
    for epoch in range(20):
        new = random_rows(chance, EVERY, 8, plain=True).to_pylist()
        removed = [held.pop(chance.randrange(len(held))) for _ in range(min(len(held), chance.randrange(6)))]
        held += new
        change = pa.Table.from_pylist([*new, *removed], EVERY.schema.arrow).append_column(
            "_weight", pa.array([1] * len(new) + [-1] * len(removed))
        )
        changes_sink(tmp_path, format).deliver(epoch, change)
    if format == "parquet":
        view.update(as_json(row) for row in held)
    else:
        claimed(SnapshotSink(str(tmp_path / "all"), "json", OWN)).deliver(19, pa.Table.from_pylist(held, EVERY.schema.arrow))
        view.update(as_json(json.loads(line)) for line in (tmp_path / "all" / "snapshot.json").read_text().splitlines())
    assert summed(tmp_path) == view


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_duckdb_reads_what_a_sink_writes(tmp_path: Path, format: str) -> None:
    content = random_rows(random.Random(7), EVERY, 300, plain=True)
    if format == "json":
        content = content.drop_columns(EVERY.schema.names[-1])  # DuckDB reads numbers of so many digits as doubles
    claimed(ChangesSink(str(tmp_path), format, OWN, header=True)).deliver(1, content.append_column("_weight", pa.array([1] * 300)))
    types = {f.name: f.type.sql.replace("TIMESTAMP", "TIMESTAMPTZ") for f in EVERY.schema if f.name in content.column_names}
    options = {"parquet": "", "csv": f", header = true, types = {types}", "json": f", columns = {types}"}[format]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        names = ", ".join(content.column_names)
        actual = connection.sql(f"SELECT {names} FROM read_{format}('{tmp_path}/changes-*'{options})").to_arrow_table()
    assert same(actual.cast(content.schema).to_pylist(), content.to_pylist())


# --- whose folder it is


def another_file(folder: Path) -> object:
    (folder / "mine.txt").write_text("")
    return changes_sink(folder)


def another_state(folder: Path) -> object:
    changes_sink(folder)
    return changes_sink(folder, state="cd34")


def another_sink(folder: Path) -> object:
    changes_sink(folder)
    return changes_sink(folder, sink="other")


def another_mode(folder: Path) -> object:
    changes_sink(folder)
    return claimed(SnapshotSink(str(folder), "json", replace(OWN, mode="snapshot")))


def another_view(folder: Path) -> object:
    changes_sink(folder)
    return changes_sink(folder, view="other")


def another_format(folder: Path) -> object:
    changes_sink(folder)
    return changes_sink(folder, "csv")


def a_damaged_marker(folder: Path) -> object:
    (folder / MARKER).write_text("[]")
    return changes_sink(folder)


def a_file_in_its_place(folder: Path) -> object:
    (folder / "out").write_text("")
    return changes_sink(folder / "out")


def a_bucket(folder: Path) -> object:
    return ChangesSink("s3://bucket/out", "json", OWN)


def another_change_of_the_epoch(folder: Path) -> object:
    changes_sink(folder).deliver(1, CHANGE)
    return changes_sink(folder).deliver(1, CHANGE.slice(1))


def a_column_of_the_sinks(folder: Path) -> object:
    return changes_sink(folder).deliver(1, CHANGE.append_column("_epoch", pa.array([1, 1])))


REFUSED = [
    another_file,
    another_state,
    another_sink,
    another_mode,
    another_view,
    another_format,
    a_damaged_marker,
    a_file_in_its_place,
    a_bucket,
    another_change_of_the_epoch,
    a_column_of_the_sinks,
]


@pytest.mark.parametrize("act", REFUSED, ids=lambda act: act.__name__)
def test_error_texts_of_sinks(tmp_path: Path, goldens: Goldens, act: Callable[[Path], object]) -> None:
    with pytest.raises(SinkError) as error:
        act(tmp_path)
    goldens.check(act.__name__.replace("_", " "), str(error.value).replace(str(tmp_path), "FOLDER"))


def test_the_messages_are_these(goldens: Goldens) -> None:
    goldens.check_names([act.__name__.replace("_", " ") for act in REFUSED])


def test_files_of_a_dead_writer_are_removed_and_foreign_files_are_kept(tmp_path: Path) -> None:
    changes_sink(tmp_path)
    for name in ("changes-000000000001.json.00ff.staged", "_SUCCESS"):
        (tmp_path / name).write_text("")
    changes_sink(tmp_path)
    assert list(files(tmp_path)) == ["_SUCCESS"]


# --- the disk


def fail_at(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def at(reached: str, path: str) -> None:
        if reached == step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(disk, "at", at)


@pytest.mark.parametrize("step", ["write:before", "write:after", "sync:before", "link:before", "unlink:before", "folder-sync:before"])
def test_a_full_disk_is_one_error_and_the_delivery_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    sink = changes_sink(tmp_path)
    fail_at(monkeypatch, step)
    with pytest.raises(SinkError) as error:
        sink.deliver(1, CHANGE)
    assert str(error.value) == (
        f"[DELTIC-6001] sink out: the folder {tmp_path} cannot be written: No space left on device\n"
        "expected: a folder that can be written, with room\n"
        "help: make room, or give the right to write; then run again: nothing is lost or doubled"
    )
    assert files(tmp_path) == {}
    monkeypatch.undo()
    sink.deliver(1, CHANGE)
    assert sum(summed(tmp_path).values()) == 0 and len(summed(tmp_path)) == 2


@pytest.mark.parametrize("step", ["write:after", "sync:before", "rename:before"])
def test_a_snapshot_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    sink = claimed(SnapshotSink(str(tmp_path), "json", replace(OWN, mode="snapshot")))
    sink.deliver(1, CHANGE)
    before = files(tmp_path)
    fail_at(monkeypatch, step)
    with pytest.raises(SinkError, match="No space left"):
        sink.deliver(2, CHANGE.slice(1))
    assert files(tmp_path) == before


class Killed(BaseException):
    """The process ends here."""


def steps_of(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    reached: list[str] = []
    monkeypatch.setattr(disk, "at", lambda step, path: reached.append(step))
    act()
    monkeypatch.undo()
    return reached


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    count = iter(range(number + 1))

    def at(step: str, path: str) -> None:
        if next(count) == number:
            raise Killed

    monkeypatch.setattr(disk, "at", at)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("mode", ["changes", "snapshot"])
def test_killed_at_any_step_it_is_whole_and_delivers_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, mode: str) -> None:
    def run(folder: Path) -> None:
        kind = ChangesSink if mode == "changes" else SnapshotSink
        sink = claimed(kind(str(folder), format, replace(OWN, mode=mode)))
        sink.deliver(1, CHANGE)
        sink.deliver(2, CHANGE.slice(1))

    number = len(steps_of(monkeypatch, lambda: run(tmp_path / "whole")))
    assert number > 20
    for step in range(number):
        folder = tmp_path / str(step)
        kill_at(monkeypatch, step)
        with pytest.raises(Killed):
            run(folder)
        monkeypatch.undo()
        seen = {name: content for name, content in files(folder).items() if not disk.is_staged(name)} if folder.is_dir() else {}
        if mode == "changes":
            assert seen.items() <= files(tmp_path / "whole").items()
        run(folder)
        assert files(folder) == files(tmp_path / "whole")
