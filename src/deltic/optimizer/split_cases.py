"""How a row compares with a value of all rows is a column of a union: of the rows above the value, and the others.

In `CASE WHEN x > (SELECT avg(x) FROM t) THEN 'above' ELSE 'below' END` a change of the average changes the rows between the old and the
new one. Each part of the union looks its rows up by the average, and has the same answer to the comparison; a projection of all rows
computed all of them again. Several comparisons, as in `WHERE x > a OR y > b`, are answered in turn, each over the union before it.
Of the value of a row's key, and beside others, one condition of CASE is answered, by which the matches are divided: a row may match the
values of several keys, and where other values change, each further union passes on its rows once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, NamedTuple

from deltic.expr import cast
from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import TRUE, Call, Case, Column, Expr, Literal, calls_python, columns_of
from deltic.optimizer.fold import OPPOSITE, fold_condition
from deltic.optimizer.join_partitions import with_groups
from deltic.plan.columns import (
    choose_columns,
    columns_of_all,
    compared,
    conjunction,
    conjuncts,
    disjunction,
    is_null,
    map_children,
    named_columns,
    reference,
    remap,
    shift,
)
from deltic.plan.divided_joins import has_range
from deltic.plan.guarded_ranges import always_has_one_row
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Reference, Union, Window
from deltic.plan.outside_ranges import has_outside_range, has_value
from deltic.plan.ranges import inequality
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
            split = _answered(plan.input, [expr for _, expr in plan.columns])
            if split is None:
                return plan
            return Project(split.plan, tuple((name, expr) for (name, _), expr in zip(plan.columns, split.exprs, strict=True)))
        case Aggregate() if type(plan) is Aggregate:
            exprs = list(dict.fromkeys(expressions(plan)))
            split = _answered(plan.input, exprs, {call.filter for _, call in plan.aggregates}, {expr for _, expr in plan.keys})
            if split is None:
                return plan
            after = dict(zip(exprs, split.exprs, strict=True))
            return map_expressions(replace(plan, input=split.plan), lambda expr: after[expr])
        case _:
            return plan


class _Split(NamedTuple):
    """Rows with answers, and expressions over them."""

    plan: Plan
    exprs: tuple[Expr, ...]


class _Question(NamedTuple):
    """A condition by which rows are compared with values.

    is_comparison: whether it is `point > bound`, or >=, whose answer is TRUE, FALSE or NULL. The answer to others is whether they are TRUE.
    """

    condition: Call
    is_comparison: bool = False


@dataclass(frozen=True, slots=True)
class _Base:
    """Rows beside values.

    own: the columns of the join that are those of the rows. values: those of all rows, each with its first column in the join; none if
    `rows` are the join, whose values may be those of keys: of these one condition is answered, for each match.
    """

    rows: Plan
    own: range
    values: Sequence[tuple[Plan, int]] = ()

    @property
    def columns(self) -> Mapping[int, int]:
        """By the column of the join, that of the rows."""
        return {column: column - self.own.start if self.values else column for column in self.own}

    def joined(self, rows: Plan, columns: Mapping[int, int], condition: Expr) -> tuple[Join, Expr]:
        """The rows with what the condition reads of the values, and the condition over this join."""
        if not self.values:
            assert isinstance(rows, Join)
            return rows, condition
        places, width, parts = dict(columns), len(rows.schema), list[Plan]()
        for plan, first in self.values:
            read = sorted(columns_of(condition) & set(range(first, first + len(plan.schema))))
            if read:
                places |= {column: width + i for i, column in enumerate(read)}
                width += len(read)
                parts.append(plan if len(read) == len(plan.schema) else choose_columns(plan, [column - first for column in read]))
        value, *others = parts
        for other in others:
            value = Join(value, other, "inner")
        join = Join(rows, value, "inner")
        return join, remap(condition, places, join.schema)


def _answered(
    below: Plan, exprs: Sequence[Expr], tested: Collection[Expr | None] = (), keys: Collection[Expr] | None = None
) -> _Split | None:
    """The rows of a join, and of the filter over it, with the answers to all that the expressions ask of its values; None if they ask more.

    tested: the expressions of which only the rows matter on which they are TRUE. keys: those of an aggregate.
    """
    predicate = below.predicate if isinstance(below, Filter) else None
    join = _of_window(below.input if isinstance(below, Filter) else below)
    if isinstance(join, Join) and join.kind == "inner" and join.residual is not None:
        predicate = join.residual if predicate is None else conjunction([join.residual, predicate])
        join = replace(join, residual=None)
    parts = [] if predicate is None else conjuncts(predicate)
    if not isinstance(join, Join) or is_stream(join) or any(map(calls_python, [*exprs, *parts])):
        return None
    base = _beside_values(join)
    if base is not None and (split := _over(base, join, exprs, tested, parts)) is not None:
        return split
    base = None if parts else _beside_a_value(join)
    if base is None or (keys is not None and all(columns_of(key) <= set(base.own) for key in keys)):
        return None
    return _over(base, join, exprs, tested, ())


def _over(base: _Base, join: Join, exprs: Sequence[Expr], tested: Collection[Expr | None], parts: Sequence[Expr]) -> _Split | None:
    """parts: conditions that rows satisfy. The others are those of `_answered`."""
    answered = [part for part in parts if can_fail(part) or columns_of(part) <= set(base.own) or _has_several_comparisons(join, part, base)]
    questions = _Questions(base, len(join.schema))
    written = [questions.answer(expr, tested=expr in tested) for expr in exprs]
    conditions = [questions.answer(part, tested=True) for part in answered]
    read = columns_of_all([*written, *conditions])
    if not 0 < len(questions.numbers) <= (MOST if base.values else 1) or not read <= {*base.own, *questions.columns}:
        return None
    return _in_turn(_where(base, [part for part in parts if part not in answered]), questions, written, conditions)


def _where(base: _Base, parts: Sequence[Expr]) -> _Base:
    """The rows on which the conditions are TRUE: one join after the other, each by those that compare one expression."""
    groups: dict[Expr | None, list[Expr]] = {}
    for part in parts:
        found = _comparison(part, base.own)
        groups.setdefault(None if found is None else found[0].condition.arguments[0], []).append(part)
    for group in groups.values():
        joined, condition = base.joined(base.rows, base.columns, conjunction(group))
        base = replace(base, rows=choose_columns(Filter(joined, condition), range(len(base.own))))
    return base


def _of_window(plan: Plan) -> Plan:
    """A window of aggregates of all rows, as the join of the rows with them."""
    joined = with_groups(plan) if isinstance(plan, Window) and not plan.keys else None
    return plan if joined is None else joined


def _beside_values(join: Join) -> _Base | None:
    """The rows beside values of all of them. Not if they have others, too: a change of these would pass through the parts of each union."""
    sides = _sides(join, 0)
    rows = [(plan, first) for plan, first in sides if not always_has_one_row(plan)]
    if len(rows) != 1 or len(sides) == 1 or _is_beside_others(rows[0][0]):
        return None
    ((plan, first),) = rows
    return _Base(plan, range(first, first + len(plan.schema)), [side for side in sides if side not in rows])


@unbounded
def _sides(plan: Plan, first: int) -> list[tuple[Plan, int]]:
    """Rows and values that are joined, each with its first column."""
    plan = _of_window(plan)
    if isinstance(plan, Join) and plan.kind == "inner" and not plan.keys and plan.residual is None:
        left, right = plan.left, plan.right
        if always_has_one_row(left) or always_has_one_row(right):
            return [*_sides(left, first), *_sides(right, first + len(left.schema))]
    return [(plan, first)]


@unbounded
def _is_beside_others(plan: Plan) -> bool:
    """Whether values of keys, or windows, are beside the rows."""
    match plan:
        case Project() | Filter():
            return _is_beside_others(plan.input)
        case Window():
            return True
        case Join():
            by_key = bool(plan.keys) and (has_value(plan, left=True) or has_value(plan, left=False))
            return by_key or _is_beside_others(plan.left) or _is_beside_others(plan.right)
        case _:
            return False


def _beside_a_value(join: Join) -> _Base | None:
    """The matches of rows with a value of all of them, or of their key."""
    width = len(join.left.schema)
    if join.residual is not None or join.kind not in ("inner", "left"):
        return None
    if has_value(join, left=False) and (join.keys or always_has_one_row(join.right)):
        return _Base(join, range(width))
    is_right = join.kind == "inner" and has_value(join, left=True) and (join.keys or always_has_one_row(join.left))
    return _Base(join, range(width, len(join.schema))) if is_right else None


def _has_several_comparisons(join: Join, part: Expr, base: _Base) -> bool:
    """Whether it is an OR of comparisons with values, of which no join looks rows up by all."""
    branches = [branch for branch in flattened("or", (part,)) if not columns_of(branch) <= set(base.own)]
    if len(branches) < 2 or has_outside_range(replace(join, residual=disjunction(branches))):
        return False
    leaves = [leaf for branch in branches for leaf in _leaves(branch) if not columns_of(leaf) <= set(base.own)]
    return all(_comparison(leaf, base.own) is not None for leaf in leaves)


def _leaves(condition: Expr) -> Iterator[Expr]:
    """The conditions that ANDs and ORs connect."""
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        for part in condition.arguments:
            yield from _leaves(part)
    else:
        yield condition


class _Questions:
    """What expressions ask of the values. width: of the join, whose columns the answers follow."""

    def __init__(self, base: _Base, width: int) -> None:
        self.base, self.width = base, width
        self.numbers: dict[_Question, int] = {}

    @property
    def columns(self) -> range:
        return range(self.width, self.width + len(self.numbers))

    def answer(self, expr: Expr, *, tested: bool) -> Expr:
        """The expression with answers. tested: whether FALSE and NULL are the same."""
        if columns_of(expr) <= set(self.base.own):
            return expr
        if (found := self._question(expr, tested=tested)) is not None:
            question, negated = found
            number = self.numbers.setdefault(question, len(self.numbers))
            nullable = question.is_comparison and question.condition.nullable
            column = Column(self.width + number, BOOLEAN, nullable, f"answer{number}", expr.span)
            return resolve("not", [column]) if negated else column
        if isinstance(expr, Case):
            branches = tuple((self.answer(test, tested=True), self.answer(value, tested=False)) for test, value in expr.branches)
            return replace(expr, branches=branches, otherwise=self.answer(expr.otherwise, tested=False))
        of_tests = tested and isinstance(expr, Call) and expr.function in ("and", "or")
        return map_children(expr, lambda part: self.answer(part, tested=of_tests))

    def _question(self, expr: Expr, *, tested: bool) -> tuple[_Question, bool] | None:
        """What a condition asks, and whether it is negated."""
        if self.base.values and (found := _comparison(expr, self.base.own)) is not None:
            return found
        if not tested or not isinstance(expr, Call) or can_fail(expr) or (self.base.values and expr.function in ("and", "or")):
            return None
        joined, condition = self.base.joined(self.base.rows, self.base.columns, expr)
        own = range(len(self.base.rows.schema)) if self.base.values else self.base.own
        return (_Question(expr), False) if all(_looks_up(joined, where, own) for where in (condition, _other(condition))) else None


def _comparison(expr: Expr, own: range) -> tuple[_Question, bool] | None:
    """What a comparison asks, and whether it is negated: `x < m` is the negation of `x >= m`."""
    if can_fail(expr) or (operands := inequality(expr)) is None:
        return None
    lesser, greater, strict = operands
    for point, bound, is_low in ((greater, lesser, True), (lesser, greater, False)):
        is_own = bool(columns_of(point)) and columns_of(point) <= set(own)
        if is_own and columns_of(bound) and columns_of(bound).isdisjoint(own) and _origin(point.type) is not None:
            return _Question(compared("greater" if strict == is_low else "greater_equal", point, bound), is_comparison=True), not is_low
    return None


def _other(condition: Expr) -> Expr:
    """The condition that is TRUE where this one is not."""
    return fold_condition(resolve("not", [resolve("is_true", [condition]) if condition.nullable else condition]))


def _looks_up(joined: Join, condition: Expr, own: Collection[int]) -> bool:
    """Whether rows are looked up by the condition.

    Not if a negation of the row's own columns decides it: the rows for which `x <> 1`, most as a rule, are listed at each change.
    """
    parts = flattened("or", (condition,))
    of_most = any(isinstance(part, Call) and part.function in ("not_equal", "not") and columns_of(part) <= set(own) for part in parts)
    return not of_most and has_range(replace(joined, kind="inner", residual=condition))


def _origin(type: Type) -> Expr | None:
    """Some value of a type."""
    if type.is_numeric:
        return cast(Literal(0, INT), type)
    return cast(Literal(date(1970, 1, 1), DATE), type) if type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) else None


def _in_turn(base: _Base, questions: _Questions, exprs: Sequence[Expr], conditions: Sequence[Expr]) -> _Split:
    """The rows after one question after the other, of which the conditions are TRUE, and the expressions."""
    rows, columns, in_order = base.rows, base.columns, list(questions.numbers)
    for number, question in enumerate(in_order):
        read = columns_of_all([*exprs, *conditions, *(each.condition for each in in_order[number + 1 :])])
        kept = [column for column in columns if column in read]
        own = named_columns(rows.schema, [columns[column] for column in kept])
        joined, condition = base.joined(rows, columns, question.condition)
        parts = _parts(joined, condition, is_comparison=question.is_comparison)
        rows = Union(tuple(Project(plan, (*own, (f"answer{number}", answer))) for plan, answer in parts))
        columns = {column: i for i, column in enumerate((*kept, questions.width + number))}

    def over(expr: Expr) -> Expr:
        return remap(expr, columns, rows.schema)

    split = tuple(map(over, exprs))
    return _Split(Filter(rows, over(conjunction(conditions))) if conditions else rows, split)


def _parts(joined: Join, condition: Expr, *, is_comparison: bool) -> Iterator[tuple[Plan, Expr]]:
    """The rows, each with its answer: those for which the condition is TRUE, the others, and, of a comparison, those of a NULL."""
    if not is_comparison:
        yield Filter(joined, condition), TRUE
        yield Filter(joined, _other(condition)), FALSE
        return
    assert isinstance(condition, Call)
    (point, bound), rows = condition.arguments, joined.left
    yield replace(joined, residual=condition), TRUE
    yield replace(joined, residual=replace(condition, function=OPPOSITE[condition.function])), FALSE
    if point.nullable:
        yield Filter(rows, is_null(point)), UNKNOWN
    if bound.nullable:  # all points, in the order of which the other parts look them up
        origin = _origin(point.type)
        assert origin is not None
        missing = Project(Filter(joined.right, is_null(shift(bound, -len(rows.schema)))), (("origin", origin),))
        some = shift(reference(missing.schema, 0), len(rows.schema))
        for function in ("greater_equal", "less"):
            yield Join(rows, missing, "inner", (), compared(function, point, some)), UNKNOWN
