"""The oracle: the relation that a plan denotes, computed from scratch over whole relations, as simply as possible.

The tests of all engines compare with this module, so it is written for clarity, not speed. It shares no operator with the engines (no
kernels, NumPy or Arrow), keeps no state, and evaluates each expression row by row. It shares with them the typing of expressions, user
functions, and the row forms that also run on columns, once per distinct argument (expr/interpreter.py).

Contracts
- Tables are multisets: every weight is positive. Elsewhere weights may be negative up to the next Multiset: linear nodes add them, and
  tests of existence require a weight above 0. TopK, Window, Reduce, MIN and MAX get none (plan/signs.py).
- A row's values fit its schema.
- Every expression of a node is evaluated on every row of the node's input, except the arguments of an aggregate, evaluated only if its
  FILTER is TRUE and no required argument is NULL, a join's residual, evaluated only on pairs with equal keys, and keys that can fail of a
  join that tests existence, evaluated only on pairs for which the keys before are equal. A failure raises an EvaluationError.
- Values keep the sign of zero, keys do not: keys, DISTINCT and set operations return 0.0 for -0.0.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, assert_never

from deltic.errors import EvaluationError
from deltic.expr.failures import GROWTH, SAMPLES, diverged, negative_weight, no_clock
from deltic.expr.interpreter import evaluate as value_of
from deltic.expr.nodes import Expr, Value
from deltic.expr.python import accumulated, rows_of_reduction
from deltic.expr.rows.elements import elements
from deltic.expr.table_functions import rows_of_table_function
from deltic.plan.accumulators import AccumulateElements, Accumulators, after_tick
from deltic.plan.aggregates import aggregate_value
from deltic.plan.dependent import joined_rows
from deltic.plan.nodes import (
    Accumulate,
    Aggregate,
    Bound,
    ByWatermark,
    DependentJoin,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Generate,
    Inspect,
    Join,
    Multiset,
    MultiwayJoin,
    OverTicks,
    Plan,
    Project,
    Recursion,
    Reduce,
    Reference,
    SetOperation,
    Table,
    TemporalFilter,
    TickRecursion,
    TopK,
    Union,
    Values,
    Weighted,
    Window,
    inputs,
    references,
)
from deltic.plan.recursion import is_set, place_of
from deltic.plan.relation import Relation, Row, key_of, normal, normal_row
from deltic.plan.streams import is_stream
from deltic.plan.window_values import in_order, windowed
from deltic.schema import TableSchema
from deltic.stacks import unbounded

Pair = tuple[Row, int]
Relations = Mapping[str, Relation]
NO_RELATIONS: Final[Relations] = MappingProxyType({})
NO_VIEWS: Final[Mapping[Plan, Relation]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Moment:
    """A tick: the content of the tables after it, the instant for temporal filters, and its epoch.

    views: relations that plans denote in this tick, evaluated before; where a plan contains such a plan, that is not evaluated again.
    since: the first of its epochs, if commits of notes before it had some.
    """

    tables: Mapping[str, Mapping[Row, int]]
    now: datetime.datetime | None = None
    epoch: int = 0
    views: Mapping[Plan, Relation] = field(default_factory=lambda: NO_VIEWS)
    since: int | None = None

    def reaches(self, size: int) -> bool:
        """Whether one of its epochs is a multiple of `size`."""
        first = self.epoch if self.since is None else self.since
        return any(epoch % size == 0 for epoch in range(first, self.epoch + 1))


@dataclass(frozen=True, slots=True)
class _World:
    """The context of an evaluation: the current tick, the past ticks, and the iterations of the enclosing recursions.

    iterations: for each recursion, the outermost first, X(0) to X(n).
    """

    moment: Moment
    past: tuple[Moment, ...]
    iterations: tuple[tuple[Relations, ...], ...] = ()

    def relation(self, name: str) -> Relation:
        return next(relations[-1][name] for relations in reversed(self.iterations) if name in relations[-1])

    def before(self, plan: Plan) -> _World | None:
        """The previous iteration of the innermost recursion whose relations the plan reads; if it reads none, the previous tick."""
        names = {name for name, _ in references(plan)}
        for depth in reversed(range(len(self.iterations))):
            relations = self.iterations[depth]
            if not names.isdisjoint(relations[-1]):
                earlier = (*self.iterations[:depth], relations[:-1], *self.iterations[depth + 1 :])
                return replace(self, iterations=earlier) if len(relations) > 1 else None
        return replace(self, moment=self.past[-1], past=self.past[:-1]) if self.past else None


def evaluate(
    plan: Plan,
    tables: Mapping[str, Mapping[Row, int]],
    relations: Relations = NO_RELATIONS,
    now: datetime.datetime | None = None,
    *,
    epoch: int = 0,
    past: Sequence[Moment] = (),
    views: Mapping[Plan, Relation] = NO_VIEWS,
    since: int | None = None,
) -> Relation:
    """The relation that `plan` denotes. tables: name → content.

    relations: the relations of its References, if it is part of a recursion. now: the instant for temporal filters.
    epoch, past: this tick's epoch and the ticks before it, in order, for operators over ticks. views, since: as of Moment.

    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> numbers = Table(TableSchema("numbers", Schema((Field("n", BIGINT),))))
    >>> evaluate(Distinct(Union((numbers, numbers))), {"numbers": {(1,): 2, (None,): 1}})
    Relation({(1,): 1, (None,): 1})
    >>> evaluate(OverTicks(numbers, "delay"), {"numbers": {}}, past=[Moment({"numbers": {(7,): 1}})])
    Relation({(7,): 1})
    """
    return _evaluate(plan, _World(Moment(tables, now, epoch, views, since), tuple(past), ((relations,),) if relations else ()))


@unbounded
def _evaluate(plan: Plan, world: _World) -> Relation:
    if (view := world.moment.views.get(plan)) is not None:
        return view
    match plan:
        case Table():
            return _table(world.moment.tables[plan.table.name])
        case Values():
            return Relation((row, 1) for row in plan.rows)
        case Project():
            below = _evaluate(plan.input, world).pairs()
            return Relation((tuple(value_of(expr, row) for _, expr in plan.columns), weight) for row, weight in below)
        case Filter():
            below = _evaluate(plan.input, world).pairs()
            return Relation((row, weight) for row, weight in below if value_of(plan.predicate, row) is True)
        case Join() if is_stream(plan.left) and is_stream(plan.right):
            return _paired(plan, world)
        case Join():
            return Relation(_joined(plan, _evaluate(plan.left, world), _evaluate(plan.right, world)))
        case DependentJoin():
            return Relation(joined_rows(plan, _evaluate(plan.left, world).pairs(), lambda right: _evaluate(right, world).pairs()))
        case MultiwayJoin():
            return Relation(_joined_by_variables(plan, [_evaluate(part, world) for part in plan.inputs]))
        case Aggregate():
            return Relation(_aggregated(plan, _evaluate(plan.input, world)))
        case Distinct():
            return Relation((row, 1) for row, weight in _normalised(_evaluate(plan.input, world)).pairs() if weight > 0)
        case Union():
            return Relation(pair for part in plan.inputs for pair in _evaluate(part, world).pairs())
        case SetOperation():
            return Relation(_combined(plan, _normalised(_evaluate(plan.left, world)), _normalised(_evaluate(plan.right, world))))
        case TopK():
            return Relation(_first(plan, _evaluate(plan.input, world)))
        case Window():
            return Relation(windowed(plan, _evaluate(plan.input, world)))
        case FlatMap():
            below = _evaluate(plan.input, world).pairs()
            return Relation((row + more, weight * times) for row, weight in below for more, times in _elements(plan, row))
        case Expand():
            return Relation(_expanded(plan, _evaluate(plan.input, world)))
        case Generate():
            return Relation(_generated(plan, _evaluate(plan.input, world)))
        case Multiset():
            return _as_multiset(plan, _evaluate(plan.input, world))
        case TemporalFilter():
            now = world.moment.now
            return Relation((row, weight) for row, weight in _evaluate(plan.input, world).pairs() if _is_current(plan, row, now))
        case ByWatermark():
            return _by_watermark(plan, world)
        case AccumulateElements():
            return Relation((row, 1) for one in _accumulators(plan, world).values() for row in one.rows(plan))
        case Accumulate():
            return _accumulated(plan, world)
        case Reduce():
            return Relation(_reduced(plan, _evaluate(plan.input, world)))
        case OverTicks():
            return _over_ticks(plan, world)
        case Weighted():
            return Relation(((*row, weight), 1) for row, weight in _evaluate(plan.input, world).pairs())
        case Inspect():
            return _evaluate(plan.input, world)
        case Reference():
            return world.relation(plan.name)
        case TickRecursion():
            return _fed_back(plan, world)[plan.result]
        case Recursion():
            return _fixed_point(plan, world)
        case _:
            assert_never(plan)


def _fixed_point(plan: Recursion, world: _World) -> Relation:
    """The result of the least n with X(n+1) = X(n), where X(0) = ∅ and X(n+1) = bodies(X(n)). Divergence if X(limit + 1) is not X(limit).

    If a body delays a relation, X(n+1) = bodies(X(n), X(n-1)), and so on, and it iterates until correspondingly many are equal.
    """
    iterations: tuple[Relations, ...] = ({name: Relation() for name, _ in plan.relations},)
    growth: dict[str, list[int]] = {name: [] for name in iterations[0]}
    reach = 1 + max((_delays(body) for _, body in plan.relations), default=0)
    for _ in range(plan.limit + reach):
        inside = replace(world, iterations=(*world.iterations, iterations))
        iterations = (*iterations, {name: _evaluate(body, inside) for name, body in plan.relations})
        if len(iterations) > reach and all(one == iterations[-1] for one in iterations[-1 - reach : -1]):
            return iterations[-1][plan.result]
        for name, relation in iterations[-1].items():
            growth[name].append(len(relation - iterations[-2][name]))
    name = next(name for name in iterations[-1] if iterations[-1][name] != iterations[-2][name])
    raise diverged(
        name,
        plan.limit,
        growth[name][-GROWTH:],
        list(iterations[-1][name] - iterations[-2][name])[:SAMPLES],
        place_of(plan, name),
        is_set=is_set(plan.body(name)),
    )


def _fed_back(plan: TickRecursion, world: _World) -> Relations:
    """The relations after the tick."""
    before = replace(world, moment=world.past[-1], past=world.past[:-1]) if world.past else None
    held = {name: Relation() for name, _ in plan.relations} if before is None else _fed_back(plan, before)
    inside = replace(world, iterations=(*world.iterations, (held,)))
    return {name: _evaluate(body, inside) for name, body in plan.relations}


def _delays(plan: Plan) -> int:
    """The maximum nesting depth of delays."""
    own = isinstance(plan, OverTicks) and plan.function == "delay"
    return own + max(map(_delays, inputs(plan)), default=0)


def _by_watermark(plan: ByWatermark, world: _World) -> Relation:
    ticks = (*world.past, world.moment)
    after = _watermark(plan.table, ticks)
    before = _watermark(plan.table, world.past)
    rows = _over_ticks(OverTicks(plan.input, "integrate"), world) if is_stream(plan.input) else _evaluate(plan.input, world)
    kept = []
    for row, weight in rows.pairs():
        end = _moment_of(plan.end, row)
        is_open = after is None or end is None or after < end
        if is_open != (plan.phase != "closed"):
            continue
        if is_open or (world.past and (before is None or before < end)):
            kept.append((row, weight))
    return Relation(kept)


def _watermark(table: TableSchema, ticks: Iterable[Moment]) -> Any:
    """After these ticks, a time or a whole number; None before the first row. Rows that were deleted later count."""
    assert table.lateness is not None
    values: list[Any] = [row[table.lateness.column] for tick in ticks for row in tick.tables[table.name]]
    if not values:
        return None
    greatest = max(values)
    if isinstance(greatest, int):
        return greatest - table.lateness.delay
    if not isinstance(greatest, datetime.datetime):
        greatest = datetime.datetime.combine(greatest, datetime.time(), datetime.UTC)
    return greatest - datetime.timedelta(microseconds=table.lateness.delay)


def _moment_of(bound: Bound, row: Row) -> Any:
    moment: Any = value_of(bound.moment, row)
    if isinstance(moment, int):
        return moment + bound.offset if moment + bound.offset < 1 << 63 else None
    if moment is None:
        return None
    try:
        return moment + datetime.timedelta(microseconds=bound.offset)
    except OverflowError:
        return None if bound.offset > 0 else datetime.datetime.min.replace(tzinfo=datetime.UTC)


def _paired(plan: Join, world: _World) -> Relation:
    """The pairs of rows so far with a row of this tick."""
    left, right = _evaluate(plan.left, world), _evaluate(plan.right, world)
    pairs = [*_joined(plan, left, right)]
    if (before := world.before(plan)) is not None:
        earlier = [_over_ticks(OverTicks(side, "integrate"), before) for side in (plan.left, plan.right)]
        pairs += [*_joined(plan, left, earlier[1]), *_joined(plan, earlier[0], right)]
    return Relation(pairs)


def _over_ticks(plan: OverTicks, world: _World) -> Relation:
    match plan.function:
        case "delay":
            before = world.before(plan.input)
            return Relation() if before is None else _evaluate(plan.input, before)
        case "integrate":
            before = world.before(plan.input)
            now = _evaluate(plan.input, world)
            return now if before is None else now + _over_ticks(plan, before)
        case "delta0":
            return Relation() if world.past else _evaluate(plan.input, world)
        case "current":
            return _evaluate(plan.input, world)
        case "batched":
            return _evaluate(plan.input, world) + _pending(plan, world) if world.moment.reaches(plan.size) else Relation()
        case "stamp":
            return Relation(((*row, world.moment.epoch), weight) for row, weight in _evaluate(plan.input, world).pairs())
        case _:
            assert_never(plan.function)


def _pending(plan: OverTicks, world: _World) -> Relation:
    """The rows of the ticks before this one, back to the last one that applied them."""
    before = world.before(plan.input)
    if before is None or before.moment.reaches(plan.size):
        return Relation()
    return _evaluate(plan.input, before) + _pending(plan, before)


def _reduced(plan: Reduce, relation: Relation) -> Iterator[Pair]:
    """The function's rows for each group."""
    for key, members in _groups(plan, relation).values():
        for reduced in rows_of_reduction(plan.function, plan.returned, members.pairs()):
            yield (*key, *reduced), 1


