"""Inner joins by ranges: rows are looked up by equal keys and by the order of a value.

A side with points is arranged by its keys and the point, one with intervals by its keys and their cells. Rows with a NULL among these
match nothing and are not stored. A value whose computation fails is stored as unbounded: it matches, and the condition, which is then
evaluated on the match, raises the error.

Rows are on the shard of their keys. Without keys the rows of one side are divided among the shards, and every shard has all rows of the
other side, so each match is found once: on the shard of the divided side's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.interval_rows import LEAST, MOST, IntervalRows, RangeRows, Value
from deltic.circuit.operators.range_join import Containment, RangeJoin, Thresholds
from deltic.expr.failing import can_fail
from deltic.expr.functions.attempts import attempt
from deltic.expr.nodes import Call, Expr, columns_of
from deltic.lowering.keys import unique_key
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import ZERO, Arranged, Streams, none_is_null
from deltic.plan.columns import columns_of_all, conjunction, is_not_null, named_columns, normalized, reference, remap
from deltic.plan.divided_joins import is_divided
from deltic.plan.nodes import Join, Plan, Project, Values
from deltic.plan.ranges import Range, RangeBound, overlap_of, range_of
from deltic.schema import BIGINT, BOOLEAN, Field, Schema
from deltic.trace.encoding import words_of


@dataclass(frozen=True, slots=True)
class _Side:
    """An arranged side. payload: for each field of the result that it has, its words there, and whether it can be NULL there."""

    arranged: Arranged
    payload: dict[int, tuple[tuple[int, ...], bool]]


Placing = OneOf["by key", "home", "spread", "everywhere"]
"""The shards of a side's rows."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a side before they are arranged: the keys, the values to compare, then the payload.

    values: the values. payload: for each column that is read, its field.
    """

    stream: int
    keys: int
    values: tuple[Value, ...]
    payload: dict[int, int]


def lower_range_join(lowering: PlanLowering, plan: Join, project: Project | None = None) -> int | None:
    """The join, or a projection of it; None if it has no range.

    In a recursion None also if it has keys, or a side of at most one row: there are few pairs, and kernels compare them.
    """
    by = range_of(plan) if plan.kind == "inner" and not is_divided(plan) else None
    if by is None or (lowering.scoped and (plan.keys or _has_one_row(plan.left) or _has_one_row(plan.right))):
        return None
    parts = overlap_of(plan)
    if parts is not None:
        return lowering.streams.plus([lowering.relation(part if project is None else replace(project, input=part)) for part in parts])
    own = named_columns(plan.schema)
    columns, schema = (own, plan.schema) if project is None else (project.columns, project.schema)
    exprs = [expr for _, expr in columns]
    read = sorted(columns_of_all([*exprs, *by.rest]))
    stream = _joined(lowering, plan, by, read)
    below = lowering.streams.schema(stream)
    places = {old: new for new, old in enumerate(read)}
    condition = remap(conjunction(by.rest), places, below) if by.rest else None
    return lowering.streams.map(stream, [remap(expr, places, below) for expr in exprs], schema, condition)


def _joined(lowering: PlanLowering, plan: Join, by: Range, read: Sequence[int]) -> int:
    """The matches of the keys and the range: the columns that are read."""
    streams, width = lowering.streams, len(plan.left.schema)
    keys = plan.keys or ((ZERO, ZERO),)
    placings = _placings(lowering, plan, by)
    sides = []
    for side, (below, placing) in enumerate(zip((plan.left, plan.right), placings, strict=True)):
        own = [i - side * width for i in read if (i >= width) == bool(side)]
        sides.append(_side(lowering, below, [key[side] for key in keys], by, side, own, placing))
    left, right = sides
    fields, output = [], []
    for i in read:
        side = int(i >= width)
        words, can_be_null = sides[side].payload[i - side * width]
        fields.append(replace(plan.schema[i], nullable=can_be_null))
        output += [(side, word) for word in words]
    form: Containment | Thresholds = Containment(by.side) if by.is_interval else _thresholds(by)
    a, b = left.arranged, right.arranged
    spread = placings.index("spread") if "spread" in placings else None
    hashed = () if lowering.scoped else sides[spread or 0].arranged.partition
    assert hashed is not None
    divided = None if spread is None or streams.single else (spread, hashed)
    operator = RangeJoin(a.id, b.id, a.key, (a.width, b.width), form, tuple(output), divided)
    partition = _partition(hashed, spread, output)
    node = streams.builder.add(operator, (a.node, b.node), Shape(Schema(tuple(fields))), partition, reads=(a.id, b.id))
    return streams.conform(node, Schema(tuple(plan.schema[i] for i in read)))


def _thresholds(by: Range) -> Thresholds:
    bound = by.low or by.high
    assert bound is not None
    lesser = by.side if by.low is None else 1 - by.side
    return Thresholds(lesser, bound.strict, words_of(by.point.type, False))


def _partition(partition: tuple[int, ...], side: int | None, output: Sequence[tuple[int, int]]) -> tuple[int, ...] | None:
    """The places in the result of the words by which a side is partitioned; None if one is not there. side: None if they are the key's."""
    places = {word: place for place, (of, word) in reversed(list(enumerate(output))) if side in (None, of)}
    return tuple(places[word] for word in partition) if all(word in places for word in partition) else None


