"""A dataflow that is run once over whole relations, in this process, and keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltic.circuit.nodes import Dataflow
from deltic.circuit.stage import run_level
from deltic.runtimes.program import Notes, backfill
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable


def content_of(
    circuit: Dataflow, view: str, tables: Mapping[str, Sequence[Spine]], strings: StringTable, epoch: int, notes: Notes
) -> Batch:
    """The content of a view of a dataflow for one shard: what its backfill would append. Raises the first of the users' errors.

    tables: of each table its content, a spine for each shard. epoch, notes: of the commit that these are of.
    """
    state = {circuit.tables[name]: _whole(spines) for name, spines in tables.items()}
    tick = backfill(epoch, notes, {}, frozenset(circuit.arrangements))
    result = run_level(circuit, None, 0, 1, state, strings, {}, tick)
    if result.failure is not None:
        raise result.failure.error()
    spec = circuit.arrangements[circuit.views[view]]
    content = result.appended.get(spec.id)
    return consolidate(Rows.empty(spec.columns, spec.weights)) if content is None else content


def _whole(spines: Sequence[Spine]) -> Spine:
    return spines[0] if len(spines) == 1 else Spine.of(merge([spine.scan(Counters()) for spine in spines]))