def _groups(plan: Reduce, relation: Relation) -> dict[Hashable, tuple[Row, Relation]]:
    """The key and the values of each group."""
    groups: dict[Hashable, tuple[Row, list[Pair]]] = {}
    for row, weight in relation.pairs():
        key = tuple(normal(value_of(expr, row)) for _, expr in plan.keys)
        groups.setdefault(key_of(key), (key, []))[1].append((tuple(row[i] for i in plan.values), weight))
    return {key_of(key): (key, Relation(members)) for key, members in groups.values()}


def _accumulators(plan: AccumulateElements, world: _World) -> Accumulators:
    """By key: those of the tick before, and for each key of the stream the next one."""
    before = world.before(plan.input)
    groups = _groups(plan, _evaluate(plan.input, world))
    changed = {key: (values, list(members.pairs())) for key, (values, members) in groups.items() if members}
    return after_tick(plan, {} if before is None else _accumulators(plan, before), changed)


def _accumulated(plan: Accumulate, world: _World) -> Relation:
    """The accumulators after the tick: those of the tick before, and for each key of the stream the next one."""
    before = world.before(plan.input)
    held = Relation() if before is None else _accumulated(plan, before)
    width = len(plan.keys)
    rows = {key_of(row[:width]): row for row, _ in held.pairs()}
    for key, (values, members) in _groups(plan, _evaluate(plan.input, world)).items():
        if not members:
            continue
        old = rows.pop(key, None)
        after = accumulated(plan.function, plan.returned, None if old is None else old[width:], members.pairs())
        if after is not None:
            rows[key] = (*values, *after)
    return Relation((row, 1) for row in rows.values())


