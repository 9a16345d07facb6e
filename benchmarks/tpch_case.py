"""One query of TPC-H, in a process of its own: `python -m benchmarks.tpch_case FOLDER QUERY embedded|spark TICKS [--peers]`.

FOLDER has the tables as Parquet. Deltic's tick and the peer's query alternate, so that what disturbs one disturbs both. Prints one line of
JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import deltic
from benchmarks import harness, processes
from benchmarks.queries import tables, texts
from benchmarks.queries.answers import Row, difference, spoken_by_duckdb
from deltic import kernels

REFRESH: Final = 0.001
"""The share of the orders that a tick deletes or adds, each half."""
KEYS: Final = {"orders": ("o_orderkey",), "lineitem": ("l_orderkey", "l_linenumber")}
"""The tables that change, and their primary keys. Rows are chosen by the first column."""
Tables = dict[str, pa.Table]
Change = dict[str, tuple[pa.Table, pa.Table]]
"""By table the keys of the rows that go, and the rows that come: the refresh functions of TPC-H delete by key, too."""


class Data:
    """The tables that some queries read, as they are loaded, and the ticks' changes.

    The changes are made at once: a filter of millions of rows between two ticks would leave its garbage to the next one.
    """

    def __init__(self, folder: Path, queries: Mapping[str, str], ticks: int) -> None:
        words = {word.lower() for text in queries.values() for word in re.findall(r"\w+", text)}
        every = [path.stem for path in sorted(folder.glob("*.parquet"))]
        self.content: Tables = {name: _read(folder / f"{name}.parquet") for name in every if name in words or name in KEYS}
        keys = np.asarray(self.content["orders"]["o_orderkey"])
        count = max(1, round(len(keys) * REFRESH / 2))
        batches = np.split(np.random.default_rng(0).choice(keys, 2 * ticks * count, replace=False), 2 * ticks)
        self.changes: list[Change] = [{} for _ in range(ticks)]
        for name in KEYS:
            rows = self.content.pop(name)
            if name in words:
                parts = [_with_keys(rows, name, batch) for batch in batches]
                self.content[name] = _without_keys(rows, name, np.concatenate(batches[::2]))
                for change, added, removed in zip(self.changes, parts[::2], parts[1::2], strict=True):
                    change[name] = removed.select(KEYS[name]), added


def _with_keys(rows: pa.Table, name: str, keys: npt.NDArray[Any]) -> pa.Table:
    """One batch, as a refresh is, not the thousands of chunks that a filter of a large table leaves."""
    return rows.filter(pc.is_in(rows[KEYS[name][0]], pa.array(keys))).combine_chunks()


def _without_keys(rows: pa.Table, name: str, keys: npt.NDArray[Any]) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows[KEYS[name][0]], pa.array(keys))))


def _read(path: Path) -> pa.Table:
    table = pq.read_table(path)
    kinds = {pa.string_view(): pa.string(), pa.large_string(): pa.string()}
    return table.cast(pa.schema([(field.name, kinds.get(field.type, field.type)) for field in table.schema]))


class Peer(Protocol):
    """A system that answers the queries again after each change."""

    def change(self, change: Change) -> None: ...
    def answer(self, text: str) -> list[Row]: ...


class DuckDB:
    """DuckDB in this process."""

    def __init__(self, content: Tables) -> None:
        import duckdb  # noqa: PLC0415 - the spark engine runs without it

        self._base = duckdb.connect()
        for name, rows in content.items():
            self._with(rows, f"CREATE TABLE {name} AS SELECT * FROM given")

    def change(self, change: Change) -> None:
        for name, (removed, added) in change.items():
            column = KEYS[name][0]
            self._with(removed, f"DELETE FROM {name} WHERE {column} IN (SELECT {column} FROM given)")
            self._with(added, f"INSERT INTO {name} SELECT * FROM given")

    def answer(self, text: str) -> list[Row]:
        rows: list[Row] = self._base.execute(spoken_by_duckdb(text)).fetchall()
        return rows

    def _with(self, rows: pa.Table, statement: str) -> None:
        self._base.register("given", rows)
        self._base.execute(statement)
        self._base.unregister("given")


class Spark:
    """Spark's own answer over Parquet files of the content."""

    def __init__(self, spark: Any, content: Tables, folder: Path) -> None:
        self._spark, self._folder, self._number, self._content = spark, folder, 0, dict(content)
        self._write(content)

    def change(self, change: Change) -> None:
        for name, (removed, added) in change.items():
            kept = _without_keys(self._content[name], name, np.unique(np.asarray(removed[KEYS[name][0]])))
            self._content[name] = pa.concat_tables([kept, added])
        self._write({name: self._content[name] for name in change})
        os.sync()  # a commit of the next tick waits for the disk, which would still be writing the peer's tables

    def answer(self, text: str) -> list[Row]:
        return [tuple(row) for row in self._spark.sql(text).collect()]

    def _write(self, content: Tables) -> None:
        self._number += 1
        for name, rows in content.items():
            path = self._folder / f"{name}-{self._number}.parquet"
            pq.write_table(rows, path)
            self._spark.read.parquet(str(path)).createOrReplaceTempView(name)


