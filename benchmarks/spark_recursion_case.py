"""One graph on Spark, in a process of its own: `python -m benchmarks.spark_recursion_case FOLDER`; FOLDER is benchmarks.spark_recursion's.

Deltic and Spark's own ways run in one session. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import deltic
from benchmarks import checks, drive, harness
from benchmarks.checks import Change
from benchmarks.engine import arrow
from benchmarks.peers.spark_closure import Graph, columns
from benchmarks.processes import Memory
from benchmarks.recursion import CLOSURE, COLUMNS, SCRIPTS
from benchmarks.spark_case import CORES, SHARDS, Timings
from benchmarks.spark_stages import Stages
from benchmarks.workloads import Feed
from deltic.runtimes.spark.runtime import DRIVER_ROWS
from deltic.runtimes.spark.session import local_session

LOOP, RECURSIVE = "spark_loop", "spark"


class Case:
    """Deltic's session, Spark's ways that end on the graph, and the feed's ticks over one Spark session."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.stages, self.memory = Stages(spark), Memory()
        self.graph = Graph(spark, CORES)
        ways: dict[str, Callable[[], Change]] = {RECURSIVE: self.graph.recursive, LOOP: self.graph.loop}
        script = drive.script(folder)
        self.ways = {name: ways[name] for name in script["arguments"]["ways"]}
        self.recomputed: list[bool] = script["arguments"]["recomputed"]
        self.expected: list[int] = script["expected"]
        self.feed = np.fromfile(folder / "edges.bin", "<i8").reshape(-1, script["tables"]["edges"])
        self.view = checks.Accumulated()
        self.session = deltic.Session(spark=spark, state=str(folder / "state"), shards=SHARDS)
        self.session.sql(SCRIPTS[CLOSURE])

    def run(self) -> harness.Figures:
        """The load, then all ticks. The first ones warm up, and are not counted; nor is the first run of each of Spark's ways."""
        ticks = checks.split(self.feed, len(self.expected))
        load_s, correct = self._apply(ticks[0], self.expected[0])
        harness.progress(f"loaded in {load_s:.1f} s; {len(ticks) - 1} ticks follow")
        own, peers = Timings(correct=correct), {name: Timings() for name in self.ways}
        jobs = []
        for number, (tick, expected) in enumerate(zip(ticks[1:], self.expected[1:], strict=True), 1):
            before = self.stages.mark()
            own.add(*self._apply(tick, expected))
            jobs.append(self.stages.since(before).jobs)
            if self.recomputed[number]:
                self.graph.replace(_edges(self.feed, number))
                for name, way in self.ways.items():
                    peers[name].add(*_timed(way, expected))
                self.memory.sample()
        self.session.close()
        return {
            "load_s": round(load_s, 3),
            **own.figures(min(5, len(jobs) // 3)),
            "peak_mb": self.memory.python_mb,
            "jvm_mb": self.memory.jvm_mb,
            "jobs_per_tick": sum(jobs) / len(jobs),
            "peers": {name: timings.figures(min(1, len(timings.milliseconds) - 1)) for name, timings in peers.items()},
        }

    def _apply(self, change: Change, expected: int) -> tuple[float, bool]:
        """Seconds until the view's change can be read, and whether it is right."""
        edges = arrow(change, COLUMNS[CLOSURE])
        start = time.perf_counter()
        self.session.apply({"edges": edges})
        read = self.session.view(CLOSURE).changes()
        seconds = time.perf_counter() - start
        self.memory.sample()
        weights = np.asarray(read["_weight"].combine_chunks()).astype(np.int64)
        return seconds, self.view.add(columns(read), weights) == expected


def _timed(way: Callable[[], Change], expected: int) -> tuple[float, bool]:
    start = time.perf_counter()
    pairs = way()
    seconds = time.perf_counter() - start
    return seconds, checks.Accumulated().replace(pairs) == expected


def _edges(feed: Feed, tick: int) -> pa.Table:
    """Those present after a tick."""
    rows = feed[feed[:, 0] <= tick]
    edges, at = np.unique(rows[:, 2:], axis=0, return_inverse=True)
    there = edges[np.bincount(at.reshape(-1), rows[:, 1]) > 0]
    return pa.table(dict(zip(COLUMNS[CLOSURE], there.T, strict=True)))


def main(folder: str) -> None:
    spark = local_session(CORES, name="deltic benchmark", memory="4g", settings={DRIVER_ROWS: "0"})
    print(json.dumps(Case(spark, Path(folder)).run()))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