def _elements(plan: FlatMap, row: Row) -> Iterator[Pair]:
    """(the columns after the row, the factor of its weight)."""
    values: list[Value] = []
    for argument in plan.arguments:
        values.append(value_of(argument, row))
        if values[-1] is None and plan.function != "array":
            break
    if plan.function == "repeat_row":
        (times,) = values
        assert times is None or isinstance(times, int)
        yield (), times or 0
        return
    items = elements(plan.function, values, plan.span)
    if plan.outer and not items:
        yield (None,) * len(plan.returned), 1
    for position, element in enumerate(items):
        yield ((position, element) if plan.position else (element,)), 1


def _expanded(plan: Expand, relation: Relation) -> Iterator[Pair]:
    """Each row for each grouping set."""
    for row, weight in relation.pairs():
        keys = [value_of(expr, row) for _, expr in plan.keys]
        for number in plan.sets:
            yield (*row, *(None if number & mask else key for key, mask in zip(keys, plan.masks, strict=True)), number), weight


def _generated(plan: Generate, relation: Relation) -> Iterator[Pair]:
    """The rows that the function returns for each row."""
    for row, weight in relation.pairs():
        for generated in rows_of_table_function(plan.function, plan.returned, row, plan.input.schema):
            times = generated[-1] if plan.weighted else 1
            assert isinstance(times, int)
            yield generated[: len(plan.schema)], weight * times


