"""The benchmarks of triangles and subgraphs check answers against independent counts; the engines agree."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import checks, drive, graphs, patterns, subgraphs, triangles, votes, workloads
from benchmarks.engine import Absent, Engine
from benchmarks.patterns import PATTERNS
from benchmarks.peers import deltic_patterns, duckdb_patterns
from benchmarks.peers.edge_set import EdgeSet
from benchmarks.triangles import COUNTED, LISTED, Case
from parts import slow

DENSE = workloads.uniform(8, 30, ticks=5, changes=6)
SPARSE = workloads.power_law(40, 120, ticks=5, changes=20)


def present(feed: workloads.Feed) -> Iterator[set[tuple[int, int]]]:
    """The edges after every tick."""
    edges: set[tuple[int, int]] = set()
    for tick in range(int(feed[-1, 0]) + 1):
        for _, weight, *edge in feed[feed[:, 0] == tick].tolist():
            (edges.add if weight > 0 else edges.remove)(tuple(edge))
        yield set(edges)


def ways(name: str, edges: set[tuple[int, int]]) -> set[tuple[int, ...]]:
    """All ways to give a pattern's variables nodes, each tried."""
    pattern, nodes = PATTERNS[name], sorted({node for edge in edges for node in edge})
    places = [tuple(pattern.variables.index(variable) for variable in edge) for edge in pattern.edges]
    assigned = product(nodes, repeat=len(pattern.variables))
    return {way for way in assigned if all((way[source], way[target]) in edges for source, target in places)}


@pytest.mark.parametrize("feed", [DENSE, SPARSE])
def test_the_independent_triangles_are_those_of_brute_force(feed: workloads.Feed) -> None:
    held: set[tuple[int, ...]] = set()
    for edges, (weights, *columns) in zip(present(feed), graphs.triangles(feed), strict=True):
        for weight, *row in zip(weights.tolist(), *(column.tolist() for column in columns), strict=True):
            (held.add if weight > 0 else held.remove)(tuple(row))
        assert held == ways(COUNTED, edges)


@pytest.mark.parametrize("name", subgraphs.CASES)
def test_the_independent_counts_are_those_of_brute_force(name: str) -> None:
    assert list(subgraphs.CASES[name](DENSE)) == [len(ways(name, edges)) for edges in present(DENSE)]


def test_churn_ends_with_its_first_edges() -> None:
    edges = np.array(sorted(next(present(SPARSE))))
    after = list(present(workloads.churn(edges, removed=25, changes=10)))
    assert [len(edges) for edges in after] == [120, 110, 100, 95, 105, 115, 120]
    assert after[0] == after[-1]


def test_the_queries_are_written_as_documented() -> None:
    assert doctest.testmod(patterns).failed == 0


def engines(name: str) -> list[Engine]:
    engines: list[Engine] = [patterns.engine(name), deltic_patterns.engine(name), duckdb_patterns.engine(name)]
    if name in (COUNTED, LISTED):
        from benchmarks.peers import numba_patterns  # noqa: PLC0415  compiles when it is imported

        engines.append(numba_patterns.engine(name))
    return engines


@pytest.mark.parametrize(("name", "feed"), [(COUNTED, DENSE), *slow((COUNTED, SPARSE), (LISTED, DENSE), (LISTED, SPARSE))])
def test_engines_have_the_right_triangles_after_every_tick(name: str, feed: workloads.Feed, tmp_path: Path) -> None:
    params, counts = Case(name, feed).write(tmp_path)
    assert params["ticks"] == len(counts) - 1 == 5
    for engine in engines(name):
        assert drive.run(engine, tmp_path)["correct"], engine


@pytest.mark.parametrize("name", ["cycles", *slow(*(name for name in subgraphs.CASES if name != "cycles"))])
def test_engines_have_the_right_subgraphs_after_every_tick(name: str, tmp_path: Path) -> None:
    subgraphs.write(name, SPARSE, tmp_path)
    for engine in engines(name):
        assert drive.run(engine, tmp_path)["correct"], engine


def test_kuzu_has_the_right_triangles_after_every_tick(tmp_path: Path) -> None:
    kuzu_patterns = pytest.importorskip("benchmarks.peers.kuzu_patterns", reason="kuzu is not installed", exc_type=ModuleNotFoundError)
    Case(LISTED, SPARSE).write(tmp_path)
    assert drive.run(kuzu_patterns.engine(LISTED), tmp_path)["correct"]


def test_another_pattern_is_wrong(tmp_path: Path) -> None:
    subgraphs.write("cycles", DENSE, tmp_path)
    assert not drive.run(patterns.engine("cliques"), tmp_path)["correct"]


def test_only_the_first_ticks_are_run_where_their_number_is_given(tmp_path: Path) -> None:
    subgraphs.write("cycles", DENSE, tmp_path)
    applied: list[int] = []

    class Counting(patterns.Embedded):
        def tick(self, prepared: dict[str, patterns.pa.Table]) -> patterns.pa.Table:
            applied.append(prepared["edges"].num_rows)
            return super().tick(prepared)

    assert drive.run(Counting(PATTERNS["cycles"]), tmp_path, 2)["correct"]
    assert applied == [30, 6, 6]


def test_a_set_of_edges_stays_sorted() -> None:
    held = EdgeSet()
    for edges, change in zip(present(SPARSE), checks.split(SPARSE, 6), strict=True):
        held.apply(change)
        assert list(zip(*(ends.tolist() for ends in held.ends()), strict=True)) == sorted(edges)


@pytest.mark.parametrize("folder", [None, "empty"])
def test_the_votes_are_absent_without_their_file(folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DELTIC_DATA", raising=False)
    if folder:
        monkeypatch.setenv("DELTIC_DATA", str(tmp_path))
    with pytest.raises(Absent, match=r"wiki_vote\.parquet"):
        votes.directed()
    assert triangles.measure("wiki", quick=True, ticks=2, peers=False).keys() == {"absent"}
