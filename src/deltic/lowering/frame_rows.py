"""Aggregates that read all rows of their frames, as MEDIAN or MODE: the entries of each frame are a group of GROUP BY."""

from __future__ import annotations

from dataclasses import replace

from deltic.circuit.operators.frame_entries import FrameEntries
from deltic.circuit.operators.row_frame_sums import RowFrameSums
from deltic.expr import Literal
from deltic.expr.nodes import TRUE
from deltic.lowering.aggregates import Grouping
from deltic.lowering.frames import Places, edge_kind, keys_of, leaf_of, reversed_rows
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import Arranged
from deltic.lowering.window_rows import SortedRows, by_partition
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import conjunction, reference
from deltic.plan.window_nodes import Window
from deltic.schema import BOOLEAN, Field, Schema


def aggregated_rows(lowering: PlanLowering, plan: Window, rows: SortedRows, places: Places, frames: Arranged | None) -> int:
    """The stream (words of the partition and the key, the aggregates over the key's frame). places: arguments, over the sorted rows."""
    streams = lowering.streams
    words = streams.schema(rows.stream).fields[: rows.width]
    values = tuple(Field(f"v{i}", value.type) for i, value in enumerate(places))
    shape = Schema((*words, *values, Field("present", BOOLEAN, False)))
    keys = keys_of(lowering, plan, rows)
    own = [reference(streams.schema(keys.node), i) for i in range(rows.width)]
    empty = streams.map(streams.rows(keys), [*own, *(Literal(None, field.type) for field in values), Literal(False, BOOLEAN)], shape)
    held = _entries(lowering, plan, rows, places, keys, frames or keys)
    columns = [reference(streams.schema(held), i) for i in range(rows.width + len(values))]
    leaf = leaf_of(lowering, streams.plus([empty, streams.map(held, [*columns, TRUE], shape)]), "frames")
    moved = {value: reference(leaf.schema, rows.width + i) for i, value in enumerate(places)}
    present = reference(leaf.schema, len(shape) - 1)

    def over(call: AggregateCall) -> AggregateCall:
        arguments = tuple(moved.get(argument, argument) for argument in call.arguments)
        conditions = [present] if call.filter is None else [present, moved.get(call.filter, call.filter)]
        return replace(call, arguments=arguments, filter=conjunction(conditions))

    calls = tuple((name, over(call.aggregate)) for name, call in plan.calls if call.aggregate is not None)
    groups = Aggregate(leaf, tuple((f"w{i}", reference(leaf.schema, i)) for i in range(rows.width)), calls)
    return _PartitionGrouping(lowering, groups, rows.key if plan.keys else 0).lower()


def _entries(lowering: PlanLowering, plan: Window, rows: SortedRows, places: Places, keys: Arranged, frames: Arranged) -> int:
    """(partition, key, values) → copies, of the entries of each frame."""
    streams, builder, frame = lowering.streams, lowering.streams.builder, plan.calls[0][1].frame
    schema = streams.schema(rows.stream)
    stored = Schema((*schema.fields[: rows.width], *(Field(f"v{i}", value.type) for i, value in enumerate(places))))
    stream = streams.map(rows.stream, [*(reference(schema, i) for i in range(rows.width)), *places.values()], stored)
    entries = by_partition(lowering, stream, bool(plan.keys), rows.key, rows.key)
    more = entries.width - rows.width
    if frame.start.kind == frame.end.kind == "rows":
        reverse = reversed_rows(lowering, rows.stream, rows, keyed=bool(plan.keys))
        start, end = frame.start.rows, frame.end.rows
        near = RowFrameSums(
            entries.id, keys.id, reverse.id, rows.key, rows.width, more, 1, 1, start, end, False, "entries", (), rows.texts
        )  # fmt: skip
        reads = tuple(dict.fromkeys((entries.id, keys.id, reverse.id)))
        return builder.add(near, (entries.node, keys.node, reverse.node), streams.shape(entries.node), entries.partition, reads=reads)
    texts = tuple((text - rows.key, descends) for text, descends in rows.texts)
    operator = FrameEntries(
        entries.id, frames.id, rows.key, rows.width - rows.key, more, frames.weights, edge_kind(frame.start), edge_kind(frame.end), texts
    )
    reads = (entries.id, frames.id)
    return builder.add(operator, (entries.node, frames.node), streams.shape(entries.node), entries.partition, reads=reads)


class _PartitionGrouping(Grouping):
    """GROUP BY the keys of a window, each on the shard of its partition, which has these first words."""

    def __init__(self, lowering: PlanLowering, grouped: Aggregate, words: int) -> None:
        super().__init__(lowering, grouped)
        self.words = words

    def _gathered(self, stream: int) -> int:
        return self.streams.exchange(stream, tuple(range(self.words)))