def _as_multiset(plan: Multiset, relation: Relation) -> Relation:
    for row, weight in relation.pairs():
        if weight < 0:
            raise negative_weight(row, weight, plan.place, plan.span, plan.reason)
    return relation


def _is_current(plan: TemporalFilter, row: Row, now: datetime.datetime | None) -> bool:
    """Whether the row's bounds contain `now`. Compares microseconds, since a bound may be outside the range of timestamps."""
    lower, upper = ([(bound, value_of(bound.moment, row)) for bound in bounds] for bounds in (plan.lower, plan.upper))
    if any(moment is None and not bound.optional for bound, moment in (*lower, *upper)):
        return False
    starts, ends = ([_microseconds(m) + bound.offset for bound, m in bounds if m is not None] for bounds in (lower, upper))
    if now is None:
        if starts or ends:
            raise no_clock(starts + ends)
        return True
    instant = _microseconds(now)
    return all(start <= instant for start in starts) and all(instant < end for end in ends)


def _microseconds(moment: Value) -> int:
    assert isinstance(moment, datetime.datetime)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)


def _table(content: Mapping[Row, int]) -> Relation:
    relation = content if isinstance(content, Relation) else Relation(content.items())
    assert all(weight > 0 for _, weight in relation.pairs())
    return relation


