"""Maintenance of a state folder: verification, compaction, and the listings of its content."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from deltic.errors import StateError, StateInUse
from deltic.storage.files import DataFile
from deltic.storage.maintenance import compact, gc, size_of
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.reader import StateReader
from deltic.storage.state import State
from deltic.storage.state_statistics import arrangement_lines, epoch_lines, sources
from deltic.storage.verify import StateDefect, VerifyProgress, verify
from stored import append, keys_of

NOTES = {
    "arrangements": {
        "a": {"columns": 1, "weights": 1, "partition": [0], "view": None, "table": "orders"},
        "b": {"columns": 1, "weights": 1, "partition": [0], "view": "spend", "table": None},
    },
    "tables": {"orders": {"arrangement": "a", "fields": [["id", "BIGINT", False]], "key": ["id"]}},
    "views": {"spend": {"arrangement": "b", "fields": [["id", "BIGINT", False]], "order": [0], "key": 1}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Epochs 0 to 6: keys 1 to 6, of which the first is deleted in epoch 5."""
    state = State.open(tmp_path / "state", facts=NOTES, retain=50)
    first = append(state, 1)
    for key in (2, 3, 4):
        append(state, key)
    append(state, 5, drop=(first,))
    append(state, 6)
    state.close()
    return tmp_path / "state"


def findings_of(folder: Path) -> list[StateDefect]:
    return list(verify(folder, VerifyProgress()))


def data(folder: Path, epoch: int) -> Path:
    (path,) = (folder / "data").glob(f"*-{epoch:012}-*")
    return path


