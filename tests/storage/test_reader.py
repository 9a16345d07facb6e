"""Readers beside a writer: they see one epoch, and a lease keeps its files."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from deltic.disk import staged_name
from deltic.errors import CorruptState, StateError
from deltic.storage import reader as reading
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, DataFile, write_file
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.history import committed_epochs, epochs_in
from deltic.storage.leases import LEASE_S, Lease, oldest_leased
from deltic.storage.manifest import Change, Manifest, SegmentRef, StoredManifest, manifest_name
from deltic.storage.reader import StateReader
from deltic.storage.state import State
from interruptions import interrupted_everywhere
from stored import as_rows, batch_of
from waiting import wait_until


def replace(state: State, key: int) -> SegmentRef:
    """One epoch after which a row with this key is all that there is."""
    batch = batch_of((key, 1))
    ref = write_file(state.root, state.origin(0, 0), [Content("a", batch)], Dictionary.empty())
    segment = SegmentRef(0, "a", ref.name, 1)
    state.commit(Change((ref,), (segment,), tuple(state.manifest.segments()), (segment,), {"last": key}))
    return segment


def key_of(root: Path, manifest: Manifest) -> int:
    (segment,) = manifest.segments()
    return int(as_rows(DataFile(str(root), manifest.files[segment.file]).batch("a"))[0][0])


def test_retained_epochs_alone_can_be_read(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=5, whole_every=3)
    for key in range(1, 21):
        replace(state, key)
    for epoch in range(15, 21):
        with StateReader.open(tmp_path, epoch) as reader:
            assert (reader.epoch, key_of(tmp_path, reader.manifest), reader.epochs()) == (epoch, epoch, range(15, 21))
            assert reader.manifest.notes["last"] == epoch
    for epoch in (14, 21):
        with pytest.raises(StateError) as caught:
            StateReader.open(tmp_path, epoch)
        assert str(caught.value) == (
            f"[DELTIC-5000] epoch {epoch} of the state folder {tmp_path} is not readable\n"
            "expected: an epoch from 15 to 20\n"
            "help: choose one of these, or omit the epoch to read the last one"
        )
    assert not list((tmp_path / "leases").iterdir())


def test_a_lease_keeps_its_epoch_and_all_after_it(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=1, whole_every=2)
    replace(state, 1)
    reader = StateReader.open(tmp_path)
    for key in range(2, 130):
        replace(state, key)
    state.sweep()
    assert key_of(tmp_path, reader.manifest) == 1
    assert reader.epochs() == range(1, 130)
    assert [key_of(tmp_path, reader.manifest_at(epoch)) for epoch in (1, 2, 77, 129)] == [1, 2, 77, 129]
    with pytest.raises(StateError, match="expected: an epoch from 128 to 129"):
        StateReader.open(tmp_path, 77)
    reader.close()
    replace(state, 130)
    state.sweep()
    assert len(list((tmp_path / "data").iterdir())) == 2
    with pytest.raises(StateError, match="expected: an epoch from 129 to 130"):
        reader.manifest_at(2)


def test_a_shared_lease_keeps_epochs_for_others(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=1, whole_every=2)
    replace(state, 1)
    first = StateReader.open(tmp_path)
    for key in range(2, 9):
        replace(state, key)
    with pytest.raises(StateError, match="expected: an epoch from 7 to 8"):
        StateReader.open(tmp_path, 3)  # the lease may be one of a reader that was too late
    first.share()
    second = StateReader.open(tmp_path, 3)
    assert second.epochs() == range(3, 9) and key_of(tmp_path, second.manifest) == 3
    for epoch in (0, 9):
        with pytest.raises(StateError, match="is not readable"):
            StateReader.open(tmp_path, epoch)
    second.leave()
    first.close()
    for key in range(9, 80):
        replace(state, key)
    state.sweep()
    with StateReader.open(tmp_path, 3) as third:
        assert key_of(tmp_path, third.manifest) == 3
    with pytest.raises(StateError, match="is not readable"):
        StateReader.open(tmp_path, 2)
    (lease,) = (tmp_path / "leases").iterdir()
    lease.write_text(json.dumps({"epoch": 3, "expires": time.time_ns() // 1000 - 1, "shared": True}))  # as of long ago
    with pytest.raises(StateError, match="expected: an epoch from 78 to 79"):
        StateReader.open(tmp_path, 3)
    assert lease.exists(), "readers delete no leases"


def test_a_shared_lease_that_ends_before_that_of_another_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State.open(tmp_path, retain=0, whole_every=2)
    replace(state, 1)
    first = StateReader.open(tmp_path)
    first.share()
    for key in range(2, 9):
        replace(state, key)

    class Slow(Lease):
        def __init__(self, *arguments: object, **options: object) -> None:
            first.close()
            state.sweep()
            super().__init__(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("deltic.storage.leases.Lease", Slow)
    with pytest.raises(StateError, match=r"epoch 1 of the state folder .* is not readable"):
        StateReader.open(tmp_path, 1)
    assert not list((tmp_path / "leases").iterdir())


def test_a_lease_that_follows_another_while_they_are_read_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State.open(tmp_path)
    leases = [Lease(state.folder, 3)]
    read = state.folder.read

    def slowly(name: str) -> bytes | None:
        """As if a reader had handed its epoch to another after the listing."""
        if len(leases) == 1:
            leases.append(Lease(state.folder, 3))
            leases[0].release()
        return read(name)

    monkeypatch.setattr(state.folder, "read", slowly)
    assert oldest_leased(state.folder) == 3
    leases[1].release()


def test_readers_of_other_epochs_share_a_lease_which_keeps_the_earliest_of_them(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=5, whole_every=2)
    for key in range(1, 11):
        replace(state, key)
    with StateReader.open(tmp_path) as reader:
        later = [replace(state, key) and reader.at(key) for key in range(11, 14)]
        earlier = reader.at(9)
        with pytest.raises(StateError, match="expected: an epoch from 8 to 13"):
            reader.at(7)
        with pytest.raises(StateError, match="epoch 14 of the state folder"):
            reader.at(14)
        assert oldest_leased(state.folder) == 9 and len(list((tmp_path / "leases").iterdir())) == 1
        for key in range(14, 40):
            replace(state, key)
        earlier.close()
        state.sweep()
        assert [key_of(tmp_path, each.manifest) for each in (earlier, reader, *later, reader.at(9))] == [9, 10, 11, 12, 13, 9]
    assert oldest_leased(state.folder) is None
    state.close()


def test_a_shared_lease_names_no_earlier_epoch_that_is_dropped_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three at once: a reader moves its shared lease to an earlier epoch, the writer drops it, and a second reader relies on the lease."""
    state = State.open(tmp_path, retain=2)
    for key in range(1, 6):
        replace(state, key)
    with StateReader.open(tmp_path) as reader:
        reader.share()
        newest, refused = reading._newest, []

        def after_a_lease(folder: StateFolder) -> StoredManifest:
            """Once a lease names epoch 3, and before its reader looks again, the epoch is dropped, and opened by another reader."""
            if oldest_leased(folder, clear=False) == 3 and not refused:
                refused.append(3)
                replace(state, 6)
                with pytest.raises(StateError, match="epoch 3 of the state folder"):
                    StateReader.open(tmp_path, 3)
            return newest(folder)

        monkeypatch.setattr(reading, "_newest", after_a_lease)
        with pytest.raises(StateError, match="epoch 3 of the state folder"):
            reader.at(3)
        assert refused and oldest_leased(state.folder) == 5
        assert len(list((tmp_path / "leases").iterdir())) == 1
    state.close()