def _normalised(relation: Relation) -> Relation:
    return Relation((normal_row(row), weight) for row, weight in relation.pairs())


def _joined(plan: Join, left: Relation, right: Relation) -> Iterator[Pair]:
    """Finds the matches of each left row, then combines them by the kind of join."""
    matches = _matches(plan, left, right)
    nothing_left: Row = (None,) * len(plan.left.schema)
    nothing_right: Row = (None,) * len(plan.right.schema)
    match plan.kind:
        case "inner" | "left" | "right" | "full":
            for (row, weight), matching in matches:
                yield from ((row + other, weight * w) for other, w in matching)
            if plan.kind in ("left", "full"):
                yield from ((row + nothing_right, weight) for (row, weight), matching in matches if not _exists(matching))
            if plan.kind in ("right", "full"):
                matched = Relation((other, weight) for (_, weight), matching in matches for other, _ in matching)
                yield from ((nothing_left + other, w) for other, w in right.pairs() if matched.get(other, 0) <= 0)
        case "semi":
            yield from (pair for pair, matching in matches if _exists(matching))
        case "anti":
            yield from (pair for pair, matching in matches if not _exists(matching))
        case "not_in":
            assert plan.value is not None
            value, right_value = plan.value
            if not plan.evaluates_pairs:
                _evaluate_all(value, left)
                _evaluate_all(right_value, right)
            yield from (pair for pair, matching in matches if not matching or _is_not_in(value, pair[0], right_value, matching))
        case _:
            assert_never(plan.kind)


def _evaluate_all(expr: Expr, relation: Relation) -> None:
    """Raises the error of a row on which the expression fails."""
    for row, _ in relation.pairs():
        value_of(expr, row)


def _exists(pairs: Iterable[Pair]) -> bool:
    """Whether any of these rows exists: their weights add up to more than 0."""
    return sum(weight for _, weight in pairs) > 0


def _matches(plan: Join, left: Relation, right: Relation) -> list[tuple[Pair, list[Pair]]]:
    """Every left row with the right rows that have equal keys, none of them NULL, and satisfy the residual."""
    if plan.evaluates_pairs:
        return [(pair, [other for other in right.pairs() if _is_match(plan, pair[0], other[0])]) for pair in left.pairs()]
    by_key: dict[Hashable, list[Pair]] = {}
    for row, weight in right.pairs():
        by_key.setdefault(_join_key((key for _, key in plan.keys), row), []).append((row, weight))
    by_key.pop(None, None)
    matches = []
    for row, weight in left.pairs():
        candidates = by_key.get(_join_key((key for key, _ in plan.keys), row), [])
        matches.append(((row, weight), [pair for pair in candidates if _satisfies(plan.residual, row + pair[0])]))
    return matches


