"""All levels of a tick in this process: each level on each shard; rows that cross levels are passed on without a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operator import Delta, Tick
from deltic.circuit.pending import PendingRows
from deltic.circuit.stage import LARGE_TICK, LevelResult, route, run_level
from deltic.reentrant import ReentrantEvent
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.room import release_idle
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable
from deltic.trace.workers import ALONE, Workers

READ_AS_ONE: Final = 16


class BudgetExceeded(Exception):
    """Levels have done more than their budget allows."""


class Budget:
    """How much levels may do; see `work_of`."""

    def __init__(self, work: int) -> None:
        self._left = work

    def spend(self, counters: Mapping[str, Counters]) -> None:
        """Raises BudgetExceeded."""
        self._left -= work_of(counters)
        if self._left < 0:
            raise BudgetExceeded


def work_of(counters: Mapping[str, Counters]) -> int:
    """The rows that nodes have computed, and as one row every so many that they have read in arrangements, which takes little."""
    return sum(node.rows_out + node.touched // READ_AS_ONE for node in counters.values())


def routed(
    circuit: Dataflow, changes: Mapping[str, PendingRows], shards: int, workers: Workers = ALONE, *, frees: bool = False
) -> list[dict[str, Delta]]:
    """The tables' changes by shard and port; with several shards, copies of them. workers: divide many rows.

    frees: whether large changes leave `changes` as they are read.
    """
    arrived: list[dict[str, Delta]] = [{} for _ in range(shards)]
    for table, pending in changes.items():
        rows = pending.rows
        if freed := frees and rows.length > LARGE_TICK:
            pending.free()
        if shards == 1:
            arrived[0][f"table:{table}"] = rows
            continue
        parts = route(rows, circuit.routes[table], shards, workers, moves=freed and pending.owned)
        for inbox, part in zip(arrived, parts, strict=True):
            inbox[f"table:{table}"] = part
    return arrived


def run_levels(
    circuit: Dataflow,
    state: Sequence[Mapping[str, Spine]],
    strings: StringTable,
    arrived: list[dict[str, Delta]],
    tick: Tick,
    workers: Workers = ALONE,
    budget: Budget | None = None,
) -> tuple[list[dict[str, Batch]], list[Mapping[str, Counters]]]:
    """(by shard the batch to append to each arrangement, by shard the counters of each node), or raises the first of the users' errors by
    rank.

    state: the arrangements of each shard. arrived: by shard and port; rows that cross levels are added to it. With one shard the whole
    circuit runs as one level. workers: compute the shards of a large tick, or of a backfill; of a single shard its operators; and parts of
    what turns out to be much work.
    budget: is checked after each level of each shard; raises BudgetExceeded.
    """
    release_idle()
    shards = len(state)
    ordinary = tick.fresh is None
    if circuit.rests and ordinary and not tick.amends and not _rows(arrived):
        return [{} for _ in range(shards)], [{} for _ in range(shards)]
    if shards == 1:
        whole = run_level(circuit, None, 0, 1, state[0], strings, arrived[0], tick, native=True, workers=workers)
        if whole.failure is not None:
            raise whole.failure.error()
        if budget is not None:
            budget.spend(whole.counters)
        return [whole.appended], [whole.counters]
    divided = not ordinary or workers.divides(_rows(arrived))
    across, within = (workers, ALONE) if divided else (ALONE, workers)
    appended: list[dict[str, Batch]] = [{} for _ in range(shards)]
    counters: list[Mapping[str, Counters]] = [{}] * shards
    for level in range(len(circuit.levels)):

        def run(shard: int, stop: ReentrantEvent, level: int = level) -> LevelResult:
            own = state[shard], strings, arrived[shard]
            result = run_level(circuit, level, shard, shards, *own, tick, native=True, stop=stop, workers=within)
            if budget is not None:
                budget.spend(result.counters)
            return result

        results = across.map(run, range(shards))
        failures = [r.failure for r in results if r.failure is not None]
        if failures:
            raise min(failures, key=lambda f: f.rank).error()
        for shard, result in enumerate(results):
            appended[shard].update(result.appended)
            counters[shard] = {**counters[shard], **result.counters} if counters[shard] else result.counters
        _deliver(results, arrived)
    return appended, counters


def _rows(arrived: Sequence[Mapping[str, Delta]]) -> int:
    return sum([rows.length for inbox in arrived for rows in inbox.values()])


def view_changes(circuit: Dataflow, appended: Sequence[Mapping[str, Batch]]) -> dict[str, Batch]:
    """The change of each view that changed, its shards merged. appended: by shard and arrangement."""
    changes = {}
    if len(appended) == 1:
        batches = appended[0]
        return {view: batch for view, name in circuit.views.items() if (batch := batches.get(name)) is not None and batch.length}
    for view, arrangement in circuit.views.items():
        parts = [batches[arrangement] for batches in appended if arrangement in batches]
        if parts and len(merged := parts[0] if len(parts) == 1 else merge(parts)):
            changes[view] = merged
    return changes


def _deliver(results: list[LevelResult], arrived: list[dict[str, Delta]]) -> None:
    for port in results[0].sent:
        for shard, inbox in enumerate(arrived):
            parts = [part for result in results if len(part := result.sent[port][shard])]
            if parts:
                inbox[port] = parts[0] if len(parts) == 1 else Rows.concat(parts)
