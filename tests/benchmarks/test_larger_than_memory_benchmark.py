"""The benchmark of state larger than memory: its steps at a tiny size, and a limit that holds where cgroups may be created."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import deltic
from benchmarks import harness
from benchmarks.larger_than_memory import IN_GROUP, measure, memory_group, step
from benchmarks.larger_than_memory_case import SCRIPT, build, expected_totals, ticks


def test_ticks_give_the_totals_that_are_computed_apart(tmp_path: Path) -> None:
    assert build(tmp_path, 3_000, 1_000)["state_mb"] > 0
    figures = ticks(tmp_path, 3_000, 3)
    assert figures["correct"] and figures["tick_ms"]["median"] > 0
    assert not ticks(tmp_path, 3_000, 1)["correct"]  # the values are no longer those that were loaded


def test_the_totals_of_what_is_loaded(tmp_path: Path) -> None:
    build(tmp_path, 2_500, 700)
    counts, totals = expected_totals(2_500)
    with deltic.Session(state=tmp_path) as session:
        session.sql(SCRIPT)
        rows = {(row["station"], row["n"], row["total"]) for row in session.view("totals").rows()}
    assert rows == set(zip(range(1000), counts.tolist(), totals.tolist(), strict=True))


def test_a_process_that_needs_more_than_the_limit_is_ended() -> None:
    try:
        with memory_group(64 << 20) as group:
            needs = [sys.executable, "-c", "import sys; print(len(bytearray(int(sys.argv[1]) << 20)))"]
            small, large = (harness.run(["sh", "-c", IN_GROUP, str(group.procs), *needs, size], 60) for size in ("8", "256"))
    except OSError as error:
        pytest.skip(f"no cgroup may be created here: {error}")
    assert small == 8 << 20 and "exit code" in large["absent"]


def test_a_step_whose_group_cannot_be_made_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.larger_than_memory.ROOT", tmp_path / "none")
    assert "no cgroup with a memory limit" in step("build", tmp_path, 10, 10, 64)["absent"]
    assert set(measure(tmp_path, 10, 1, 64, 64)) == {"absent"}


def test_a_step_that_is_ended_is_a_wrong_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = {"absent": "it ended with exit code -9"}
    monkeypatch.setattr("benchmarks.larger_than_memory.step", lambda *_: ended)
    assert measure(tmp_path, 10, 1, 64, 64) == {"load": ended, "ticks": {}, "correct": False}
