"""Disk errors: one clear error, no part of the epoch is committed, and the same state continues after the disk is fixed."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crashes import watching
from deltic import disk
from deltic.errors import StateError
from deltic.storage.files import DataFile
from deltic.storage.state import State
from mounts import mount
from stored import append, keys_of


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount("-t", "tmpfs", "-o", "size=256k", "none", str(place))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)  # a map of a file keeps it busy until it is collected


@contextmanager
def _full(disk: Path, *, but_bytes: int = 0) -> Iterator[None]:
    """A limit of the disk's free space."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    os.truncate(filler, filler.stat().st_size - but_bytes)
    yield
    filler.unlink()


@contextmanager
def _failing(step: str, folder: str, code: int = errno.EIO) -> Iterator[None]:
    """This step fails for files in this folder, or for the folder itself."""

    def at(here: str, path: str) -> None:
        where = Path(path) if step.startswith("folder-sync") else Path(path).parent
        if here == step and where.name == folder:
            raise OSError(code, os.strerror(code), path)

    with watching(at):
        yield


def _content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "filler"}


@pytest.mark.parametrize("but_bytes", [0, 4096], ids=["for a data file", "for the manifest"])
def test_a_full_disk(small_disk: Path, but_bytes: int) -> None:
    root = small_disk / "state"
    state = State.open(root)
    append(state, 1)
    before = _content(root)
    with _full(small_disk, but_bytes=but_bytes):
        for _ in range(2):
            with pytest.raises(StateError) as caught:
                append(state, 2)
            assert str(caught.value) == (
                f"[DELTIC-5000] the state folder {root} cannot be written: No space left on device\n"
                "expected: free space for the new files\n"
                "help: free some space and retry; nothing was changed"
            )
        assert keys_of(state) == [1]
    left = _content(root)
    assert {name: left[name] for name in before} == before
    assert all(name.startswith("data/") and content for name, content in left.items() if name not in before)
    append(state, 3)
    state.sweep()
    state.close()
    again = State.open(root)
    assert keys_of(again) == [1, 3]
    assert {path.name for path in (root / "data").iterdir()} == set(again.manifest.files)


def test_a_state_is_opened_on_a_full_disk(small_disk: Path) -> None:
    root = small_disk / "state"
    State.open(root).close()
    refusal = rf"^\[DELTIC-5000\] the state folder {root} cannot be written: No space left on device\n"
    with _full(small_disk), pytest.raises(StateError, match=refusal):
        State.open(root)
    State.open(root).close()


@pytest.mark.parametrize(("code", "limit"), [(errno.EFBIG, "ulimit -f"), (errno.EMFILE, "ulimit -n")])
def test_a_limit_of_the_process_is_no_fault_of_the_disk(tmp_path: Path, code: int, limit: str) -> None:
    state = State.open(tmp_path)
    with _failing("write:before", "data", code), pytest.raises(StateError, match=rf"expected: a limit on .*\n.*\({limit}\)"):
        append(state, 1)
    append(state, 2)
    state.close()
    assert keys_of(State.open(tmp_path)) == [2]


def test_a_file_that_is_too_large_to_be_read(tmp_path: Path) -> None:
    State.open(tmp_path).close()
    os.truncate(next((tmp_path / "manifests").iterdir()), disk.READ_BYTES + 1)
    with pytest.raises(StateError, match=r"cannot be read: .* has 1073741825 bytes\nexpected: at most 1073741824 bytes\nhelp: restore"):
        State.open(tmp_path)


def test_a_read_only_disk(tmp_path: Path) -> None:
    root = tmp_path / "state"
    state = State.open(root)
    append(state, 1)
    with _read_only(root / "data"):
        with pytest.raises(StateError) as caught:
            append(state, 2)
        assert str(caught.value) == (
            f"[DELTIC-5000] the state folder {root} cannot be written: Read-only file system\n"
            "expected: a folder that this process can read and write\n"
            "help: grant it the permissions, or choose another folder"
        )
        assert keys_of(state) == [1]
    append(state, 3)
    with _read_only(root / "manifests"):
        with pytest.raises(StateError, match="cannot be written: Read-only file system"):
            append(state, 4)
        assert keys_of(state) == [1, 3]
    append(state, 5)
    state.close()
    refusal = rf"^\[DELTIC-5000\] the state folder {root} cannot be locked: Read-only file system\n"
    with _read_only(root), pytest.raises(StateError, match=refusal):
        State.open(root)
    assert keys_of(State.open(root)) == [1, 3, 5]