def spoil(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_sound_state_has_no_findings_and_every_byte_is_read(folder: Path) -> None:
    checked = VerifyProgress()
    assert list(verify(folder, checked)) == []
    with StateReader.open(folder) as reader:
        size = size_of(reader.folder)
    assert (checked.manifests, checked.files, checked.bytes) == (7, 6, size.data_bytes)
    assert not list((folder / "leases").iterdir())


def test_every_changed_byte_is_detected(folder: Path, tmp_path: Path) -> None:
    for epoch, lost in ((1, "table orders, at epochs 1 to 4, not at the last"), (3, "table orders, at epochs 3 to 6, the last")):
        path = data(folder, epoch)
        sound = path.read_bytes()
        for position in range(epoch, len(sound), 7):
            spoil(path, position)
            findings = list(verify(folder, VerifyProgress(), lease_s=None))
            assert [(finding.file, finding.lost) for finding in findings] == [(path.name, lost)], position
            path.write_bytes(sound)
    assert findings_of(folder) == []


def test_every_changed_byte_of_a_manifest_is_detected(folder: Path) -> None:
    path = folder / "manifests" / "000000000003.json"
    sound = path.read_bytes()
    for position in range(0, len(sound), 7):
        spoil(path, position)
        assert findings_of(folder)[0] == StateDefect("manifests/000000000003.json", "damaged", "epochs 3 to 6; the state cannot be opened")
        path.write_bytes(sound)


def test_all_findings_are_reported(folder: Path) -> None:
    data(folder, 2).unlink()
    spoil(data(folder, 3), 20)
    data(folder, 4).write_bytes(b"short")
    shutil.copy(folder / "manifests" / "000000000003.json", folder / "manifests" / "000000000005.json")
    problems = {finding.problem for finding in findings_of(folder)}
    assert problems == {
        "the file is missing, though the manifest names it",
        "the header is damaged",
        "the file has 5 bytes",
        "the manifest of epoch 3",
    }


def test_a_missing_manifest_is_detected(folder: Path) -> None:
    (folder / "manifests" / "000000000004.json").unlink()
    assert findings_of(folder) == [StateDefect("manifests/000000000004.json", "missing", "epochs 4 to 6; the state cannot be opened")]


def test_a_gap_ends_at_the_next_whole_manifest(tmp_path: Path) -> None:
    state = State.open(tmp_path, whole_every=0)
    for key in range(1, 5):
        append(state, key)
    state.close()
    spoil(tmp_path / "manifests" / "000000000002.json", 50)
    assert findings_of(tmp_path) == [
        StateDefect("manifests/000000000002.json", "damaged", "epoch 2; later epochs can be read, but the state cannot be written")
    ]


def test_a_batch_that_differs_from_the_manifest_is_detected(tmp_path: Path) -> None:
    state = State.open(tmp_path, facts=NOTES)
    segment = append(state, 1)
    state.commit(Change(dropped=(segment,), added=(SegmentRef(0, "a", segment.file, 7), SegmentRef(0, "b", segment.file, 1))))
    state.close()
    assert [(finding.problem, finding.lost) for finding in findings_of(tmp_path)] == [
        ("the manifest names 7 rows of a, the file has 1", "table orders, at epochs 1 to 2, the last"),
        ("the manifest names 1 rows of b, the file has none", "view spend, at epochs 1 to 2, the last"),
    ]


def test_gc_keeps_the_requested_epochs(folder: Path) -> None:
    cared = gc(folder)
    assert (cared.epochs, cared.before.files, cared.after.files) == (range(8), 6, 6)
    cared = gc(folder, keep=2)
    assert (cared.epochs, cared.after.files) == (range(6, 9), 5)
    cared = gc(folder, keep=0)
    assert (cared.epochs, cared.after.files, cared.after.manifests) == (range(9, 10), 5, 1)
    state = State.open(folder)
    assert keys_of(state) == [2, 3, 4, 5, 6]
    state.close()
    assert findings_of(folder) == []


def test_gc_keeps_the_files_of_readers(folder: Path) -> None:
    with StateReader.open(folder, 4) as reader:
        gc(folder, keep=0)
        assert all(DataFile(reader.root, ref).verify() is None for ref in reader.manifest.files.values())
    assert gc(folder, keep=0).after.files == 5


def test_compact_leaves_one_batch_per_arrangement_and_shard(folder: Path) -> None:
    cared = compact(folder)
    assert (cared.batches, cared.epochs) == ((5, 1), range(9))
    state = State.open(folder)
    assert keys_of(state) == [2, 3, 4, 5, 6]
    state.close()
    cared = compact(folder, keep=0)
    assert (cared.batches, cared.after.files) == ((1, 1), 1)
    assert findings_of(folder) == []


def test_compact_leaves_no_ranged_segment(folder: Path) -> None:
    State.open(folder, shards=3).close()
    cared = compact(folder, keep=0)
    assert cared.batches == (15, 2)  # one shard has no rows
    state = State.open(folder)
    assert not any(segment.ranged for segment in state.manifest.segments())
    assert keys_of(state) == [2, 3, 4, 5, 6]
    state.close()


@pytest.mark.parametrize("care", [gc, compact])
def test_maintenance_is_an_ordinary_writer(folder: Path, tmp_path: Path, care: Callable[[Path], object]) -> None:
    state = State.open(folder)
    with pytest.raises(StateInUse):
        care(folder)
    state.close()
    with pytest.raises(StateError, match="is not a state folder"):
        care(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_epochs_are_listed(folder: Path) -> None:
    with StateReader.open(folder) as reader:
        lines = list(epoch_lines(reader.folder, 3, 6))
    assert [(line.epoch, line.generation, line.shards, line.files) for line in lines] == [(epoch, 1, 1, 1) for epoch in range(3, 7)]
    assert [line.state_bytes // line.written_bytes for line in lines] == [3, 4, 4, 5]
    assert all(earlier.at_us <= later.at_us for earlier, later in pairwise(lines))


def test_arrangements_are_counted_once_however_many_shards_list_them(folder: Path) -> None:
    State.open(folder, shards=3).close()
    with StateReader.open(folder) as reader:
        table, view = arrangement_lines(reader.manifest)
    assert (table.kind, table.name, table.rows, table.bytes, table.batches, table.most, table.files, table.ranged) == (
        "table", "orders", 5, 80, 15, 5, 5, 15,
    )  # fmt: skip
    assert (view.kind, view.name, view.rows, view.batches) == ("view", "spend", 0, 0)


def test_notes_of_an_older_version_are_accepted() -> None:
    manifest = Manifest.before(1).after(Change(added=(SegmentRef(0, "a", "f", 1),), notes={"arrangements": {"a": [1, 1]}}), 1)
    (line,) = arrangement_lines(manifest)
    assert (line.kind, line.name, line.rows, line.bytes) == ("inner", "a", 1, 16)


def test_sources_are_summed() -> None:
    notes = {
        "taken:orders:1.csv": [100, 1, 2, 10],
        "taken:orders:a:b.csv": [50, 1, 2, 5],
        "cursor:orders": ["3.csv", 7, 1, 2, 3, 4],
        "cursor:gr%C3%B6%C3%9Fe": ["x.csv", 1, 1, 1, 1, 1],
        "seed": 5,
    }
    assert sources(notes) == {
        "größe": {"files": 0, "rows": 0, "bytes": 0, "cursor": ["x.csv", 1]},
        "orders": {"files": 2, "rows": 15, "bytes": 150, "cursor": ["3.csv", 7]},
    }


def test_a_state_in_an_object_store_is_maintained_alike(s3: str) -> None:
    state = State.open(s3, facts=NOTES)
    for key in range(1, 5):
        append(state, key)
    state.close()
    cared = compact(s3, keep=0)
    assert (cared.before.files, cared.after.files, cared.batches, cared.after.manifests) == (4, 1, (4, 1), 1)
    state = State.open(s3)
    assert keys_of(state) == [1, 2, 3, 4]
    state.close()
    assert list(verify(s3, VerifyProgress())) == []
    (name,) = state.folder.names("data")
    content = bytearray(state.folder.read(f"data/{name}") or b"")
    content[-30] ^= 1
    state.folder.put(f"data/{name}", bytes(content))
    assert [finding.file for finding in verify(s3, VerifyProgress())] == [name]  # though a sound copy was kept here
