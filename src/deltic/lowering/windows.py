"""Window functions: values of whole partitions are joined with their rows; positions are kept in order.

A Window whose calls are of several kinds is lowered as several. percent_rank, cume_dist and ntile follow from positions and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.neighbours import NeighboursOperator, Pick
from deltic.circuit.operators.order import Sort
from deltic.circuit.operators.positions import PositionKind, PositionsOperator
from deltic.errors import Unsupported
from deltic.expr import Expr, Literal, case, cast, resolve
from deltic.lowering.composed_windows import composed, is_composed, is_shifted
from deltic.lowering.frame_picks import is_picked, lower_picks
from deltic.lowering.frame_rows import aggregated_rows
from deltic.lowering.frames import is_by_parts, is_range, lower_frames, summed_frames, without_equal_rows
from deltic.lowering.joins import joined
from deltic.lowering.partition_ends import end_of_partition, is_of_end, kind_of_end
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.sessions import lower_sessions
from deltic.lowering.streams import ZERO, Arranged
from deltic.lowering.window_rows import SortedRows, by_partition, side_of, sorted_rows
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import all_columns, normalized, reference
from deltic.plan.nodes import Plan, Project
from deltic.plan.show import show_frame, show_window_call
from deltic.plan.window_nodes import UNBOUNDED, Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT, DOUBLE, INT, Field, Schema

Named = tuple[str, WindowCall]
COUNT: Final = AggregateCall("count", (), BIGINT, False)
UP_TO_PEERS: Final = WindowFrame(UNBOUNDED, Edge("peers"))
_KINDS: Final[dict[str, PositionKind]] = {"row_number": "row_number", "rank": "rank", "dense_rank": "rank", "aggregate": "last_peer"}


def lower_window(lowering: PlanLowering, plan: Window) -> int:
    """Raises Unsupported for calls whose cost would be that of the whole partition."""
    assert not lowering.scoped, "a window function reads a recursive relation"
    for _, call in plan.calls:
        _check(call, plan)
    if len({call for _, call in plan.calls}) < len(plan.calls):
        return lowering.relation(_once_each(plan))
    if any(call.function in _DERIVED for _, call in plan.calls):
        return lowering.relation(_by_positions(plan))
    kinds = dict.fromkeys(_kind(call, plan) for _, call in plan.calls)
    if len(kinds) > 1:
        return lowering.relation(_one_by_one(lowering, plan, sorted(kinds)))
    if is_composed(plan.calls[0][1]):
        return lowering.streams.conform(lowering.relation(composed(lowering, plan)), plan.schema)
    if plan.calls[0][1].is_of_partition:
        return _of_partitions(lowering, plan, _totals(plan))
    if is_of_end(plan.calls[0][1], plan.input.schema):
        return _of_partitions(lowering, plan, end_of_partition(plan))
    if _is_near(plan.calls[0][1]):
        return _near(lowering, plan)
    if is_picked(plan.calls[0][1]):
        return lowering.streams.conform(lower_picks(lowering, plan), plan.schema)
    if plan.calls[0][1].aggregate is not None and not _counts_up_to_peers(plan.calls[0][1]):
        return lower_frames(lowering, plan, summed_frames if is_by_parts(plan.calls[0][1]) else aggregated_rows)
    if plan.calls[0][1].function == "session_start":
        return lower_sessions(lowering, plan)
    return _row_numbers(lowering, plan) if plan.calls[0][1].function == "row_number" else _of_peers(lowering, plan)


def _check(call: WindowCall, plan: Window) -> None:
    if call.aggregate is not None:
        is_incremental = call.is_of_partition or _counts_up_to_peers(call) or is_shifted(call.frame) or is_range(call.frame)
    else:
        is_incremental = _is_near(call) or call.function in (*_KINDS, *_DERIVED, "session_start") or is_of_end(call, plan.input.schema)
        is_incremental = is_incremental or is_composed(call) or is_picked(call)
    if is_incremental:
        return
    text = show_window_call(call)
    remedy = "row_number and rank, lag and lead, aggregates over the whole partition, or a join"
    raise Unsupported(f"{text} is not kept up to date yet", span=call.span, remedy=remedy)


def _counts_up_to_peers(call: WindowCall) -> bool:
    return call.frame == UP_TO_PEERS and call.aggregate == COUNT


def _is_near(call: WindowCall) -> bool:
    """Whether the value is that of a row at most a constant number of rows away."""
    if call.function in ("lag", "lead"):
        return not is_composed(call)
    return call.function in ("first_value", "last_value", "nth_value") and call.frame.start.kind == call.frame.end.kind == "rows"


def _kind(call: WindowCall, plan: Window) -> tuple[int, str]:
    """The calls that one circuit computes, row_number first: a partition is then ordered the same way for the others."""
    if is_composed(call):
        return (6, show_window_call(call))
    if _is_near(call):
        return (1, "")
    if call.is_of_partition:
        return (4, "")
    if is_of_end(call, plan.input.schema):
        return (5, kind_of_end(call))
    if is_picked(call):
        return (7, show_window_call(call))
    if call.aggregate is not None and not _counts_up_to_peers(call):
        return (3 if is_by_parts(call) else 8, show_frame(call.frame))
    return (0 if call.function == "row_number" else 2, call.function)


def _one_by_one(lowering: PlanLowering, plan: Window, kinds: Sequence[tuple[int, str]]) -> Plan:
    """A Window for each kind, over one another. Copies of a row get numbers if several depend on their order, which must be one for all."""
    width, places = len(plan.input.schema), dict[int, int]()
    ordered = dict.fromkeys(_kind(call, plan) for _, call in plan.calls if call.is_by_rows)
    below: Plan = without_equal_rows(lowering, plan.input) if len(ordered) > 1 else plan.input
    for kind in kinds:
        own = [i for i, (_, call) in enumerate(plan.calls) if _kind(call, plan) == kind]
        places |= {i: len(below.schema) + place for place, i in enumerate(own)}
        below = replace(plan, input=below, calls=tuple(plan.calls[i] for i in own))
    positions = [*range(width), *(places[i] for i in range(len(plan.calls)))]
    return Project(below, tuple((field.name, reference(below.schema, i)) for field, i in zip(plan.schema, positions, strict=True)))


def _once_each(plan: Window) -> Plan:
    """Equal calls are one."""
    calls = list(dict.fromkeys(call for _, call in plan.calls))
    below, width = replace(plan, calls=tuple((f"w{i}", call) for i, call in enumerate(calls))), len(plan.input.schema)
    columns = [*range(width), *(width + calls.index(call) for _, call in plan.calls)]
    return Project(below, tuple((field.name, reference(below.schema, i)) for field, i in zip(plan.schema, columns, strict=True)))


def _percent_rank(parts: Sequence[Expr], _: WindowCall) -> Expr:
    rank, count = parts
    one = Literal(1, BIGINT)
    others = resolve("-", [count, one])
    share = resolve("/", [cast(resolve("-", [rank, one]), DOUBLE), cast(resolve("greatest", [others, one]), DOUBLE)])
    return share


def _cume_dist(parts: Sequence[Expr], _: WindowCall) -> Expr:
    last, count = parts
    return resolve("/", [cast(last, DOUBLE), cast(count, DOUBLE)])


def _ntile(parts: Sequence[Expr], call: WindowCall) -> Expr:
    """The first count % n buckets have one row more than the others."""
    number, count = parts
    one, buckets = Literal(1, BIGINT), Literal(call.number, BIGINT)
    place, size = resolve("-", [number, one]), resolve("div", [count, buckets])
    larger = resolve("%", [count, buckets])
    in_larger = resolve("*", [larger, resolve("+", [size, one])])
    first = resolve("+", [resolve("div", [place, resolve("+", [size, one])]), one])
    rest = resolve("div", [resolve("-", [place, in_larger]), resolve("greatest", [size, one])])
    bucket = case([(resolve("<", [place, in_larger]), first)], resolve("+", [resolve("+", [larger, rest]), one]), None)
    return cast(bucket, INT)


_NUMBER: Final = WindowCall("row_number", INT, False)
_RANK: Final = WindowCall("rank", INT, False)
_UP_TO: Final = WindowCall("aggregate", BIGINT, False, frame=UP_TO_PEERS, aggregate=COUNT)
_ALL: Final = WindowCall("aggregate", BIGINT, False, aggregate=COUNT)
_DERIVED: Final[dict[str, tuple[tuple[WindowCall, ...], Callable[[Sequence[Expr], WindowCall], Expr]]]] = {
    "percent_rank": ((_RANK, _ALL), _percent_rank),
    "cume_dist": ((_UP_TO, _ALL), _cume_dist),
    "ntile": ((_NUMBER, _ALL), _ntile),
}
"""Functions that are computed from others, and how."""


def _by_positions(plan: Window) -> Plan:
    """percent_rank, cume_dist and ntile as expressions over positions and counts."""
    calls: list[WindowCall] = []
    for _, call in plan.calls:
        for part in _DERIVED[call.function][0] if call.function in _DERIVED else (call,):
            calls += [] if part in calls else [part]
    below = replace(plan, calls=tuple((f"w{i}", call) for i, call in enumerate(calls)))
    width = len(plan.input.schema)
    columns: list[Expr] = [reference(below.schema, i) for i in range(width)]
    for _, call in plan.calls:
        parts, compute = _DERIVED.get(call.function, ((call,), lambda values, _: values[0]))
        columns.append(compute([reference(below.schema, width + calls.index(part)) for part in parts], call))
    return Project(below, tuple((field.name, column) for field, column in zip(plan.schema, columns, strict=True)))


def _totals(plan: Window) -> Aggregate:
    names = tuple((f"key{i}", key) for i, key in enumerate(plan.keys))
    return Aggregate(plan.input, names, tuple((name, call.aggregate) for name, call in plan.calls if call.aggregate is not None))


def _of_partitions(lowering: PlanLowering, plan: Window, grouped: Aggregate) -> int:
    """The rows joined with the aggregates of their partitions, `grouped`; NULL is a key like any other."""
    streams = lowering.streams
    keys = [*map(normalized, plan.keys)] or [ZERO]
    key_fields = tuple(Field(f"key{i}", key.type, key.nullable) for i, key in enumerate(keys))
    values = grouped.schema.fields[len(plan.keys) :]
    totals = lowering.relation(grouped)
    if not plan.keys:
        totals = streams.map(totals, [ZERO, *(reference(grouped.schema, i) for i in range(len(values)))], Schema((*key_fields, *values)))
    row = all_columns(plan.input.schema)
    rows = streams.map(lowering.relation(plan.input), [*keys, *row], Schema((*key_fields, *plan.input.schema)))
    sides = [side_of(lowering, by_partition(lowering, stream, bool(plan.keys), len(keys)), len(keys)) for stream in (rows, totals)]
    order = [*((0, i) for i in range(len(row))), *((1, i) for i in range(len(values)))]
    return joined(lowering, sides[0], sides[1], order, plan.schema)


def _row_numbers(lowering: PlanLowering, plan: Window) -> int:
    """All row_numbers of a window are equal."""
    streams = lowering.streams
    rows = sorted_rows(lowering, plan, whole=True)
    arranged = by_partition(lowering, rows.stream, bool(plan.keys), rows.width, rows.key)
    numbered = _positions(lowering, arranged, rows, "row_number")
    picked = (*(word for words in rows.row for word in words), rows.width)
    schema = Schema((*plan.input.schema, Field("position", BIGINT, False)))
    narrowed = streams.builder.add(Sort(picked), (numbered,), Shape(schema), None if plan.keys else streams.partition(numbered))
    return _with_positions(lowering, plan, narrowed)


def _near(lowering: PlanLowering, plan: Window) -> int:
    """lag, lead and picks of frames of rows: the values are kept with the sorted rows."""
    streams, builder = lowering.streams, lowering.streams.builder
    values = [*dict.fromkeys(argument for _, call in plan.calls for argument in call.arguments)]
    rows = sorted_rows(lowering, plan, whole=True, values=values)
    arranged = by_partition(lowering, rows.stream, bool(plan.keys), rows.width, rows.key)
    fields = tuple(Field(name, call.type) for name, call in plan.calls)
    places = dict(zip(values, rows.values, strict=True))
    picks = tuple(
        _pick(call, [places[argument] for argument in call.arguments], field) for (_, call), field in zip(plan.calls, fields, strict=True)
    )
    memory = builder.name("neighbours", picks, streams.fingerprint(arranged))
    operator = NeighboursOperator(arranged.id, memory, rows.key, rows.width, arranged.width, picks, rows.texts)
    shape = Shape(Schema((*streams.schema(arranged.node).fields[: rows.width], *fields)))
    node = streams.keep(operator, arranged, shape, memory, rows.width)
    picked = (*(word for words in rows.row for word in words), *range(rows.width, operator.emitted))
    narrowed = builder.add(
        Sort(picked), (node,), Shape(Schema((*plan.input.schema, *fields))), None if plan.keys else streams.partition(node)
    )
    return streams.conform(narrowed, plan.schema)


def _pick(call: WindowCall, words: Sequence[tuple[int, ...]], field: Field) -> Pick:
    value, *default = words
    if call.function in ("lag", "lead"):
        offset = call.number if call.function == "lead" else -call.number
        return Pick(offset, offset, 1, False, value, default[0] if default else (), field)
    number = {"first_value": 1, "last_value": -1}.get(call.function, call.number)
    return Pick(call.frame.start.rows, call.frame.end.rows, number, call.ignore_nulls, value, (), field)


def _of_peers(lowering: PlanLowering, plan: Window) -> int:
    """The rows joined with the positions of their peers: (partition, terms of the order) → position. dense_rank counts peers once."""
    streams, function = lowering.streams, plan.calls[0][1].function
    rows = sorted_rows(lowering, plan, whole=False)
    held = by_partition(lowering, rows.stream, bool(plan.keys), rows.width, rows.key)
    schema = Schema(streams.schema(held.node).fields[: rows.width])
    peers = streams.builder.add(Sort(tuple(range(rows.width))), (held.node,), Shape(schema), held.partition)
    peers = lowering.distinct(peers) if function == "dense_rank" else peers
    arranged = by_partition(lowering, peers, bool(plan.keys), rows.width, rows.key)
    positions = _positions(lowering, arranged, rows, _KINDS[function])
    right = by_partition(lowering, positions, bool(plan.keys), rows.width, rows.key)
    order = [*((0, i) for i in range(len(plan.input.schema))), (1, 0)]
    target = Schema((*plan.input.schema, Field("position", BIGINT, False)))
    sides = [side_of(lowering, arrangement, rows.width) for arrangement in (held, right)]
    return _with_positions(lowering, plan, joined(lowering, sides[0], sides[1], order, target))


def _positions(lowering: PlanLowering, arranged: Arranged, rows: SortedRows, kind: PositionKind) -> int:
    """The rows of the arrangement followed by their positions."""
    streams, builder = lowering.streams, lowering.streams.builder
    memory = builder.name("positions", kind, streams.fingerprint(arranged))
    operator = PositionsOperator(arranged.id, memory, rows.key, rows.width, kind, rows.texts)
    shape = Shape(Schema((*streams.schema(arranged.node), Field("position", BIGINT, False))))
    return streams.keep(operator, arranged, shape, memory, rows.width)


def _with_positions(lowering: PlanLowering, plan: Window, stream: int) -> int:
    """The rows with the position, which is their last column, for each call in its type."""
    schema = lowering.streams.schema(stream)
    position = reference(schema, len(schema) - 1)
    columns: list[Expr] = [reference(schema, i) for i in range(len(schema) - 1)]
    return lowering.streams.map(stream, [*columns, *(cast(position, call.type) for _, call in plan.calls)], plan.schema)