@contextmanager
def _read_only(place: Path) -> Iterator[None]:
    mount("--bind", str(place), str(place))
    try:
        mount("-o", "remount,bind,ro", str(place))
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StateError, match=rf"^\[DELTIC-5000\] the state folder {tmp_path}/state cannot be created: Permission denied\n"):
            State.open(tmp_path / "state")
    finally:
        tmp_path.chmod(0o700)
    State.open(tmp_path / "state").close()


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_is_a_file(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StateError) as caught:
        State.open(tmp_path / place)
    assert str(caught.value) == (
        f"[DELTIC-5000] the state folder {tmp_path}/{place} cannot be created: Not a directory\n"
        "expected: a folder\nhelp: choose another one"
    )
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("place", ["data", "manifests", "generations"])
def test_a_subfolder_that_is_a_file(tmp_path: Path, place: str) -> None:
    (tmp_path / place).touch()
    refusal = rf"^\[DELTIC-5000\] the state folder {tmp_path} cannot be (created|read|written): Not a directory\nexpected: a folder\n"
    with pytest.raises(StateError, match=refusal):
        State.open(tmp_path)
    (tmp_path / place).unlink()
    append(State.open(tmp_path), 1)


_STEPS = [
    *((step, "data") for step in ("write:before", "write:after", "sync:before", "folder-sync:before")),
    *((step, "manifests") for step in ("write:before", "write:after", "sync:before", "link:before", "unlink:before", "folder-sync:before")),
]


@pytest.mark.parametrize(("step", "folder"), _STEPS)
def test_a_disk_that_fails_while_it_is_written(tmp_path: Path, step: str, folder: str) -> None:
    state = State.open(tmp_path)
    append(state, 1)
    before = {name for name in _content(tmp_path) if name.startswith(folder)}
    with _failing(step, folder):
        for _ in range(2):
            with pytest.raises(StateError) as caught:
                append(state, 2)
            assert str(caught.value) == (
                f"[DELTIC-5000] the state folder {tmp_path} cannot be written: Input/output error\n"
                "expected: a working disk\n"
                "help: check the disk; nothing was changed"
            )
    assert {name for name in _content(tmp_path) if name.startswith(folder)} == before
    append(state, 3)
    state.close()
    assert keys_of(State.open(tmp_path)) == [1, 3]


@pytest.mark.parametrize("folder", ["manifests", "data"])
def test_a_disk_that_fails_while_it_is_read(tmp_path: Path, folder: str) -> None:
    state = State.open(tmp_path)
    append(state, 1)
    said = rf"^\[DELTIC-5000\] the state folder {tmp_path} cannot be read: Input/output error\nexpected: a working disk\n"
    with _failing("read:before", folder), pytest.raises(StateError, match=said):
        state.close()
        state = State.open(tmp_path)
        keys_of(state)
    state.close()
    assert keys_of(State.open(tmp_path)) == [1]


def test_a_commit_succeeds_if_garbage_cannot_be_deleted(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=0)
    dropped = append(state, 1)
    with _failing("unlink:before", "data"):
        append(state, 2, drop=(dropped,))
    assert (tmp_path / "data" / dropped.file).exists()
    append(state, 3)
    state.sweep()
    assert not (tmp_path / "data" / dropped.file).exists()
    assert keys_of(state) == [2, 3]


def test_a_deleted_folder(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    append(state, 1)
    file = DataFile(state.root, next(iter(state.manifest.files.values())))
    (tmp_path / "state").rename(tmp_path / "moved")
    refusal = rf"^\[DELTIC-5000\] the state folder {tmp_path}/state cannot be written: No such file or directory\n"
    with pytest.raises(StateError, match=refusal):
        append(state, 2)
    file.verify()
    (tmp_path / "moved").rename(tmp_path / "state")
    append(state, 3)
    assert keys_of(state) == [1, 3]
