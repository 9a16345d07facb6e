"""State folders: epochs are all or nothing, one writer wins, and garbage goes when nothing needs it."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltic.errors import CorruptState, StateError, StateInUse, StateTakenOver
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, DataFile, FileRef, write_file
from deltic.storage.folder import open_folder
from deltic.storage.history import LINK_BYTES
from deltic.storage.local import LocalFolder
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.names import ENTRIES
from deltic.storage.notes import Notes
from deltic.storage.state import State
from stored import as_rows, batch_of


def put(state: State, key: int, *, drop: tuple[SegmentRef, ...] = (), view: bool = False) -> SegmentRef:
    """One epoch that appends a row to arrangement a."""
    batch = batch_of((key, 1))
    contents = [Content("a", batch), *([Content("a", batch, role="change")] if view else [])]
    ref = write_file(state.root, state.origin(0, 0), contents, Dictionary.empty())
    segment = SegmentRef(0, "a", ref.name, 1)
    state.commit(Change((ref,), (segment,), drop, (segment,) if view else (), {"last": key}))
    return segment


def keys(state: State) -> list[int]:
    keys = [as_rows(DataFile(state.root, state.manifest.files[s.file]).batch("a"))[0][0] for s in state.manifest.segments()]
    return sorted(keys)


def rewrite(path: Path, body: object) -> int:
    text = json.dumps(body).encode()
    path.write_bytes(b'{"crc":%d}\n%s\n' % (zlib.crc32(text), text))
    return zlib.crc32(text)


def data(state: State) -> set[str]:
    return set(os.listdir(Path(state.root) / "data"))


def test_commits_are_read_when_opened_again(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=2, facts={"seed": 5})
    for key in range(7):
        put(state, key)
    state.close()
    again = State.open(tmp_path)
    assert keys(again) == list(range(7))
    assert len(identity := again.manifest.notes["id"]) == 32
    assert again.manifest.notes == {"seed": 5, "last": 6, "id": identity}
    assert (again.manifest.shards, again.generation, again.epoch) == (2, 2, 8)


def test_manifests_are_incremental(tmp_path: Path) -> None:
    state = State.open(tmp_path, whole_every=1000)
    sizes = []
    for key in range(60):
        put(state, key)
        sizes.append(os.stat(tmp_path / "manifests" / f"{state.epoch:012d}.json").st_size)
    assert sizes[-1] <= sizes[0] + 10
    before = state.manifest
    state.close()
    again = State.open(tmp_path).manifest
    assert (again.shard_states, again.files, again.notes) == (before.shard_states, before.files, before.notes)


def test_replaced_segments_and_removed_notes(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    first = put(state, 1)
    put(state, 2, drop=(first,))
    state.commit(Change(notes={"last": None}))
    assert keys(state) == [2]
    assert "last" not in state.manifest.notes
    assert not state.manifest.holds([first])
    assert len(state.manifest.files) == 1


def test_a_second_writer_is_refused_while_the_first_is_open(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    with pytest.raises(StateInUse, match=rf"in use by process {os.getpid()} on .*\n.*\nhelp: close the session that uses it,"):
        State.open(tmp_path)
    state.close()
    State.open(tmp_path).close()


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = (
        "import sys, time; from deltic.storage.state import State; s = State.open(sys.argv[1]); print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        with pytest.raises(StateInUse, match=f"process {holder.pid} "):
            State.open(tmp_path)
        os.kill(holder.pid, signal.SIGKILL)
    State.open(tmp_path).close()


def test_the_older_writer_is_fenced_off(tmp_path: Path) -> None:
    old = State.open(tmp_path)
    put(old, 1)
    old.folder.unlock()  # as on a file system without locks
    new = State.open(tmp_path)
    with pytest.raises(StateTakenOver, match=r"taken over by a newer writer; epoch 2 is not committed"):
        put(old, 2)
    put(new, 3)
    assert keys(new) == [1, 3]
    with pytest.raises(StateTakenOver):
        put(old, 4)


def test_a_commit_whose_answer_was_lost_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State.open(tmp_path)
    create = LocalFolder.create
    monkeypatch.setattr(LocalFolder, "create", lambda self, name, content: create(self, name, content) and False)
    put(state, 1)
    assert state.epoch == 1


def test_a_failed_commit_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State.open(tmp_path)
    put(state, 1)

    def fails(*_: object) -> bool:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "create", fails)
        with pytest.raises(OSError, match="disk full"):
            put(state, 2)
    assert keys(state) == [1]
    put(state, 3)
    state.close()
    assert keys(State.open(tmp_path)) == [1, 3]


def _race(root: str, name: str, count: int) -> list[bool]:
    barrier = threading.Barrier(count)
    won: list[bool] = []

    def run(i: int) -> None:
        folder = open_folder(root)
        barrier.wait()
        won.append(folder.create(name, b"%d" % i))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def test_of_racing_writers_exactly_one_wins(tmp_path: Path) -> None:
    for round_ in range(20):
        assert sum(_race(str(tmp_path), f"manifests/{round_}", 8)) == 1
    assert open_folder(tmp_path).names("manifests") == sorted(map(str, range(20)))


def _racing_process(root: str, start: object, results: object) -> None:
    folder = open_folder(root)
    start.wait()  # type: ignore[attr-defined]
    results.put([folder.create(f"manifests/{i}", b"x") for i in range(20)])  # type: ignore[attr-defined]


@pytest.mark.slow
def test_of_racing_processes_exactly_one_wins(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_racing_process, args=(str(tmp_path), start, results)) for _ in range(3)]
    for process in processes:
        process.start()
    won = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert [sum(wins) for wins in zip(*won, strict=True)] == [1] * 20


def test_resharding_requires_a_recorded_partition(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=2)
    put(state, 1)
    state.close()
    with pytest.raises(StateError) as caught:
        State.open(tmp_path, shards=3)
    assert str(caught.value) == (
        "[DELTIC-5000] the state has 2 shards, but does not record how the rows of arrangement a are partitioned\n"
        "expected: a state that this version of Deltic has written to\n"
        "help: open it once with 2 shards and run its program, then with the new number"
    )
    again = State.open(tmp_path, shards=2)
    assert (again.epoch, keys(again)) == (2, [1])


@pytest.mark.parametrize("position", [0, 8, 40, -2, -1])
def test_a_damaged_manifest_is_detected(tmp_path: Path, position: int) -> None:
    state = State.open(tmp_path)
    put(state, 1)
    state.close()
    path = tmp_path / "manifests" / "000000000001.json"
    damaged = bytearray(path.read_bytes())
    damaged[position] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptState, match=r"manifests/000000000001\.json is damaged"):
        State.open(tmp_path)
    path.write_bytes(damaged[:-10])
    with pytest.raises(CorruptState, match="is damaged"):
        State.open(tmp_path)


def test_a_missing_and_a_foreign_manifest_are_detected(tmp_path: Path) -> None:
    state = State.open(tmp_path / "one")
    other = State.open(tmp_path / "other")
    for key in range(3):
        put(state, key)
        put(other, key + 10)
    state.close()
    path = tmp_path / "one" / "manifests" / "000000000002.json"
    path.write_bytes((tmp_path / "other" / "manifests" / "000000000002.json").read_bytes())
    with pytest.raises(CorruptState, match=r"manifests/000000000002.json does not follow the manifest before it"):
        State.open(tmp_path / "one")
    path.unlink()
    with pytest.raises(CorruptState, match=r"manifests/000000000002.json is missing"):
        State.open(tmp_path / "one")


@pytest.mark.parametrize("name", [*sorted(ENTRIES), ".DS_Store"])
def test_a_new_state_accepts_only_its_own_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch() if name in ("lock", ".DS_Store") else (tmp_path / name).mkdir()
    State.open(tmp_path).close()


def test_a_missing_data_file_is_detected_when_the_state_is_opened(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    put(state, 1)
    state.close()
    (path,) = (tmp_path / "data").iterdir()
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(CorruptState, match=f"{path.name}: the file is missing, though the manifest names it"):
        State.open(tmp_path)
    path.write_bytes(content)
    State.open(tmp_path).close()


def test_a_newer_manifest_is_refused(tmp_path: Path) -> None:
    State.open(tmp_path).close()
    path = tmp_path / "manifests" / "000000000000.json"
    body = json.loads(path.read_bytes().partition(b"\n")[2])
    body["version"] = 4
    rewrite(path, body)
    with pytest.raises(StateError) as caught:
        State.open(tmp_path)
    assert str(caught.value) == "[DELTIC-5000] manifests/000000000000.json: format version 4\nexpected: at most 3\nhelp: use a newer Deltic"


def test_the_first_version_can_be_read(tmp_path: Path) -> None:
    state = State.open(tmp_path, whole_every=3)
    first = put(state, 1)
    for key in range(2, 6):
        put(state, key)
    put(state, 6, drop=(first,))
    state.close()
    crc = 0
    for path in sorted((tmp_path / "manifests").iterdir()):
        body = json.loads(path.read_bytes().partition(b"\n")[2])
        body["notes"].pop("id", None)
        body.get("whole", body)["notes"].pop("id", None)
        body["parent"][1] = crc
        del body["at"], body["oldest"]
        crc = rewrite(path, {**body, "version": 1})
    again = State.open(tmp_path)
    assert keys(again) == [2, 3, 4, 5, 6]
    assert again.manifest.notes["last"] == 6 and len(again.manifest.notes["id"]) == 32


def test_files_that_no_retained_epoch_names_are_deleted(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=5)
    segment = put(state, 0)
    for key in range(1, 12):
        dropped, segment = segment, put(state, key, drop=(segment,))
        assert dropped.file in data(state)
        assert len(data(state)) <= 6
    assert keys(state) == [11]
    state.close()
    assert keys(State.open(tmp_path, retain=5)) == [11]


def test_old_manifests_are_deleted_and_the_rest_can_be_read(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=10, whole_every=7)
    for key in range(220):
        put(state, key)
    assert len(os.listdir(tmp_path / "manifests")) < 130
    state.close()
    again = State.open(tmp_path, retain=10, whole_every=7)
    assert len(os.listdir(tmp_path / "manifests")) <= 20
    assert keys(again) == list(range(220))


def _stray(state: State, epoch_ahead: int = 0) -> FileRef:
    origin = state.origin(0, 0)
    origin = type(origin)(origin.generation, origin.epoch - 1 + epoch_ahead, 0, 0)
    return write_file(state.root, origin, [Content("a", batch_of((9, 9)))], Dictionary.empty())


def test_files_of_failed_ticks_are_deleted_and_those_of_running_ticks_kept(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    put(state, 1)
    stray, running = _stray(state), _stray(state, epoch_ahead=1)
    state.sweep()
    assert stray.name not in data(state)
    assert running.name in data(state)
    state.close()
    again = State.open(tmp_path)
    assert data(again) == set(again.manifest.files)


def test_a_running_merge_keeps_its_inputs_and_its_output(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=0)
    first = put(state, 1)
    with state.merging() as origin:
        output = write_file(state.root, origin, [Content("a", batch_of((1, 1)))], Dictionary.empty())
        put(state, 2, drop=(first,))
        put(state, 3)
        state.sweep()
        assert {first.file, output.name} <= data(state)
    put(state, 4)
    state.sweep()
    assert not {first.file, output.name} & data(state)


def test_the_change_of_a_view_is_kept_with_its_epoch(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=3)
    ref = write_file(state.root, state.origin(0, 0), [Content("v", batch_of((1, 1)), role="change")], Dictionary.empty())
    state.commit(Change((ref,), views=(SegmentRef(0, "v", ref.name, 1),)))
    last = put(state, 1)
    for key in range(2, 4):
        last = put(state, key, drop=(last,))
        state.sweep()
        assert ref.name in data(state)
    state.close()
    again = State.open(tmp_path, retain=3)
    for key in range(5):
        last = put(again, key, drop=(last,))
    again.sweep()
    assert ref.name not in data(again)


def test_a_manifest_after_a_change_is_a_new_value() -> None:
    before = Manifest.before(1)
    after = before.after(Change((FileRef("f", 1, 2),), (SegmentRef(0, "a", "f", 1),)), 1)
    assert not before.files and list(after.files) == ["f"]


class Counting:
    """A folder in memory that counts what is written; commits cost no syncs."""

    local, root = True, "memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.written: list[int] = []

    def create(self, name: str, content: bytes) -> bool:
        if name in self.objects:
            return False
        self.objects[name] = content
        self.written.append(len(content))
        return True

    def overwrite(self, name: str, content: bytes) -> None:
        self.objects[name] = content

    def read(self, name: str) -> bytes | None:
        return self.objects.get(name)

    def names(self, prefix: str) -> list[str]:
        return sorted(name.removeprefix(f"{prefix}/") for name in self.objects if name.startswith(f"{prefix}/"))

    def delete(self, names: Iterable[str]) -> None:
        """What has been written stays counted."""

    def make(self) -> None: ...
    def lock(self) -> None: ...
    def unlock(self) -> None: ...
    def sweep(self, prefix: str, *, older_s: float = 0.0) -> None: ...


def test_manifests_cost_in_proportion_to_the_changes_however_many_notes_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Counting()
    monkeypatch.setattr("deltic.storage.state.open_folder", lambda root: folder)
    state = State.open("memory", retain=5)
    for epoch in range(1000):
        file = FileRef(f"{epoch:040}", 1000, 5)
        dropped = tuple(state.manifest.segments())[:1] if epoch > 20 else ()
        notes = {f"taken:orders:part-{epoch:06}-{i}.parquet": [10**6, 1700 * 10**15 + epoch, 10**9, 1000] for i in range(20)}
        state.commit(Change((file,), (SegmentRef(0, "a", file.name, 9),), dropped, notes=notes))
        folder.objects[f"data/{file.name}"] = b""
    assert len(state.manifest.notes) == 20_001
    wholes = [len(content) for content in folder.objects.values() if b'"whole":' in content]
    own = sum(folder.written) - sum(wholes)
    assert sum(wholes) < 2 * own + 1000 * LINK_BYTES
    assert len(folder.written) == 1002
    first, second = sum(folder.written[:500]), sum(folder.written[500:])
    assert second < 1.5 * first
    again = State.open("memory")
    assert (again.manifest.shard_states, again.manifest.notes, again.manifest.files) == (
        state.manifest.shard_states,
        state.manifest.notes,
        state.manifest.files,
    )


def test_a_commit_succeeds_if_garbage_collection_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = State.open(tmp_path, retain=0)
    first = put(state, 1)

    def fails(_: object) -> None:
        raise StateError("no right to delete")

    with monkeypatch.context() as patch:
        patch.setattr(state.folder, "delete", fails)
        second = put(state, 2, drop=(first,))
    assert "garbage of the state folder" in caplog.text and "no right to delete" in caplog.text
    assert state.epoch == 2 and first.file in data(state)
    put(state, 3, drop=(second,))
    assert not {first.file, second.file} & data(state)


def test_foreign_files_are_ignored(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    put(state, 1)
    state.close()
    for name in ("manifests/copy of 1.json", "generations/readme", "data/notes.txt"):
        (tmp_path / name).write_text("mine")
    again = State.open(tmp_path)
    put(again, 2)
    again.sweep()
    assert keys(again) == [1, 2]
    assert (tmp_path / "data" / "notes.txt").exists()


@given(st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.one_of(st.none(), st.integers())), max_size=30), st.integers(0, 300))
def test_notes_are_the_sum_of_their_changes(steps: list[dict[str, int | None]], many: int) -> None:
    notes, plain = Notes(), dict[str, int | None]()
    for step in [{f"n{i}": i for i in range(many)}, *steps, {f"n{i}": None for i in range(many // 2)}]:
        before, known = notes, dict(plain)
        notes = notes.after(step)
        plain = {key: value for key, value in {**plain, **step}.items() if value is not None}
        assert notes == plain and len(notes) == len(plain) == len(list(notes))
        assert before == known
        assert all((key in notes) == (key in plain) for key in "abcdefgh")
