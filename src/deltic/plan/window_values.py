"""The oracle's window functions: each value by its definition, from the whole partition.

It is written for clarity, like plan/evaluate.py: each frame is listed, so a partition of n rows costs O(n²).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from deltic.expr.interpreter import evaluate as value_of
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import in_row_order, order_key
from deltic.plan.aggregates import aggregate_value, argument_lists
from deltic.plan.relation import Relation, Row, key_of
from deltic.plan.sort_terms import Order
from deltic.plan.window_nodes import Edge, Window, WindowCall, WindowFrame

Pair = tuple[Row, int]


def in_order(pairs: Sequence[Pair], order: Sequence[Order]) -> list[Pair]:
    """The rows by the terms, then by the whole row: ascending, NULLs first. Sorts by the last term first, since sorting is stable."""
    ordered = in_row_order(pairs)
    for term in reversed(order):
        valued = [(value_of(term.expr, pair[0]), pair) for pair in ordered]
        valued.sort(key=lambda item: order_key(item[0]), reverse=term.descending)
        valued.sort(key=lambda item: (item[0] is None) != term.nulls_first)
        ordered = [pair for _, pair in valued]
    return ordered


def windowed(plan: Window, relation: Relation) -> Iterator[Pair]:
    """Each copy of a row with the values of its calls."""
    groups: dict[Hashable, list[Pair]] = {}
    for row, weight in relation.pairs():
        groups.setdefault(key_of(value_of(key, row) for key in plan.keys), []).append((row, weight))
    for pairs in groups.values():
        rows = [row for row, weight in in_order(pairs, plan.order) for _ in range(weight)]
        partition = _Partition(rows, plan.order, [tuple(value_of(term.expr, row) for term in plan.order) for row in rows])
        columns = [_column(call, partition) for _, call in plan.calls]
        yield from ((row + tuple(column[i] for column in columns), 1) for i, row in enumerate(rows))


@dataclass(frozen=True, slots=True)
class _Partition:
    """The rows of a partition in order, each copy on its own. terms: the values of the terms of the order, for each row."""

    rows: Sequence[Row]
    order: Sequence[Order]
    terms: Sequence[tuple[Value, ...]]

    def peers(self, position: int) -> range:
        """The positions of the row's peers, with its own."""
        key = [order_key(value) for value in self.terms[position]]
        equal = [i for i, terms in enumerate(self.terms) if [order_key(value) for value in terms] == key]
        return range(equal[0], equal[-1] + 1)

    def compare(self, position: int, limit: Value) -> int:
        """-1, 0 or 1: the row's only term before, equal to or after a value, in the direction of the order."""
        (term,), (value,) = self.order, self.terms[position]
        if value is None or limit is None:
            return ((limit is None) - (value is None)) * (1 if term.nulls_first else -1)
        left, right = order_key(value), order_key(limit)
        return ((left > right) - (left < right)) * (-1 if term.descending else 1)

    def frame(self, frame: WindowFrame, position: int) -> range:
        """The positions of the frame's rows."""
        start, end = self._start(frame.start, position), self._end(frame.end, position)
        return range(max(start, 0), min(end, len(self.rows)))

    def _start(self, edge: Edge, position: int) -> int:
        match edge.kind:
            case "unbounded":
                return 0
            case "peers":
                return self.peers(position).start
            case "rows":
                return position + edge.rows
            case "range":
                return sum(self.compare(i, self._limit(edge, position)) < 0 for i in range(len(self.rows)))
            case _:
                assert_never(edge.kind)

    def _end(self, edge: Edge, position: int) -> int:
        """The position after the last row."""
        match edge.kind:
            case "unbounded":
                return len(self.rows)
            case "peers":
                return self.peers(position).stop
            case "rows":
                return position + edge.rows + 1
            case "range":
                return sum(self.compare(i, self._limit(edge, position)) <= 0 for i in range(len(self.rows)))
            case _:
                assert_never(edge.kind)

    def _limit(self, edge: Edge, position: int) -> Value:
        assert edge.limit is not None
        return value_of(edge.limit, self.rows[position])


def _column(call: WindowCall, partition: _Partition) -> list[Value]:
    """The value of each row. Arguments are evaluated on every row, those of an aggregate also if no frame has it."""
    if call.aggregate is not None:
        argument_lists(call.aggregate, [(row, 1) for row in partition.rows])
    arguments = [[value_of(argument, row) for row in partition.rows] for argument in call.arguments]
    return [_value(call, partition, arguments, position) for position in range(len(partition.rows))]


def _value(call: WindowCall, partition: _Partition, arguments: Sequence[Sequence[Value]], position: int) -> Value:
    rows, count = partition.rows, len(partition.rows)
    match call.function:
        case "row_number":
            return position + 1
        case "rank":
            return partition.peers(position).start + 1
        case "dense_rank":
            return len({partition.peers(i).start for i in range(position + 1)})
        case "percent_rank":
            return partition.peers(position).start / (count - 1) if count > 1 else 0.0
        case "cume_dist":
            return partition.peers(position).stop / count
        case "ntile":
            return _bucket(position, count, call.number)
        case "lag" | "lead":
            return _offset(call, arguments, position)
        case "first_value" | "last_value" | "nth_value":
            frame = partition.frame(call.frame, position)
            return _picked(call, [arguments[0][i] for i in frame if not (call.ignore_nulls and arguments[-1][i] is None)])
        case "session_start":
            starts, ends = arguments
            return _session_start(starts, ends, position)
        case "aggregate":
            assert call.aggregate is not None
            return aggregate_value(call.aggregate, [(rows[i], 1) for i in partition.frame(call.frame, position)])
        case _:
            assert_never(call.function)


def _session_start(starts: Sequence[Any], ends: Sequence[Any], position: int) -> Value:
    """The start of the first row after the last gap up to the row: a time that the sessions of all rows before it do not reach."""
    begin = 0
    for i in range(1, position + 1):
        begin = i if starts[i] > max(ends[begin:i]) else begin
    start: Value = starts[begin]
    return start


def _bucket(position: int, count: int, buckets: int) -> int:
    """The first count % buckets buckets have one row more than the others."""
    size, larger = divmod(count, buckets)
    if position < larger * (size + 1):
        return position // (size + 1) + 1
    return larger + (position - larger * (size + 1)) // size + 1


def _offset(call: WindowCall, arguments: Sequence[Sequence[Value]], position: int) -> Value:
    """The value `number` rows before or after the row; with IGNORE NULLS, of the rows that have one. The default if there is none."""
    step = -1 if (call.function == "lag") == (call.number > 0) else 1
    values, *default = arguments
    left = abs(call.number)
    if left == 0:
        return values[position]
    for place in range(position + step, -1 if step < 0 else len(values), step):
        left -= not (call.ignore_nulls and values[place] is None)
        if left == 0:
            return values[place]
    return default[0][position] if default else None


def _picked(call: WindowCall, values: Sequence[Value]) -> Value:
    position = {"first_value": 0, "last_value": len(values) - 1}.get(call.function, call.number - 1)
    return values[position] if 0 <= position < len(values) else None
