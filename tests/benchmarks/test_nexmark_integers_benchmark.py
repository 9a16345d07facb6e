"""benchmarks.nexmark_integers: the answers are DuckDB's, and a wrong one shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks import nexmark_integers as nexmark
from benchmarks.peers import rust


@pytest.fixture(autouse=True)
def without_cargo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rust, "build", lambda *peer: "there is no cargo")


def test_the_answers_are_those_of_duckdb(capsys: pytest.CaptureFixture[str]) -> None:
    nexmark.main(["--events", "30000", "--rounds", "1"])
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert result["correct"] and list(result["cases"]) == ["q4", "q5", "q7", "q8"]
    assert result["cases"]["q7"]["peers"] == {"dbsp": {"absent": "there is no cargo"}}


def test_a_wrong_answer_ends_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(nexmark.DUCKDB, "q8", "SELECT DISTINCT id, time // 10000 * 10000, 0, 0 FROM person")
    with pytest.raises(SystemExit) as ended:
        nexmark.main(["--events", "30000", "--rounds", "1", "--queries", "q8"])
    assert ended.value.code == 1
    assert not json.loads(capsys.readouterr().out)["correct"]
