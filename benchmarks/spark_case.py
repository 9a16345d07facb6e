"""One state size on Spark, in a process of its own: `python -m benchmarks.spark_case FOLDER`; FOLDER is written by spark_views.write.

Deltic's engines, the bare job and Spark's recompute run in one session, interleaved tick by tick, so that what disturbs one disturbs all.
Engines: `deltic` has the usual settings, with which the driver computes small ticks; with `jobs` each tick is a Spark job; `views` and
`views_as_jobs` have the further views, too. The bare job has as many exchanges of as many bytes as Spark wrote just before for the tick
of `jobs`. Prints one line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import deltic
from benchmarks import checks, harness
from benchmarks.engine import arrow
from benchmarks.peers import spark_bare
from benchmarks.peers.spark_recompute import Recompute
from benchmarks.processes import Memory
from benchmarks.spark_stages import Shuffled, Stages
from benchmarks.spark_views import VIEWS, View
from deltic.runtimes.spark.runtime import DRIVER_ROWS, SMALL_ROWS
from deltic.runtimes.spark.session import local_session

CORES = SHARDS = 2
Tick = dict[str, pa.Table]


@dataclass
class Timings:
    """One engine's ticks of one size, and whether all its answers were right."""

    milliseconds: list[float] = field(default_factory=list)
    correct: bool = True

    def add(self, seconds: float, correct: bool) -> None:
        self.milliseconds.append(seconds * 1e3)
        self.correct = self.correct and correct

    def figures(self, warm_up: int) -> harness.Figures:
        """Without the first ticks, which warm up."""
        return {"tick_ms": harness.summary(self.milliseconds[warm_up:]), "correct": self.correct}