def measure(folder: Path, name: str, engine: str, ticks: int, peers: bool) -> harness.Figures:
    queries = texts("tpch") if name == "all" else {name: texts("tpch")[name]}
    data = Data(folder, queries, ticks)
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        session = _session(engine, Path(made))
        with session:
            cpu_s = time.process_time if engine == "embedded" else processes.cpu_s
            own, other = harness.Stopwatch(cpu_s), harness.Stopwatch(cpu_s)
            peer = other.run(_peer, session, engine, data, Path(made)) if peers else None
            own.run(_load, session, queries, data.content)
            correct = _compare(session, queries, peer, other)
            data.content.clear()
            for change in data.changes:
                own.run(_tick, session, queries, change)
                if peer is not None:
                    peer.change(change)
                correct = _compare(session, queries, peer, other) and correct
            state = sum(size for _, size in session._runtime.statistics().values())
    result: harness.Figures = {
        **_figures(own, loads=1),
        "state_mb": round(state / 1e6, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "correct": correct,
    }
    if peer is not None:
        figures = _figures(other, loads=2)
        result["peers"] = {type(peer).__name__.lower(): {**figures, "correct": True}}
        result |= ratios(result, figures, least_cpu_ms=0.0 if engine == "embedded" else processes.RESOLUTION_MS)
    return result


def ratios(own: harness.Figures, peer: harness.Figures, least_cpu_ms: float) -> harness.Figures:
    """How much faster a tick is than the peer's answer, and how much longer the load takes.

    least_cpu_ms: the resolution of the CPU clock, which a shorter tick is taken to last; the true ratio is then higher.
    """
    cpu_ms = max(own["cpu_ms"]["median"], least_cpu_ms)
    faster = {"wall": peer["tick_ms"]["median"] / own["tick_ms"]["median"], "cpu": peer["cpu_ms"]["median"] / cpu_ms}
    longer = {"wall": own["load_s"] / peer["load_s"], "cpu": own["load_cpu_s"] / peer["load_cpu_s"]}
    return {name: {kind: round(ratio, 1) for kind, ratio in one.items()} for name, one in (("faster", faster), ("load_ratio", longer))}


def _figures(clock: harness.Stopwatch, loads: int) -> harness.Figures:
    """loads: how many pieces of work come before the ticks: with a peer, its tables and its first answers."""
    wall, cpu = clock.wall_ms, clock.cpu_ms
    load = {"load_s": round(sum(wall[:loads]) / 1e3, 3), "load_cpu_s": round(sum(cpu[:loads]) / 1e3, 3)}
    return {**load, "tick_ms": harness.summary(wall[loads:]), "cpu_ms": harness.summary(cpu[loads:])}


def _session(engine: str, folder: Path) -> deltic.Session:
    if engine == "embedded":
        kernels.warm_up()
        return deltic.Session()
    from deltic.runtimes.spark.session import local_session  # noqa: PLC0415 - the embedded engine runs without Spark

    return deltic.Session(spark=local_session(name="tpch", memory="8g"), state=folder / "state")


def _peer(session: deltic.Session, engine: str, data: Data, folder: Path) -> Peer:
    return DuckDB(data.content) if engine == "embedded" else Spark(session.spark, data.content, folder)


def _load(session: deltic.Session, queries: Mapping[str, str], content: Tables) -> None:
    session.sql(tables("tpch") + "".join(f"CREATE MATERIALIZED VIEW {name} AS {text};" for name, text in queries.items()))
    with session.transaction() as tx:
        for name, rows in content.items():
            tx.insert(name, rows)


def _tick(session: deltic.Session, queries: Mapping[str, str], change: Change) -> None:
    """A tick, and the changes of the views."""
    with session.transaction() as tx:
        for name, (removed, added) in change.items():
            tx.delete(name, removed)
            tx.insert(name, added)
    for name in queries:
        session.view(name).changes()


def _compare(session: deltic.Session, queries: Mapping[str, str], peer: Peer | None, clock: harness.Stopwatch) -> bool:
    """Whether the peer gives the same answers."""
    if peer is None:
        return True
    answers = clock.run(lambda: {name: peer.answer(text) for name, text in queries.items()})
    unlike = {name: difference([tuple(row.values()) for row in session.view(name).rows()], answers[name]) for name in queries}
    for name, text in unlike.items():
        if text is not None:
            harness.progress(f"{name}: {text}")
    return not any(unlike.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch_case")
    parser.add_argument("folder", type=Path)
    parser.add_argument("query")
    parser.add_argument("engine")
    parser.add_argument("ticks", type=int)
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    print(json.dumps(measure(options.folder, options.query, options.engine, options.ticks, options.peers)), flush=True)


if __name__ == "__main__":
    main()