def test_what_killed_readers_have_staged_is_swept_once_it_is_old(tmp_path: Path) -> None:
    State.open(tmp_path).close()
    (tmp_path / "leases").mkdir(exist_ok=True)
    old, young = (staged_name(tmp_path / "leases" / name) for name in ("1.json", "2.json"))
    old.touch()
    young.touch()
    os.utime(old, (time.time() - 2 * LEASE_S,) * 2)
    State.open(tmp_path).close()
    assert list((tmp_path / "leases").iterdir()) == [young]


def test_a_lease_holds_after_the_writer_ends_until_it_expires(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=0)
    replace(state, 1)
    reader = StateReader.open(tmp_path)
    state.close()
    for key in range(2, 5):
        again = State.open(tmp_path, retain=0)
        replace(again, key)
        again.close()
    assert key_of(tmp_path, reader.manifest) == 1
    (lease,) = (tmp_path / "leases").iterdir()
    lease.write_text(json.dumps({"epoch": 1, "expires": time.time_ns() // 1000 - 1}))  # as of a reader that died
    State.open(tmp_path, retain=0).close()
    assert not lease.exists()
    assert len(list((tmp_path / "data").iterdir())) == 1
    reader.close()


def test_leases_are_renewed_while_the_reader_lives(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    lease = Lease(state.folder, 3, length_s=0.4)
    (path,) = (tmp_path / "leases").iterdir()
    first = json.loads(path.read_bytes())["expires"]
    wait_until(lambda: json.loads(path.read_bytes())["expires"] > first + 400_000)
    assert oldest_leased(state.folder) == 3
    lease.release()
    lease.release()
    assert oldest_leased(state.folder) is None


def test_invalid_leases_keep_nothing(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    folder.put("leases/junk.json", b"[")
    folder.put("leases/endless.json", b'{"epoch": 1, "expires": Infinity}')
    folder.put("leases/1.json", json.dumps({"epoch": 4, "expires": time.time_ns() // 1000 + 10**9}).encode())
    folder.put("leases/2.json", json.dumps({"epoch": 3, "expires": time.time_ns() // 1000 + 10**9}).encode())
    assert oldest_leased(folder) == 3
    assert folder.names("leases") == ["1.json", "2.json"]


def test_foreign_files_in_the_folder_of_leases_are_ignored(tmp_path: Path) -> None:
    State.open(tmp_path).close()
    (tmp_path / "leases").mkdir()
    for name in (".nfs000000000123", "a b.json", ".1.json"):
        (tmp_path / "leases" / name).write_bytes(b"{}")
    state = State.open(tmp_path, retain=0)
    replace(state, 1)
    first = (tmp_path / "data").iterdir()
    replace(state, 2)
    assert len(list(first)) == 1


def test_a_writer_faster_than_the_lease_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State.open(tmp_path, retain=0)
    replace(state, 1)

    class Slow(Lease):
        def __init__(self, *arguments: object, **options: object) -> None:
            if state.epoch < 5:
                replace(state, state.epoch + 1)
            super().__init__(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("deltic.storage.leases.Lease", Slow)
    with pytest.raises(StateError, match=r"epoch 1 of the state folder .* is not readable"):
        StateReader.open(tmp_path, 1)
    with StateReader.open(tmp_path) as reader:
        assert reader.epoch == 5
        assert key_of(tmp_path, reader.manifest) == 5
    assert not list((tmp_path / "leases").iterdir())


def test_a_manifest_deleted_before_it_is_read_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State.open(tmp_path, retain=0, whole_every=0)
    replace(state, 1)

    def slowly(folder: StateFolder) -> list[int]:
        """As if the writer went on between the listing and the reading."""
        epochs = epochs_in(folder)
        monkeypatch.setattr(reading, "committed_epochs", committed_epochs)
        replace(state, 2)
        state.sweep()
        return epochs

    monkeypatch.setattr(reading, "committed_epochs", slowly)
    with StateReader.open(tmp_path) as reader:
        assert key_of(tmp_path, reader.manifest) == 2
    open_folder(tmp_path).delete([manifest_name(state.epoch)])
    (tmp_path / manifest_name(state.epoch)).write_bytes(b"{}")
    with pytest.raises(CorruptState, match="is damaged"):
        StateReader.open(tmp_path)


def test_readers_always_have_their_files_while_a_writer_is_busy(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=0, whole_every=4)
    replace(state, 1)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            replace(state, state.epoch + 1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            with StateReader.open(tmp_path) as reader:
                assert key_of(tmp_path, reader.manifest) == reader.epoch
    finally:
        done.set()
        writer.join()


def test_a_lease_can_be_released_after_an_interrupt_at_any_step_of_its_release(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    leases = [Lease(folder, 1)]

    def check() -> None:
        thread = threading.Thread(target=leases[-1].release, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        leases.append(Lease(folder, 1))

    def release() -> None:
        leases[-1].release()

    assert interrupted_everywhere(release, check) > 10
    leases[-1].release()


def test_a_folder_without_a_state_is_named_and_not_changed(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(StateError) as caught:
            StateReader.open(place)
        assert str(caught.value) == (
            f"[DELTIC-5000] {place} is not a state folder\nexpected: a folder that contains manifests/\n"
            "help: pass the folder that was used as state"
        )
    assert not list(tmp_path.iterdir())


def test_without_a_lease_nothing_is_written(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    replace(state, 1)
    with StateReader.open(tmp_path, lease_s=None) as reader:
        assert key_of(tmp_path, reader.manifest) == 1
    assert not (tmp_path / "leases").exists()


def test_a_reader_whose_lease_no_thread_can_renew_leaves_none(tmp_path: Path) -> None:
    replace(State.open(tmp_path), 1)
    with (
        patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")),
        pytest.raises(StateError, match=r"no lease can be taken: a lease of .* cannot be renewed: can't start new thread"),
    ):
        StateReader.open(tmp_path)
    assert not list((tmp_path / "leases").iterdir())
