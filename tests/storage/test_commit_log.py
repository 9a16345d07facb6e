"""The commit log: what is durable in it is found again, what is not is not, and damage is distinguished from a torn end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crashes import FACTS, CommitRecord, fail, watching
from deltic.errors import CorruptState, StateError, StateTakenOver
from deltic.storage import log_file, manifest
from deltic.storage.appending import AppendedBatch
from deltic.storage.commit_log import CommitLog
from deltic.storage.dictionary import Dictionary
from deltic.storage.leases import Lease
from deltic.storage.log_file import SECTOR, LogRecord, LogWriter, records
from deltic.storage.logged_epoch import LoggedEpoch, LoggedShard, decoded
from deltic.storage.program import ArrangementDescription
from deltic.storage.reader import StateReader
from deltic.storage.reading import OpenFiles
from deltic.storage.state import State
from deltic.storage.verify import VerifyProgress, verify
from stored import append, as_rows, batch_of, dictionary_of, keys_of, logged_epoch


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "FIRST_BYTES", 4 * SECTOR)


def _read(path: Path, folded: int = 0) -> list[tuple[int, bytes]]:
    return [(record.epoch, bytes(record.content)) for record in records(path.read_bytes(), path.name, folded)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three durable records, of different lengths."""
    writer = LogWriter(tmp_path / "log")
    for epoch, content in enumerate((b"one", b"two" * 500, b"three"), 1):
        writer.write(0, [(epoch, content)])
        writer.sync()
    writer.close(delete=False)
    return tmp_path / "log"


