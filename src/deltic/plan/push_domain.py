"""Pushes a domain down into a dependent plan, by one rule for each operator.

The result has the plan's columns, then those of the domain: for each row of the domain, the rows that the plan has for it. Each operator is
evaluated for each value of the domain by itself: it becomes a part of the keys of groups, top-k, windows and joins. Where equalities of a
filter give all columns of the domain, their other sides take its place, and the result has the rows for further values, which the join
with the left side drops. This is done only if nothing in the plan can fail on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deltic.errors import Unsupported
from deltic.expr import Call, Expr, Literal, can_fail, resolve
from deltic.expr.nodes import OuterColumn, outer_columns
from deltic.expr.table_functions import BesideRow
from deltic.plan.aggregates import aggregate_value
from deltic.plan.columns import choose_columns, conjunction, conjuncts, is_not_null, map_children, named_columns, reference, remap
from deltic.plan.equalities import EQUAL, null_safe, split
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    ByWatermark,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Generate,
    Join,
    Plan,
    Project,
    Recursion,
    Reference,
    SetOperation,
    TemporalFilter,
    TickRecursion,
    TopK,
    Union,
    Values,
    Window,
    inputs,
    references,
)
from deltic.plan.recursion import as_declared
from deltic.plan.walk import expressions, map_expressions, map_inputs
from deltic.schema import Schema
from deltic.stacks import unbounded

if TYPE_CHECKING:
    from deltic.errors import Span


@once_per_node
def outer_of(plan: Plan) -> frozenset[OuterColumn]:
    """The columns of enclosing queries that the plan reads."""
    own = (outer_columns(expr) for expr in expressions(plan))
    return frozenset[OuterColumn]().union(*own, *map(outer_of, inputs(plan)))


def depends(plan: Plan, numbers: Iterable[int]) -> bool:
    """Whether the plan reads OuterColumns of these numbers."""
    return not {one.number for one in outer_of(plan)}.isdisjoint(numbers)


@dataclass(frozen=True, slots=True)
class Pushed:
    """A plan with the columns of the domain after its own. nullable: which of these can be NULL, whatever the schema says."""

    plan: Plan
    nullable: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """Distinct rows, whose column i has the values of the OuterColumn of number numbers[i]. span: of a column that a subquery reads.

    exact: no rows for other values may be computed, since an expression could fail on them, or a recursion have no end.
    subquery: the place of the subquery.
    relations: those of the recursions in whose bodies it is pushed down, with its columns after theirs.
    """

    plan: Plan
    numbers: tuple[int, ...]
    exact: bool
    span: Span | None
    subquery: Span | None
    relations: Mapping[str, Reference] = field(default_factory=dict)
    done: dict[Plan, Pushed] = field(default_factory=dict)

    def in_place(self, expr: Expr, schema: Schema, start: int, positions: Mapping[int, int] | None = None) -> Expr:
        """The expression over rows of `schema` that have the domain's columns from `start` on. positions: of the columns that it reads."""
        moved = remap(expr, positions or {i: i for i in range(len(schema))}, schema)
        return self._filled(moved, schema, start)

    def _filled(self, expr: Expr, schema: Schema, start: int) -> Expr:
        if not isinstance(expr, OuterColumn):
            return map_children(expr, lambda part: self._filled(part, schema, start))
        if expr.number not in self.numbers:
            return expr
        return replace(reference(schema, start + self.numbers.index(expr.number)), span=expr.span)

    def columns(self, schema: Schema, start: int) -> list[tuple[str, Expr]]:
        """Those of the domain in rows of `schema`."""
        return [(schema[start + i].name, reference(schema, start + i)) for i in range(len(self.numbers))]

    def reaches(self, plan: Plan) -> bool:
        """Whether the plan has rows of its own for each row of the domain."""
        return depends(plan, self.numbers) or any(name in self.relations for name, _ in references(plan))

    def reads(self, exprs: Iterable[Expr]) -> bool:
        return any(one.number in self.numbers for expr in exprs for one in outer_columns(expr))


@unbounded
def pushed(plan: Plan, domain: Domain) -> Pushed:
    """The plan for all rows of the domain. Raises Unsupported."""
    if plan not in domain.done:
        domain.done[plan] = _pushed(plan, domain) if domain.reaches(plan) else _crossed(plan, domain)
    return domain.done[plan]


