"""State in an object store: the same as in a folder, but for the lock; and local copies that are bounded, private and never believed."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from obstore.store import ObjectStore, from_url

from crashes import CommitRecord, PowerLoss, defect_of, live_until, steps_of_a_life
from deltic.errors import CorruptState, StateError, StateTakenOver
from deltic.storage.copies import Copies
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, DataFile, FileRef, Origin, write_file
from deltic.storage.folder import open_folder
from deltic.storage.manifest import manifest_name
from deltic.storage.reader import StateReader
from deltic.storage.state import State
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows
from stored import append, as_rows, batch_of, dictionary_of, keys_of

ORIGIN = Origin(1, 1, 0, 0)


def _store(url: str) -> ObjectStore:
    return from_url(url)


def _copies(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("*/*"))


def _forget_copies(tmp_path: Path) -> None:
    for path in _copies(tmp_path):
        path.unlink()


def test_of_sixteen_racing_writers_exactly_one_wins(s3: str) -> None:
    folders = [open_folder(s3) for _ in range(16)]
    for epoch in range(5):
        barrier, won = threading.Barrier(16), []

        def run(writer: int, epoch: int = epoch, barrier: threading.Barrier = barrier, won: list[int] = won) -> None:
            barrier.wait()
            if folders[writer].create(manifest_name(epoch), b"%d" % writer):
                won.append(writer)

        threads = [threading.Thread(target=run, args=(writer,)) for writer in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert folders[0].read(manifest_name(epoch)) == b"%d" % won[0]
    assert open_folder(s3).names("manifests") == [manifest_name(epoch).split("/")[1] for epoch in range(5)]


def test_commits_are_read_by_another_process(s3: str, tmp_path: Path) -> None:
    state = State.open(s3, shards=2)
    for key in range(4):
        append(state, key)
    state.close()
    assert state.root == s3
    _forget_copies(tmp_path)
    again = State.open(s3)
    assert keys_of(again) == [0, 1, 2, 3]
    assert (again.manifest.shards, again.manifest.notes["last"], again.folder.local) == (2, 3, False)
    append(again, 4)
    assert keys_of(again) == [0, 1, 2, 3, 4]


def test_the_older_writer_is_fenced_off(s3: str) -> None:
    old = State.open(s3)
    append(old, 1)
    new = State.open(s3)
    with pytest.raises(StateTakenOver, match="was taken over by a newer writer; epoch 2 is not committed"):
        append(old, 2)
    append(new, 3)
    assert keys_of(new) == [1, 3]
    with pytest.raises(StateTakenOver):
        append(old, 4)
    assert keys_of(State.open(s3)) == [1, 3]


def test_unneeded_objects_are_deleted(s3: str) -> None:
    state = State.open(s3, retain=0)
    dropped = append(state, 0)
    append(state, 1, drop=(dropped,))
    stray = write_file(s3, state.origin(0, 0), [], Dictionary.empty())
    append(state, 2)
    state.close()
    again = State.open(s3, retain=0)
    names = again.folder.names("data")
    assert dropped.file not in names and stray.name not in names
    assert keys_of(again) == [1, 2]


def test_objects_are_replaced_and_deleted(s3: str) -> None:
    folder = open_folder(s3)
    folder.put("leases/one", b"old")
    folder.put("leases/one", b"new")
    assert folder.read("leases/one") == b"new" and folder.read("leases/other") is None
    assert folder.names("leases") == ["one"] and folder.names("manifests") == []
    folder.delete(["leases/one", "leases/other"])
    assert folder.names("leases") == []


def test_large_files_are_uploaded_in_parts(s3: str, tmp_path: Path) -> None:
    keys = np.arange(400_000)
    batch = consolidate(Rows([keys, keys * 7], [np.ones_like(keys)]))
    ref = write_file(s3, ORIGIN, [Content("a", batch)], dictionary_of(x=1))
    assert ref.size_bytes > 9 << 20
    _forget_copies(tmp_path)
    DataFile(s3, ref).verify()
    assert as_rows(DataFile(s3, ref).batch("a").slice(0, 3)) == [(0, 0, 1), (1, 7, 1), (2, 14, 1)]


def _write(url: str) -> FileRef:
    return write_file(url, ORIGIN, [Content("a", batch_of((1, 2), (3, 4)))], Dictionary.empty())


def test_a_missing_object_is_detected(s3: str, tmp_path: Path) -> None:
    ref = _write(s3)
    _store(s3).delete(f"data/{ref.name}")
    _forget_copies(tmp_path)
    with pytest.raises(CorruptState, match=f"{ref.name}: the file is missing, though the manifest names it"):
        DataFile(s3, ref)


@pytest.mark.parametrize("kept", [0, 10, 64, -1])
def test_a_truncated_object_is_detected_and_its_copy_deleted(s3: str, tmp_path: Path, kept: int) -> None:
    ref = _write(s3)
    whole = bytes(_store(s3).get(f"data/{ref.name}").bytes())
    _store(s3).put(f"data/{ref.name}", whole[:kept])
    _forget_copies(tmp_path)
    with pytest.raises(CorruptState, match=rf"{ref.name}: the file has \d+ bytes\nexpected: {ref.size_bytes} bytes"):
        DataFile(s3, ref)
    assert _copies(tmp_path) == []
    _store(s3).put(f"data/{ref.name}", whole)
    assert as_rows(DataFile(s3, ref).batch("a")) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("position", "said"), [(3, "not a Deltic data file"), (20, "the header is damaged"), (70, "the directory is damaged")]
)
def test_a_damaged_object_is_detected_and_its_copy_deleted(s3: str, tmp_path: Path, position: int, said: str) -> None:
    ref = _write(s3)
    whole = bytes(_store(s3).get(f"data/{ref.name}").bytes())
    _store(s3).put(f"data/{ref.name}", whole[:position] + b"~" + whole[position + 1 :])
    _forget_copies(tmp_path)
    with pytest.raises(CorruptState, match=f"{ref.name}.*{said}"):
        DataFile(s3, ref)
    assert _copies(tmp_path) == []


def test_a_damaged_block_is_detected_and_its_copy_fetched_again(s3: str, tmp_path: Path) -> None:
    ref = _write(s3)
    (copy,) = _copies(tmp_path)
    block = DataFile(s3, ref).directory.segments[0].columns[0]
    whole = copy.read_bytes()
    copy.write_bytes(whole[: block.offset] + b"~" + whole[block.offset + 1 :])
    with pytest.raises(CorruptState, match="batch of a, column 0 is damaged"):
        DataFile(s3, ref).batch("a")
    assert as_rows(DataFile(s3, ref).batch("a")) == [(1, 2), (3, 4)]
    assert copy.read_bytes() == whole


def test_a_damaged_and_a_missing_manifest_are_detected(s3: str) -> None:
    state = State.open(s3)
    for key in range(3):
        append(state, key)
    whole = state.folder.read(manifest_name(2))
    assert whole is not None
    state.folder.put(manifest_name(2), whole[:-20])
    with pytest.raises(CorruptState, match=r"manifests/000000000002\.json is damaged"):
        State.open(s3)
    state.folder.delete([manifest_name(2)])
    with pytest.raises(CorruptState, match=r"manifests/000000000002\.json is missing"):
        State.open(s3)


def test_files_are_fetched_once(s3: str, tmp_path: Path) -> None:
    ref = _write(s3)
    _forget_copies(tmp_path)
    DataFile(s3, ref)
    _store(s3).delete(f"data/{ref.name}")
    DataFile(s3, ref).verify()


def test_copies_are_bounded_and_the_least_recently_used_are_deleted(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refs = [_write(s3) for _ in range(4)]
    for age, path in enumerate(sorted(_copies(tmp_path), key=lambda path: [ref.name for ref in refs].index(path.name))):
        os.utime(path, (1000 + age, 1000 + age))
    DataFile(s3, refs[0])
    killed = _copies(tmp_path)[0].with_name("x.staged")
    killed.write_bytes(b"left by a process that was killed")
    os.utime(killed, (1000, 1000))
    monkeypatch.setenv("DELTIC_CACHE_BYTES", str(refs[0].size_bytes * 3))
    last = _write(s3)
    assert {path.name for path in _copies(tmp_path)} == {refs[0].name, refs[3].name, last.name}
    for ref in (*refs, last):
        DataFile(s3, ref).verify()


def test_copies_are_made_concurrently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DELTIC_CACHE_BYTES", "5000")

    def place(who: int) -> None:
        copies = Copies("s3://bucket/state")
        for i in range(60):
            copies.place(f"{who}-{i}", [bytes(1000)])

    Copies("s3://bucket/state")
    (tmp_path / "cache" / "readme").touch()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(place, range(4)))
    assert len(_copies(tmp_path)) <= 6


def test_a_map_outlives_its_copy(s3: str, tmp_path: Path) -> None:
    file = DataFile(s3, _write(s3))
    _forget_copies(tmp_path)
    assert as_rows(file.batch("a")) == [(1, 2), (3, 4)]


def test_copies_are_private_to_the_user(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_folder(s3)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache").chmod(0o755)
    with pytest.raises(StateError) as caught:
        open_folder(s3)
    assert str(caught.value) == (
        f"[DELTIC-5000] the cache folder {tmp_path}/cache is accessible to other users\nexpected: a folder owned by this user "
        "with permissions rwx------\n"
        f"help: run chmod 700 {tmp_path}/cache, or set DELTIC_CACHE to another folder"
    )
    (tmp_path / "cache").chmod(0o700)
    monkeypatch.setenv("DELTIC_CACHE_BYTES", "much")
    with pytest.raises(StateError, match="DELTIC_CACHE_BYTES is 'much'\nexpected: a number of bytes"):
        _write(s3)
    monkeypatch.setenv("DELTIC_CACHE", str(tmp_path / "file" / "cache"))
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match=r"the cache folder .*/file/cache cannot be created: Not a directory"):
        open_folder(s3)


def test_a_store_that_cannot_be_used_is_named(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StateError, match=r"the state at s3://nowhere/x cannot be (read|written): .*\nexpected: an existing, reachable"):
        State.open("s3://nowhere/x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("deltic.storage.objects._RETRY", {"max_retries": 0})
    with pytest.raises(StateError, match=rf"the state at {s3} cannot be read: .*\nexpected: an existing, reachable bucket\nhelp: "):
        State.open(s3)


def test_invalid_places_of_a_state(tmp_path: Path) -> None:
    with pytest.raises(
        StateError,
        match="unsupported state location ftp://host/x\nexpected: the path of a folder, or a URL with file://, s3://, gs:// or az://",
    ):
        open_folder("ftp://host/x")
    assert open_folder(f"file://{tmp_path}/a%20b").root == f"{tmp_path}/a b"
    with pytest.raises(StateError, match="unsupported state location file://other/x"):
        open_folder("file://other/x")


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "data/../../x", "", "data//x", ".hidden"])
def test_names_stay_within_the_folder(tmp_path: Path, s3: str, name: str) -> None:
    for folder in (open_folder(tmp_path), open_folder(s3)):
        with pytest.raises(CorruptState, match="invalid file name"):
            folder.read(name)
        with pytest.raises(CorruptState):
            folder.map_data(name, 64)


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_after_any_request_loses_nothing(s3: str, stride: int) -> None:
    steps = steps_of_a_life(f"{s3} whole")
    kills = [number for number, step in enumerate(steps) if step.startswith(("put:after", "delete:after"))]
    assert len(kills) > 30
    for number in kills[::stride]:
        root, record = f"{s3} {number}", CommitRecord()
        with pytest.raises(PowerLoss):
            live_until(root, number, record, _power_loss)
        assert defect_of(root, record) is None, f"step {number}, {steps[number]}"


def _power_loss() -> None:
    raise PowerLoss


def test_a_reader_holds_an_epoch(s3: str) -> None:
    state = State.open(s3, retain=0)
    dropped = append(state, 1)
    with StateReader.open(s3) as reader:
        append(state, 2, drop=(dropped,))
        append(state, 3)
        DataFile(reader.root, reader.manifest.files[dropped.file]).verify()
        assert dropped.file in state.folder.names("data")
    append(state, 4)
    state.sweep()
    assert dropped.file not in state.folder.names("data")
    with pytest.raises(StateError, match="is not a state folder"):
        StateReader.open(f"{s3} other")
