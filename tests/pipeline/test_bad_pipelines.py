"""Each fault in files, sinks and states is one clear error; nothing is half done, and the pipeline resumes once it is fixed.

The messages are in bad_pipelines.txt.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deltic.errors import DelticError, QueryError, SinkError, StateError, StateTakenOver
from deltic.pipeline.dry_run import dry_run
from deltic.runtimes.stored_view import StoredView
from deltic.storage import manifest
from deltic.storage.local import LocalFolder
from deltic.storage.reader import StateReader
from goldens import Goldens
from mounts import mount
from shop import FAILING, SCRIPT, Shop, views

GOOD = "insert,4,2,40"
BAD = {
    "a value that does not parse": "insert,4,2,forty",
    "a value out of range": "insert,4,2,4000000000",
    "a NULL in a NOT NULL column": "insert,4,,40",
    "an unknown operation": "put,4,2,40",
    "a row of too many values": "insert,4,2,40,50",
    "a duplicate key": "insert,1,2,40",
    "a delete of a row that is not there": "delete,9,,",
}
AFTER = {"spend": Counter({("ann", 40, 2): 1, ("bob", 60, 2): 1}), "top": Counter({(4, 40): 1, (3, 30): 1})}


def ran(folder: Path) -> Shop:
    """A pipeline that has run."""
    shop = Shop(folder)
    shop.customers("a.parquet", [(1, "ann"), (2, "bob")])
    shop.orders("a.csv", "insert,1,1,10", "insert,2,2,20")
    shop.run(FAILING)
    return shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A pipeline that has run, with two more files of orders pending."""
    shop = ran(tmp_path / "shop")
    shop.orders("b.csv", "insert,3,1,30")
    shop.orders("c.csv", GOOD)
    return shop


def normalized(error: DelticError, shop: Shop) -> str:
    """The message without parts that differ between runs."""
    text = str(error).replace(str(shop.folder), "<folder>").replace(f"process {os.getpid()} on {os.uname().nodename}", "process <it>")
    return re.sub(r"\b[0-9a-f]{32}\b", "<id>", text)


def held(shop: Shop) -> dict[str, Any]:
    """The content of the state and the sinks; epochs that changed nothing do not count."""
    with StateReader.open(shop.state, lease_s=None) as reader:
        contents = {view: StoredView(reader, view).to_arrow().to_pylist() for view in ("spend", "top")}
        offsets = {key: note for key, note in reader.manifest.notes.items() if key.startswith(("taken:", "cursor:"))}
    return {**contents, "taken": offsets, "changes": shop.summed(), "snapshot": shop.snapshot(), "letters": shop.letters()}


def refused(shop: Shop, goldens: Goldens, name: str, kind: type[DelticError] = DelticError) -> None:
    """A new start fails with the message of this name."""
    with pytest.raises(kind) as caught:
        shop.run(FAILING)
    goldens.check(name, normalized(caught.value, shop))


def goes_on(shop: Shop) -> None:
    """The state and the sinks are as if there had been no fault."""
    assert shop.run(FAILING) == AFTER
    assert shop.summed() == AFTER["spend"] and shop.snapshot() == AFTER["top"]


@pytest.mark.parametrize("name", BAD)
def test_a_row(name: str, shop: Shop, goldens: Goldens) -> None:
    before = held(shop)
    shop.orders("c.csv", BAD[name])
    with shop.pipeline(FAILING, rows_per_tick=100) as pipeline:
        for _ in range(2):
            with pytest.raises(DelticError) as caught:
                pipeline.run_once()
            goldens.check(name, normalized(caught.value, shop))
            assert held(shop) == before
        shop.orders("c.csv", GOOD)
        pipeline.run_once()
        assert views(pipeline) == AFTER
    goes_on(shop)


@pytest.mark.parametrize("name", BAD)
def test_a_row_as_a_dead_letter(name: str, shop: Shop, goldens: Goldens) -> None:
    shop.orders("c.csv", BAD[name], GOOD)
    assert shop.run(SCRIPT, rows_per_tick=100) == AFTER
    (path,) = (shop.made / "letters").iterdir()
    (letter,) = map(json.loads, path.read_text().splitlines())
    assert (letter["file"], letter["row"]) == (str(shop.folder / "in" / "orders" / "c.csv"), 1)
    goldens.check(f"{name}, as a letter", f"{letter['column']}: {letter['reason']}\n{letter['text']}")


