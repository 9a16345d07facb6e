"""Aggregates over frames: the sums of each frame are those of a group, which the aggregates of GROUP BY read.

The sums of each key, which is the terms of the order or the whole row, are kept in a skip list, from which those of its frame follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from deltic.aggregates.definition import First, Linear, Measure
from deltic.circuit.extremes import Extreme, null_words
from deltic.circuit.key_frames import EdgeKind
from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.extreme_levels import ExtremeLevels
from deltic.circuit.operators.frame_extremes import FrameExtremes
from deltic.circuit.operators.frame_sums import FrameSums
from deltic.circuit.operators.linear import Place
from deltic.circuit.operators.number_copies import NumberCopies
from deltic.circuit.operators.order import Sort
from deltic.circuit.operators.row_frame_sums import FrameKind, RowFrameSums
from deltic.circuit.operators.skip_list import SkipListOperator
from deltic.circuit.terms import Term
from deltic.expr import Expr, Literal, cast
from deltic.expr.nodes import TRUE, Case
from deltic.lowering.aggregates import Grouping
from deltic.lowering.joins import joined
from deltic.lowering.keys import unique_key
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import Arranged
from deltic.lowering.window_rows import SortedRows, by_partition, side_of, sorted_rows
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import reference, shift
from deltic.plan.guarded_arguments import with_guarded_arguments
from deltic.plan.nodes import Plan, Reference
from deltic.plan.window_nodes import Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT, Field, Schema

MARK: Final = -1
"""The slot of the entries by which the keys of digits are found."""


def is_by_parts(call: WindowCall) -> bool:
    """Whether the call is an aggregate that is kept by sums or first rows of parts of its frame."""
    aggregate = call.aggregate
    if aggregate is None or aggregate.user is not None:
        return False
    return isinstance(aggregate.definition.state, First) or (not aggregate.distinct and isinstance(aggregate.definition.state, Linear))


def is_range(frame: WindowFrame) -> bool:
    """Whether the frame is a range of keys, or of a number of rows."""
    edges = (frame.start, frame.end)
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
    return leaf_of(lowering, node, "copies")


def leaf_of(lowering: PlanLowering, stream: int, role: str) -> Reference:
    """A plan that denotes the stream."""
    leaf = Reference(f"{role} of {lowering.streams.builder.fingerprint(stream)}", lowering.streams.schema(stream))
    assert lowering.once(leaf, lambda: stream) == stream
    return leaf


Places = Mapping[Expr, Expr]
"""Arguments as expressions over sorted rows."""
Grouped = Callable[[PlanLowering, Window, SortedRows, Places, Arranged | None], int]


def lower_frames(lowering: PlanLowering, plan: Window, grouped: Grouped) -> int:
    """The rows with the aggregates of their frames. All calls have one frame.

    grouped: the stream (words of the partition and the key, the aggregates over the key's frame); the last argument: frames with limits.
    """
    plan = with_guarded_arguments(plan)
    if is_by_rows(plan.calls[0][1].frame):
        return _of_rows(lowering, plan, grouped)
    return _of_keys(lowering, plan, grouped)


def _of_rows(lowering: PlanLowering, plan: Window, grouped: Grouped) -> int:
    """Frames that start or end at the row itself."""
    width = len(plan.input.schema)
    plan = replace(plan, input=without_equal_rows(lowering, plan.input))
    values = _arguments(plan)
    rows = sorted_rows(lowering, plan, whole=True, values=values)
    schema = lowering.streams.schema(rows.stream)
    places = {value: reference(schema, len(schema) - len(values) + i) for i, value in enumerate(values)}
    results = grouped(lowering, plan, rows, places, None)
    return with_rows(lowering, plan, rows, results, width)


def with_rows(lowering: PlanLowering, plan: Window, rows: SortedRows, results: int, columns: int) -> int:
    """The first `columns` columns of the rows with the values of `results`, which has the words of the keys before them."""
    streams, values = lowering.streams, plan.schema.fields[len(plan.input.schema) :]
    if is_by_rows(plan.calls[0][1].frame):
        own = streams.shape(results).layout
        parts = (*(word for words in rows.row[:columns] for word in words), *range(own.slices[rows.width].start, own.width))
        shape = Shape(Schema((*plan.input.schema.fields[:columns], *values)))
        return streams.builder.add(Sort(parts), (results,), shape, None if plan.keys else streams.partition(results))
    held, right = (by_partition(lowering, each, bool(plan.keys), rows.width, rows.key) for each in (rows.stream, results))
    order = [*((0, i) for i in range(columns)), *((1, i) for i in range(len(values)))]
    sides = [side_of(lowering, arrangement, rows.width) for arrangement in (held, right)]
    return joined(lowering, sides[0], sides[1], order, plan.schema)


def _of_keys(lowering: PlanLowering, plan: Window, grouped: Grouped) -> int:
    """Frames that start and end at peers, or at values of the only term of the order."""
    plan = with_terms_of_limits(plan)
    rows = sorted_rows(lowering, plan, whole=False)
    places = {value: shift(value, rows.width) for value in _arguments(plan)}
    results = grouped(lowering, plan, rows, places, frames_of(lowering, plan, plan.calls[0][1].frame))
    return with_rows(lowering, plan, rows, results, len(plan.input.schema))


def with_terms_of_limits(plan: Window) -> Window:
    """The window, ordered by its term in the type of the limits of its frame, all of which can be NULL if one can."""
    frame = plan.calls[0][1].frame
    limits = [edge.limit for edge in (frame.start, frame.end) if edge.limit is not None]
    if not limits:
        return plan
    (term,) = plan.order
    own = cast(term.expr, limits[0].type)
    assert all(limit.type == own.type for limit in limits)
    if len({own.nullable, *(limit.nullable for limit in limits)}) == 1:
        return replace(plan, order=(replace(term, expr=own),))
    edges = (edge if edge.limit is None else replace(edge, limit=_nullable(edge.limit)) for edge in (frame.start, frame.end))
    same = WindowFrame(*edges)
    calls = tuple((name, replace(call, frame=same)) for name, call in plan.calls)
    return replace(plan, order=(replace(term, expr=_nullable(own)),), calls=calls)


def _nullable(expr: Expr) -> Expr:
    """The value as one that can be NULL."""
    return expr if expr.nullable else Case(((TRUE, expr),), Literal(None, expr.type), expr.type, True)


def _arguments(plan: Window) -> tuple[Expr, ...]:
    """What the aggregates read of a row."""
    calls = [call.aggregate for _, call in plan.calls if call.aggregate is not None]
    values = [value for call in calls for value in (*call.arguments, *([] if call.filter is None else [call.filter]))]
    return tuple(dict.fromkeys(value for value in values if not isinstance(value, Literal)))


def frames_of(lowering: PlanLowering, plan: Window, frame: WindowFrame) -> Arranged | None:
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


def summed_frames(lowering: PlanLowering, plan: Window, rows: SortedRows, places: Places, frames: Arranged | None) -> int:
    """The aggregates from sums and first rows of parts of the frames."""
    leaf = leaf_of(lowering, rows.stream, "rows")

    def moved(value: Expr) -> Expr:
        return value if isinstance(value, Literal) else places[value]

    calls = []
    for name, call in plan.calls:
        assert call.aggregate is not None
        aggregate = call.aggregate
        filtered = None if aggregate.filter is None else moved(aggregate.filter)
        calls.append((name, replace(aggregate, arguments=tuple(map(moved, aggregate.arguments)), filter=filtered)))
    keys = tuple((f"w{i}", reference(leaf.schema, i)) for i in range(rows.width))
    grouped = Aggregate(leaf, keys, tuple(calls))
    return _FrameGrouping(lowering, grouped, plan, rows, frames).lower()


def reversed_rows(lowering: PlanLowering, stream: int, rows: SortedRows, *, keyed: bool) -> Arranged:
    """The rows with the words of their order inverted."""
    streams, key, width = lowering.streams, rows.key, rows.width
    word = Field("w", BIGINT, False)
    parts = (*range(key), *(Term(i, word, descending=True) for i in range(key, width)))
    node = streams.builder.add(Sort(parts), (stream,), Shape(Schema((word,) * width)), streams.partition(stream))
    return by_partition(lowering, node, keyed, key, key)


def keys_of(lowering: PlanLowering, plan: Window, rows: SortedRows) -> Arranged:
    """(partition, key) once for each key; for frames by rows the keys are the rows."""
    streams = lowering.streams
    words = Schema(streams.schema(rows.stream).fields[: rows.width])
    stream = streams.builder.add(Sort(tuple(range(rows.width))), (rows.stream,), Shape(words), streams.partition(rows.stream))
    once = stream if is_by_rows(plan.calls[0][1].frame) else lowering.distinct(stream)
    return by_partition(lowering, once, bool(plan.keys), rows.key, rows.key)


def kept_firsts(
    lowering: PlanLowering,
    entries: Arranged,
    frames: Arranged,
    extreme: Extreme,
    rows: SortedRows,
    frame: WindowFrame,
    picked: Field | None = None,
) -> int:
    """(partition, key, first row of the key's frame). entries: the rows of keys. picked: their last field, if it alone is the result."""
    streams, builder = lowering.streams, lowering.streams.builder
    key, order, fields = rows.key, rows.width - rows.key, streams.schema(entries.node).fields
    memory = builder.name("levels", extreme.terms, streams.fingerprint(entries))
    shape = Shape(Schema((*fields[:key], Field("level", BIGINT, False), *fields[key:])))
    levels = ExtremeLevels(extreme, memory, key, order)
    heads = streams.keep(levels, entries, shape, memory, key + 1)
    start, end = edge_kind(frame.start), edge_kind(frame.end)
    name = builder.name("firsts", start, end, memory, streams.fingerprint(frames), picked)
    texts = tuple((text - key, descends) for text, descends in rows.texts)
    firsts = tuple(replace(field, nullable=field.nullable or field.type.has_bytes) for field in fields[rows.width :])
    absent = tuple(int(word) for field in firsts for word in null_words(field))
    words = None if picked is None else len(null_words(picked))
    operator = FrameExtremes(
        memory, frames.id, name, key, order, extreme.width, frames.weights, start, end, texts, tuple(extreme.texts.items()), absent, words
    )
    shown = Schema((*fields[: rows.width], *(fields[rows.width :] if picked is None else (picked,))))
    node = builder.add(operator, (heads, frames.node), Shape(shown), entries.partition, owns=name, reads=(memory, frames.id))
    own = streams.schema(frames.node).fields[: operator.layout.width]
    if operator.is_backward:
        own = (*own[:key], *[Field("w", BIGINT, False)] * (len(own) - key))
    remembered = Schema((*own, Field("present", BIGINT, False), *firsts))
    builder.specify(ArrangementSpec(name, Shape(remembered), builder.nodes[node].level, len(own)))
    return node


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
            summed = self.streams.rows(entries) if is_by_rows(frame) else self.lowering.distinct(entries.node)
        elif of_rows:
            summed = self._of_rows(entries, frame, role, number)
        elif role == "extreme":
            summed = kept_firsts(self.lowering, entries, self.frames, self._extreme(entries, number), self.rows, frame)
        else:
            summed = self._of_ranges(entries, frame, is_main)
        return self.streams.arrange(summed, len(self.keys), role)

    def _extreme(self, entries: Arranged, number: int) -> Extreme:
        """How the first rows of entries are read. number: of the selection."""
        reader = self._reader(self.selections[number], entries.id)
        assert isinstance(reader, Extreme)
        return reader

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
        heads = streams.keep(levels, entries, shape, memory, key + 1)
        first, last = edge_kind(frame.start), edge_kind(frame.end)
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
        self.reverse = self.reverse or reversed_rows(self.lowering, self.rows.stream, self.rows, keyed=bool(self.window.keys))
        rows, reverse = self.frames, self.reverse
        assert rows is not None
        kind: FrameKind = "firsts" if role == "extreme" else "sums"
        texts = tuple(self._extreme(entries, number).texts.items()) if role == "extreme" else ()
        operator = RowFrameSums(
            entries.id, rows.id, reverse.id, key, width, entries.width - width, entries.weights, rows.weights,
            frame.start.rows, frame.end.rows, role == "sums", kind, texts, self.rows.texts,
        )  # fmt: skip
        inputs, reads = (entries.node, rows.node, reverse.node), tuple(dict.fromkeys((entries.id, rows.id, reverse.id)))
        return builder.add(operator, inputs, streams.shape(entries.node), entries.partition, reads=reads)

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


def edge_kind(edge: Edge) -> EdgeKind:
    if edge.kind == "unbounded":
        return "unbounded"
    return "limit" if edge.kind == "range" else "own"
