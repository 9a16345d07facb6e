"""benchmarks.flights: the figures of rounds, and a replay that is compared with DuckDB."""

from __future__ import annotations

import json

import pytest

from benchmarks import flights

ROUND = {"cpu_s": 0.5, "ticks": 11, "changes": 100, "touched": 250, "correct": True}


def test_the_least_round_counts_and_a_wrong_one_shows() -> None:
    summary = flights.summary([ROUND, ROUND | {"cpu_s": 0.4, "correct": False}])
    assert summary == {"cpu_s": 0.4, "tick_cpu_ms": 40.0, "touched_per_change": 2.5, "correct": False}
    assert flights.summary([ROUND, {"absent": "no answer within 1 s"}]) == {"absent": "no answer within 1 s"}


def test_the_ratio_is_that_of_the_other_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(flights, "run", lambda python, changes: ROUND | ({"cpu_s": 2.0} if python == "other" else {}))
    flights.main(["--quick", "--beside", "other"])
    result = json.loads(capsys.readouterr().out)
    assert result["ratio"] == 4.0 and result["peers"]["beside"]["cpu_s"] == 2.0