def _is_match(plan: Join, row: Row, other: Row) -> bool:
    """The same for one pair of rows: the keys in order, up to the first that is not equal. A NULL is not equal to what fails."""
    for left, right in plan.keys:
        values = [_value_or_error(left, row), _value_or_error(right, other)]
        if None in values:
            return False
        for value in values:
            if isinstance(value, EvaluationError):
                raise value
        if key_of(values[:1]) != key_of(values[1:]):
            return False
    return _satisfies(plan.residual, row + other)


def _value_or_error(expr: Expr, row: Row) -> Any:
    try:
        return value_of(expr, row)
    except EvaluationError as error:
        return error


def _joined_by_variables(plan: MultiwayJoin, relations: list[Relation]) -> Iterator[Pair]:
    """Joins one input after the other, each by the variables that the inputs before it have."""
    shared = frozenset(plan.shared)
    joined: list[tuple[Row, int]] = [((), 1)]
    bound: list[int] = []
    for relation, variables in zip(relations, plan.variables, strict=True):
        common = [variable for variable in variables if variable in bound]
        left, right = [bound.index(variable) for variable in common], [variables.index(variable) for variable in common]
        by_key: dict[Hashable, list[Pair]] = {}
        for row, weight in relation.pairs():
            if not any(value is None and variable in shared for value, variable in zip(row, variables, strict=True)):
                by_key.setdefault(key_of(row[i] for i in right), []).append((row, weight))
        joined = [(row + more, weight * w) for row, weight in joined for more, w in by_key.get(key_of(row[i] for i in left), [])]
        bound += variables
    for row, weight in joined:
        if _satisfies(plan.condition, row):
            yield tuple(row[i] for i in plan.output), weight


def _join_key(exprs: Iterable[Expr], row: Row) -> Hashable:
    """The key, or None if a part is NULL, which matches nothing."""
    values = [value_of(expr, row) for expr in exprs]
    return None if None in values else key_of(values)


def _satisfies(condition: Expr | None, row: Row) -> bool:
    return condition is None or value_of(condition, row) is True


def _is_not_in(left: Expr, row: Row, right: Expr, matching: list[Pair]) -> bool:
    """`left NOT IN (right …)`: TRUE over no rows; else neither side may be NULL, and no value equal."""
    value = value_of(left, row)
    nulls = [pair for pair in matching if value_of(right, pair[0]) is None]
    equal = matching if value is None else [pair for pair in matching if key_of([value_of(right, pair[0])]) == key_of([value])]
    return not _exists(nulls) and not _exists(equal)


def _aggregated(plan: Aggregate, relation: Relation) -> Iterator[Pair]:
    """One row for each group whose weights do not add up to 0; without keys there is one group, even over no rows."""
    groups: dict[Hashable, tuple[Row, list[Pair]]] = {}
    if not plan.keys:
        groups[()] = ((), [])
    for row, weight in relation.pairs():
        key = tuple(normal(value_of(expr, row)) for _, expr in plan.keys)
        groups.setdefault(key_of(key), (key, []))[1].append((row, weight))
    for key, members in groups.values():
        if plan.keys and not sum(weight for _, weight in members):
            continue
        yield key + tuple(aggregate_value(call, members) for _, call in plan.aggregates), 1


def _combined(plan: SetOperation, left: Relation, right: Relation) -> Iterator[Pair]:
    for row, count in left.pairs():
        weight, other = max(count, 0), max(right.get(row, 0), 0)
        match plan.kind:
            case "except":
                yield row, 1 if weight and not other else 0
            case "except_all":
                yield row, max(0, weight - other)
            case "intersect":
                yield row, 1 if weight and other else 0
            case "intersect_all":
                yield row, min(weight, other)
            case _:
                assert_never(plan.kind)


def _first(plan: TopK, relation: Relation) -> Iterator[Pair]:
    groups: dict[Hashable, list[Pair]] = {}
    for row, weight in relation.pairs():
        groups.setdefault(key_of(value_of(key, row) for key in plan.keys), []).append((row, weight))
    for group in groups.values():
        yield from _first_of(plan, group)


def _first_of(plan: TopK, group: list[Pair]) -> Iterator[Pair]:
    position = 0
    end = sum(weight for _, weight in group) if plan.limit is None else plan.offset + plan.limit
    for row, weight in in_order(group, plan.order):
        yield row, max(0, min(position + weight, end) - max(position, plan.offset))
        position += weight