def test_a_truncated_parquet_file(shop: Shop, goldens: Goldens) -> None:
    before, path = held(shop), shop.customers("b.parquet", [(3, "eve")])
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    refused(shop, goldens, "a truncated parquet file")
    assert held(shop) == before
    path.write_bytes(whole)
    goes_on(shop)


def test_a_source_without_a_folder(shop: Shop, goldens: Goldens) -> None:
    before, folder = held(shop), shop.folder / "in" / "orders"
    folder.rename(shop.folder / "away")
    refused(shop, goldens, "a source without a folder")
    (shop.folder / "away").rename(folder)
    assert held(shop) == before
    goes_on(shop)


def test_a_file_that_vanishes_before_it_is_read_is_ignored(shop: Shop) -> None:
    with shop.pipeline(FAILING, rows_per_tick=1) as pipeline:
        pipeline.run_once(lambda _: (shop.folder / "in" / "orders" / "c.csv").unlink(missing_ok=True))
        assert views(pipeline)["spend"] == Counter({("ann", 40, 2): 1, ("bob", 20, 1): 1})
    shop.orders("c.csv", GOOD)
    goes_on(shop)


def test_a_damaged_manifest(shop: Shop, goldens: Goldens) -> None:
    path = sorted((shop.state / "manifests").iterdir())[-1]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"epoch"', b'"Epoch"'))
    with pytest.raises(StateError) as caught:
        shop.run(FAILING)
    goldens.check("a damaged manifest", normalized(caught.value, shop).replace(path.name, "<manifest>"))
    path.write_bytes(whole)
    goes_on(shop)


@pytest.mark.parametrize("name", ["a damaged data file", "a missing data file"])
def test_data(name: str, shop: Shop, goldens: Goldens) -> None:
    contents = {path: path.read_bytes() for path in (shop.state / "data").iterdir()}
    for path, content in contents.items():
        if name == "a missing data file":
            path.unlink()
        else:
            path.write_bytes(content[:-100] + bytes(100))
    with pytest.raises(StateError) as caught:
        shop.run(FAILING)
    goldens.check(name, re.sub(r"\S+\.deltic", "<file>", normalized(caught.value, shop)))
    for path, content in contents.items():
        path.write_bytes(content)
    goes_on(shop)


def test_a_missing_state(shop: Shop, goldens: Goldens) -> None:
    shop.state.rename(shop.folder / "away")
    refused(shop, goldens, "a missing state")
    assert not shop.state.exists()
    (shop.folder / "away").rename(shop.state)
    goes_on(shop)


def test_a_state_in_use(shop: Shop, goldens: Goldens) -> None:
    with shop.pipeline(FAILING):
        refused(shop, goldens, "a state in use")
    goes_on(shop)


def test_a_state_taken_over(shop: Shop, goldens: Goldens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalFolder, "lock", lambda self: None)
    with shop.pipeline(FAILING) as older:
        with shop.pipeline(FAILING):
            before = held(shop)
            with pytest.raises(StateTakenOver) as caught:
                older.run_once()
        goldens.check("a state taken over", re.sub(r"epoch \d+", "epoch <n>", normalized(caught.value, shop)))
        assert held(shop) == before
    goes_on(shop)


