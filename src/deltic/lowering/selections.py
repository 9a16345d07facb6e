"""What an aggregate needs of the rows of a group where sums are not enough: first rows, values at ranks, or all rows.

A selection names the relation whose rows it arranges by group, and how the row of a group stores the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltic.aggregates.definition import Commonest, First, Listed, Rank, Ranked
from deltic.circuit.accumulations import Accumulation
from deltic.circuit.extremes import Extreme
from deltic.circuit.listings import Listing
from deltic.circuit.merges import UserMerge
from deltic.circuit.nodes import Shape
from deltic.circuit.rankings import Ranking
from deltic.circuit.terms import Term
from deltic.expr.functions import resolve
from deltic.expr.functions.checks import FREQUENCY
from deltic.expr.nodes import Expr, Literal, UserFunction, Value
from deltic.lowering.streams import guarded, none_is_null
from deltic.plan.columns import narrowed, reference
from deltic.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, FlatMap, Order, Plan, Project, TopK
from deltic.schema import BIGINT, Field, Schema

Keys = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class FirstRow:
    """The first row of a group in the order of `values`, expressions over `input`; rows whose first value is NULL are left out.

    keys: the group of a row, over `input`. shown: the position of the value that is the result. nullable: whether the result may be NULL.
    """

    input: Plan
    keys: Keys
    values: tuple[Expr, ...]
    descending: tuple[bool, ...]
    shown: int
    nullable: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the first row in the group's row."""
        return tuple(Field(f"v{i}", value.type, self.nullable or i != self.shown) for i, value in enumerate(self.values))

    @property
    def stored(self) -> tuple[Field, ...]:
        """The fields of the sorted rows."""
        return tuple(Field(f"v{i}", value.type, i > 0 and value.nullable) for i, value in enumerate(self.values))

    def terms(self, key: int) -> tuple[Term, ...]:
        """The order of the rows, whose values follow `key` words."""
        return _terms(self.stored, self.descending, key)

    def reader(self, arrangement: str, key: int, fields: tuple[Field, ...]) -> Extreme:
        return Extreme(arrangement, key, self.terms(key), fields)


@dataclass(frozen=True, slots=True)
class RankedValues:
    """The values of a group at ranks."""

    input: Plan
    keys: Keys
    value: Expr
    descending: bool
    ranks: tuple[Rank, ...]
    call: AggregateCall
    result: Field
    shown: int = 0

    @property
    def values(self) -> tuple[Expr, ...]:
        return (self.value,)

    @property
    def stored(self) -> tuple[Field, ...]:
        return (Field("v0", self.value.type, False),)

    def terms(self, key: int) -> tuple[Term, ...]:
        return _terms(self.stored, (self.descending,), key)

    def reader(self, arrangement: str, key: int, counted: int) -> Ranking:
        wide = isinstance(self.input, FlatMap)
        return Ranking(arrangement, key, self.terms(key)[0], self.ranks, counted, self.result, wide, self.call.span)


@dataclass(frozen=True, slots=True)
class _CountedRows:
    """The rows of a group that count. arguments: as for a Listing."""

    input: Plan
    keys: Keys
    values: tuple[Expr, ...]
    arguments: tuple[int | tuple[Value], ...]
    call: AggregateCall
    result: Field
    shown: int = 0

    @property
    def stored(self) -> tuple[Field, ...]:
        return tuple(Field(f"v{i}", value.type, value.nullable) for i, value in enumerate(self.values))


@dataclass(frozen=True, slots=True)
class AllRows(_CountedRows):
    """The rows of a group that count, or the first ones in an order."""

    def reader(self, arrangement: str, key: int) -> Listing | Accumulation:
        call, stored, written = self.call, Schema(self.stored), self.call.written
        if call.user is not None and call.user.change is not None:
            return Accumulation(arrangement, key, stored, self.arguments, call.signature, self.result, call.user, call.span)
        return Listing(arrangement, key, stored, self.arguments, call.function, written, call.signature, self.result, call.user, call.span)


@dataclass(frozen=True, slots=True)
class MergedRows(_CountedRows):
    """The rows of a group that count, sorted, for a user's aggregate that merges."""

    @property
    def user(self) -> UserFunction:
        assert self.call.user is not None
        return self.call.user

    def terms(self, key: int) -> tuple[Term, ...]:
        slices = Shape(Schema(self.stored)).layout.slices
        return tuple(Term(key + s.start, field) for s, field in zip(slices, self.stored, strict=True))

    def reader(self, arrangement: str, key: int) -> UserMerge:
        """arrangement: of the levels."""
        order = sum(term.width for term in self.terms(key))
        return UserMerge(arrangement, key, order, self.result, self.user, self.call.span)


Selection = FirstRow | RankedValues | AllRows | MergedRows


def selection_of(plan: Aggregate, keys: Keys, call: AggregateCall) -> Selection | None:
    """What the call selects; None if it is computed from sums. keys: of `plan`, without signs of zeros."""
    result = Field("value", call.type, call.nullable)
    match call.definition.state:
        case First() as state:
            first, *rest = state.order
            values = (guarded(call.arguments[first], call.filter), *(call.arguments[i] for i in rest))
            return FirstRow(plan.input, keys, values, (state.descending,) * len(values), state.order.index(0), call.nullable)
        case Commonest(values=1, limit=None):
            return _commonest(plan, keys, call)
        case Commonest() as state:
            return _commonest_rows(plan, keys, call, state, result)
        case Ranked() as state:
            rows, over, values = _ranked_rows(plan, keys, call, state)
            descending = bool(call.directions) and call.directions[0][0]
            constants = [argument.value if isinstance(argument, Literal) else None for argument in call.arguments]
            return RankedValues(rows, over, values[0], descending, state.ranks(constants), call, result)
        case Listed() as state:
            return _listed(plan, keys, call, state, result)
        case _:
            return None


