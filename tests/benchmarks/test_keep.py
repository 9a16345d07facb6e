"""The table of docs/performance.md is what the committed results say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import keep

TICK = {"median": 1.25, "p95": 2.5, "max": 9.0}
OWN = {"load_s": 0.5, "tick_ms": TICK, "peak_mb": 100.4, "correct": True}


def written(folder: Path, name: str, result: dict[str, Any]) -> str:
    origin = {"command": f"python -m benchmarks.{name}", "commit": "abc1234", "date": "2026-01-02", "machine": "one processor"}
    (folder / f"{name}.json").write_text(json.dumps({**origin, "result": result}))
    return keep.tables(folder)


def test_the_page_has_the_table_of_the_committed_results() -> None:
    page = keep.PAGE.read_text(encoding="utf-8")
    assert page == keep.with_tables(page, keep.tables(keep.RESULTS)), "write it with: python -m benchmarks.keep --table"


def test_a_table_names_command_commit_and_machine_and_has_a_row_for_each_case_and_engine(tmp_path: Path) -> None:
    peers = {"duckdb": {**OWN, "load_s": None}, "kuzu": {"absent": "not installed"}}
    cases = {"hub": {**OWN, "peers": peers}, "wiki": {"absent": "no data"}}
    table = written(tmp_path, "triangles", {"benchmark": "triangles", **cases["hub"], "cases": cases})
    assert table.splitlines() == [
        "- `python -m benchmarks.triangles` at commit abc1234, 2026-01-02: one processor",
        "",
        *keep.HEAD.splitlines(),
        "| triangles | hub | deltic | 0.50 | 1.250 | 2.500 | 100 |",
        "| triangles | hub | duckdb |  | 1.250 | 2.500 | 100 |",
        "| triangles | hub | kuzu |  | absent: not installed |  |  |",
        "| triangles | wiki | deltic |  | absent: no data |  |  |",
    ]


def test_a_result_with_a_case_at_its_top_has_a_row_for_it(tmp_path: Path) -> None:
    grown = {**OWN, "tick_ms": {**TICK, "median": 3.0}}
    table = written(tmp_path, "join_aggregate", {**OWN, "peers": {}, "cases": {"10,000,000 orders": grown}})
    assert [line.split(" | ")[1:5] for line in table.splitlines()[-2:]] == [
        ["", "deltic", "0.50", "1.250"],
        ["10,000,000 orders", "deltic", "0.50", "3.000"],
    ]


def test_a_working_tree_with_changes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep, "_git", lambda *_: " M README.md")
    with pytest.raises(SystemExit, match="commit first"):
        keep.keep("triangles", [])


def test_a_page_without_the_markers_is_refused() -> None:
    with pytest.raises(AssertionError, match="no markers"):
        keep.with_tables("# Performance\n", "")
