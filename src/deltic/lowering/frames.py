"""Aggregates over frames: the sums of each frame are those of a group, which the aggregates of GROUP BY read.

The sums of each key, which is the terms of the order or the whole row, are kept in a skip list, from which those of its frame follow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltic.aggregates.definition import First, Linear, Measure
from deltic.circuit.extremes import Extreme
from deltic.circuit.key_frames import EdgeKind
from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.extreme_levels import ExtremeLevels
from deltic.circuit.operators.frame_extremes import FrameExtremes
from deltic.circuit.operators.frame_sums import FrameSums
from deltic.circuit.operators.linear import Place
from deltic.circuit.operators.number_copies import NumberCopies
from deltic.circuit.operators.order import Sort
from deltic.circuit.operators.row_frame_sums import RowFrameSums
from deltic.circuit.operators.skip_list import SkipListOperator
from deltic.circuit.terms import Term
from deltic.expr import Expr, Literal, cast
from deltic.expr.nodes import TRUE
from deltic.lowering.aggregates import Grouping
from deltic.lowering.joins import joined
from deltic.lowering.keys import unique_key
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import Arranged
from deltic.lowering.window_rows import SortedRows, by_partition, side_of, sorted_rows
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import map_columns, reference
from deltic.plan.nodes import Plan, Reference
from deltic.plan.window_nodes import Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT, Field, Schema

MARK: Final = -1
"""The slot of the entries by which the keys of digits are found."""


def is_kept(call: WindowCall) -> bool:
    """Whether the call is an aggregate over a frame that is kept by sums or first rows of parts of it."""
    aggregate, edges = call.aggregate, (call.frame.start, call.frame.end)
    if aggregate is None or aggregate.user is not None:
        return False
    if not isinstance(aggregate.definition.state, First) and (aggregate.distinct or not isinstance(aggregate.definition.state, Linear)):
        return False
    return all(edge.kind == "rows" for edge in edges) or not any(edge.kind == "rows" and edge.rows for edge in edges)


def is_by_rows(frame: WindowFrame) -> bool:
    return "rows" in (frame.start.kind, frame.end.kind)


def without_equal_rows(lowering: PlanLowering, plan: Plan) -> Plan:
    """The plan, with the number of the copy as a further column if rows may be equal."""
    if unique_key(plan) is not None:
        return plan
    streams = lowering.streams
    rows = lowering.relation(plan)
    width = streams.shape(rows).layout.width
    gathered = streams.gather(rows, width) if width else streams.exchange(rows, ())
    arranged = streams.arrange(gathered, len(plan.schema))
    schema = Schema((*plan.schema, Field("copy", BIGINT, False)))
    node = streams.builder.add(NumberCopies(arranged.id, width), (arranged.node,), Shape(schema), arranged.partition, reads=(arranged.id,))
    return _leaf(lowering, node, "copies")


def _leaf(lowering: PlanLowering, stream: int, role: str) -> Reference:
    """A plan that denotes the stream."""
    leaf = Reference(f"{role} of {lowering.streams.builder.fingerprint(stream)}", lowering.streams.schema(stream))
    assert lowering.once(leaf, lambda: stream) == stream
    return leaf


def lower_frames(lowering: PlanLowering, plan: Window) -> int:
    """The rows with the aggregates of their frames. All calls have one frame."""
    frame = plan.calls[0][1].frame
    if is_by_rows(frame):
        return _of_rows(lowering, plan)
    return _of_keys(lowering, plan)


def _of_rows(lowering: PlanLowering, plan: Window) -> int:
    """Frames that start or end at the row itself."""
    streams, width = lowering.streams, len(plan.input.schema)
    plan = replace(plan, input=without_equal_rows(lowering, plan.input))
    values = _arguments(plan)
    rows = sorted_rows(lowering, plan, whole=True, values=values)
    first = len(streams.schema(rows.stream)) - len(values)
    results = _grouped(lowering, plan, rows, {value: first + i for i, value in enumerate(values)}, None)
    own = streams.shape(results).layout
    fields = (*plan.input.schema.fields[:width], *plan.schema.fields[len(plan.input.schema) :])
    picked = [word for words in rows.row[:width] for word in words]
    shape = Shape(Schema(fields))
    parts = (*picked, *range(own.slices[rows.width].start, own.width))
    return streams.builder.add(Sort(parts), (results,), shape, None if plan.keys else streams.partition(results))


def _of_keys(lowering: PlanLowering, plan: Window) -> int:
    """Frames that start and end at peers, or at values of the only term of the order."""
    frame, schema = plan.calls[0][1].frame, plan.input.schema
    limits = [edge.limit for edge in (frame.start, frame.end) if edge.limit is not None]
    if limits:
        (term,) = plan.order
        own = replace(term, expr=cast(term.expr, limits[0].type))
        assert all(limit.type == limits[0].type and limit.nullable == own.expr.nullable for limit in limits)
        plan = replace(plan, order=(own,))
    rows = sorted_rows(lowering, plan, whole=False)
    held = by_partition(lowering, rows.stream, bool(plan.keys), rows.width, rows.key)
    places = {value: _over_row(value, rows.width) for value in _arguments(plan)}
    results = _grouped(lowering, plan, rows, places, _frames(lowering, plan, frame))
    right = by_partition(lowering, results, bool(plan.keys), rows.width, rows.key)
    order = [*((0, i) for i in range(len(schema))), *((1, i) for i in range(len(plan.calls)))]
    sides = [side_of(lowering, arrangement, rows.width) for arrangement in (held, right)]
    return joined(lowering, sides[0], sides[1], order, plan.schema)


def _over_row(value: Expr, width: int) -> Expr:
    """The expression over rows that follow `width` fields."""
    return map_columns(value, lambda column: replace(column, index=column.index + width))


def _arguments(plan: Window) -> tuple[Expr, ...]:
    """What the aggregates read of a row."""
    calls = [call.aggregate for _, call in plan.calls if call.aggregate is not None]
    values = [value for call in calls for value in (*call.arguments, *([] if call.filter is None else [call.filter]))]
    return tuple(dict.fromkeys(value for value in values if not isinstance(value, Literal)))


def _frames(lowering: PlanLowering, plan: Window, frame: WindowFrame) -> Arranged | None:
    """(partition, end, key, start), where the edges are values of their own; None if they are not."""
    if frame.start.limit is None and frame.end.limit is None:
        return None
    (term,) = plan.order
    edges = [edge.limit for edge in (frame.end, frame.start)]
    before, after = ([] if limit is None else [replace(term, expr=limit)] for limit in edges)
    rows = sorted_rows(lowering, replace(plan, order=(*before, term, *after)), whole=False)
    schema = Schema(lowering.streams.schema(rows.stream).fields[: rows.width])
    streams = lowering.streams
    kept = streams.partition(rows.stream)
    node = streams.builder.add(Sort(tuple(range(rows.width))), (rows.stream,), Shape(schema), kept)
    return by_partition(lowering, node, bool(plan.keys), rows.width, rows.key)


def _grouped(
    lowering: PlanLowering, plan: Window, rows: SortedRows, places: dict[Expr, Expr] | dict[Expr, int], frames: Arranged | None
) -> int:
    """The stream (words of the partition and the key, the aggregates over the key's frame)."""
    leaf = _leaf(lowering, rows.stream, "rows")

    def moved(value: Expr) -> Expr:
        if isinstance(value, Literal):
            return value
        place = places[value]
        return reference(leaf.schema, place) if isinstance(place, int) else place

    calls = []
    for name, call in plan.calls:
        assert call.aggregate is not None
        aggregate = call.aggregate
        filtered = None if aggregate.filter is None else moved(aggregate.filter)
        calls.append((name, replace(aggregate, arguments=tuple(map(moved, aggregate.arguments)), filter=filtered)))
    keys = tuple((f"w{i}", reference(leaf.schema, i)) for i in range(rows.width))
    grouped = Aggregate(leaf, keys, tuple(calls))
    return _FrameGrouping(lowering, grouped, plan, rows, frames).lower()


class _FrameGrouping(Grouping):
    """GROUP BY the keys of a window, with the sums over their frames in place of their own."""

    def __init__(self, lowering: PlanLowering, grouped: Aggregate, plan: Window, rows: SortedRows, frames: Arranged | None) -> None:
        super().__init__(lowering, grouped)
        self.window, self.rows, self.frames = plan, rows, frames
        self.reverse: Arranged | None = None

    def _counted(self, call: AggregateCall) -> Measure | None:
        """A count of its own for each call: weight 0 is that of keys, whose frames may be empty."""
        return super()._counted(call) or Measure("count", TRUE)

    def _arranged(self, stream: int, role: str, number: int = 0) -> Arranged:
        """The sums of the frames, or their first rows, arranged by their keys."""
        frame, is_main = self.window.calls[0][1].frame, role == "sums"
        of_rows = frame.start.kind == frame.end.kind == "rows"
        entries = self._entries(self._marked(stream) if role == "digits" and not of_rows else stream)
        if self.frames is None:
            self.frames = entries
        if is_main and entries.weights == 1:
            summed = entries.node if is_by_rows(frame) else self.lowering.distinct(entries.node)
        elif of_rows:
            summed = self._of_rows(entries, frame, role, number)
        elif role == "extreme":
            summed = self._firsts(entries, frame, self._extreme(entries, number))
        else:
            summed = self._of_ranges(entries, frame, is_main)
        return self.streams.arrange(summed, len(self.keys), role)

    def _extreme(self, entries: Arranged, number: int) -> Extreme:
        """How the first rows of entries are read. number: of the selection."""
        reader = self._reader(self.selections[number], entries.id)
        assert isinstance(reader, Extreme)
        return reader

    def _firsts(self, entries: Arranged, frame: WindowFrame, extreme: Extreme) -> int:
        """The first rows of frames of keys."""
        streams, builder, frames = self.streams, self.streams.builder, self.frames
        assert frames is not None
        key, order, fields = self.rows.key, self.rows.width - self.rows.key, streams.schema(entries.node).fields
        memory = builder.name("levels", extreme.terms, streams.fingerprint(entries))
        levels = ExtremeLevels(extreme, memory, key, order)
        shape = Shape(Schema((*fields[:key], Field("level", BIGINT, False), *fields[key:])))
        heads = builder.add(levels, (entries.node,), shape, entries.partition, owns=memory, reads=(entries.id,))
        streams.specify_memory(memory, heads, key + 1)
        start, end = _edge_kind(frame.start), _edge_kind(frame.end)
        name = builder.name("firsts", start, end, memory, streams.fingerprint(frames))
        texts = tuple((text - key, descends) for text, descends in self.rows.texts)
        operator = FrameExtremes(
            memory, frames.id, name, key, order, extreme.width, frames.weights, start, end, texts, tuple(extreme.texts.items())
        )
        inputs, reads = (heads, frames.node), (memory, frames.id)
        node = builder.add(operator, inputs, Shape(streams.schema(entries.node)), entries.partition, owns=name, reads=reads)
        own = streams.schema(frames.node).fields[: operator.layout.width]
        if operator.is_backward:
            own = (*own[:key], *[Field("w", BIGINT, False)] * (len(own) - key))
        firsts = (replace(field, nullable=field.type.has_bytes) for field in fields[self.rows.width :])
        remembered = Schema((*own, Field("present", BIGINT, False), *firsts))
        builder.specify(ArrangementSpec(name, Shape(remembered), builder.nodes[node].level, len(own)))
        return node

    def _of_ranges(self, entries: Arranged, frame: WindowFrame, is_main: bool) -> int:
        """The sums of frames of keys."""
        streams, builder = self.streams, self.streams.builder
        key, order = self.rows.key, self.rows.width - self.rows.key
        frames = self.frames
        assert frames is not None
        memory = builder.name("levels", streams.fingerprint(entries))
        levels = SkipListOperator(entries.id, memory, key, order, () if is_main else (MARK, 0), entries.weights)
        own = streams.schema(entries.node).fields
        shape = Shape(Schema((*own[:key], Field("level", BIGINT, False), *own[key:])), entries.weights)
        heads = builder.add(levels, (entries.node,), shape, entries.partition, owns=memory, reads=(entries.id,))
        streams.specify_memory(memory, heads, key + 1)
        first, last = _edge_kind(frame.start), _edge_kind(frame.end)
        texts = tuple((text - key, descends) for text, descends in self.rows.texts)
        more = entries.width - self.rows.width
        operator = FrameSums(entries.id, memory, frames.id, key, order, more, entries.weights, frames.weights, first, last, texts, is_main)
        shown = Shape(streams.schema(entries.node), entries.weights - (not is_main))
        inputs = (entries.node, heads, frames.node)
        return builder.add(operator, inputs, shown, entries.partition, reads=(entries.id, memory, frames.id))

    def _of_rows(self, entries: Arranged, frame: WindowFrame, role: str, number: int) -> int:
        """The sums of frames of rows, whose positions are those in the sums of single rows."""
        streams, builder = self.streams, self.streams.builder
        key, width = self.rows.key, self.rows.width
        self.reverse = self.reverse or self._reversed()
        rows, reverse = self.frames, self.reverse
        assert rows is not None
        firsts = tuple(self._extreme(entries, number).texts.items()) if role == "extreme" else None
        operator = RowFrameSums(
            entries.id, rows.id, reverse.id, key, width, entries.width - width, entries.weights, rows.weights,
            frame.start.rows, frame.end.rows, role == "sums", firsts, self.rows.texts,
        )  # fmt: skip
        inputs, reads = (entries.node, rows.node, reverse.node), tuple(dict.fromkeys((entries.id, rows.id, reverse.id)))
        return builder.add(operator, inputs, streams.shape(entries.node), entries.partition, reads=reads)

    def _reversed(self) -> Arranged:
        """The rows with the words of their order inverted."""
        streams, key, width = self.streams, self.rows.key, self.rows.width
        rows = self.lowering.relation(self.plan.input)
        word = Field("w", BIGINT, False)
        parts = (*range(key), *(Term(i, word, descending=True) for i in range(key, width)))
        node = streams.builder.add(Sort(parts), (rows,), Shape(Schema((word,) * width)), streams.partition(rows))
        return by_partition(self.lowering, node, bool(self.window.keys), key, key)

    def _entries(self, stream: int) -> Arranged:
        """The sums of the keys, arranged by partition."""
        return by_partition(self.lowering, stream, bool(self.window.keys), self.rows.key, self.rows.key)

    def _marked(self, digits: int) -> int:
        """Digits as the second of two weights, and for each key an entry with the number of its rows as the first."""
        streams, builder = self.streams, self.streams.builder
        shape = Shape(streams.schema(digits), 2)
        own = [reference(self.plan.input.schema, i) for i in range(len(self.keys))]
        mark: list[Expr] = [Literal(MARK, BIGINT), Literal(0, BIGINT)]
        marks = streams.map(self.lowering.relation(self.plan.input), [*own, *mark], streams.schema(digits))
        placed = [builder.add(Place((place,), 2), (each,), shape, streams.partition(each)) for each, place in ((marks, 0), (digits, 1))]
        return streams.plus(placed)


def _edge_kind(edge: Edge) -> EdgeKind:
    if edge.kind == "unbounded":
        return "unbounded"
    return "limit" if edge.kind == "range" else "own"
