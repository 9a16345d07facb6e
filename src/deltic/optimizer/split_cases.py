"""How a row compares with a value of all rows, or of its key, is a column of a union: of the rows above the value, and the others.

In `CASE WHEN x > (SELECT avg(x) FROM t) THEN 'above' ELSE 'below' END` a change of the average changes the rows between the old and the
new one. Each part of the union looks its rows up by the average, and has the same answer to the comparison; a projection of all rows
computed all of them again. Several comparisons, as in `WHERE x > a OR y > b`, are answered in turn, each over the union before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, NamedTuple

from deltic.expr import cast
from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import TRUE, Call, Case, Column, Expr, Literal, calls_python, columns_of
from deltic.optimizer.fold import OPPOSITE, fold, fold_condition
from deltic.optimizer.join_partitions import over_groups, with_groups
from deltic.plan.columns import (
    all_columns,
    choose_columns,
    columns_of_all,
    compared,
    conjunction,
    conjuncts,
    disjunction,
    is_not_null,
    is_null,
    map_children,
    named_columns,
    reference,
    remap,
    shift,
    substitute,
)
from deltic.plan.divided_joins import has_range
from deltic.plan.guarded_keys import exchanged
from deltic.plan.guarded_ranges import always_has_one_row
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Reference, Window, union_of
from deltic.plan.outside_ranges import has_outside_range, has_value
from deltic.plan.ranges import inequality, range_of
from deltic.plan.streams import is_of_ticks, is_stream
from deltic.plan.walk import expressions, kinds, map_expressions, transform
from deltic.schema import BOOLEAN, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, Type
from deltic.stacks import unbounded

MOST: Final = 4
"""Comparisons that are answered in turn: each keeps the rows once more."""
FALSE: Final = Literal(False, BOOLEAN)
UNKNOWN: Final = Literal(None, BOOLEAN)


def split_cases(plan: Plan) -> Plan:
    """Splits the projections, and the keys of aggregates, that read such values in comparisons alone.

    >>> from deltic.expr import case
    >>> from deltic.plan.nodes import AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("x", BIGINT, False),))))
    >>> x, n = Column(0, BIGINT, False, "x"), Column(1, BIGINT, False, "n")
    >>> count = Aggregate(t, (), (("n", AggregateCall("count", (), BIGINT, False)),))
    >>> label = case([(resolve(">", [x, n]), Literal(1, BIGINT))], Literal(2, BIGINT))
    >>> print(show(split_cases(Project(Join(t, count, "inner"), (("x", x), ("label", label))))))
    Project x#0, label := case when answer0#1 then 1 else 2 end
      Union
        Project x#0, answer0 := true
          Join inner where (x#0 > n#1)
            Table t (x)
            [1] Aggregate: n := count(*)
              Table t (x)
        Project x#0, answer0 := false
          Join inner where (x#0 <= n#1)
            Table t (x)
            Reused [1]
    """
    if is_of_ticks(plan) or kinds(plan).isdisjoint((Join, Window)) or Reference in kinds(plan):
        return plan
    return transform(plan, _split)


def _split(plan: Plan) -> Plan:
    match plan:
        case Project():
            below, exprs = plan.input, [expr for _, expr in plan.columns]
            if isinstance(below, Window) and (joined := with_groups(below)) is not None:
                exprs = [over_groups(expr, below) for expr in exprs]
                below = joined
            split = _answered(below, exprs)
            if split is None:
                return plan
            return Project(split.plan, tuple((name, expr) for (name, _), expr in zip(plan.columns, split.exprs, strict=True)))
        case Aggregate() if type(plan) is Aggregate:
            return _of_groups(plan)
        case _:
            return plan


def _of_groups(plan: Aggregate) -> Plan:
    """The aggregate, if its keys or the filter below it read the values; what its calls alone read is that of split_filters."""
    if not isinstance(plan.input, Filter) and isinstance(plan.input, Join):
        own = _base(plan.input)
        if own is None or all(columns_of(expr) <= own.columns.keys() for _, expr in plan.keys):
            return plan
    return answered_groups(plan)


def answered_groups(plan: Aggregate) -> Plan:
    """The aggregate over rows with the answers, if its expressions read the values in comparisons alone."""
    exprs = list(dict.fromkeys(expressions(plan)))
    tested = {call.filter for _, call in plan.aggregates}
    split = _answered(plan.input, exprs, tested)
    if split is None:
        return plan
    after = dict(zip(exprs, split.exprs, strict=True))
    return map_expressions(replace(plan, input=split.plan), lambda expr: after[expr])


class _Split(NamedTuple):
    """Rows with the answers, and the expressions over them."""

    plan: Plan
    exprs: tuple[Expr, ...]


class _Question(NamedTuple):
    """A condition by which rows are compared with values: `point > bound`, or >=, whose answer is TRUE, FALSE or NULL.

    point, bound: None for other conditions, which are asked in tests alone; their answer is whether they are TRUE.
    """

    condition: Expr
    point: Expr | None = None
    bound: Expr | None = None


@dataclass(frozen=True, slots=True)
class _Base:
    """The rows that are joined with values. columns: by the column of the join, that of the rows. values: each with its columns.

    join: that with the value of each key, on its right; None if the values are those of all rows.
    """

    rows: Plan
    columns: Mapping[int, int]
    values: Sequence[tuple[Plan, Mapping[int, int]]]
    join: Join | None = None


def _answered(below: Plan, exprs: Sequence[Expr], tested: Collection[Expr | None] = ()) -> _Split | None:
    """The rows of a join below, and of the filter over it, with answers to all that the expressions ask of its values.

    tested: the expressions of which only the rows matter on which they are TRUE.
    """
    predicate = below.predicate if isinstance(below, Filter) else None
    join = below.input if isinstance(below, Filter) else below
    if isinstance(join, Join) and join.kind == "inner" and join.residual is not None:
        predicate = join.residual if predicate is None else conjunction([join.residual, predicate])
        join = replace(join, residual=None)
    if not isinstance(join, Join) or is_stream(join) or (base := _base(join)) is None:
        return None
    every = [*exprs, *(() if predicate is None else (predicate,))]
    if all(columns_of(expr) <= base.columns.keys() for expr in exprs) and (predicate is None or not _is_asked(join, predicate, base)):
        return None
    if any(map(calls_python, every)):
        return None
    asked = _Asked(base, len(join.schema))
    written = [asked.answer(expr, tested=expr in tested) for expr in exprs]
    condition = None if predicate is None else asked.answer(predicate, tested=True)
    read = columns_of_all([*written, *(() if condition is None else (condition,))])
    if not 0 < len(asked.numbers) <= MOST or not read <= {*base.columns, *asked.columns}:
        return None
    return _in_turn(base, asked, written, condition)


def _base(join: Join) -> _Base | None:
    """The rows, if they are joined with a value of all of them, or of their key."""
    width = len(join.left.schema)
    if join.residual is not None:
        return None
    if not join.keys:
        base = _beside_values(join)
        return base if base.values else None
    if join.kind not in ("inner", "left"):
        return None
    left, right = ({width * side + i: i for i in range(len(plan.schema))} for side, plan in enumerate((join.left, join.right)))
    if has_value(join, left=False):
        return _Base(join.left, left, [(join.right, right)], join)
    if join.kind == "inner" and has_value(join, left=True):
        return _Base(join.right, right, [(join.left, left)], exchanged(join))
    return None


@unbounded
def _beside_values(plan: Plan) -> _Base:
    """The plan as rows and the values beside them."""
    if isinstance(plan, Join) and plan.kind == "inner" and not plan.keys and plan.residual is None:
        width = len(plan.left.schema)
        if always_has_one_row(plan.right):
            base = _beside_values(plan.left)
            return replace(base, values=[*base.values, *_values(plan.right, width)])
        if always_has_one_row(plan.left):
            base = _beside_values(plan.right)
            moved = [(value, {i + width: place for i, place in columns.items()}) for value, columns in base.values]
            return replace(base, columns={i + width: place for i, place in base.columns.items()}, values=[*_values(plan.left, 0), *moved])
    return _Base(plan, {i: i for i in range(len(plan.schema))}, [])


def _values(plan: Plan, start: int) -> list[tuple[Plan, Mapping[int, int]]]:
    """The values that a join of them has, each with its columns. start: the first one's place."""
    if isinstance(plan, Join):
        return [*_values(plan.left, start), *_values(plan.right, start + len(plan.left.schema))]
    return [(plan, {start + i: i for i in range(len(plan.schema))})]


def _is_asked(join: Join, predicate: Expr, base: _Base) -> bool:
    """Whether a filter tests several comparisons with values, such that no join looks rows up by all of them."""
    by = None if base.join is None else range_of(replace(join, kind="inner", residual=predicate))
    if by is not None and not by.is_interval:  # of one comparison; those with values of all rows are joined in turn (order_joins)
        parts = [part for part in conjuncts(predicate) if not columns_of(part) <= base.columns.keys()]
        asked = [_question(part, base.columns, tested=False) for part in parts]
        points = {each[0].point for each in asked if each is not None and each[0].point is not None}
        if 1 < len(points) == len(parts):
            return True
    for part in conjuncts(predicate):
        branches = flattened("or", (part,))
        compared_parts = [branch for branch in branches if not columns_of(branch) <= base.columns.keys()]
        if len(compared_parts) < 2 or has_outside_range(replace(join, residual=disjunction(compared_parts))):
            continue
        leaves = [leaf for branch in compared_parts for leaf in _leaves(branch) if not columns_of(leaf) <= base.columns.keys()]
        if all((found := _question(leaf, base.columns, tested=False)) is not None and found[0].point is not None for leaf in leaves):
            return True
    return False


def _leaves(condition: Expr) -> Iterator[Expr]:
    """The conditions that ANDs and ORs connect."""
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        for part in condition.arguments:
            yield from _leaves(part)
    else:
        yield condition


class _Asked:
    """What expressions ask of the values, and the expressions with the answers, which follow the columns of the join."""

    def __init__(self, base: _Base, width: int) -> None:
        self.base, self.width = base, width
        self.numbers: dict[_Question, int] = {}

    @property
    def columns(self) -> range:
        return range(self.width, self.width + len(self.numbers))

    def answer(self, expr: Expr, *, tested: bool) -> Expr:
        """tested: whether FALSE and NULL are the same."""
        if columns_of(expr) <= self.base.columns.keys():
            return expr
        if (found := _question(expr, self.base.columns, tested=tested)) is not None:
            question, negated = found
            number = self.numbers.setdefault(question, len(self.numbers))
            nullable = question.point is not None and question.condition.nullable
            column = Column(self.width + number, BOOLEAN, nullable, f"answer{number}", expr.span)
            return resolve("not", [column]) if negated else column
        if isinstance(expr, Case):
            branches = tuple((self.answer(test, tested=True), self.answer(value, tested=False)) for test, value in expr.branches)
            return replace(expr, branches=branches, otherwise=self.answer(expr.otherwise, tested=False))
        of_tests = tested and isinstance(expr, Call) and expr.function in ("and", "or")
        return map_children(expr, lambda part: self.answer(part, tested=of_tests))


def _question(expr: Expr, own: Collection[int], *, tested: bool) -> tuple[_Question, bool] | None:
    """What a condition asks, and whether it is negated: `x < m` is the negation of `x >= m`."""
    if expr.type != BOOLEAN or not isinstance(expr, Call) or expr.function in ("and", "or") or can_fail(expr):
        return None
    if (operands := inequality(expr)) is not None:
        lesser, greater, strict = operands
        for point, bound, is_low in ((greater, lesser, True), (lesser, greater, False)):
            is_own = bool(columns_of(point)) and columns_of(point) <= set(own)
            if is_own and columns_of(bound) and columns_of(bound).isdisjoint(own) and _origin(point.type) is not None:
                return _Question(compared("greater" if strict == is_low else "greater_equal", point, bound), point, bound), not is_low
    return (_Question(expr), False) if tested else None


def _origin(type: Type) -> Expr | None:
    """Some value of a type."""
    if type.is_numeric:
        return cast(Literal(0, INT), type)
    return cast(Literal(date(1970, 1, 1), DATE), type) if type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) else None


def _in_turn(base: _Base, asked: _Asked, exprs: Sequence[Expr], condition: Expr | None) -> _Split | None:
    """The rows after one question after the other."""
    if len(asked.numbers) > 1 and base.join is not None and not _is_by_columns(base.join):
        return None
    required = _required(condition, asked.width)
    questions = sorted(asked.numbers, key=lambda question: asked.numbers[question] not in required)
    read = [columns_of_all([*exprs, *(() if condition is None else (condition,))])]  # after the last question, before it, …
    for question in reversed(questions[1:]):
        read.append(read[-1] | columns_of(question.condition) | _key_columns(base))
    rows = _Rows(base.rows, base.columns)
    for question, after in zip(questions, reversed(read), strict=True):
        number = asked.numbers[question]
        kept = [column for column in rows.columns if column in after]
        answered = _with_answer(base, rows, question, kept, f"answer{number}", required.get(number))
        if answered is None:
            return None
        rows = _Rows(answered.plan, {**answered.columns, asked.width + number: len(answered.columns)})
    plan = rows.plan if condition is None else Filter(rows.plan, rows.over(condition))
    return _Split(plan, tuple(map(rows.over, exprs)))


def _required(condition: Expr | None, width: int) -> dict[int, Expr]:
    """The answers without which the whole condition is not TRUE. width: the number of columns before the answers."""
    required = dict[int, Expr]()
    for part in () if condition is None else conjuncts(condition):
        match part:
            case Column(index=index) if index >= width:
                required.setdefault(index - width, TRUE)
            case Call(function="not", arguments=(Column(index=index),)) if index >= width:
                required.setdefault(index - width, FALSE)
    return required


class _Rows(NamedTuple):
    """Rows with some answers. columns: by the column of the join, or by the answer's number after these, that of the rows."""

    plan: Plan
    columns: Mapping[int, int]

    def over(self, expr: Expr) -> Expr:
        return remap(expr, self.columns, self.plan.schema)


def _key_columns(base: _Base) -> frozenset[int]:
    """The columns of the rows that their keys read."""
    places = columns_of_all(left for left, _ in (() if base.join is None else base.join.keys))
    return frozenset(column for column, place in base.columns.items() if place in places)


def _is_by_columns(join: Join) -> bool:
    """Whether the keys of the values are columns, of which each row has one value at most, and not computed of them."""
    return all(isinstance(_written(key), Column) for _, key in join.keys)


def _written(key: Expr) -> Expr:
    return key.arguments[0] if isinstance(key, Call) and key.function == "normalize" else key


def _with_answer(base: _Base, rows: _Rows, question: _Question, kept: Sequence[int], name: str, required: Expr | None) -> _Rows | None:
    """The kept columns of the rows, and the answer after them; None if no join looks rows up by the question.

    required: the only answer with which rows are needed.
    """
    joined, columns = _joined(base, rows, columns_of(question.condition))
    own = named_columns(rows.plan.schema, [rows.columns[column] for column in kept])

    def part(plan: Plan, answer: Expr) -> Project:
        return Project(plan, (*own, (name, answer)))

    if question.point is None or question.bound is None:
        parts = _by_condition(joined, remap(question.condition, columns, joined.schema), part)
    else:
        inner = replace(joined, kind="inner")
        bound = shift(remap(question.bound, columns, inner.schema), -len(rows.plan.schema))
        parts = _by_bound(joined, remap(question.condition, columns, inner.schema), rows.over(question.point), bound, part)
    if parts is None:
        return None
    needed = [each for each in parts if required is None or not isinstance(each.columns[-1][1], Literal) or each.columns[-1][1] == required]
    return _Rows(union_of(needed), {column: i for i, column in enumerate(kept)})


def _joined(base: _Base, rows: _Rows, read: Collection[int]) -> tuple[Join, Mapping[int, int]]:
    """The rows with the value, or with those that are read, and the place of each column."""
    width = len(rows.plan.schema)
    if base.join is not None:
        places = {place: rows.columns[column] for column, place in base.columns.items() if column in rows.columns}
        keys = tuple((remap(left, places, rows.plan.schema), right) for left, right in base.join.keys)
        ((value, columns),) = base.values
        return replace(base.join, left=rows.plan, keys=keys), {**rows.columns, **{i: width + place for i, place in columns.items()}}
    value, places = _product([(value, columns) for value, columns in base.values if not columns.keys().isdisjoint(read)])
    needed = [column for column in sorted(places, key=places.__getitem__) if column in read]
    if len(needed) < len(value.schema):
        value = choose_columns(value, [places[column] for column in needed])
    return Join(rows.plan, value, "inner"), {**rows.columns, **{column: width + i for i, column in enumerate(needed)}}


def _product(values: Sequence[tuple[Plan, Mapping[int, int]]]) -> tuple[Plan, dict[int, int]]:
    """The values joined with one another, and the place of each of their columns."""
    (plan, columns), *others = values
    places = dict(columns)
    for value, more in others:
        places |= {column: len(plan.schema) + place for column, place in more.items()}
        plan = Join(plan, value, "inner")
    return plan, places


def _by_condition(joined: Join, condition: Expr, part: Callable[[Plan, Expr], Project]) -> list[Project] | None:
    """The rows for which the condition is TRUE, and the others; None unless both are looked up by the value."""
    other = fold_condition(resolve("not", [resolve("is_true", [condition]) if condition.nullable else condition]))
    if not all(has_range(replace(joined, kind="inner", residual=where)) for where in (condition, other)):
        return None
    return [part(Filter(joined, condition), TRUE), part(Filter(joined, other), FALSE)]


def _by_bound(joined: Join, condition: Expr, point: Expr, bound: Expr, part: Callable[[Plan, Expr], Project]) -> list[Project]:
    """The rows whose point is past the bound, the others, and those for which one of both is NULL.

    condition: the comparison, over the inner join. bound: over the values.
    """
    assert isinstance(condition, Call)
    rows, value, inner = joined.left, joined.right, replace(joined, kind="inner")
    opposite = replace(condition, function=OPPOSITE[condition.function])
    parts = [part(replace(inner, residual=condition), TRUE), part(replace(inner, residual=opposite), FALSE)]
    keys = sorted(columns_of_all(right for _, right in joined.keys))
    of_value = {column: i for i, column in enumerate(keys)}
    schema = choose_columns(value, keys).schema if keys else None
    pairs = () if schema is None else tuple((left, remap(right, of_value, schema)) for left, right in joined.keys)
    if point.nullable:
        without = Filter(rows, is_null(point))
        matched = Join(without, choose_columns(value, keys), "inner", pairs) if pairs and joined.kind == "inner" else without
        parts.append(part(matched, UNKNOWN))
    if bound.nullable:  # all points, in the order of which the other parts look them up
        origin = _origin(point.type)
        assert origin is not None
        missing = Project(Filter(value, is_null(bound)), (*named_columns(value.schema, keys), ("origin", origin)))
        some = shift(reference(missing.schema, len(keys)), len(rows.schema))
        for function in ("greater_equal", "less"):
            parts.append(part(Join(rows, missing, "inner", pairs, compared(function, point, some)), UNKNOWN))
    if joined.kind == "left":
        nulls: list[Expr] = [*all_columns(rows.schema), *(Literal(None, field.type) for field in value.schema)]
        answer = fold(substitute(condition, nulls))
        present = Filter(rows, is_not_null(point)) if point.nullable else rows
        parts.append(part(Join(present, choose_columns(value, keys), "anti", pairs), answer))
    return parts
