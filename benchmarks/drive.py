"""Runs one engine over one feed in this process: `python -m benchmarks.drive MODULE FOLDER [TICKS]`.

MODULE has a function `engine`, called with the arguments stored in the folder; FOLDER is written by `write`; TICKS says that only
so many are run after the load. After every tick,
outside of the timed section, the checksum of the view is compared with the one stored in the folder. Prints the engine's figures as
one line of JSON, with `by_kind`, the median milliseconds of each other kind of tick, and `load_peak`, the peak memory of the load
divided by the memory in use after it, both without what was in use before.
"""

from __future__ import annotations

import gc
import importlib
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import checks, harness, workloads
from benchmarks.engine import CHANGE, UPSERT, Absent, Engine

Script = dict[str, Any]


def write(
    folder: Path, tables: Mapping[str, workloads.Feed], kinds: Sequence[str], expected: Sequence[int | None], **arguments: object
) -> None:
    """Writes a feed of each table, what kind each tick is (that of the load does not count), and the view's checksum after each.

    None is a checksum that is not known: then the figures have those of all ticks as `sums`, to be compared with another engine's.
    """
    for name, feed in tables.items():
        workloads.write(feed, folder / f"{name}.bin")
    widths = {name: feed.shape[1] for name, feed in tables.items()}
    (folder / "ticks.json").write_text(json.dumps({"tables": widths, "arguments": arguments, "kinds": kinds, "expected": expected}))


def save(folder: Path, orders: workloads.Feed, customers: workloads.Feed, kinds: Sequence[str], **arguments: object) -> None:
    """Writes a feed of join_aggregate. arguments: see `write`."""
    expected = [checks.Accumulated().replace(view) for view in checks.spend(orders, customers)]
    write(folder, {"orders": orders, "customers": customers}, kinds, expected, **arguments)


def script(folder: Path) -> Script:
    """The file that `write` adds to the feeds."""
    read: Script = json.loads((folder / "ticks.json").read_text())
    return read


def run(engine: Engine, folder: Path, first: int | None = None) -> harness.Figures:
    """The engine's figures over the load and the `first` ticks, or all; ticks of upserts only where the engine takes them."""
    ticks = script(folder)
    if first is not None:
        ticks["kinds"] = ticks["kinds"][: first + 1]
    seconds: dict[str, list[float]] = defaultdict(list)
    view, correct, sums = checks.Accumulated(), True, list[int]()
    prepared_ticks, load_peak = _prepared(engine, folder, ticks), None
    harness.forget_peak()
    before_mb = harness.resident_mb()
    for kind, prepared, expected in zip(ticks["kinds"], prepared_ticks, ticks["expected"], strict=False):
        start = time.perf_counter()
        read = engine.tick(prepared)
        seconds[kind].append(time.perf_counter() - start)
        if load_peak is None:
            load_peak = round((harness.process_peak_mb() - before_mb) / max(harness.resident_mb() - before_mb, 1), 3)
        answer = engine.answer(read)
        value = view.replace(answer.columns) if answer.weights is None else view.add(answer.columns, answer.weights)
        sums.append(value)
        correct = correct and expected in (None, value)
    load_s, *changes = seconds.pop(CHANGE)
    figures = harness.figures(load_s, [s * 1e3 for s in changes], harness.process_peak_mb(), correct)
    compared = {"sums": sums} if None in ticks["expected"] else {}
    medians = {kind: round(statistics.median(all_s) * 1e3, 4) for kind, all_s in seconds.items()}
    return figures | compared | {"load_peak": load_peak, "by_kind": medians}


def _prepared(engine: Engine, folder: Path, ticks: Script) -> list[object]:
    """All ticks in the engine's form; the raw feed is freed before the first one is applied."""
    kinds: list[str] = ticks["kinds"]
    feeds = [np.fromfile(folder / f"{name}.bin", "<i8").reshape(-1, width) for name, width in ticks["tables"].items()]
    changes = [checks.split(feed, len(kinds)) for feed in feeds]
    prepared = []
    for kind, *tick in zip(kinds, *changes, strict=True):
        if kind == UPSERT:
            if not hasattr(engine, "prepare_upserts"):
                break
            prepared.append(engine.prepare_upserts(*tick))
        else:
            prepared.append(engine.prepare(*tick))
    del feeds, changes
    gc.collect()
    return prepared


def main(module: str, folder: str, ticks: str | None = None) -> None:
    try:
        engine = importlib.import_module(module).engine(**script(Path(folder))["arguments"])
        print(json.dumps(run(engine, Path(folder), None if ticks is None else int(ticks))))
    except ModuleNotFoundError as error:
        print(json.dumps({"absent": f"{error.name} is not installed (pip install 'deltic[bench]')"}))
    except Absent as reason:
        print(json.dumps({"absent": str(reason)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
