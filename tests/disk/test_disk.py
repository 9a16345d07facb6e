"""Durable operations: all or nothing, steps in the order that makes them durable, and failed operations leave no files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deltic import disk

Steps = list[tuple[str, str]]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """The steps that are taken, and the last part of the path of each without its random part."""
    taken: Steps = []
    monkeypatch.setattr(disk, "at", lambda step, path: taken.append((step, Path(path).name.lstrip(".").split(".")[0])))
    return taken


def _fail_at(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def at(here: str, path: str) -> None:
        if here == step:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(disk, "at", at)


def test_parts_are_written_one_after_another(tmp_path: Path) -> None:
    parts = [b"head", np.arange(3, dtype="<i8"), np.empty(0, "<i8"), b"", memoryview(b"tail"), *(bytes([i % 256]) for i in range(2000))]
    disk.create(tmp_path / "file", parts)
    expected = b"head" + np.arange(3, dtype="<i8").tobytes() + b"tail" + bytes(i % 256 for i in range(2000))
    assert disk.read(tmp_path / "file") == expected
    assert disk.read(tmp_path / "other") is None


def test_short_writes_go_on_where_they_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writev = os.writev
    monkeypatch.setattr(os, "writev", lambda descriptor, views: writev(descriptor, [b"".join(views)[:3]]))
    disk.create(tmp_path / "file", [b"abcd", b"e", b"fghijk"])
    assert (tmp_path / "file").read_bytes() == b"abcdefghijk"


def test_a_name_is_made_once(tmp_path: Path) -> None:
    disk.create(tmp_path / "file", [b"first"])
    with pytest.raises(FileExistsError):
        disk.create(tmp_path / "file", [b"second"])
    assert not disk.create_if_absent(tmp_path / "file", [b"third"])
    assert disk.create_if_absent(tmp_path / "other", [b"fourth"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"first", "other": b"fourth"}
    disk.replace(tmp_path / "file", [b"fifth"])
    assert (tmp_path / "file").read_bytes() == b"fifth"
    assert disk.unlink(tmp_path / "file") and not disk.unlink(tmp_path / "file")


def test_bytes_are_synced_before_names(tmp_path: Path, steps: Steps) -> None:
    disk.create_if_absent(tmp_path / "x.json", [b"content"])
    written = [("write:before", "x"), ("write:after", "x"), ("sync:before", "x"), ("sync:after", "x")]
    linked = [("link:before", "x"), ("link:after", "x"), ("unlink:before", "x"), ("unlink:after", "x")]
    synced = [("folder-sync:before", tmp_path.name), ("folder-sync:after", tmp_path.name)]
    assert steps == [*written, *linked, *synced]
    steps.clear()
    disk.replace(tmp_path / "x.json", [b"content"])
    assert steps == [*written, ("rename:before", "x"), ("rename:after", "x"), *synced]
    steps.clear()
    disk.create(tmp_path / "x", [b"content"])
    assert steps == [*written, *synced]


def test_folders_are_synced_in_those_above(tmp_path: Path, steps: Steps) -> None:
    disk.make_folder(tmp_path / "a" / "b")
    made = [(f"{step}:{when}", name) for step, name in _MADE for when in ("before", "after")]
    assert steps == [(step, tmp_path.name if name == "top" else name) for step, name in made]
    steps.clear()
    disk.make_folder(tmp_path / "a" / "b")
    assert not steps
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        disk.make_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        disk.make_folder(tmp_path / "file" / "below")


_MADE = [("make-folder", "a"), ("folder-sync", "top"), ("make-folder", "b"), ("folder-sync", "a")]

_OPERATIONS: list[tuple[Callable[[Path], object], list[str]]] = [
    (lambda path: disk.create(path, [b"new"]), ["write:after", "sync:before", "folder-sync:before"]),
    (lambda path: disk.create_if_absent(path, [b"new"]), ["sync:before", "link:before", "unlink:before", "folder-sync:before"]),
]


@pytest.mark.parametrize(("act", "step"), [(act, step) for act, steps in _OPERATIONS for step in steps])
def test_what_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], object], step: str) -> None:
    with monkeypatch.context() as patched:
        _fail_at(patched, step)
        with pytest.raises(OSError, match="Input/output error"):
            act(tmp_path / "file")
    assert os.listdir(tmp_path) == []
    act(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("step", ["write:after", "sync:before", "rename:before"])
def test_a_failed_replacement_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    disk.replace(tmp_path / "file", [b"old"])
    _fail_at(monkeypatch, step)
    with pytest.raises(OSError, match="Input/output error"):
        disk.replace(tmp_path / "file", [b"new"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_a_killed_operation_leaves_what_is_known_as_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at(step: str, path: str) -> None:
        if step == "link:before":
            raise KeyboardInterrupt

    monkeypatch.setattr(disk, "at", at)
    with pytest.raises(KeyboardInterrupt):
        disk.create_if_absent(tmp_path / "file", [b"new"])
    (left,) = os.listdir(tmp_path)
    assert disk.is_staged(left)
    assert left.startswith("."), "who reads the folder as a data set would read half a file"