def test_a_state_of_a_newer_format(shop: Shop, goldens: Goldens, monkeypatch: pytest.MonkeyPatch) -> None:
    known = sorted((shop.state / "manifests").iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(manifest, "MANIFEST_VERSION", 99)
        patched.setattr(manifest, "LOGGED_VERSION", 99)
        shop.pipeline(FAILING).close()
    with pytest.raises(StateError) as caught:
        shop.run(FAILING)
    goldens.check("a state of a newer format", re.sub(r"\d{12}", "<n>", normalized(caught.value, shop)))
    for path in {*(shop.state / "manifests").iterdir()} - {*known}:
        path.unlink()
    shutil.rmtree(shop.state / "generations")  # which know that there were later epochs
    goes_on(shop)


def test_a_table_of_other_types(shop: Shop, goldens: Goldens) -> None:
    before = held(shop)
    with pytest.raises(StateError) as caught:
        shop.run(FAILING.replace("amount INT", "amount BIGINT"))
    goldens.check("a table of other types", normalized(caught.value, shop))
    assert held(shop) == before
    goes_on(shop)


def test_a_sink_folder_with_other_files(tmp_path: Path, goldens: Goldens) -> None:
    shop = Shop(tmp_path / "shop")
    shop.fill()
    (shop.made / "spend").mkdir(parents=True)
    (shop.made / "spend" / "mine.txt").write_text("mine")
    refused(shop, goldens, "a sink's folder that holds something else", SinkError)
    assert os.listdir(shop.made / "spend") == ["mine.txt"]
    (shop.made / "spend" / "mine.txt").unlink()
    assert shop.run(SCRIPT)["spend"] == shop.summed() != Counter()


def test_a_sink_folder_that_belongs_to_another_sink(shop: Shop, goldens: Goldens) -> None:
    other = ran(shop.folder / "other")
    shutil.rmtree(shop.made / "spend")
    shutil.copytree(other.made / "spend", shop.made / "spend")
    refused(shop, goldens, "a sink's folder that is another sink's", SinkError)
    shutil.rmtree(shop.made / "spend")
    goes_on(shop)


@contextmanager
def on_a_small_disk(folder: Path) -> Iterator[Path]:
    """The folder moves to a file system of 2 MB; yields a file that may be filled."""
    away = folder.with_name("away")
    folder.rename(away)
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "none", str(folder))
    try:
        shutil.copytree(away, folder, dirs_exist_ok=True)
        yield folder / ".filler"
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(filler: Path) -> None:
    with open(filler, "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("name", ["a full disk under the state", "a full disk under a sink"])
def test_a_full_disk(name: str, shop: Shop, goldens: Goldens) -> None:
    place = shop.state if name.endswith("state") else shop.made / "spend"
    with on_a_small_disk(place) as filler, shop.pipeline(FAILING, rows_per_tick=100) as pipeline:
        before = held(shop)
        fill(filler)
        for _ in range(2):
            with pytest.raises(DelticError) as caught:
                pipeline.run_once()
            goldens.check(name, normalized(caught.value, shop))
        if place == shop.state:
            assert held(shop) == before
        filler.unlink()
        pipeline.run_once()
        assert views(pipeline) == AFTER and shop.summed() == AFTER["spend"] and shop.snapshot() == AFTER["top"]
        pipeline.close()
        goes_on(shop)


@pytest.mark.parametrize("name", ["a read-only state", "a read-only sink"])
def test_a_read_only_folder(name: str, shop: Shop, goldens: Goldens) -> None:
    place = shop.state if name.endswith("state") else shop.made / "spend"
    before = held(shop)
    mount("--bind", str(place), str(place))
    mount("-o", "remount,ro,bind", str(place))
    try:
        if place == shop.state:
            refused(shop, goldens, name, StateError)
        else:
            with shop.pipeline(FAILING, rows_per_tick=100) as pipeline, pytest.raises(SinkError) as caught:
                pipeline.run_once()
            goldens.check(name, normalized(caught.value, shop))
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
    if place == shop.state:
        assert held(shop) == before
    goes_on(shop)


@pytest.mark.parametrize("script", ["", " \n-- a script that was emptied\n", "CREATE FUNCTION f(a INT) RETURNS INT RETURN a;"])
def test_a_program_that_defines_nothing_does_not_drop_the_tables_of_its_state(shop: Shop, script: str) -> None:
    with pytest.raises(QueryError, match="the program defines no tables and no views"):
        shop.pipeline(script)
    with pytest.raises(QueryError, match="the program defines no tables and no views"):
        dry_run(script, state=shop.state, base=shop.folder)
    assert shop.run(FAILING) == AFTER