def _crossed(plan: Plan, domain: Domain) -> Pushed:
    """The rows of a plan that does not depend on the domain, for each of its rows."""
    nullable = tuple(column.nullable for column in domain.plan.schema)
    if isinstance(plan, Values) and len(plan.rows) == 1:
        constants = [(f.name, Literal(value, f.type)) for f, value in zip(plan.schema, plan.rows[0], strict=True)]
        if all(f.nullable == constant.nullable for f, (_, constant) in zip(plan.schema, constants, strict=True)):
            return Pushed(Project(domain.plan, (*constants, *domain.columns(domain.plan.schema, 0))), nullable)
    return Pushed(Join(plan, domain.plan, "inner", span=domain.subquery), nullable)


def _pushed(plan: Plan, domain: Domain) -> Pushed:
    match plan:
        case Project():
            below = pushed(plan.input, domain)
            columns = _columns(plan.columns, below.plan.schema, domain)
            return Pushed(Project(below.plan, (*columns, *_last(below, domain))), below.nullable)
        case Filter():
            return _filtered(plan, domain)
        case Join():
            return _joined(plan, domain)
        case Aggregate():
            return _aggregated(plan, domain)
        case Distinct():
            below = pushed(plan.input, domain)
            return Pushed(Distinct(below.plan), below.nullable)
        case Union() | SetOperation():
            parts = [pushed(part, domain) for part in inputs(plan)]
            rows = iter(part.plan for part in parts)
            nullable = tuple(any(flags) for flags in zip(*(part.nullable for part in parts), strict=True))
            return Pushed(map_inputs(plan, lambda _: next(rows)), nullable)
        case TopK():
            below = pushed(plan.input, domain)
            over = _over(plan, below, domain)
            assert isinstance(over, TopK)
            return Pushed(replace(over, keys=(*over.keys, *(expr for _, expr in _last(below, domain)))), below.nullable)
        case TemporalFilter() | ByWatermark():
            below = pushed(plan.input, domain)
            return Pushed(_over(plan, below, domain), below.nullable)
        case Expand() | FlatMap():
            below = pushed(plan.input, domain)
            return _reordered(_over(plan, below, domain), len(plan.input.schema), len(plan.schema), below.nullable, domain)
        case Generate() if isinstance(plan.function.call, BesideRow):
            return _generated(plan, plan.function.call, domain)
        case Window():
            below = pushed(plan.input, domain)
            over = _over(plan, below, domain)
            assert isinstance(over, Window)
            of_each = replace(over, keys=(*over.keys, *(expr for _, expr in _last(below, domain))))
            return _reordered(of_each, len(plan.input.schema), len(plan.schema), below.nullable, domain)
        case Reference():
            return Pushed(replace(domain.relations[plan.name], span=plan.span), tuple(one.nullable for one in domain.plan.schema))
        case Recursion() if not isinstance(plan, TickRecursion):
            return _recursive(plan, domain)
        case _:
            what = type(plan).__name__
            message = f"a correlated subquery is not supported with {_WORDS.get(what, what)}"
            raise Unsupported(message, span=domain.span, remedy="join the two tables")


def _generated(plan: Generate, call: BesideRow, domain: Domain) -> Pushed:
    """The rows that a user's table function returns; the domain's columns stand before its arguments, beside the columns that it keeps."""
    below, kept, width, count = pushed(plan.input, domain), call.kept, len(plan.input.schema), len(domain.numbers)
    schema = below.plan.schema
    order = [*range(kept), *range(width, width + count), *range(kept, width)]
    rows = choose_columns(below.plan, order)
    returned = Schema((*plan.returned.fields[:kept], *schema.fields[width:], *plan.returned.fields[kept:]))
    beside = replace(plan.function, parameters=(rows.schema.names,), width=len(returned), call=replace(call, kept=kept + count))
    return _reordered(Generate(rows, beside, returned), kept, len(plan.schema), below.nullable, domain)


def _recursive(plan: Recursion, domain: Domain) -> Pushed:
    """The recursions of all rows of the domain as one: each relation has the domain's columns, which the base has and the steps keep."""
    schemas = {name: Schema((*body.schema, *domain.plan.schema)) for name, body in plan.relations}
    while True:
        relations = {name: Reference(name, schema) for name, schema in schemas.items()}
        inside = replace(domain, exact=True, relations={**domain.relations, **relations}, done={})
        bodies = {name: pushed(body, inside).plan for name, body in plan.relations}
        wider = {name: schema.with_nulls_of(bodies[name].schema) for name, schema in schemas.items()}
        if wider == schemas:
            break
        schemas = wider
    declared = tuple((name, as_declared(body, schemas[name])) for name, body in bodies.items())
    return Pushed(replace(plan, relations=declared), tuple(one.nullable for one in domain.plan.schema))


