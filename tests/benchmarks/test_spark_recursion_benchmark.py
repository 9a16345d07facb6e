"""The benchmark of recursion on Spark: its graph has few ways, all ways of computing it agree, and a wrong one is seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import graphs, spark_recursion, workloads
from benchmarks.checks import Accumulated
from benchmarks.peers.spark_closure import Graph
from benchmarks.spark_recursion import ENDLESS, Case, result
from benchmarks.spark_recursion_case import LOOP, RECURSIVE
from benchmarks.spark_recursion_case import Case as Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_the_layered_graph_has_all_its_levels_and_few_ways() -> None:
    feed = workloads.layered(ticks=1)
    edges = feed[feed[:, 0] == 0][:, 2:]
    assert ((edges[:, 1] // 100 - edges[:, 0] // 100) == 1).all()
    pairs = len(next(graphs.closure(feed))[0])
    ahead: dict[int, list[int]] = {}
    for source, target in edges.tolist():
        ahead.setdefault(source, []).append(target)
    ways, levels = 0, 0
    level = Counter(edges[:, 1].tolist())
    while level:
        levels, ways = levels + 1, ways + sum(level.values())
        level = sum((Counter({target: count}) for node, count in level.items() for target in ahead.get(node, ())), Counter())
    assert levels == 59
    assert pairs > 90_000
    assert ways < 1_000_000, "Spark's WITH RECURSIVE gives up at a million rows"


@pytest.mark.parametrize(("ways", "absent"), [((RECURSIVE, LOOP), []), ((LOOP,), [RECURSIVE])])
def test_a_way_that_does_not_end_is_absent_with_the_reason(ways: tuple[str, ...], absent: list[str]) -> None:
    answer = {"load_s": 1.0, "peak_mb": 1.0, "jvm_mb": 1.0, "jobs_per_tick": 1, "correct": True}
    measured = result({**answer, "peers": {way: {"correct": True} for way in ways}}, {})
    assert [name for name, peer in measured["peers"].items() if peer == {"absent": ENDLESS}] == absent


@pytest.mark.slow
@pytest.mark.spark
def test_the_loop_ends_on_cycles(spark: SparkSession) -> None:
    feed = np.array([(0, 1, a, b) for a, b in [(0, 1), (1, 0), (1, 2)]], np.int64)
    graph = Graph(spark, 2)
    graph.replace(pa.table({"src": feed[:, 2], "dst": feed[:, 3]}))
    assert Accumulated().replace(graph.loop()) == Accumulated().replace(next(graphs.closure(feed)))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", spark_recursion.CASES)
def test_all_ways_are_right_after_every_tick(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = spark_recursion.CASES[name](True)
    params = case.write(tmp_path)
    answer = Running(spark, tmp_path).run()
    assert answer["correct"]
    assert answer["jobs_per_tick"] == 1
    assert answer["peers"].keys() == {*case.ways}
    assert all(peer["correct"] for peer in answer["peers"].values())
    assert spark_recursion.describe(name, result(answer, params)).count("×") == len(case.ways)


@pytest.mark.slow
@pytest.mark.spark
def test_a_wrong_answer_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    feed = workloads.layered(4, 5, ticks=2)
    Case(feed, (RECURSIVE,)).write(tmp_path)
    feed[-1, 3] += 5
    workloads.write(feed, tmp_path / "edges.bin")
    answer = Running(spark, tmp_path).run()
    assert not answer["correct"] and not answer["peers"][RECURSIVE]["correct"]