def _terms(stored: tuple[Field, ...], descending: tuple[bool, ...], key: int) -> tuple[Term, ...]:
    slices = Shape(Schema(stored)).layout.slices
    each = zip(slices, stored, descending, strict=True)
    return tuple(Term(key + s.start, field, down, nulls_first=False) for s, field, down in each)


def _rows(plan: Aggregate, keys: Keys, call: AggregateCall, values: tuple[Expr, ...]) -> tuple[Plan, Keys, tuple[Expr, ...]]:
    """(the rows that count, once each with DISTINCT, their keys and these values over them)."""
    condition = narrowed(call.filter, none_is_null(call.required))
    counted = plan.input if condition is None else Filter(plan.input, condition)
    required = set(call.required)
    columns = [(f"v{i}", value) for i, value in enumerate(values)]
    rows: Plan = Project(counted, (*keys, *columns))
    if call.distinct:
        rows = Distinct(rows)
    schema = rows.schema
    references = tuple(
        replace(reference(schema, len(keys) + i), nullable=value.nullable and value not in required) for i, value in enumerate(values)
    )
    return rows, tuple((name, reference(schema, i)) for i, (name, _) in enumerate(keys)), references


def _ranked_rows(plan: Aggregate, keys: Keys, call: AggregateCall, state: Ranked) -> tuple[Plan, Keys, tuple[Expr, ...]]:
    """As `_rows` of the value, each as often as its frequency says."""
    if state.frequency is None:
        return _rows(plan, keys, call, call.arguments[:1])
    rows, over, (value, frequency) = _rows(plan, keys, call, (call.arguments[0], call.arguments[state.frequency]))
    return FlatMap(rows, "repeat_row", (frequency_of(frequency, call),), ()), over, (value,)


def frequency_of(argument: Expr, call: AggregateCall) -> Expr:
    """The argument, checked."""
    return resolve(FREQUENCY, [argument], call.span)


def _commonest(plan: Aggregate, keys: Keys, call: AggregateCall) -> FirstRow:
    """The first value by its count, and then by itself."""
    counted, over, value, count = _counted_values(plan, keys, call)
    descending = bool(call.directions) and call.directions[0][0]
    return FirstRow(counted, over, (count, value), (True, descending), 1, call.nullable)


def _commonest_rows(plan: Aggregate, keys: Keys, call: AggregateCall, state: Commonest, result: Field) -> AllRows:
    """The first values by their counts, and then by themselves, each as often as its count says."""
    counted, over, value, count = _counted_values(plan, keys, call)
    values = state.values
    if state.limit is not None:
        limit = call.arguments[state.limit]
        assert isinstance(limit, Literal) and isinstance(limit.value, int)
        values = limit.value
    order = (Order(count, True, nulls_first=False), Order(value, False, nulls_first=False))
    first = FlatMap(TopK(counted, order, values, tuple(key for _, key in over)), "repeat_row", (count,), ())
    return AllRows(first, over, (value,), tuple(_source(argument, i, [0]) for i, argument in enumerate(call.arguments)), call, result)


def _counted_values(plan: Aggregate, keys: Keys, call: AggregateCall) -> tuple[Plan, Keys, Expr, Expr]:
    """(the different values of argument 0, the keys over them, the value, its count)."""
    rows, over, (value,) = _rows(plan, keys, call, (call.arguments[0],))
    counted = Aggregate(rows, (*over, ("value", value)), (("n", AggregateCall("count", (), BIGINT, False)),))
    schema = counted.schema
    over = tuple((name, reference(schema, i)) for i, (name, _) in enumerate(keys))
    return counted, over, reference(schema, len(keys)), reference(schema, len(keys) + 1)


def _listed(plan: Aggregate, keys: Keys, call: AggregateCall, state: Listed, result: Field) -> AllRows | MergedRows:
    varying = [i for i, argument in enumerate(call.arguments) if not isinstance(argument, Literal)]
    varying = varying or [0]
    rows, over, values = _rows(plan, keys, call, tuple(call.arguments[i] for i in varying))
    if state.first is not None and state.limit is not None:
        limit = call.arguments[state.limit]
        assert isinstance(limit, Literal) and isinstance(limit.value, int)
        terms = (Order(values[varying.index(i)], state.first.descending, nulls_first=False) for i in state.first.order)
        rows = TopK(rows, tuple(terms), limit.value, tuple(key for _, key in over))
    arguments = tuple(_source(argument, i, varying) for i, argument in enumerate(call.arguments))
    merges = call.user is not None and call.user.merge is not None
    return (MergedRows if merges else AllRows)(rows, over, values, arguments, call, result)


def _source(argument: Expr, i: int, varying: Sequence[int]) -> int | tuple[Value]:
    if i in varying:
        return varying.index(i)
    assert isinstance(argument, Literal)
    return (argument.value,)