_WORDS = {"TickRecursion": "a feedback over ticks", "OverTicks": "functions over ticks", "Generate": "a table function in Python"}


def _over(plan: Plan, below: Pushed, domain: Domain) -> Plan:
    """The node over an input with the domain's columns at its end."""
    schema, start = below.plan.schema, len(inputs(plan)[0].schema)
    return map_inputs(map_expressions(plan, lambda expr: domain.in_place(expr, schema, start)), lambda _: below.plan)


def _last(below: Pushed, domain: Domain) -> list[tuple[str, Expr]]:
    schema = below.plan.schema
    return domain.columns(schema, len(schema) - len(domain.numbers))


def _columns(columns: Iterable[tuple[str, Expr]], schema: Schema, domain: Domain) -> list[tuple[str, Expr]]:
    start = len(schema) - len(domain.numbers)
    return [(name, domain.in_place(expr, schema, start)) for name, expr in columns]


def _reordered(plan: Plan, start: int, width: int, nullable: tuple[bool, ...], domain: Domain) -> Pushed:
    """The plan, whose domain's columns begin at `start`, with these at the end. width: the number of the others."""
    schema, count = plan.schema, len(domain.numbers)
    others = [i for i in range(width + count) if not start <= i < start + count]
    own = named_columns(schema, others)
    return Pushed(Project(plan, (*own, *domain.columns(schema, start))), nullable)


def _filtered(plan: Filter, domain: Domain) -> Pushed:
    if not domain.exact and not domain.reaches(plan.input) and (given := _given(plan, domain)) is not None:
        return given
    below = pushed(plan.input, domain)
    return Pushed(_over(plan, below, domain), below.nullable)


def _given(plan: Filter, domain: Domain) -> Pushed | None:
    """The rows with the values of the domain that equalities give; None if they do not give all."""
    parts = conjuncts(plan.predicate)
    values: dict[int, tuple[Expr, Expr]] = {}
    for part in parts:
        pair = _gives(part, domain)
        if pair is not None:
            values.setdefault(pair[0], (pair[1], part))
    if len(values) < len(domain.numbers):
        return None
    used = [part for _, part in values.values()]
    ordered = [values[number][0] for number in domain.numbers]
    schema = plan.input.schema
    fields = domain.plan.schema
    own = named_columns(schema)
    rows = Project(plan.input, (*own, *((field.name, value) for field, value in zip(fields, ordered, strict=True))))
    start = len(schema)
    kept = [domain.in_place(part, rows.schema, start) for part in parts if part not in used]
    present = [is_not_null(reference(rows.schema, start + i)) for i, value in enumerate(ordered) if value.nullable]
    return Pushed(Filter(rows, conjunction([*present, *kept])) if present or kept else rows, (False,) * len(ordered))


def _gives(part: Expr, domain: Domain) -> tuple[int, Expr] | None:
    """(the number of an OuterColumn, what it is equal to)."""
    if not (isinstance(part, Call) and part.function == EQUAL):
        return None
    for outer, value in (part.arguments, part.arguments[::-1]):
        if isinstance(outer, OuterColumn) and outer.number in domain.numbers and not outer_columns(value) and not value.type.has_zeros:
            return outer.number, value
    return None


_LEFT = ("left", "semi", "anti", "not_in")
"""The kinds of joins whose left rows decide for which values of the domain there are rows."""


def _joined(plan: Join, domain: Domain) -> Pushed:
    """One side or both for each row of the domain; if both, they are joined by it too."""
    values = () if plan.value is None else (plan.value,)
    pairs = (*plan.keys, *values)
    left = domain.reaches(plan.left) or domain.reads(a for a, _ in pairs) or plan.kind in (*_LEFT, "full")
    right = domain.reaches(plan.right) or domain.reads(b for _, b in pairs) or plan.kind in ("right", "full")
    left = left or not right
    sides = [pushed(side, domain) if each else None for side, each in ((plan.left, left), (plan.right, right))]
    rows = [side.plan if side is not None else old for side, old in zip(sides, (plan.left, plan.right), strict=True)]
    widths = len(plan.left.schema), len(plan.right.schema)
    schemas = rows[0].schema, rows[1].schema
    both = Schema(schemas[0].fields + schemas[1].fields)
    places = {i: i for i in range(widths[0])} | {widths[0] + i: len(schemas[0]) + i for i in range(widths[1])}
    start = widths[0] if left else len(schemas[0]) + widths[1]
    keys = [(domain.in_place(a, schemas[0], widths[0]), domain.in_place(b, schemas[1], widths[1])) for a, b in pairs]
    own = keys[: len(plan.keys)]
    residual = None if plan.residual is None else domain.in_place(plan.residual, both, start, places)
    if residual is not None:
        more, residual = split(residual, len(schemas[0]))
        own += more
    if sides[0] is not None and sides[1] is not None:
        own += same_values(sides[0], sides[1], domain)
    joined = replace(plan, left=rows[0], right=rows[1], keys=tuple(own), residual=residual, value=keys[-1] if values else None)
    if plan.kind in ("semi", "anti", "not_in"):
        assert sides[0] is not None
        return Pushed(joined, sides[0].nullable)
    return _of_both(plan, joined, sides, domain)


