"""Folds over a stream, and transactions without end: `python -m benchmarks.streams [--rows N] [--quick] [--cases fold accumulator]`.

Rows of a key and an amount come in ticks of 10,000, with 100,000 keys at a time: in every tick 50 keys go, and 50 new ones come. The view
has the sum of each key's amounts since it came. Cases: `fold`, by feedback over the keys (a table); `accumulator`, stream_aggregate, which
drops a key at its last row; `kept`, GROUP BY over a table that keeps everything, for comparison. Each runs in a process of its own, and its
view is compared with NumPy's sums at the end. State and peak memory are those after a tenth of the rows, and after all.

Cases `transactions` and `transactions_in_memory`: 1,000,000 transactions of one row (`--transactions N`), see benchmarks/transactions.py.
State, files and peak memory are those after a hundredth of them, and after all.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import deltic
from benchmarks import harness, transactions
from deltic import kernels

ROWS, TICK, KEYS, MOVING = 10_000_000, 10_000, 100_000, 50
LAST = -1
"""The amount of a key's last row, which the accumulator takes as its end."""
FOLDS = ("fold", "accumulator", "kept")
TRANSACTIONS = ("transactions", "transactions_in_memory")
CASES = (*FOLDS, *TRANSACTIONS)
Ints = np.ndarray[Any, np.dtype[np.int64]]


class Feed:
    """The ticks, and the sum of each key that is there. Keys are numbered in the order in which they come."""

    def __init__(self, ticks: int, seed: int = 11) -> None:
        self._rng, self._ticks = np.random.default_rng(seed), ticks
        self.first, self.last = 0, KEYS
        self.sums: Ints = np.zeros(KEYS + MOVING * ticks, np.int64)

    def __iter__(self) -> Iterator[tuple[pa.Table, Ints, Ints]]:
        """For each tick (its rows, the keys that come, the keys that go)."""
        yield self._rows(), np.arange(KEYS), np.zeros(0, np.int64)
        for _ in range(1, self._ticks):
            gone, new = np.arange(self.first, self.first + MOVING), np.arange(self.last, self.last + MOVING)
            self.first, self.last = self.first + MOVING, self.last + MOVING
            yield self._rows(), new, gone

    def _rows(self) -> pa.Table:
        keys = self._rng.integers(self.first, self.last, TICK)
        amounts = self._rng.integers(0, 100, TICK)
        np.add.at(self.sums, keys, amounts)
        return pa.table({"k": keys, "amount": amounts})

    def expected(self) -> dict[int, int]:
        """The sum of each key that has one."""
        return {key: int(self.sums[key]) for key in range(self.first, self.last) if self.sums[key]}


def total(before: int, group: tuple[tuple[Any, int], ...]) -> int | None:
    """The sum so far; None at the end of the key."""
    for row, weight in group:
        if row.amount == LAST:
            return None
        before += row.amount * weight
    return before


def circuit(case: str) -> deltic.Circuit:
    """The case's view, `sums`."""
    made = deltic.Circuit()
    columns = {"k": int, "amount": int}
    if case == "kept":
        table, present = made.input("events", schema=columns), made.input("keys", schema={"k": int}, key=["k"])
        summed = table.index_with("k").aggregate(amount="CAST(coalesce(sum(amount), 0) AS BIGINT)")
        made.output("sums", summed.index_with("k").semijoin(present.index_with("k")))
        return made
    events = made.stream("events", schema=columns)
    if case == "accumulator":
        made.output("sums", events.index_with("k").stream_aggregate(total, init=0, schema={"amount": int}))
        return made
    keys = made.input("keys", schema={"k": int}, key=["k"])

    @made.feedback("sums", schema=columns)
    def sums(before: deltic.Stream) -> deltic.Stream:
        folded = events.current().plus(before).index_with("k").aggregate(amount="CAST(coalesce(sum(amount), 0) AS BIGINT)")
        return folded.index_with("k").semijoin(keys.index_with("k"))

    made.output("sums", sums)
    return made


def run(case: str, rows: int) -> dict[str, Any]:
    """The figures of one case."""
    kernels.warm_up()
    ticks, feed = rows // TICK, Feed(rows // TICK)
    marks: dict[str, dict[str, float]] = {}
    with deltic.Session() as session:
        session.install(circuit(case))
        spent = 0.0
        for number, (events, new, gone) in enumerate(feed, 1):
            changes = _changes(case, events, new, gone)
            start = time.perf_counter()
            session.apply(changes)
            spent += time.perf_counter() - start
            if number in (ticks // 10, ticks):
                state = sum(count for count, _ in session._runtime.statistics().values())
                marks[f"{number * TICK}"] = {"state_rows": state, "peak_mb": round(harness.process_peak_mb(), 1)}
                harness.progress(f"{case}: {number * TICK:,} rows, {marks[f'{number * TICK}']}")
        view = session.view("sums").to_arrow()
        found = {k: amount for k, amount in zip(view["k"].to_pylist(), view["amount"].to_pylist(), strict=True) if amount}
        return {"rows_per_s": round(rows / spent), "after": marks, "correct": found == feed.expected()}


def run_case(case: str, rows: int, count: int) -> dict[str, Any]:
    """The figures of a case of either kind."""
    if case in FOLDS:
        return run(case, rows)
    kernels.warm_up()
    marks = (count // 100, count)
    if case == "transactions_in_memory":
        return transactions.run(marks, None)
    with tempfile.TemporaryDirectory() as folder:
        return transactions.run(marks, Path(folder))


def _changes(case: str, events: pa.Table, new: Ints, gone: Ints) -> dict[str, pa.Table]:
    if case == "accumulator":
        ends = pa.table({"k": gone, "amount": np.full(len(gone), LAST)})
        events = pa.concat_tables([events, ends])
        return {"events": events.append_column("_weight", pa.array(np.ones(len(events), np.int64)))}
    weights = np.concatenate((np.ones(len(new), np.int64), np.full(len(gone), -1)))
    keys = pa.table({"k": np.concatenate((new, gone)), "_weight": weights})
    return {"events": events.append_column("_weight", pa.array(np.ones(len(events), np.int64))), "keys": keys}


def main() -> None:
    options = _options()
    if options.case is not None:
        print(json.dumps(run_case(options.case, options.rows, options.transactions)))
        return
    cases = {}
    for case in options.cases:
        command = [sys.executable, "-m", "benchmarks.streams", "--case", case, "--rows", str(options.rows)]
        command += ["--transactions", str(options.transactions)]
        cases[case] = harness.run(command, 4 * 3600)
        harness.progress(f"{case}: {cases[case]}")
    correct = all(figures.get("correct") for figures in cases.values())
    harness.emit(
        {
            "benchmark": "streams",
            "engine": "deltic",
            "params": {"rows": options.rows, "transactions": options.transactions},
            "cases": cases,
            "correct": correct,
        }
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, a hundredth of the transactions")
    options = parser.parse_args()
    if options.quick:
        options.rows //= 10
        options.transactions //= 100
    return options


if __name__ == "__main__":
    main()