def _placings(lowering: PlanLowering, plan: Join, by: Range) -> tuple[Placing, Placing]:
    """The placing of each side. Without keys, every shard has the side of at most one row; else that of a relation, if the other is a
    stream; else the intervals, or the right side. This follows from the plan alone, so that a state does not depend on its rows.
    """
    if plan.keys:
        return "by key", "by key"
    if lowering.scoped:
        return "home", "home"  # where the scope is, or on every shard if it is spread
    sides = plan.left, plan.right
    few = [_has_one_row(side) for side in sides]
    if all(few):
        return "home", "home"
    kept = [not lowering.streams.builder.nodes[lowering.relation(side)].stream for side in sides]
    right = few[1] if any(few) else kept[1] if kept[0] != kept[1] else by.side == 0 or not by.is_interval
    return ("spread", "everywhere") if right else ("everywhere", "spread")


def _has_one_row(plan: Plan) -> bool:
    """Whether it has at most one row, whatever the tables have."""
    return unique_key(plan) == () or (isinstance(plan, Values) and len(plan.rows) < 2)


def _side(lowering: PlanLowering, plan: Plan, keys: Sequence[Expr], by: Range, side: int, read: Sequence[int], placing: Placing) -> _Side:
    streams = lowering.streams
    low, high = by.low, by.high
    if side == by.side:
        values = [(RangeBound(by.point, False), LEAST if low is None else MOST)]
    else:
        values = [(bound, extreme) for bound, extreme in ((low, LEAST), (high, MOST)) if bound is not None]
    rows = _rows(lowering, plan, keys, values, read)
    stream, fields = _laid_out(lowering, rows, (low, high) if len(values) > 1 else None)
    key = streams.shape(stream).layout.slices[rows.keys - 1].stop
    arranged = streams.arrange(_placed(streams, stream, key, placing), rows.keys)
    schema = streams.schema(stream)
    return _Side(arranged, {i: (arranged.fields[fields[place]], schema[fields[place]].nullable) for i, place in rows.payload.items()})


def _placed(streams: Streams, stream: int, key: int, placing: Placing) -> int:
    """key: the number of words of the key."""
    match placing:
        case "by key":
            return streams.exchange(stream, tuple(range(key)))
        case "home":
            return streams.exchange(stream, ())
        case "everywhere":
            return streams.broadcast(stream)
        case "spread":
            return stream if streams.partition(stream) else streams.exchange(stream, tuple(range(streams.shape(stream).layout.width)))