def same_values(left: Pushed, right: Pushed, domain: Domain) -> list[tuple[Expr, Expr]]:
    """Keys of a join of two plans by the columns of the domain."""
    plain: list[tuple[Expr, Expr]] = []
    others: list[tuple[Expr, Expr]] = []
    for i, ((_, a), (_, b)) in enumerate(zip(_last(left, domain), _last(right, domain), strict=True)):
        (others if left.nullable[i] and right.nullable[i] else plain).append((a, b))
    return [*plain, *null_safe([a for a, _ in others], [b for _, b in others])]


def _of_both(plan: Join, joined: Join, sides: Sequence[Pushed | None], domain: Domain) -> Pushed:
    """The columns of both sides, and of the domain once: those of the side of which all rows remain."""
    schema, (left, right), count = joined.schema, sides, len(domain.numbers)
    width, from_right = len(plan.left.schema), len(joined.left.schema)
    own = [*range(width), *range(from_right, from_right + len(plan.right.schema))]
    of_left, of_right = domain_at(schema, width, count), domain_at(schema, from_right + len(plan.right.schema), count)
    if left is not None and right is not None and plan.kind == "full":
        columns = [resolve("coalesce", [a, b]) for a, b in zip(of_left, of_right, strict=True)]
        nullable = tuple(a or b for a, b in zip(left.nullable, right.nullable, strict=True))
    elif left is None or plan.kind == "right":
        assert right is not None
        columns, nullable = list(of_right), right.nullable
    else:
        columns = list(of_left)
        both = right is not None and plan.kind == "inner"
        nullable = tuple(a and (not both or b) for a, b in zip(left.nullable, right.nullable if right else left.nullable, strict=True))
    names = domain.plan.schema.names
    return Pushed(Project(joined, (*named_columns(schema, own), *zip(names, columns, strict=True))), nullable)


def domain_at(schema: Schema, start: int, count: int) -> list[Expr]:
    """The columns from `start` on, as far as there are some."""
    return [reference(schema, start + i) for i in range(count) if start + i < len(schema)]


def _aggregated(plan: Aggregate, domain: Domain) -> Pushed:
    """Groups for each row of the domain; without keys exactly one, even where there are no rows."""
    below = pushed(plan.input, domain)
    over = _over(plan, below, domain)
    assert isinstance(over, Aggregate)
    grouped = replace(over, keys=(*over.keys, *_last(below, domain)))
    if plan.keys:
        return _reordered(grouped, len(plan.keys), len(plan.schema), below.nullable, domain)
    groups, count = Pushed(_reordered(grouped, 0, len(plan.schema), below.nullable, domain).plan, below.nullable), len(domain.numbers)
    every = Pushed(domain.plan, tuple(column.nullable for column in domain.plan.schema))
    joined = Join(domain.plan, groups.plan, "left", tuple(same_values(every, groups, domain)))
    values = over_nothing(plan, [reference(joined.schema, count + i) for i in range(len(plan.schema))])
    named = zip(plan.schema.names, values, strict=True)
    return Pushed(Project(joined, (*named, *domain.columns(joined.schema, 0))), every.nullable)


def over_nothing(plan: Aggregate, columns: Sequence[Expr]) -> list[Expr]:
    """The aggregates of groups in an outer join, which are NULL where there are no rows, as what they are there: a COUNT is 0."""
    return [_or_default(call, column) for (_, call), column in zip(plan.aggregates, columns, strict=True)]


def _or_default(call: AggregateCall, column: Expr) -> Expr:
    if call.nullable:
        return column
    return resolve("coalesce", [column, Literal(aggregate_value(call, ()), call.type)])


@once_per_node
def surely_evaluates(plan: Plan, numbers: tuple[int, ...]) -> bool:
    """Whether no expression in the dependent part of the plan can fail."""
    if not depends(plan, numbers):
        return True
    if isinstance(plan, Generate):
        return False
    return not any(map(can_fail, expressions(plan))) and all(surely_evaluates(part, numbers) for part in inputs(plan))
