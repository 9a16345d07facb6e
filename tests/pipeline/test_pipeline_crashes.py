"""After a kill or a power failure at any step, a pipeline resumes: views, sinks and dead letters are those of an uninterrupted run.

The last tests remove a part of the mechanism, and show that this suite detects it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from crashes import CommitRecord, Disk, Image, PowerLoss, watching
from deltic import disk
from deltic.connectors.dead_letters import DeadLetterFolder
from deltic.errors import DelticError, StateTakenOver
from deltic.pipeline.delivery import Delivery
from deltic.storage.local import LocalFolder
from parts import slow
from shop import Shop

RIGHT = {"spend": {("ann", 20, 1): 1}, "top": {(1, 20): 1}}
RIGHT_LETTERS = {("a.csv", 2): 1}


def feed(folder: Path) -> Shop:
    """Two small ticks: the first has a dead letter, the second deletes rows."""
    shop = Shop(folder)
    shop.customers("a.parquet", [(1, "ann")])
    shop.orders("a.csv", "insert,1,1,10", "insert,2,1,x")
    shop.orders("b.csv", "update,1,1,20")
    return shop


def live(shop: Shop) -> None:
    shop.run()


def stopped_at(shop: Shop, number: int) -> None:
    """Runs until the step of this number; no later step happens either."""
    left = count(number, -1)

    def at(step: str, path: str) -> None:
        if next(left) <= 0:
            raise PowerLoss

    with watching(at), pytest.raises(PowerLoss):
        live(shop)


def what_is_wrong(shop: Shop) -> str | None:
    """Runs the pipeline to its end from what is left: None if the result is that of an uninterrupted run."""
    try:
        contents = shop.run()
    except DelticError as error:
        return str(error)
    try:
        content = {"views": contents, "changes": shop.summed(), "snapshot": shop.snapshot(), "letters": shop.letters()}
    except ValueError as error:
        return f"a file is torn: {error}"
    right = {"views": RIGHT, "changes": RIGHT["spend"], "snapshot": RIGHT["top"], "letters": RIGHT_LETTERS}
    staged = [path for path in shop.made.rglob("*") if disk.is_staged(path.name) or path.match(".*letters-*")]
    return None if content == right and not staged else f"{content} {staged}"


def steps(folder: Path) -> list[str]:
    """The names of all steps of a run, with the folder of each."""
    shop, names = feed(folder), list[str]()
    with watching(lambda step, path: names.append(f"{step} {Path(path).parent.name}/{Path(path).name}")):
        live(shop)
    assert what_is_wrong(shop) is None
    return names


def failing(folder: Path, stride: int = 1, within: str = "") -> Iterator[str]:
    """The steps, of every `stride`-th in the folder `within`, after which the result is wrong."""
    for number, step in [(n, step) for n, step in enumerate(steps(folder / "whole")) if within in step][::stride]:
        shop = feed(folder / str(number))
        stopped_at(shop, number)
        if (wrong := what_is_wrong(shop)) is not None:
            yield f"step {number}, {step}: {wrong}"
        shutil.rmtree(shop.folder)


def test_a_run_has_every_step(tmp_path: Path) -> None:
    names = steps(tmp_path)
    for folder in ("data", "manifests", "spend", "top", "letters"):
        of_it = {step.split(" ")[0] for step in names if step.split(" ")[1].startswith(f"{folder}/")}
        assert {"write:before", "write:after", "sync:before", "sync:after"} <= of_it, folder
    assert any("letters/letters-" in step for step in names)


@pytest.mark.parametrize("stride", [29, *slow(1)])
def test_a_kill_at_any_step_loses_and_duplicates_nothing(tmp_path: Path, stride: int) -> None:
    assert list(failing(tmp_path, stride)) == []


def images(folder: Path) -> list[Image]:
    """All images that a power failure could leave of the pipeline's files; a rename within a folder is one entry of the journal."""
    shop, record = feed(folder), CommitRecord()
    kept = Disk(shop.made, record)
    with watching(kept.at):
        live(shop)
    return [image for image in kept.images if not image.step.startswith("fewest after rename")]


def lost(taken: list[Image], folder: Path) -> Iterator[str]:
    """The images after which the result is wrong."""
    for number, image in enumerate(taken):
        shop = feed(folder / str(number))
        image.put(shop.made)
        if (wrong := what_is_wrong(shop)) is not None:
            yield f"{image.step}: {wrong}"
        shutil.rmtree(shop.folder)


@pytest.mark.parametrize("stride", [17, *slow(1)])
def test_a_power_failure_at_any_step_loses_and_duplicates_nothing(tmp_path: Path, stride: int) -> None:
    taken = images(tmp_path / "whole")
    assert len(taken) > 80
    assert list(lost(taken[::stride], tmp_path / "images")) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("taken_out", "folder"),
    [(sync, folder) for folder in ("spend", "top", "letters", "manifests", "data") for sync in ("sync", "folder-sync")],
)
def test_a_missing_sync_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_out: str, folder: str) -> None:
    """Except the first of a folder: without that, the folder does not exist, and the sink is a new one."""
    step, seen = disk._step, set[str]()

    def without(name: str, path: Path, act: Callable[[], None]) -> None:
        where = path if name == "folder-sync" else path.parent
        if (name, where.name) != (taken_out, folder) or (name == "folder-sync" and str(where) not in seen):
            step(name, path, act)
        if name == "folder-sync":
            seen.add(str(where))

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_step", without)
        taken = images(tmp_path / "whole")
    assert any(lost(taken, tmp_path / "images"))


def test_a_missing_redelivery_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Delivery.begin

    def forgetful(self: Delivery) -> None:
        """Skips the deliveries of epochs that were committed before."""
        epoch = self._session.epoch
        self._offsets = {name: replace(offset, epoch=epoch) for name, offset in self._offsets.items()}
        begin(self)

    monkeypatch.setattr(Delivery, "begin", forgetful)
    assert any("spend" in wrong for wrong in failing(tmp_path, 3, "spend/"))


def test_letters_settled_without_the_note_of_the_commit_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def show_all(self: DeadLetterFolder) -> None:
        for path in self._folder.glob(".*letters-*.json"):
            path.rename(path.with_name(path.name[path.name.index("letters-") :]))

    monkeypatch.setattr(DeadLetterFolder, "sweep", show_all)
    assert any("letters" in wrong for wrong in failing(tmp_path, 2, "data/"))


def fenced(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Two pipelines over one state without a lock: whether the older one is superseded, and the result is exact."""
    monkeypatch.setattr(LocalFolder, "lock", lambda self: None)
    older = shop.pipeline()
    with shop.pipeline() as newer:
        newer.run_once()
    try:
        older.run_once()
    except StateTakenOver:
        return what_is_wrong(shop) is None
    except DelticError:
        return False
    finally:
        older.close()
    return False


def test_of_two_pipelines_the_older_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fenced(feed(tmp_path), monkeypatch)


def test_a_missing_fence_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(self: LocalFolder, name: str, content: bytes) -> bool:
        self.put(name, content)
        return True

    monkeypatch.setattr(LocalFolder, "create", create)
    assert not fenced(feed(tmp_path), monkeypatch)
