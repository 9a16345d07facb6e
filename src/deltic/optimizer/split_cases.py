"""How a row compares with a value of all rows is a column of a union: of the rows above the value, and the others.

In `CASE WHEN x > (SELECT avg(x) FROM t) THEN 'above' ELSE 'below' END` a change of the average changes the rows between the old and the
new one. Each part of the union looks its rows up by the average, and has the same answer to the comparison; a projection of all rows
computed all of them again. Several comparisons, as in `WHERE x > a OR y > b`, are answered in turn, each over the union before it.
Of the value of a row's key, and beside others, one condition of CASE is answered, by which the matches are divided: a row may match the
values of several keys, and where other values change, each further union passes on its rows once more.
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
from deltic.expr.nodes import TRUE, Call, Case, Column, Expr, Literal, calls_python, children, columns_of
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
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Reference, Window, union_of
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
            below, exprs = plan.input, [expr for _, expr in plan.columns]
            split = _answered(below, exprs) or _by_one_condition(below, exprs)
            if split is None:
                return plan
            return Project(split.plan, tuple((name, expr) for (name, _), expr in zip(plan.columns, split.exprs, strict=True)))
        case Aggregate() if type(plan) is Aggregate:
            return _of_groups(plan)
        case _:
            return plan


def _of_groups(plan: Aggregate) -> Plan:
    """The aggregate, if its keys or the filter below it read the values; what its calls alone read is that of split_filters."""
    join = plan.input
    if isinstance(join, Join):
        own = _own_columns(join)
        if own is None or all(columns_of(expr) <= set(own) for _, expr in plan.keys):
            return plan
    answered = answered_groups(plan)
    if answered is not plan:
        return answered
    exprs = list(dict.fromkeys(expressions(plan)))
    return _over(plan, exprs, _by_one_condition(join, exprs))


def answered_groups(plan: Aggregate) -> Plan:
    """The aggregate over rows with the answers, if its expressions read the values in comparisons alone."""
    exprs = list(dict.fromkeys(expressions(plan)))
    return _over(plan, exprs, _answered(plan.input, exprs, {call.filter for _, call in plan.aggregates}))


def _over(plan: Aggregate, exprs: Sequence[Expr], split: _Split | None) -> Plan:
    """The aggregate over the rows of the split, if there is one. exprs: those of the aggregate."""
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
    """The rows that are joined with values. columns: by the column of the join, that of the rows. values: each with its columns."""

    rows: Plan
    columns: Mapping[int, int]
    values: Sequence[tuple[Plan, Mapping[int, int]]]


def _own_columns(join: Join) -> Collection[int] | None:
    """The columns of the rows that are joined with a value of all of them, or of their key; None for other joins."""
    if not join.keys:
        base = _beside_values(join)
        return base.columns.keys() if base.values else None
    width = len(join.left.schema)
    if join.residual is not None or join.kind not in ("inner", "left"):
        return None
    if has_value(join, left=False):
        return range(width)
    return range(width, len(join.schema)) if join.kind == "inner" and has_value(join, left=True) else None


def _by_one_condition(join: Plan, exprs: Sequence[Expr]) -> _Split | None:
    """The matches for which the one condition of CASE that reads the value is TRUE, and the others."""
    if not isinstance(join, Join) or is_stream(join) or any(map(calls_python, exprs)) or (columns := _own_columns(join)) is None:
        return None
    own = frozenset(columns)
    tests = dict.fromkeys(test for expr in exprs for test in conditions_of(expr) if not columns_of(test) <= own)
    if len(tests) != 1 or any(map(can_fail, tests)):
        return None
    (condition,) = tests
    answer = Column(len(join.schema), BOOLEAN, False, "answer")
    written = [with_answer(expr, condition, answer) for expr in exprs]
    read = columns_of_all(written)
    if not read <= own | {answer.index}:
        return None
    kept = sorted(read & own)
    columns_kept = named_columns(join.schema, kept)
    parts = _by_condition(join, condition, own, lambda matches, holds: Project(matches, (*columns_kept, ("answer", holds))))
    if parts is None:
        return None
    plan = union_of(parts)
    places = {column: i for i, column in enumerate((*kept, answer.index))}
    return _Split(plan, tuple(remap(expr, places, plan.schema) for expr in written))


def conditions_of(expr: Expr) -> Iterator[Expr]:
    """The conditions of CASE in an expression."""
    if isinstance(expr, Case):
        yield from (condition for condition, _ in expr.branches)
    for part in children(expr):
        yield from conditions_of(part)


def with_answer(expr: Expr, condition: Expr, answer: Expr) -> Expr:
    """The expression with an answer in the place of a condition of CASE, of which FALSE and NULL are the same."""
    if isinstance(expr, Case):
        expr = replace(expr, branches=tuple((answer if test == condition else test, value) for test, value in expr.branches))
    return map_children(expr, lambda part: with_answer(part, condition, answer))


def _answered(below: Plan, exprs: Sequence[Expr], tested: Collection[Expr | None] = ()) -> _Split | None:
    """The rows of a join below, and of the filter over it, with answers to all that the expressions ask of its values.

    tested: the expressions of which only the rows matter on which they are TRUE.
    """
    predicate = below.predicate if isinstance(below, Filter) else None
    join = _of_windows(below.input if isinstance(below, Filter) else below)
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
    """The rows, if they are joined with values of all of them, and with none of their keys."""
    base = _beside_values(join)
    return base if base.values and not _is_beside_others(base.rows) else None


@unbounded
def _is_beside_others(plan: Plan) -> bool:
    """Whether values of keys, or windows, are beside the rows: each change of one would pass its rows through all parts of the union."""
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


def _of_windows(plan: Plan) -> Plan:
    """A window of aggregates of all rows, as the join of the rows with them."""
    joined = with_groups(plan) if isinstance(plan, Window) and not plan.keys else None
    return plan if joined is None else joined


@unbounded
def _beside_values(plan: Plan) -> _Base:
    """The plan as rows and the values beside them."""
    plan = _of_windows(plan)
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
    """Whether a filter has an OR of comparisons with values, of which no join looks rows up by all."""
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
    required = _required(condition, asked.width)
    questions = sorted(asked.numbers, key=lambda question: asked.numbers[question] not in required)
    read = [columns_of_all([*exprs, *(() if condition is None else (condition,))])]  # after the last question, before it, …
    for question in reversed(questions[1:]):
        read.append(read[-1] | columns_of(question.condition))
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


def _with_answer(base: _Base, rows: _Rows, question: _Question, kept: Sequence[int], name: str, required: Expr | None) -> _Rows | None:
    """The kept columns of the rows, and the answer after them; None if no join looks rows up by the question.

    required: the only answer with which rows are needed.
    """
    joined, columns = _joined(base, rows, columns_of(question.condition))
    own = named_columns(rows.plan.schema, [rows.columns[column] for column in kept])

    def part(plan: Plan, answer: Expr) -> Project:
        return Project(plan, (*own, (name, answer)))

    if question.point is None or question.bound is None:
        parts = _by_condition(joined, remap(question.condition, columns, joined.schema), range(len(rows.plan.schema)), part)
    else:
        bound = shift(remap(question.bound, columns, joined.schema), -len(rows.plan.schema))
        parts = _by_bound(joined, remap(question.condition, columns, joined.schema), rows.over(question.point), bound, part)
    if parts is None:
        return None
    needed = [each for each in parts if required is None or not isinstance(each.columns[-1][1], Literal) or each.columns[-1][1] == required]
    return _Rows(union_of(needed), {column: i for i, column in enumerate(kept)})


def _joined(base: _Base, rows: _Rows, read: Collection[int]) -> tuple[Join, Mapping[int, int]]:
    """The rows with the value, or with those that are read, and the place of each column."""
    width = len(rows.plan.schema)
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


def _by_condition(joined: Join, condition: Expr, own: Collection[int], part: Callable[[Plan, Expr], Project]) -> list[Project] | None:
    """The rows for which the condition is TRUE, and the others; None unless both are looked up by the value.

    own: the columns of the join that are not those of the value.
    """
    other = fold_condition(resolve("not", [resolve("is_true", [condition]) if condition.nullable else condition]))
    for where in (condition, other):
        if not has_range(replace(joined, kind="inner", residual=where)) or _is_of_most(where, own):
            return None
    return [part(Filter(joined, condition), TRUE), part(Filter(joined, other), FALSE)]


def _is_of_most(condition: Expr, own: Collection[int]) -> bool:
    """Whether a negation of the row's own columns decides it: the rows for which `x <> 1`, most as a rule, are listed at each change."""
    parts = flattened("or", (condition,))
    return any(isinstance(part, Call) and part.function in ("not_equal", "not") and columns_of(part) <= set(own) for part in parts)


def _by_bound(joined: Join, condition: Expr, point: Expr, bound: Expr, part: Callable[[Plan, Expr], Project]) -> list[Project]:
    """The rows whose point is past the bound, the others, and those for which one of both is NULL.

    condition: the comparison, over the join. bound: over the values.
    """
    assert isinstance(condition, Call)
    rows, value = joined.left, joined.right
    opposite = replace(condition, function=OPPOSITE[condition.function])
    parts = [part(replace(joined, residual=condition), TRUE), part(replace(joined, residual=opposite), FALSE)]
    if point.nullable:
        parts.append(part(Filter(rows, is_null(point)), UNKNOWN))
    if bound.nullable:  # all points, in the order of which the other parts look them up
        origin = _origin(point.type)
        assert origin is not None
        missing = Project(Filter(value, is_null(bound)), (("origin", origin),))
        some = shift(reference(missing.schema, 0), len(rows.schema))
        for function in ("greater_equal", "less"):
            parts.append(part(Join(rows, missing, "inner", (), compared(function, point, some)), UNKNOWN))
    return parts
