"""The benchmark of recursion checks answers against an independent computation, over feeds of known content, with an engine that agrees."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import drive, graphs, harness, recursion, workloads
from benchmarks.peers import duckdb_recursion
from benchmarks.recursion import CLOSURE, REACHABILITY, Case

CYCLIC = workloads.nearly_acyclic(70, 140, backward=0.1, ticks=6)
SPARSE = workloads.uniform(60, 90, ticks=6, changes=20)


def reached(edges: set[tuple[int, int]], start: int) -> set[int]:
    """The nodes reachable from `start`; `start` itself only if a cycle leads back to it."""
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        node = waiting.pop()
        new = {target for source, target in edges if source == node} - seen
        seen |= new
        waiting += new
    return seen


def present(feed: workloads.Feed) -> list[set[tuple[int, int]]]:
    """The edges after every tick."""
    edges: set[tuple[int, int]] = set()
    after = []
    for tick in range(int(feed[-1, 0]) + 1):
        for _, weight, *edge in feed[feed[:, 0] == tick].tolist():
            (edges.add if weight > 0 else edges.remove)(tuple(edge))
        after.append(set(edges))
    return after


@pytest.mark.parametrize("feed", [CYCLIC, SPARSE, workloads.path(20, 6)])
def test_the_independent_closure_is_every_walk(feed: workloads.Feed) -> None:
    walks = [{(node, end) for node in {a for a, _ in edges} for end in reached(edges, node)} for edges in present(feed)]
    assert [set(zip(*(column.tolist() for column in view), strict=True)) for view in graphs.closure(feed)] == walks


@pytest.mark.parametrize("feed", [CYCLIC, SPARSE, workloads.path(20, 6)])
def test_the_independent_reachability_is_every_walk_from_the_root(feed: workloads.Feed) -> None:
    assert [set(view[0].tolist()) for view in graphs.reachability(feed, 3)] == [reached(edges, 3) | {3} for edges in present(feed)]


def test_a_path_is_cut_and_restored() -> None:
    assert [len(edges) for edges in present(workloads.path(30, 6))] == [29, 28, 29, 28, 29, 28, 29]


def test_deletions_remove_one_edge_a_tick() -> None:
    edges = np.array(sorted(present(SPARSE)[0]))
    assert [len(left) for left in present(workloads.deletions(edges, 10))] == list(range(90, 79, -1))


@pytest.mark.parametrize(("view", "feed"), [(CLOSURE, CYCLIC), (REACHABILITY, SPARSE)])
def test_the_engine_and_duckdb_are_right_after_every_tick(view: str, feed: workloads.Feed, tmp_path: Path) -> None:
    params = Case(view, feed, root=3).write(tmp_path)
    assert params["ticks"] == 6
    for engine in (recursion.engine(view, 3), duckdb_recursion.engine(view, 3)):
        assert drive.run(engine, tmp_path)["correct"]


def test_rows_reached_from_another_root_are_wrong(tmp_path: Path) -> None:
    Case(REACHABILITY, SPARSE, root=3).write(tmp_path)
    assert not drive.run(duckdb_recursion.engine(REACHABILITY, 4), tmp_path)["correct"]


@pytest.mark.parametrize("folder", [None, "empty"])
def test_a_case_without_its_data_is_absent_and_not_wrong(
    folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DELTIC_DATA", raising=False)
    if folder:
        monkeypatch.setenv("DELTIC_DATA", str(tmp_path))
    case = recursion.measure("wiki", quick=True, peers=False)
    assert case.keys() == {"absent"}
    harness.emit({"benchmark": "recursion", "correct": True, "cases": {"wiki": case}})
    assert json.loads(capsys.readouterr().out)["cases"]["wiki"] == case


def test_a_case_that_fails_is_wrong() -> None:
    with pytest.raises(SystemExit):
        harness.emit({"benchmark": "recursion", "correct": True, "cases": {"path": {"absent": "it ended", "correct": False}}})
