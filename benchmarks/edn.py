"""Live queries in EDN under changes: `python -m benchmarks.edn [--quick] [--no-peers]`.

A social graph of 1,000,000 datoms is loaded into a store with ten queries (benchmarks/social.py): joins, a cyclic one, negation,
aggregates, a recursive rule, the first rows of an order, and a pull. 100 transactions of 100 datoms follow, after each of which the changes
of all results are read. DuckDB computes the ten queries again over the same datoms, with a table for each attribute. All rows of all
results are compared after every tick.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import deltic
from benchmarks import drive, harness, social
from benchmarks.checks import Change
from benchmarks.engine import CHANGE, Answer
from benchmarks.harness import Figures
from deltic import kernels

TIMEOUT_S = 1800.0
DATOMS, TICKS, CHANGES = 1_000_000, 100, 100
QUICK_DATOMS, QUICK_TICKS = 100_000, 10
Read = dict[str, Any]


class Embedded:
    """Deltic in this process, through its public API."""

    def __init__(self) -> None:
        kernels.warm_up()
        self.session = deltic.Session()
        self.store = self.session.edn_store("social", schema=social.SCHEMA)
        self.views = {
            name: self.session.edn(query.edn, name=name, rules=social.RULES if query.rules else None)
            for name, query in social.QUERIES.items()
        }
        self._is_loaded = False

    def prepare(self, *changes: Change) -> Any:
        named = dict(zip(social.ATTRIBUTES, changes, strict=True))
        if not self._is_loaded:
            self._is_loaded = True
            return {f":{name}": _frame(name, change) for name, change in named.items()}
        return [operation for name, change in named.items() for operation in _operations(name, change)]

    def tick(self, prepared: Any) -> Read:
        if isinstance(prepared, dict):
            self.store.load(prepared)
        else:
            self.store.transact(prepared)
        return {name: view.result_changes() if social.QUERIES[name].is_pull else view.changes() for name, view in self.views.items()}

    def answer(self, read: Read) -> Answer:
        return social_answer({name: _rows_of_trees(one) if isinstance(one, list) else columns_of(one) for name, one in read.items()})


def _frame(name: str, change: Change) -> pa.Table:
    """The facts of an attribute that are loaded."""
    _, entities, values = change
    return pa.table({"e": entities, "v": pa.array([f"p{one}" for one in values]) if name == "person/name" else values})


def _operations(name: str, change: Change) -> Iterator[list[Any]]:
    """A transaction's operations. A new value of cardinality one replaces the one before."""
    weights, entities, values = (column.tolist() for column in change)
    added = {entity for weight, entity in zip(weights, entities, strict=True) if weight > 0}
    for weight, entity, value in zip(weights, entities, values, strict=True):
        if weight > 0:
            yield [":db/add", entity, f":{name}", value]
        elif social.ATTRIBUTES[name].is_many or entity not in added:
            yield [":db/retract", entity, f":{name}", value]


def columns_of(rows: pa.Table) -> list[np.ndarray]:
    """The columns of a result as numbers: 7 for p7."""
    return [_numbers(column) for column in rows.columns]


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_string(column.type):
        column = pc.cast(pc.utf8_slice_codeunits(column, 1), pa.int64())
    return np.asarray(column.combine_chunks()).astype(np.int64)


def _rows_of_trees(changes: Sequence[tuple[Any, int]]) -> list[np.ndarray]:
    rows = [(*row, weight) for (tree,), weight in changes for row in social.tree_rows(tree)]
    return [*np.array(rows, np.int64).reshape(-1, social.WIDTH + 1).T]


def social_answer(results: dict[str, list[np.ndarray]]) -> Answer:
    """The results of all queries as one, whose first column is the query's number."""
    parts = []
    for number, (*columns, weights) in enumerate(results.values()):
        zeros = [np.zeros(len(weights), np.int64)] * (social.WIDTH - len(columns))
        parts.append([np.full(len(weights), number), *columns, *zeros, weights])
    *whole, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Answer(whole, weights)


def engine() -> Embedded:
    return Embedded()


def measure(datoms: int, ticks: int, peers: bool) -> Figures:
    """Each engine in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        folder = Path(made)
        feeds = social.Graph(datoms, ticks, CHANGES).feeds()
        drive.write(folder, feeds, [CHANGE] * (ticks + 1), [None] * (ticks + 1))
        loaded, changed = (sum(int(side.sum()) for side in sides) for sides in zip(*map(_sides, feeds.values()), strict=True))
        params = {"datoms": loaded, "queries": len(social.QUERIES), "ticks": ticks, "changes": changed}
        harness.progress(", ".join(f"{key} {value:,}" for key, value in params.items()))
        own: dict[str, Any] = harness.drive("benchmarks.edn", folder, TIMEOUT_S)
        harness.progress(harness.describe("deltic", own))
        peer: dict[str, Any] = harness.drive("benchmarks.peers.duckdb_edn", folder, TIMEOUT_S) if peers else {"absent": "not measured"}
    if "absent" not in peer:
        own["correct"] = peer["correct"] = own.get("sums") == peer["sums"]
        harness.progress(harness.describe("duckdb", peer))
        if "tick_ms" in own:
            own["faster_per_tick"] = round(peer["tick_ms"]["median"] / own["tick_ms"]["median"], 1)
    if "load_s" in own:
        own["loaded_per_s"] = round(loaded / own["load_s"])
    for figure in (own, peer):
        figure.pop("by_kind", None)
        figure.pop("sums", None)
    checked = "by checksums of all rows of all results after every tick with those of duckdb" if peers else "with nothing"
    return {"correct": False, **own, "checked": checked, "params": params, "peers": {"duckdb": peer}}


def _sides(feed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return feed[:, 0] == 0, feed[:, 0] > 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edn", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure DuckDB too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the datoms, ten ticks")
    options = parser.parse_args()
    sizes = (QUICK_DATOMS, QUICK_TICKS) if options.quick else (DATOMS, TICKS)
    harness.emit({"benchmark": "edn", "engine": "deltic", **measure(*sizes, options.peers), "growth": None})


if __name__ == "__main__":
    main()