def _rows(lowering: PlanLowering, plan: Plan, keys: Sequence[Expr], values: Sequence[tuple[RangeBound, int]], read: Sequence[int]) -> _Rows:
    """values: with the word of each where its computation fails, or where it is no bound."""
    streams, stream = lowering.streams, lowering.relation(plan)
    points = len(values) == 1
    tried = [attempt(normalized(value.expr)) if can_fail(value.expr) else normalized(value.expr) for value, _ in values]
    endless = [value.open or can_fail(value.expr) for value, _ in values]
    first = [*map(normalized, keys), *tried]
    payload, extra = dict[int, int](), list[Expr]()
    for i in read:
        column = reference(plan.schema, i)
        if column in first[: len(keys) + (points and not endless[0])]:
            payload[i] = first.index(column)
        else:
            payload[i] = len(first) + len(extra)
            extra.append(column)
    present = [none_is_null([*keys, *(value.expr for (value, _), null in zip(values, endless, strict=True) if not null)])]
    failing = [(value.expr, expr) for (value, _), expr in zip(values, tried, strict=True) if can_fail(value.expr) and not value.open]
    present += [_is_present(expr, value, plan.schema) for expr, value in failing]
    conditions = [condition for condition in present if condition is not None]
    fields = [Field(f"k{i}", key.type, False) for i, key in enumerate(keys)]
    fields += [Field(f"v{i}", expr.type, null) for i, (expr, null) in enumerate(zip(tried, endless, strict=True))]
    fields += [Field(f"p{i}", expr.type, expr.nullable) for i, expr in enumerate(extra)]
    mapped = streams.map(stream, [*first, *extra], Schema(tuple(fields)), conjunction(conditions) if conditions else None)
    slices = streams.shape(mapped).layout.slices
    laid = tuple(
        _value(slices[len(keys) + i], field, extreme)
        for i, (field, (_, extreme)) in enumerate(zip(fields[len(keys) : len(first)], values, strict=True))
    )
    return _Rows(mapped, len(keys), laid, payload)


def _is_present(expr: Expr, value: Expr, schema: Schema) -> Expr | None:
    """Whether the value is not NULL, or would not be if it did not fail. value: the expression, NULL where it fails."""
    complete = none_is_null([reference(schema, i) for i in sorted(columns_of(expr))])
    return None if complete is None else Call("or", (is_not_null(value), complete), BOOLEAN, False)


def _value(words: slice, field: Field, extreme: int) -> Value:
    flagged = words_of(field.type, field.nullable) > words_of(field.type, False)
    return Value(words.start, words_of(field.type, False), flagged, extreme if field.nullable else None)


def _laid_out(
    lowering: PlanLowering, rows: _Rows, bounds: tuple[RangeBound | None, RangeBound | None] | None
) -> tuple[int, tuple[int, ...]]:
    """(the stream as it is arranged, the place there of each field). bounds: of intervals."""
    streams = lowering.streams
    schema, slices = streams.schema(rows.stream), streams.shape(rows.stream).layout.slices
    count = rows.keys + len(rows.values)
    keys, values, payload = schema.fields[: rows.keys], schema.fields[rows.keys : count], schema.fields[count:]
    key = slices[rows.keys - 1].stop
    more = tuple(word for place in slices[count:] for word in range(place.start, place.stop))
    ends = [replace(value, nullable=False) for value in values]
    if bounds is not None:
        low, high = bounds
        assert low is not None and high is not None
        cell = Field("cell", BIGINT, False), Field("end", BIGINT, False)
        shape = Shape(Schema((*keys, *cell, *ends, *payload)))
        operator = IntervalRows(key, rows.values[0], rows.values[1], (low.strict, high.strict), more)
        stream = streams.laid_out(rows.stream, operator, shape)
        return stream, (*range(rows.keys), -1, -1, *range(count + 2, len(shape.schema)))
    if all(value.unbounded is None for value in rows.values):
        return rows.stream, tuple(range(len(schema)))
    shape = Shape(Schema((*keys, *ends, *payload)))
    stream = streams.laid_out(rows.stream, RangeRows((*range(key), *rows.values, *more)), shape)
    return stream, (*range(rows.keys), -1, *range(count, len(schema)))
