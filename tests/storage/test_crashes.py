"""A state that is interrupted at any step, by a kill or a power failure, has exactly the committed changes, and can continue.

The last tests take a part of that away, and show that this suite finds it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import crashes
from crashes import CommitRecord, Life, PowerLoss, defect_of, images_of_a_life, live, live_until, live_with_a_log, steps_of_a_life
from deltic import disk
from deltic.errors import StateTakenOver
from deltic.storage.local import LocalFolder
from deltic.storage.state import State
from parts import slow
from stored import append, keys_of

STEPS = ["write", "sync", "link", "unlink", "folder-sync", "make-folder", "overwrite", "fill"]


def _power_loss() -> None:
    raise PowerLoss


def test_a_scenario_has_every_step_of_every_kind_of_file(tmp_path: Path) -> None:
    steps = set(steps_of_a_life(tmp_path / "state"))
    assert {f"{step}:{when} manifests" for step in STEPS[:4] for when in ("before", "after")} <= steps
    assert {f"{step}:{when} data" for step in ("write", "sync", "unlink") for when in ("before", "after")} <= steps
    assert {step.split(":")[0] for step in steps} == {*STEPS, "read"}


def test_a_scenario_with_a_log_has_every_step_of_it(tmp_path: Path) -> None:
    steps = set(steps_of_a_life(tmp_path / "state", live_with_a_log))
    assert {f"{step}:{when} log" for step in ("write", "sync", "append", "data-sync", "unlink") for when in ("before", "after")} <= steps
    assert not [step for step in steps if step.startswith("append") and not step.endswith(" log")]


@pytest.mark.parametrize(("life", "stride"), [(live, 7), (live_with_a_log, 19), *slow((live, 1), (live_with_a_log, 1))])
def test_a_kill_at_any_step_loses_nothing(tmp_path: Path, stride: int, life: Life) -> None:
    for number, step in [*enumerate(steps_of_a_life(tmp_path / "whole", life))][::stride]:
        root, record = tmp_path / str(number), CommitRecord()
        with pytest.raises(PowerLoss):
            live_until(root, number, record, _power_loss, life)
        assert defect_of(root, record) is None, f"step {number}, {step}"


@pytest.mark.parametrize(("life", "stride"), [(live, 31), *slow((live, 7), (live_with_a_log, 7))])
def test_a_killed_process_loses_nothing(tmp_path: Path, stride: int, life: Life) -> None:
    subprocess.run([sys.executable, crashes.__file__, tmp_path, str(stride), life.__name__], check=True, timeout=120)
    killed = sorted(tmp_path.glob("*.json"))
    assert len(killed) > 140 // stride
    for path in killed:
        record = CommitRecord(*json.loads(path.read_text()))
        assert defect_of(path.with_suffix(""), record) is None, f"step {path.stem}"


def _lost(images: list[crashes.Image], folder: Path) -> Iterator[str]:
    """What is wrong with each of the images with which something is."""
    for number, image in enumerate(images):
        image.put(folder / str(number))
        if (wrong := defect_of(folder / str(number), image.record)) is not None:
            yield f"{image.step}: {wrong}"


@pytest.mark.parametrize(("life", "stride"), [(live, 3), (live_with_a_log, 7), *slow((live, 1), (live_with_a_log, 1))])
def test_a_power_failure_at_any_step_loses_nothing(tmp_path: Path, stride: int, life: Life) -> None:
    images = images_of_a_life(tmp_path / "state", life)
    assert len(images) > 100
    assert list(_lost(images[::stride], tmp_path / "images")) == []


@pytest.mark.parametrize(
    ("taken_out", "folder"),
    [("sync", "data"), ("sync", "manifests"), ("folder-sync", "data"), ("folder-sync", "manifests"), ("folder-sync", "state")],
)
def test_a_missing_sync_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_out: str, folder: str) -> None:
    step = disk._step

    def without(name: str, path: Path, act: Callable[[], None]) -> None:
        where = path if name == "folder-sync" else path.parent
        if (name, where.name) != (taken_out, folder):
            step(name, path, act)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_step", without)
        images = images_of_a_life(tmp_path / "state")
    assert any(_lost(images, tmp_path / "images"))


@pytest.mark.slow
def test_a_missing_sync_of_the_log_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(disk, "sync_data", lambda descriptor, name: None)
        images = images_of_a_life(tmp_path / "state", live_with_a_log)
    assert any(_lost(images, tmp_path / "images"))


def _fenced(root: Path) -> bool:
    """Whether the older of two writers learns of the newer, and the state has the commits that succeeded."""
    old = State.open(root)
    append(old, 1)
    old.close()
    new = State.open(root)
    append(new, 2)
    try:
        append(old, 3)
    except StateTakenOver:
        return keys_of(State.open(_closed(new))) == [1, 2]
    return False


def _closed(state: State) -> str:
    state.close()
    return state.root


def test_a_missing_fence_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _fenced(tmp_path / "with")

    def create(self: LocalFolder, name: str, content: bytes) -> bool:
        self.put(name, content)
        return True

    monkeypatch.setattr(LocalFolder, "create", create)
    assert not _fenced(tmp_path / "without")