def _damaged(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def test_records_are_read_as_they_were_written(log: Path) -> None:
    assert _read(log) == [(1, b"one"), (2, b"two" * 500), (3, b"three")]
    assert log.stat().st_size == 8 * SECTOR


def test_a_torn_end_is_no_record(log: Path) -> None:
    last = records(log.read_bytes(), "log", 0)[-1]
    _damaged(log, last.offset + 66)
    assert [epoch for epoch, _ in _read(log)] == [1, 2]


@pytest.mark.parametrize("number", [0, 1])
def test_a_damaged_record_that_was_durable_is_an_error(log: Path, number: int) -> None:
    _damaged(log, records(log.read_bytes(), "log", 0)[number].offset + 66)
    with pytest.raises(CorruptState, match=r"the record at byte \d+ is damaged"):
        _read(log)
    assert _read(log, folded=3) == _read(log, folded=4)  # what is in manifests needs no log


def test_records_that_were_written_together_may_be_lost_in_any_order(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log")
    writer.write(0, [(1, b"one")])
    writer.sync()
    writer.write(0, [(2, b"two"), (3, b"three")])
    writer.close(delete=False)
    _damaged(tmp_path / "log", 2 * SECTOR)
    assert _read(tmp_path / "log") == [(1, b"one")]


def test_a_group_is_durable_after_one_write_and_one_sync(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 0)
    steps: list[str] = []
    with watching(lambda step, path: steps.append(step)):
        _log_group(state, log, 1, 2)
    assert (steps.count("append:after"), steps.count("data-sync:after"), steps[-1]) == (1, 1, "data-sync:after")
    state.folder.unlock()
    assert keys_of(State.open(state.root, logs=True)) == [0, 1, 2]


def test_of_a_group_that_fails_nothing_is_in_the_log(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 0)

    def full(step: str, path: str) -> None:
        if step == "data-sync:before":
            raise OSError(28, "No space left on device")

    with watching(full), pytest.raises(StateError, match="cannot be written"):
        _log_group(state, log, 1, 2, 3)
    assert [epoch.epoch for epoch in log.epochs] == [1]
    _log(state, log, 4)
    state.folder.unlock()
    assert keys_of(State.open(state.root, logs=True)) == [0, 4]


def test_a_new_round_hides_the_old_one(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log")
    for epoch in (1, 2, 3):
        writer.write(0, [(epoch, b"old")])
        writer.sync()
    writer.restart()
    assert [epoch for epoch, _ in _read(tmp_path / "log", folded=3)] == [1, 2, 3]
    writer.write(3, [(4, b"new")])
    writer.sync()
    writer.close(delete=False)
    assert _read(tmp_path / "log", folded=3) == [(4, b"new")]


def test_what_was_cut_does_not_reappear(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log")
    mark = writer.end
    writer.write(0, [(1, b"aaa")])
    writer.write(0, [(2, b"bbb")])
    writer.sync()
    writer.cut(mark)
    assert _read(tmp_path / "log") == []
    writer.write(0, [(1, b"aaa")])  # the same record again: the one after it is still in the file
    writer.sync()
    writer.close(delete=False)
    assert _read(tmp_path / "log") == [(1, b"aaa")]


@pytest.mark.parametrize("size", [0, 5, 16, 700])
def test_a_log_whose_writer_died_while_creating_it_is_empty(log: Path, size: int) -> None:
    content = log.read_bytes()
    assert records(content[:size] if size < 700 else bytes(700), "log", 0) == []


@pytest.mark.parametrize("size", [SECTOR + 64, 2 * SECTOR, 4 * SECTOR - 1])
def test_a_truncated_log_is_an_error(log: Path, size: int) -> None:
    """As that of an incomplete copy: the records that it lacks were durable."""
    with pytest.raises(CorruptState, match=f"log: the file has {size} bytes"):
        records(log.read_bytes()[:size], "log", 0)


def test_a_log_of_a_newer_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "VERSION", 9)
    LogWriter(tmp_path / "log").close(delete=False)
    monkeypatch.undo()
    with pytest.raises(StateError, match="log: format version 9") as caught:
        _read(tmp_path / "log")
    assert caught.value.remedy == "use a newer Deltic"


def test_a_damaged_header_is_an_error(log: Path) -> None:
    _damaged(log, 9)
    with pytest.raises(CorruptState, match="not a commit log, or damaged in its header"):
        _read(log)


ARRANGEMENTS = {
    "a": ArrangementDescription(1, 1),
    "v": ArrangementDescription(2, 1, view="v"),
    "s": ArrangementDescription(1, 1, view="s", ephemeral=True),
}
VIEW = batch_of((1, 30, 1), (2, 40, -1))
EPOCH = LoggedEpoch(
    7,
    1234,
    {"x": [1, None], "gone": None},
    (
        LoggedShard(
            2,
            (
                AppendedBatch("a", (), batch_of((5, 1), (6, 2)), None),
                AppendedBatch("v", (1,), VIEW, VIEW),
                AppendedBatch("s", (), None, batch_of((9, 1))),
            ),
            dictionary_of(**{"long": 30, "": 40}),
        ),
    ),
)


def _decoded(content: bytes) -> LoggedEpoch:
    return decoded(LogRecord(7, 6, memoryview(content), 0, 0, 0, 0, 0), ARRANGEMENTS, 3, "the log")


def test_an_epoch_is_decoded_as_it_was_encoded() -> None:
    result = _decoded(EPOCH.encoded())
    assert (result.epoch, result.at_us, result.notes) == (7, 1234, {"x": [1, None], "gone": None})
    (shard,) = result.shards
    rows = [(e.arrangement, e.strings, e.batch and as_rows(e.batch), e.change and as_rows(e.change)) for e in shard.appended]
    view = [(1, 30, 1), (2, 40, -1)]
    assert rows == [("a", (), [(5, 1), (6, 2)], None), ("v", (1,), view, view), ("s", (), None, [(9, 1)])]
    assert shard.dictionary.values.to_pylist() == [b"long", b""]


def _with(shard: LoggedShard) -> LoggedEpoch:
    return EPOCH._replace(shards=(shard,))


@pytest.mark.parametrize(
    ("epoch", "message"),
    [
        (_with(EPOCH.shards[0]._replace(shard=3)), "a shard: expected an integer from 0 to 2, not 3"),
        (_with(EPOCH.shards[0]._replace(dictionary=Dictionary.empty())), "v has strings that the record lacks"),
        (_with(LoggedShard(0, (AppendedBatch("b", (), VIEW, None),), Dictionary.empty())), "expected the arrangements of the state"),
        (_with(LoggedShard(0, (AppendedBatch("a", (), VIEW, None),), Dictionary.empty())), "a has 2 columns and 1 weights"),
        (_with(LoggedShard(0, (AppendedBatch("a", (), None, batch_of((1, 1))),), Dictionary.empty())), "a is not a view's"),
        (_with(LoggedShard(0, (AppendedBatch("a", (1,), batch_of((1, 1)), None),), Dictionary.empty())), "strings: expected an integer"),
        (EPOCH._replace(shards=EPOCH.shards * 2), "a shard occurs twice"),
        (_with(EPOCH.shards[0]._replace(appended=EPOCH.shards[0].appended[:1] * 2)), "an arrangement occurs twice"),
    ],
)
def test_an_invalid_record_is_refused(epoch: LoggedEpoch, message: str) -> None:
    with pytest.raises(CorruptState, match="the log: the record of epoch 7") as caught:
        _decoded(epoch.encoded())
    assert message in caught.value.message


def test_no_changed_word_of_a_record_is_taken_for_another(tmp_path: Path) -> None:
    """Each byte of a valid record, changed in turn: the record is refused, or decoded to something of the right shape."""
    content = bytearray(EPOCH.encoded())
    for position in range(len(content)):
        content[position] ^= 0xFF
        try:
            result = _decoded(bytes(content))
        except CorruptState:
            continue
        finally:
            content[position] ^= 0xFF
        for shard in result.shards:
            assert len(shard.dictionary.values.to_pylist()) == len(shard.dictionary)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., tuple[State, CommitLog]]]:
    states: list[State] = []

    def open_(**options: Any) -> tuple[State, CommitLog]:
        states.append(State.open(tmp_path / "state", logs=True, facts=FACTS, **options))
        return states[-1], CommitLog(states[-1])

    yield open_
    for state in states:
        state.folder.unlock()


def _log(state: State, log: CommitLog, *keys: int) -> None:
    for key in keys:
        epoch = logged_epoch(log.epochs[-1].epoch + 1 if log.epochs else state.epoch + 1, key, at_us=1_000_000 + key)
        log.append([(epoch, epoch.encoded())])


def _log_group(state: State, log: CommitLog, *keys: int) -> None:
    epochs = [logged_epoch(epoch, key) for epoch, key in enumerate(keys, log.epochs[-1].epoch + 1)]
    log.append([(epoch, epoch.encoded()) for epoch in epochs])


def _fold(state: State, log: CommitLog) -> None:
    log.fold(OpenFiles(state.root), lambda change: change)


def test_every_retained_epoch_can_be_read_after_a_fold(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened(retain=3)
    _log(state, log, *range(10))
    _fold(state, log)
    assert (state.manifest.oldest, state.epoch, keys_of(state)) == (7, 10, [*range(10)])
    assert len(state.folder.names("manifests")) == 6  # those of the opening, of epoch 1, and of epochs 7 to 10
    for epoch in range(7, 11):
        with StateReader.open(state.root, epoch) as reader:
            assert reader.manifest.notes["last"] == epoch - 1
            assert reader.manifest.at_us == 1_000_000 + epoch - 1
            assert sum(segment.rows for segment in reader.manifest.segments()) == epoch
    with pytest.raises(StateError, match="epoch 6 of the state folder"):
        StateReader.open(state.root, 6)


@pytest.mark.parametrize(("retain", "share"), [(0, 2 / 6), (2, 4 / 6), (9, 1.0)])
def test_a_fold_says_what_it_has_written_for_others_than_those_who_follow(
    opened: Callable[..., tuple[State, CommitLog]], retain: int, share: float
) -> None:
    """Of the manifests of six epochs: the first and the last are always there."""
    state, log = opened(retain=retain)
    for follows in (True, False):
        lease = Lease(state.folder, state.epoch, follows=follows)
        before = len(state.folder.names("manifests"))
        _log(state, log, *range(6))
        assert log.begin_fold()
        part = log.fold_begun(OpenFiles(state.root), lambda change: change)
        written = len(state.folder.names("manifests")) - before
        assert (part, written) == (pytest.approx(share), 6) if follows else (1.0, round(6 * share))
        log.end_fold()
        lease.release()


def test_a_reader_keeps_the_epochs_after_its_own(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened(retain=0)
    lease = Lease(state.folder, 0)
    _log(state, log, 1, 2, 3)
    _fold(state, log)
    assert len(state.folder.names("manifests")) == 4
    lease.release()
    _log(state, log, 4, 5, 6)
    _fold(state, log)
    assert state.folder.names("manifests")[-2:] == ["000000000004.json", "000000000006.json"]
    assert keys_of(state) == [*range(1, 7)]


def test_the_changes_of_an_epoch_into_which_others_are_folded_are_its_own(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    notes = {"arrangements": {"v": ArrangementDescription(1, 1, view="v").json()}}
    state, log = opened(retain=0)
    state.commit(manifest.Change(notes=notes))
    for key in (1, 2, 3):
        batch = batch_of((key, 1))
        epoch = LoggedEpoch(state.epoch + key, 0, {}, (LoggedShard(0, (AppendedBatch("v", (), batch, batch),), Dictionary.empty()),))
        log.append([(epoch, epoch.encoded())])
    _fold(state, log)
    (view,) = state.manifest.views
    file = OpenFiles(state.root)[state.manifest.files[view.file]]
    assert (as_rows(file.change("v")), as_rows(file.batch("v"))) == ([(3, 1)], [(2, 1), (3, 1)])


def test_rows_that_cancel_within_a_fold_leave_nothing(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened(retain=0)
    _log(state, log, 9)
    for weight in (1, -1):
        shard = LoggedShard(0, (AppendedBatch("a", (), batch_of((1, weight)), None),), Dictionary.empty())
        epoch = LoggedEpoch(state.epoch + 1 + len(log.epochs), 0, {}, (shard,))
        log.append([(epoch, epoch.encoded())])
    _fold(state, log)
    assert (keys_of(state), state.epoch) == ([9], 3)


def test_weights_too_large_to_be_added_stay_apart(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened(retain=0)
    for _ in range(14):
        shard = LoggedShard(0, (AppendedBatch("a", (), batch_of((1, 2**62)), None),), Dictionary.empty())
        epoch = LoggedEpoch(state.epoch + 1 + len(log.epochs), 0, {}, (shard,))
        log.append([(epoch, epoch.encoded())])
    _fold(state, log)
    assert (len(keys_of(state)), state.epoch) == (14, 14)


def test_garbage_is_swept_whatever_the_last_epochs_of_folds_are(
    opened: Callable[..., tuple[State, CommitLog]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltic.storage.state.SWEEP_EVERY", 10)
    state, log = opened(retain=0)
    for number in range(20):
        _log(state, log, *range(3 if number == 0 else 10))
        _fold(state, log)
        assert state.epoch % 10 == 3
    assert len(state.folder.names("manifests")) <= 4


def test_a_fold_that_is_tried_again_first_deletes_what_the_failed_one_wrote(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened(retain=3)
    _log(state, log, 1, 2, 3)

    def full(step: str, path: str) -> None:
        if step == "link:before":
            raise OSError(28, "No space left on device")

    with watching(full):
        for _ in range(3):
            with pytest.raises(StateError, match="cannot be written"):
                _fold(state, log)
            assert len(state.folder.names("data")) == 3
    _fold(state, log)
    assert set(state.folder.names("data")) == set(state.manifest.files)
    assert keys_of(state) == [1, 2, 3]


def test_the_next_writer_folds_what_is_left(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 1, 2)
    state.folder.unlock()
    assert keys_of(state) == []
    again = State.open(state.root)
    assert (keys_of(again), again.manifest.notes["last"], again.folder.names("log")) == ([1, 2], 2, [])
    append(again, 3)
    again.close()


def test_earlier_versions_refuse_a_state_with_a_log(
    opened: Callable[..., tuple[State, CommitLog]], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, log = opened()
    _log(state, log, 1)
    state.folder.unlock()
    monkeypatch.setattr(manifest, "LOGGED_VERSION", 2)
    with pytest.raises(StateError, match=r"manifests/000000000000.json: format version 3") as caught:
        State.open(state.root)
    assert caught.value.remedy == "use a newer Deltic"


def test_a_log_without_its_manifests_is_an_error(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    append(state, 1)
    append(state, 2)
    _log(state, log, 3)
    state.folder.unlock()
    state.folder.delete(["manifests/000000000002.json", *(f"generations/{name}" for name in state.folder.names("generations"))])
    with pytest.raises(CorruptState, match=r"log/00000001.log continues epoch 2, but the last manifest is that of epoch 1"):
        State.open(state.root)


def test_a_writer_that_was_taken_over_commits_nothing(
    opened: Callable[..., tuple[State, CommitLog]], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, log = opened()
    _log(old, log, 1)
    old.folder.unlock()
    new = State.open(old.root)
    with pytest.raises(StateTakenOver):
        _log(old, log, 2)
    assert keys_of(new) == [1]
    new.close()
    assert keys_of(State.open(old.root)) == [1]


def test_a_writer_that_was_taken_over_folds_nothing(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    old, log = opened(retain=0)
    _log(old, log, 1, 2, 3, 4)
    old.folder.delete([f"log/{name}" for name in old.folder.names("log")])  # as if the newer one had opened the folder before
    old.folder.unlock()
    new = State.open(old.root)
    before = new.folder.names("manifests")
    with pytest.raises(StateTakenOver):
        _fold(old, log)
    assert new.folder.names("manifests") == before
    new.close()


def test_a_full_disk_loses_nothing(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 1)

    def at(step: str, path: str) -> None:
        if step == "data-sync:before":
            raise OSError(28, os.strerror(28))

    with watching(at), pytest.raises(StateError, match="No space left on device"):
        _log(state, log, 2)
    _log(state, log, 3)
    state.folder.unlock()
    assert keys_of(State.open(state.root)) == [1, 3]


@pytest.mark.parametrize("killed", [False, True])
def test_what_has_failed_is_gone_with_the_next_manifest(opened: Callable[..., tuple[State, CommitLog]], killed: bool) -> None:
    state, log = opened()
    _log(state, log, 1)
    assert log.begin_fold()
    fail(log, CommitRecord(), 77, 78)
    log.fold_begun(OpenFiles(state.root), lambda change: change)
    log.end_fold()
    log.cut()
    append(state, 5)
    if not killed:
        log.close()
    state.folder.unlock()
    assert keys_of(State.open(state.root)) == [1, 5]


def test_what_has_failed_is_not_taken_for_damage_in_the_next_round(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 1, 2, 3, 4)
    fail(log, CommitRecord(), 77, 78, 79)
    log.forget_after(4)
    _fold(state, log)
    _log(state, log, 5)
    state.folder.unlock()
    assert list(verify(state.root, VerifyProgress())) == []
    assert keys_of(State.open(state.root)) == [1, 2, 3, 4, 5]


def test_what_a_closed_log_has_is_not_taken_for_folded(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 1, 2)
    log.close()
    with pytest.raises(StateError, match=r"the commit log of .* is closed"):
        _fold(state, log)
    state.folder.unlock()
    assert keys_of(State.open(state.root)) == [1, 2]


def test_a_fold_that_fails_is_continued(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 1, 2, 3)

    def at(step: str, path: str) -> None:
        if step == "link:before" and path.endswith("2.json"):
            raise OSError(5, os.strerror(5))

    with watching(at), pytest.raises(StateError):
        _fold(state, log)
    _log(state, log, 4)
    _fold(state, log)
    assert (keys_of(state), log.epochs) == ([1, 2, 3, 4], [])
    log.close()
    assert state.folder.names("log") == []


def test_the_folder_has_only_json_and_words(opened: Callable[..., tuple[State, CommitLog]]) -> None:
    state, log = opened()
    _log(state, log, 1)
    content = (Path(state.root) / "log" / "00000001.log").read_bytes()
    (record,) = records(content, "log", 0)
    size = int.from_bytes(record.content[:8], "little")
    assert json.loads(bytes(record.content[8 : 8 + size]))["notes"] == {"last": 1}
