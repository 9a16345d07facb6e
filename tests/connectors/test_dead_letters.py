"""Dead letters are there exactly for the epochs that were committed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from test_sinks import Killed, fail_at, kill_at, steps_of

from deltic.connectors.dead_letters import DeadLetterFolder
from deltic.connectors.source import DeadLetter
from deltic.errors import SinkError

LETTER = DeadLetter("/in/a.csv", 7, "n", "'x' does not parse as INT; expected: INT", 'x,"ä\n"')


def shown(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith(".")) if folder.is_dir() else []


def test_letters_are_shown_once_their_epoch_is_committed(tmp_path: Path) -> None:
    letters = DeadLetterFolder(str(tmp_path / "dead"))
    letters.settle(0)
    letters.stage(1, "orders", [LETTER, LETTER])
    assert shown(tmp_path / "dead") == []
    letters.settle(1)
    assert shown(tmp_path / "dead") == ["letters-000000000001-orders.json"]
    lines = (tmp_path / "dead" / "letters-000000000001-orders.json").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"file": "/in/a.csv", "row": 7, "column": "n", "reason": "'x' does not parse as INT; expected: INT", "text": 'x,"ä\n"'}
    ] * 2
    letters.settle(1)
    assert shown(tmp_path / "dead") == ["letters-000000000001-orders.json"]


def test_letters_of_an_epoch_that_was_not_committed_go(tmp_path: Path) -> None:
    letters = DeadLetterFolder(str(tmp_path))
    letters.stage(1, "orders", [LETTER])
    letters.stage(2, "orders", [LETTER])
    DeadLetterFolder(f"file://{tmp_path}").settle(1)
    assert os.listdir(tmp_path) == ["letters-000000000001-orders.json"]


def test_letters_of_a_second_attempt_replace_those_of_the_first(tmp_path: Path) -> None:
    letters = DeadLetterFolder(str(tmp_path))
    letters.stage(1, "orders", [LETTER, LETTER])
    letters.stage(1, "orders", [LETTER])
    letters.settle(1)
    assert len((tmp_path / "letters-000000000001-orders.json").read_text().splitlines()) == 1


def test_names_of_tables_and_files_cannot_lead_elsewhere(tmp_path: Path) -> None:
    letters = DeadLetterFolder(str(tmp_path / "dead"))
    letters.stage(1, "../a b/\n", [DeadLetter("bad\udcffname", 1, None, "", "\udcff")])
    letters.settle(1)
    assert os.listdir(tmp_path) == ["dead"]
    (name,) = shown(tmp_path / "dead")
    assert name == "letters-000000000001-..%2Fa%20b%2F%0A.json"
    assert json.loads((tmp_path / "dead" / name).read_bytes())["file"] == "bad\udcffname"


def test_foreign_files_in_the_folder_are_kept(tmp_path: Path) -> None:
    for name in ("mine", ".letters", "letters-000000000009-orders.json", "x.staged"):
        (tmp_path / name).write_text("")
    DeadLetterFolder(str(tmp_path)).settle(5)
    assert len(os.listdir(tmp_path)) == 4


def test_a_full_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(monkeypatch, "sync:before")
    with pytest.raises(SinkError, match=r"dead letters: the folder .* cannot be written: No space left on device"):
        DeadLetterFolder(str(tmp_path)).stage(1, "orders", [LETTER])
    assert os.listdir(tmp_path) == []


def test_killed_at_any_step_letters_are_those_of_committed_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(folder: Path, first: int) -> None:
        letters = DeadLetterFolder(str(folder))
        letters.settle(first - 1)
        for epoch in range(first, 4):
            letters.stage(epoch, "orders", [LETTER] * epoch)
            (folder / ".committed").write_text(str(epoch))
            letters.settle(epoch)

    run(tmp_path / "whole", 1)
    number = len(steps_of(monkeypatch, lambda: run(tmp_path / "counted", 1)))
    for step in range(number):
        folder = tmp_path / str(step)
        kill_at(monkeypatch, step)
        with pytest.raises(Killed):
            run(folder, 1)
        monkeypatch.undo()
        committed = int((folder / ".committed").read_text()) if (folder / ".committed").exists() else 0
        assert len(shown(folder)) <= committed
        run(folder, committed + 1)
        assert {name: (folder / name).read_bytes() for name in shown(folder)} == {
            name: (tmp_path / "whole" / name).read_bytes() for name in shown(tmp_path / "whole")
        }
        assert sorted(os.listdir(folder)) == sorted(os.listdir(tmp_path / "whole"))
