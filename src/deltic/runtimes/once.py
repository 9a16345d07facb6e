"""A dataflow that is run once over whole relations, in this process, and keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from deltic.circuit.nodes import Dataflow, Node
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.order import Sort, SortFirst
from deltic.circuit.operators.top_k import TopKOperator
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
    result = run_level(_with_first_rows(circuit), None, 0, 1, state, strings, {}, tick)
    if result.failure is not None:
        raise result.failure.error()
    spec = circuit.arrangements[circuit.views[view]]
    content = result.appended.get(spec.id)
    return consolidate(Rows.empty(spec.columns, spec.weights)) if content is None else content


def _with_first_rows(circuit: Dataflow) -> Dataflow:
    """The dataflow, whose sorts for a top-k leave out rows after the first ones: these are needed only where the result may change."""
    operators = {node.id: first for node in circuit.whole.nodes if (first := _first(node, circuit)) is not None}
    if not operators:
        return circuit
    nodes = tuple(replace(node, operator=operators.get(node.id, node.operator)) for node in circuit.whole.nodes)
    return replace(circuit, whole=replace(circuit.whole, nodes=nodes))


def _first(node: Node, circuit: Dataflow) -> SortFirst | None:
    """What the node becomes if it sorts rows of which all readers want some first ones."""
    if not isinstance(node.operator, Sort) or not node.operator.constant:
        return None
    arranged = [reader for reader in circuit.whole.nodes if node.id in reader.inputs]
    ids, kept = {reader.id for reader in arranged}, {reader.owns for reader in arranged if isinstance(reader.operator, Arrange)}
    readers = [reader.operator for reader in circuit.whole.nodes if ids.intersection(reader.inputs) or kept.intersection(reader.reads)]
    limits = [reader.limit for reader in readers if isinstance(reader, TopKOperator)]
    return SortFirst(node.operator, max(limits)) if len(kept) == len(ids) and limits and len(limits) == len(readers) else None


def _whole(spines: Sequence[Spine]) -> Spine:
    return spines[0] if len(spines) == 1 else Spine.of(merge([spine.scan(Counters()) for spine in spines]))
