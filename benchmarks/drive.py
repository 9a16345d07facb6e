"""Runs one engine over one feed in this process: `python -m benchmarks.drive MODULE FOLDER`.

MODULE has a function `engine()`; FOLDER is what `save` wrote. After every tick, outside of the timed section, the checksum of the
view is compared with the one that stands in the folder. Prints the engine's figures as one line of JSON, with `by_kind`, the
median milliseconds of each other kind of tick.
"""

from __future__ import annotations

import gc
import importlib
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import checks, harness, workloads
from benchmarks.engine import CHANGE, UPSERT, Absent, Engine


def save(folder: Path, orders: workloads.Feed, customers: workloads.Feed, kinds: Sequence[str]) -> None:
    """Writes a feed, what kind each of its ticks is (that of the load does not count), and the view's checksum after each."""
    workloads.write(orders, folder / "orders.bin")
    workloads.write(customers, folder / "customers.bin")
    expected = [checks.Accumulated().replace(view) for view in checks.spend(orders, customers)]
    (folder / "ticks.json").write_text(json.dumps({"kinds": kinds, "expected": expected}))


def run(engine: Engine, folder: Path) -> harness.Figures:
    """The engine's figures over the whole feed; ticks of upserts only where the engine takes them."""
    script = json.loads((folder / "ticks.json").read_text())
    seconds: dict[str, list[float]] = defaultdict(list)
    view, correct = checks.Accumulated(), True
    for kind, prepared, expected in zip(script["kinds"], _prepared(engine, folder, script["kinds"]), script["expected"], strict=False):
        start = time.perf_counter()
        read = engine.tick(prepared)
        seconds[kind].append(time.perf_counter() - start)
        answer = engine.answer(read)
        value = view.replace(answer.columns) if answer.weights is None else view.add(answer.columns, answer.weights)
        correct = correct and value == expected
    load_s, *ticks = seconds.pop(CHANGE)
    figures = harness.figures(load_s, [s * 1e3 for s in ticks], harness.process_peak_mb(), correct)
    return figures | {"by_kind": {kind: round(statistics.median(all_s) * 1e3, 4) for kind, all_s in seconds.items()}}


def _prepared(engine: Engine, folder: Path, kinds: Sequence[str]) -> list[object]:
    """All ticks in the engine's form; the raw feed is gone before the first one is applied."""
    orders = checks.split(np.fromfile(folder / "orders.bin", "<i8").reshape(-1, 5), len(kinds))
    customers = checks.split(np.fromfile(folder / "customers.bin", "<i8").reshape(-1, 4), len(kinds))
    prepared = []
    for kind, *tick in zip(kinds, orders, customers, strict=True):
        if kind == UPSERT:
            if not hasattr(engine, "prepare_upserts"):
                break
            prepared.append(engine.prepare_upserts(*tick))
        else:
            prepared.append(engine.prepare(*tick))
    del orders, customers
    gc.collect()
    return prepared


def main(module: str, folder: str) -> None:
    try:
        engine = importlib.import_module(module).engine()
    except ModuleNotFoundError as error:
        print(json.dumps({"absent": f"{error.name} is not installed (pip install 'deltic[bench]')"}))
    except Absent as reason:
        print(json.dumps({"absent": str(reason)}))
    else:
        print(json.dumps(run(engine, Path(folder))))


if __name__ == "__main__":
    main(*sys.argv[1:])