@dataclass
class Size:
    """The ticks of one size, and what Spark did for those that are jobs."""

    engines: dict[str, Timings] = field(default_factory=lambda: defaultdict(Timings))
    bare: Timings = field(default_factory=Timings)
    recompute: Timings = field(default_factory=Timings)
    shuffled: list[Shuffled] = field(default_factory=list)

    def figures(self) -> harness.Figures:
        warm_up = min(5, len(self.shuffled) // 3)
        written = [sum(shuffled.written_bytes) for shuffled in self.shuffled]
        return {
            "engines": {name: timings.figures(warm_up) for name, timings in self.engines.items()},
            "spark_bare": self.bare.figures(warm_up),
            "spark": self.recompute.figures(0),
            "jobs_per_tick": statistics.mean(shuffled.jobs for shuffled in self.shuffled),
            "exchanges": statistics.median(len(shuffled.written_bytes) for shuffled in self.shuffled),
            "exchanged_bytes": round(statistics.median(written)),
        }


class Engine:
    """A session of Deltic's over the view, in which each change of it is added up."""

    def __init__(self, spark: SparkSession, view: View, name: str, folder: Path) -> None:
        self._view, self._held = view, checks.Accumulated()
        spark.conf.set(DRIVER_ROWS, "0" if name.endswith("jobs") else str(SMALL_ROWS))
        self.session = deltic.Session(spark=spark, state=str(folder / name), shards=SHARDS)
        self.more = view.more if name.startswith("views") else {}
        self.session.sql(view.all_views if self.more else view.script)
        self._held.add(*self._columns(self._change()))  # a count without rows is 0

    def apply(self, changes: dict[str, pa.Table | DataFrame], expected: int) -> tuple[float, bool]:
        """A tick, and the change of the view: (the seconds that they take, whether the view has this checksum)."""
        start = time.perf_counter()
        self.session.apply(changes)
        change = self._change()
        seconds = time.perf_counter() - start
        return seconds, self._held.add(*self._columns(change)) == expected

    def _change(self) -> pa.Table:
        return self.session.view(self._view.name).changes()

    def _columns(self, change: pa.Table) -> tuple[list[checks.Words], checks.Words]:
        *columns, weights = (np.asarray(change[name].combine_chunks()).astype(np.int64) for name in (*self._view.columns, "_weight"))
        return columns, weights


class Case:
    """Deltic's engines, the recomputing peer and the feed's ticks over one Spark session."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.stages = spark, Stages(spark)
        self.memory = Memory()
        script = json.loads((folder / "ticks.json").read_text())
        self.changes, self.recomputed, self.expected = script["changes"], script["recomputed"], script["expected"]
        self.view = VIEWS[script["view"]]
        self.load, *self.ticks = _ticks(folder, self.view, len(self.changes))
        self.loaded = {name: _stored(spark, table, folder / f"{name}.parquet") for name, table in self.load.items()}
        self.engines = {name: Engine(spark, self.view, name, folder) for name in script["engines"]}

    def run(self) -> harness.Figures:
        """The load, then all ticks."""
        loads = {name: engine.apply(dict(self.loaded), self.expected[0]) for name, engine in self.engines.items()}
        start = time.perf_counter()
        recompute = Recompute(self.spark, self.view.recomputed, self.view.columns, self.loaded)
        recompute_load_s = time.perf_counter() - start
        sizes: dict[int, Size] = defaultdict(Size)
        harness.progress(
            f"loaded in {', '.join(f'{load_s:.1f} s ({name})' for name, (load_s, _) in loads.items())}; {len(self.ticks)} ticks follow"
        )
        for tick, changes, recomputed, expected in zip(self.ticks, self.changes[1:], self.recomputed[1:], self.expected[1:], strict=True):
            self._tick(tick, sizes[changes], expected)
            recompute.add(tick)
            if recomputed:
                sizes[changes].recompute.add(*_timed(partial(_right, recompute, expected)))
        correct = all(correct for _, correct in loads.values()) and self._have_rows_of_duckdb()
        for engine in self.engines.values():
            engine.session.close()
        return {
            "load_s": {name: round(load_s, 3) for name, (load_s, _) in loads.items()},
            "recompute_load_s": round(recompute_load_s, 3),
            "correct": correct,
            "peak_mb": self.memory.python_mb,
            "jvm_mb": self.memory.jvm_mb,
            "cases": {changes: size.figures() for changes, size in sizes.items()},
        }

    def _tick(self, tick: Tick, size: Size, expected: int) -> None:
        for name, engine in self.engines.items():
            before = self.stages.mark()
            size.engines[name].add(*engine.apply(dict(tick), expected))
            self.memory.sample()
            if name == "jobs":
                shuffled = self.stages.since(before)
        size.shuffled.append(shuffled)
        exchanges = len(shuffled.written_bytes)
        size_bytes = sum(shuffled.written_bytes) // exchanges // SHARDS * SHARDS
        size.bare.add(*_timed(lambda: spark_bare.run(self.spark, SHARDS, exchanges, size_bytes) == size_bytes))

    def _have_rows_of_duckdb(self) -> bool:
        """Whether the further views have the rows that DuckDB computes from all changes."""
        checked = [(engine.session.view(name), query) for engine in self.engines.values() for name, query in engine.more.items()]
        with duckdb.connect() as database:
            for name, columns in self.view.tables.items() if checked else ():
                database.register("changes", pa.concat_tables([table[name] for table in (self.load, *self.ticks)]))
                listed = ", ".join(columns)
                database.execute(f"CREATE TABLE {name} AS SELECT {listed} FROM changes GROUP BY {listed} HAVING sum(_weight) <> 0")
            return all(
                sorted(database.execute(query).fetchall()) == sorted(tuple(row.values()) for row in view.rows()) for view, query in checked
            )


def _right(recompute: Recompute, expected: int) -> bool:
    return checks.Accumulated().replace(recompute.answer()) == expected


def _timed(run: Callable[[], bool]) -> tuple[float, bool]:
    start = time.perf_counter()
    correct = run()
    return time.perf_counter() - start, correct


def _ticks(folder: Path, view: View, ticks: int) -> list[Tick]:
    split = {}
    for name, columns in view.tables.items():
        feed = np.fromfile(folder / f"{name}.bin", "<i8").reshape(-1, 2 + len(columns))
        split[name] = [arrow(change, columns) for change in checks.split(feed, ticks)]
    return [dict(zip(split, tables, strict=True)) for tables in zip(*split.values(), strict=True)]


def _stored(spark: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    pq.write_table(table, path)
    return spark.read.parquet(str(path))


def main(folder: str) -> None:
    spark = local_session(CORES, name="deltic benchmark", memory="4g")
    print(json.dumps(Case(spark, Path(folder)).run()))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
