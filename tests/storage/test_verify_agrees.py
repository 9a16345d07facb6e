"""What `verify` says of a damaged folder is what opening and reading it meets: each file deleted, cut off, and changed in single bits."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crashes import FACTS
from deltic.errors import CorruptState, StateError
from deltic.storage import log_file
from deltic.storage.appending import AppendedBatch
from deltic.storage.commit_log import CommitLog
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, DataFile, write_file
from deltic.storage.folder import open_folder
from deltic.storage.generations import generation_name, marked_epoch
from deltic.storage.log_file import SECTOR
from deltic.storage.logged_epoch import LoggedShard
from deltic.storage.manifest import Change, SegmentRef, manifest_name
from deltic.storage.reader import StateReader
from deltic.storage.state import State
from deltic.storage.verify import StateDefect, VerifyProgress, verify
from stored import append, batch_of, logged_epoch

Damage = Callable[[Path], None]


def made(folder: Path, *, retain: int, whole_every: int) -> Path:
    """Two writers, files that later epochs drop, and changes of views that no batch has."""
    for keys in (range(1, 5), range(5, 8)):
        state = State.open(folder, retain=retain, whole_every=whole_every)
        segment = None
        for key in keys:
            segment = append(state, key, drop=(segment,) if segment is not None and key % 2 else ())
        _change_a_view(state)
        state.close()
    return folder


def _change_a_view(state: State) -> None:
    ref = write_file(state.root, state.origin(0, 0), [Content("v", batch_of((7, 1)), (), "change")], Dictionary.empty())
    state.commit(Change((ref,), views=(SegmentRef(0, "v", ref.name, 1),)))


def trouble(folder: Path, epoch: int, oldest: int) -> str | None:
    """What opening the folder, or reading one of its epochs, meets; None if all is as it was. The folder is not changed."""
    for past in range(oldest, epoch + 1):
        try:
            with StateReader.open(folder, past, lease_s=None) as reader:
                for ref in reader.manifest.files.values():
                    DataFile(reader.root, ref).verify()
        except StateError as error:
            return f"reading epoch {past}: {error.message}"
    opened = Path(shutil.copytree(folder, folder.with_name("opened")))
    try:
        state = State.open(opened)
        state.close()
        return None if state.epoch == epoch + 1 else f"it opened after epoch {state.epoch - 1}"
    except StateError as error:
        return f"opening: {error.message}"
    finally:
        shutil.rmtree(opened)


def findings(folder: Path) -> list[StateDefect]:
    try:
        return list(verify(folder, VerifyProgress(), lease_s=None))
    except StateError as error:
        return [StateDefect("", error.message, "")]


def damages(size: int, seed: str, bits: int) -> Iterator[tuple[str, Damage]]:
    yield "deleted", Path.unlink
    yield "emptied", lambda path: path.write_bytes(b"") and None
    yield "cut in half", lambda path: path.write_bytes(path.read_bytes()[: size // 2]) and None
    yield "cut by a byte", lambda path: path.write_bytes(path.read_bytes()[:-1]) and None
    for bit in random.Random(seed).sample(range(8 * size), min(bits, 8 * size)):
        yield f"with bit {bit} flipped", lambda path, bit=bit: _flip(path, bit)


def _flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("retain", "whole_every"), [(3, 2), *(pytest.param(*p, marks=pytest.mark.slow) for p in ((100, 50), (0, 0), (4, 0)))]
)
def test_verify_fails_where_opening_or_reading_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retain: int, whole_every: int) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)  # no power fails here
    folder = made(tmp_path / "sound", retain=retain, whole_every=whole_every)
    with StateReader.open(folder, lease_s=None) as reader:
        epoch, oldest = reader.epoch, reader.epochs().start
    assert trouble(folder, epoch, oldest) is None and findings(folder) == []
    met = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for name, damage in damages(path.stat().st_size, path.name, 3):
            spoilt = Path(shutil.copytree(folder, folder.with_name("spoilt")))
            damage(spoilt / path.relative_to(folder))
            expected, verdict = trouble(spoilt, epoch, oldest), findings(spoilt)
            assert bool(verdict) == (expected is not None), f"{path.name} {name}: {expected}; {verdict}"
            met.add((path.parent.name, expected is None))
            shutil.rmtree(spoilt)
    assert {("manifests", False), ("data", False), ("generations", True), ("sound", True)} <= met


def left_with_a_log(folder: Path) -> Path:
    """A state of one epoch whose writer was killed with six more in its log, of which the last two were one group. Returns the log."""
    state = State.open(folder, logs=True, facts=FACTS)
    append(state, 1)
    log = CommitLog(state)
    for keys in ((2,), (3,), (4,), (5,), (6, 7)):
        epochs = [logged_epoch(key, key) for key in keys]
        log.append([(epoch, epoch.encoded()) for epoch in epochs])
    state.folder.unlock()
    (path,) = (folder / "log").iterdir()
    return path


def test_verify_fails_where_a_writer_cannot_open_the_log(tmp_path: Path) -> None:
    path = left_with_a_log(tmp_path / "state")
    sound, checked = path.read_bytes(), VerifyProgress()
    whole = log_file.records(sound, path.name, 1)
    assert list(verify(tmp_path / "state", checked)) == [] and checked.bytes > len(sound)
    found = set[int]()
    for number, record in enumerate(whole):
        for position in (record.offset, record.offset + 5, record.offset + 20, record.offset + 70, record.end - SECTOR + 90):
            _flip(path, 8 * position)
            verdict, expected = findings(tmp_path / "state"), _opening(tmp_path / "state")
            assert bool(verdict) == (expected is not None), (number, position, expected)
            for finding in verdict:
                found.add(number)
                assert finding.file == "log/00000001.log" and finding.lost.startswith("the epochs after 1 ")
                assert (
                    expected == f"{finding.file}: {finding.problem}" == f"log/00000001.log: the record at byte {record.offset} is damaged"
                )
            path.write_bytes(sound)
    assert found == {0, 1, 2, 3}  # the end may be torn: no later record says that it was durable


def _opening(folder: Path) -> str | None:
    """What a writer says that opens a copy of the folder."""
    opened = Path(shutil.copytree(folder, folder.with_name("opened")))
    try:
        State.open(opened).close()
    except CorruptState as error:
        return error.message
    finally:
        shutil.rmtree(opened)
    return None


def test_a_record_that_contradicts_the_manifest_is_found(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state", logs=True, facts=FACTS)
    log = CommitLog(state)
    other = logged_epoch(1, 1)._replace(shards=(LoggedShard(0, (AppendedBatch("b", (), batch_of((1, 1)), None),), Dictionary.empty()),))
    log.append([(other, other.encoded())])
    state.folder.unlock()
    (finding,) = findings(tmp_path / "state")
    assert finding.file == "log/00000001.log"
    assert finding.problem.startswith("the record of epoch 1 at byte 512") and "expected the arrangements of the state" in finding.problem


def test_what_is_folded_needs_no_log(tmp_path: Path) -> None:
    path = left_with_a_log(tmp_path / "state")
    content = path.read_bytes()
    State.open(tmp_path / "state").close()
    path.write_bytes(content)  # as after a power failure
    _flip(path, 8 * 600)
    assert findings(tmp_path / "state") == [] and _opening(tmp_path / "state") is None


def test_the_only_whole_manifest_is_lost(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=100, whole_every=50)
    (folder / manifest_name(0)).unlink()
    assert findings(folder) == [StateDefect("manifests/000000000000.json", "missing", "epochs 0 to 10; the state cannot be opened")]
    with pytest.raises(CorruptState, match="does not hold the whole state"):
        State.open(folder)


def test_the_whole_manifest_before_the_retained_epochs_is_lost(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=2, whole_every=50)
    (folder / manifest_name(0)).unlink()
    assert [finding.file for finding in findings(folder)] == ["manifests/000000000000.json"]
    for epoch in range(1, 10):
        (folder / manifest_name(epoch)).unlink()
    assert [finding.lost for finding in findings(folder)] == ["epochs 8 to 10; the state cannot be opened"]


def test_the_newest_manifests_are_lost(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=100, whole_every=50)
    for epoch in (9, 10):
        (folder / manifest_name(epoch)).unlink()
    said = "manifests/000000000010.json is missing, though epoch 10 was committed"
    assert findings(folder) == [
        StateDefect("manifests/000000000009.json", "missing, with all up to epoch 10", "epochs 9 to 10; the state cannot be opened")
    ]
    for open_ in (State.open, StateReader.open):
        with pytest.raises(CorruptState, match=said):
            open_(folder)
    shutil.rmtree(folder / "generations")  # as the error says, if the loss is accepted
    state = State.open(folder)
    assert (state.epoch, state.generation) == (9, 3)
    state.close()
    assert findings(folder) == []


def test_all_manifests_are_lost(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=100, whole_every=50)
    shutil.rmtree(folder / "manifests")
    assert [finding.lost for finding in findings(folder)] == ["epoch 10; the state cannot be opened"]
    with pytest.raises(CorruptState, match="to continue from nothing, delete generations/"):
        State.open(folder)


def test_missing_files_that_only_garbage_needs_are_no_finding(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=0, whole_every=0)
    stale = folder / manifest_name(0)
    stale.write_bytes(b"left over by a writer that was killed")
    assert findings(folder) == []
    State.open(folder).close()


def test_an_old_epoch_that_a_reader_holds_is_verified(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=1, whole_every=2)
    with StateReader.open(folder) as reader:
        state = State.open(folder, retain=0, whole_every=2)
        for key in range(20, 25):
            append(state, key)
        state.close()
        _flip(folder / manifest_name(reader.epoch), 999)
        assert [finding.file for finding in findings(folder)] == [manifest_name(reader.epoch)]
        with pytest.raises(CorruptState):
            State.open(folder)
    assert findings(folder) == []


def test_a_stray_manifest_is_reported_at_once(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=100, whole_every=50)
    (folder / manifest_name(999_999_999_999)).write_bytes(b"{}")
    assert findings(folder) == [
        StateDefect(
            "manifests/000000000011.json",
            "missing, with all up to epoch 999999999998",
            "epochs 11 to 999999999999; the state cannot be opened",
        ),
        StateDefect("manifests/999999999999.json", "damaged", "epochs 11 to 999999999999; the state cannot be opened"),
    ]
    with pytest.raises(CorruptState):
        State.open(folder)


def test_the_mark_of_the_last_commit_is_carried_over_and_a_damaged_one_is_ignored(tmp_path: Path) -> None:
    folder = made(tmp_path / "state", retain=100, whole_every=50)
    place = open_folder(folder)
    assert marked_epoch(place) == 10
    _flip(folder / generation_name(2), 85)
    assert marked_epoch(place) is None
    State.open(folder).close()
    assert marked_epoch(place) == 11


def test_a_state_in_an_object_store_marks_what_it_committed_when_it_is_closed(s3: str) -> None:
    state = State.open(s3)
    append(state, 1)
    state.close()
    state.folder.delete([manifest_name(1)])
    assert [finding.file for finding in verify(s3, VerifyProgress())] == [manifest_name(1)]
    with pytest.raises(CorruptState, match="though epoch 1 was committed"):
        State.open(s3)
