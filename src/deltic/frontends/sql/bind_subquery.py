"""Binds subqueries in expressions: scalar ones, EXISTS and IN, anywhere in SELECT, WHERE, HAVING, ORDER BY, ON and in aggregates.

Each becomes a column that a dependent join adds to the rows of its query, before the expressions that read it are evaluated. While the
query is bound, the column has an index from SUBQUERY on. Subqueries that are whole conditions of WHERE and HAVING do not come here: they
become semi and anti joins (bind_condition).

As in Spark, IN is TRUE or FALSE as a value, never NULL: FALSE where the standard says NULL. So is NOT IN, and NOT before AND and OR with
an IN is moved inwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Call, Column, Expr, Literal, children, columns_of, resolve
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.functions.subqueries import ONLY_ROW
from deltic.expr.nodes import CHAINS, OuterColumn
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import bind_aggregate
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.frontends.sql.scope import KEYED, SUBQUERY, Outer, reads_subqueries
from deltic.plan.columns import columns_of_all, conjunction, conjuncts, is_null, map_children, map_columns, reference
from deltic.plan.equalities import EQUAL
from deltic.plan.nodes import Aggregate, AggregateCall, DependentJoin, Distinct, Filter, Plan, Project, Table, TopK, Values
from deltic.plan.null_patterns import possible
from deltic.plan.streams import is_stream
from deltic.plan.subquery_nodes import DependentKind, outer_number
from deltic.schema import BIGINT, BOOLEAN, Field

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

Over = Callable[[Expr], Expr]
SUBQUERIES: Final = (tree.ScalarQuery, tree.ExistsTest, tree.InQuery, tree.QuantifiedTest)
_ORDERINGS: Final = ("<", "<=", ">", ">=")
Subquery = tree.ScalarQuery | tree.ExistsTest | tree.InQuery | tree.QuantifiedTest


def has_subquery(node: object) -> bool:
    """Whether there is a subquery in the expression."""
    return any(isinstance(part, SUBQUERIES) for part in tree.walk(node, lambda part: not isinstance(part, tree.QUERIES)))


def outer_of(binder: ExpressionBinder) -> Outer:
    """The row for which a subquery in the binder's clause is evaluated; in the body of a function its parameters."""
    if binder.body is None:
        return Outer(binder.scope, partial(bind_aggregate, binder))
    return Outer(binder.body.scope, given=tuple(binder.body.values.values()))


@dataclass(frozen=True, slots=True)
class _Added:
    """A dependent join that adds columns to the rows of a query: those from `start` on.

    outer: the numbers of the OuterColumns in `rows`, and what they are over the rows of the query. span: the place of the subquery.
    """

    start: int
    kind: DependentKind
    rows: Plan
    outer: tuple[tuple[int, Expr], ...]
    span: Span | None = None

    @property
    def columns(self) -> tuple[Field, ...]:
        return (Field("mark", BOOLEAN, False),) if self.kind == "mark" else self.rows.schema.fields


@dataclass(slots=True)
class Subqueries:
    """The subqueries of one SELECT that are values in its expressions.

    places: the columns of those that are joined. starts: those of the first column of each subquery, by its text. first: of a subquery that
    occurs twice, the columns of its first occurrence. single: the only subquery so far.
    """

    env: Environment
    bind_query: BindQuery
    added: list[_Added] = field(default_factory=list)
    places: dict[int, Column] = field(default_factory=dict)
    starts: dict[object, list[int]] = field(default_factory=dict)
    first: dict[int, int] = field(default_factory=dict)
    single: list[tuple[Subquery, bool, int]] = field(default_factory=list)

    def bind(self, binder: ExpressionBinder, node: Subquery) -> Expr:
        """The value of a subquery."""
        if binder.lambdas:
            raise Unsupported("a subquery is not supported in a lambda", span=node.span, remedy="select its value in FROM, and read that")
        start, before = self._end(), len(self.added)
        value = self._bound(binder, node)
        self.added[before:] = [one if one.span is not None else replace(one, span=node.span) for one in self.added[before:]]
        self._find_first(node, start, binder.body is None)
        return value

    def _bound(self, binder: ExpressionBinder, node: Subquery) -> Expr:
        outer = outer_of(binder)
        env = self.env if binder.body is None else self.env.closed()
        rows = self.bind_query(node.query, env.within(outer))
        match node:
            case tree.ScalarQuery():
                return self._value(binder, node, rows, outer)
            case tree.ExistsTest():
                return self._mark(binder, rows, outer, ())
            case tree.InQuery():
                return self._member(binder, node, rows, outer)
            case tree.QuantifiedTest():
                return self._quantified(binder, node, rows, outer)

    def _value(self, binder: ExpressionBinder, node: tree.ScalarQuery, rows: Plan, outer: Outer) -> Expr:
        _check_one_column(node, rows)
        most, always = _rows(rows)
        if most:
            kind: DependentKind = "inner" if always else "left"
            value = self._add(binder, kind, rows, outer)[0]
            return replace(value, nullable=value.nullable or not always, span=node.span)
        of = reference(rows.schema, 0)
        values = ((of.name, AggregateCall("any_value", (of,), of.type, True)),)
        if _is_of_one_key(rows):
            return replace(self._add(binder, "inner", Aggregate(rows, (), values), outer)[0], span=node.span)
        calls = (("rows", AggregateCall("count", (), BIGINT, False)), *values)
        count, value = self._add(binder, "inner", Aggregate(rows, (), calls), outer)
        return resolve(ONLY_ROW, [value, count], node.span)

    def _quantified(self, binder: ExpressionBinder, node: tree.QuantifiedTest, rows: Plan, outer: Outer) -> Expr:
        """A comparison with ANY or ALL rows: one with the least or the greatest of them. NULL where a NULL among them could decide."""
        _check_one_column(node, rows)
        value, other = _equal(binder.bind(node.operand), reference(rows.schema, 0, node.span), node.span, node.operator)
        operator = node.operator.lower()
        check_ordered(node.operator, other.type, node.span)
        extremes = (("max",) if (operator[0] == "<") != node.every else ("min",)) if operator in _ORDERINGS else ("min", "max")
        compared, is_empty, has_null = self._compared(binder, rows, other, extremes, outer)
        tests = (operator,) if len(compared) == 1 else ("<=", ">=") if node.every else (">", "<")  # another value is less or greater
        each = [resolve(test, [value, one], node.span) for test, one in zip(tests, compared, strict=True)]
        holds = each[0] if len(each) == 1 else resolve("and" if node.every else "or", each)
        unknown = Literal(None, BOOLEAN)
        if node.every:  # decided by a FALSE; TRUE without rows
            return resolve("or", [is_empty, resolve("and", [holds, resolve("or", [resolve("not", [has_null]), unknown])])], node.span)
        return resolve("and", [resolve("not", [is_empty]), resolve("or", [holds, resolve("and", [has_null, unknown])])], node.span)

    def _compared(
        self, binder: ExpressionBinder, rows: Plan, of: Expr, extremes: Sequence[str], outer: Outer
    ) -> tuple[Sequence[Expr], Expr, Expr]:
        """(the least or greatest values of the rows, whether there are no rows, whether there is a NULL among them).

        The tests are columns, since their counts change with every row.
        """
        calls = [(name, AggregateCall(name, (of,), of.type, True)) for name in extremes]
        counts = [("present", AggregateCall("count", (of,), BIGINT, False)), ("rows", AggregateCall("count", (), BIGINT, False))]
        total = Aggregate(rows, (), (*calls, *counts))
        *values, present, count = [reference(total.schema, i) for i in range(len(total.schema))]
        tests = [("empty", resolve("=", [count, Literal(0, BIGINT)])), ("missing", resolve("<", [present, count]))]
        tested = Project(total, (*zip(extremes, values, strict=True), *tests))
        *compared, is_empty, has_null = self._add(binder, "inner", tested, outer)
        return compared, is_empty, has_null

    def _member(self, binder: ExpressionBinder, node: tree.InQuery, rows: Plan, outer: Outer) -> Expr:
        pairs = members(binder, node, rows)
        added = tuple((OuterColumn(outer_number(), value.type, value.nullable, "", value.span), value) for value, _ in pairs)
        own = tuple((one.number, value) for one, value in added)
        equal = [Call(EQUAL, (one, other), BOOLEAN, True, node.span) for (one, _), (_, other) in zip(added, pairs, strict=True)]
        if not node.negated:
            return self._mark(binder, Filter(rows, conjunction(equal)), outer, own)
        if len(pairs) > 1:
            likely = [possible(resolve("=", [one, other], node.span)) for (one, _), (_, other) in zip(added, pairs, strict=True)]
            return resolve("not", [self._mark(binder, Filter(rows, conjunction(likely)), outer, own)], node.span)
        ((value, other),) = pairs
        marks: list[Expr] = [self._mark(binder, Filter(rows, equal[0]), outer, own)]
        if value.nullable:
            missing = is_null(value)
            marks.append(resolve("and", [missing, self._mark(binder, rows, outer, ())]))
        if other.nullable:
            marks.append(self._mark(binder, Filter(rows, is_null(other)), outer, ()))
        return resolve("not", [marks[0] if len(marks) == 1 else resolve("or", marks)], node.span)

    def _mark(self, binder: ExpressionBinder, rows: Plan, outer: Outer, own: tuple[tuple[int, Expr], ...]) -> Expr:
        return self._add(binder, "mark", rows, outer, own)[0]

    def _add(
        self, binder: ExpressionBinder, kind: DependentKind, rows: Plan, outer: Outer, own: tuple[tuple[int, Expr], ...] = ()
    ) -> list[Column]:
        """The columns that the join will add."""
        given = tuple((one.number, outer.over(column)) for column, one in outer.columns.values())
        start = self._end()
        added = _Added(start, kind, rows, (*given, *own))
        self.added.append(added)
        return [Column(start + i, one.type, one.nullable, one.name) for i, one in enumerate(added.columns)]

    def _end(self) -> int:
        """The number of the next column."""
        return self.added[-1].start + len(self.added[-1].columns) if self.added else SUBQUERY

    def _find_first(self, node: Subquery, start: int, written: bool) -> None:
        """Finds an earlier subquery that has the text of this one, and the same values where it reads the query's rows.

        written: it is in the query's text, where names may mean CTEs, and not in the body of a function.
        """
        if not self.single and not self.starts:
            self.single.append((node, written, start))  # its text, with those of all subqueries in it, is needed if another follows
            return
        for one, in_text, at in self.single:
            self.starts[tree.without_places(one), in_text] = [at]
        self.single.clear()
        starts = self.starts.setdefault((tree.without_places(node), written), [])
        for earlier in starts:
            moved = {start + i: earlier + i for i in range(self._end() - start)}
            if self._read_by(earlier, earlier + len(moved)) == self._read_by(start, self._end()):
                self.first |= moved
                return
        starts.append(start)

    def _read_by(self, start: int, end: int) -> list[Expr]:
        """What the subqueries with these columns read of the query's rows."""
        return [self.in_first_form(expr) for added in self.added if start <= added.start < end for _, expr in added.outer]

    def in_first_form(self, expr: Expr) -> Expr:
        """The expression with the first occurrence of each subquery."""
        return map_columns(expr, lambda column: replace(column, index=self.first.get(column.index, column.index)))

    def keyed(self, plan: Plan, keys: Sequence[Expr]) -> tuple[Plan, list[Expr], Keyed]:
        """(the rows with the subqueries that keys of GROUP BY read, the keys over them, what rewrites expressions over the keys).

        A key with a subquery is represented by a column of its own in the rewritten expressions.
        """
        plan = self.joined(plan, keys)
        filled = [self.filled(key) for key in keys]
        self.places.clear()  # a subquery outside the keys is evaluated for the groups
        return plan, filled, Keyed(self, tuple(keys))

    def joined(self, plan: Plan, exprs: Iterable[Expr], over: Over = lambda expr: expr) -> Plan:
        """The plan with the columns of the subqueries that the expressions read. over: rewrites what they read over the plan's rows."""
        for expr in exprs:
            for index in sorted(columns_of(expr)):
                if index >= SUBQUERY and index not in self.places:
                    plan = self._join(plan, self._of(index), over)
        return plan

    def _of(self, index: int) -> _Added:
        return next(one for one in reversed(self.added) if one.start <= index)

    def _join(self, plan: Plan, added: _Added, over: Over) -> Plan:
        plan = self.joined(plan, [expr for _, expr in added.outer], over)
        outer = tuple((number, self.filled(over(expr))) for number, expr in added.outer)
        joined = self.env.unnest(DependentJoin(plan, added.rows, added.kind, outer, span=added.span))
        first = len(joined.schema) - len(added.columns)
        self.places |= {added.start + i: reference(joined.schema, first + i) for i in range(len(added.columns))}
        return joined

    def filled(self, expr: Expr) -> Expr:
        """The expression with the columns of the subqueries that are joined."""
        if not reads_subqueries(expr):
            return expr
        return map_columns(
            expr, lambda column: replace(self.places[column.index], span=column.span) if column.index >= SUBQUERY else column
        )

    def reads(self, index: int) -> frozenset[int]:
        """The columns of the query's rows for which the subquery with the column `index` is evaluated."""
        read = columns_of_all(expr for _, expr in self._of(index).outer)
        return read.union(*(self.reads(one) for one in read if one >= SUBQUERY)) - {one for one in read if one >= SUBQUERY}


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rewrites expressions over the keys of GROUP BY that read subqueries."""

    subqueries: Subqueries
    written: tuple[Expr, ...]

    @property
    def keys(self) -> list[Expr]:
        """The keys, with a column for each that reads a subquery."""
        return [Column(KEYED + i, key.type, key.nullable) if reads_subqueries(key) else key for i, key in enumerate(self.written)]

    def over(self, expr: Expr) -> Expr:
        """The expression, with those columns for the keys in it."""
        if not reads_subqueries(expr):
            return expr
        plain = self.subqueries.in_first_form(expr)
        for own, key in zip(self.keys, self.written, strict=True):
            if not reads_subqueries(key):
                continue
            same = self.subqueries.in_first_form(key)
            if same == plain:
                return own
            if isinstance(expr, Call) and _begins_with(plain, same):
                return replace(expr, arguments=(own, *map(self.over, expr.arguments[len(children(same)) :])))
        return map_children(expr, self.over)


def _begins_with(chain: Expr, part: Expr) -> bool:
    """Whether the chain of one operator, such as k + 1 + 2, begins with the part, such as k + 1."""
    if not (isinstance(chain, Call) and isinstance(part, Call) and chain.function == part.function and part.function in CHAINS):
        return False
    return chain.arguments[: len(part.arguments)] == part.arguments


def _check_one_column(node: Subquery, rows: Plan) -> None:
    if len(rows.schema) != 1:
        expected = f"one column, found {len(rows.schema)}"
        raise TypeMismatch("a subquery that is a value has several columns", span=node.span, expected=expected)


def members(binder: ExpressionBinder, node: tree.InQuery, rows: Plan) -> list[tuple[Expr, Expr]]:
    """(value, column of the subquery) of IN, of one type."""
    row = tree.unnest(node.operand) if isinstance(node.operand, tree.Parenthesised) else node.operand
    values = [binder.bind(part) for part in (row.items if isinstance(row, tree.RowValue) else (row,))]
    if len(values) != len(rows.schema):
        expected = f"{len(values)} column{'s' * (len(values) > 1)}, found {len(rows.schema)}"
        raise TypeMismatch("the subquery of IN has the wrong number of columns", span=node.span, expected=expected)
    return [_equal(value, reference(rows.schema, i, node.span), node.span) for i, value in enumerate(values)]


def _equal(outer: Expr, inner: Expr, span: Span, written: str = "=") -> tuple[Expr, Expr]:
    """The two sides cast to one type."""
    equal = resolve(EQUAL, [outer, inner], span, written=written)
    assert isinstance(equal, Call)
    return equal.arguments[0], equal.arguments[1]


def _rows(plan: Plan) -> tuple[bool, bool]:
    """Whether the relation never has more than one row, and whether it has always one."""
    always = True
    while isinstance(plan, Project | Filter | Distinct):
        always = always and not isinstance(plan, Filter)
        plan = plan.input
    match plan:
        case Aggregate(keys=()):
            return True, always
        case Values():
            return len(plan.rows) <= 1, always and len(plan.rows) == 1
        case TopK(keys=()):
            return plan.limit is not None and plan.limit <= 1, False
        case _:
            return False, False


def _is_of_one_key(plan: Plan) -> bool:
    """Whether conditions compare all columns of a table's primary key with constants, so that the relation never has more than one row."""
    fixed: set[int] = set()
    while isinstance(plan, Project | Filter | Distinct):
        if isinstance(plan, Project):
            fixed.clear()  # columns of a projection
        if isinstance(plan, Filter):
            for part in conjuncts(plan.predicate):
                match part:
                    case Call(function="equal", arguments=(Column() as column, Literal()) | (Literal(), Column() as column)):
                        fixed.add(column.index)
        plan = plan.input
    if not isinstance(plan, Table) or is_stream(plan):
        return False
    key = plan.table.key
    return bool(key) and fixed.issuperset(key) and all(plan.schema[i].type.has_one_form for i in key)


def denied(node: tree.Prefix) -> tree.Expression | None:
    """NOT before IN, or before AND and OR with an IN, moved inwards; None if there is nothing to move."""
    inner = tree.unnest(node.operand)
    match inner:
        case tree.InQuery():
            return replace(inner, negated=not inner.negated, span=node.span)
        case tree.Prefix(operator="NOT") if any(isinstance(part, tree.InQuery) for part in _of_condition(inner)):
            return inner.operand
        case tree.Operation(operators=("AND" | "OR" as operator, *_)) if any(isinstance(p, tree.InQuery) for p in _of_condition(inner)):
            operands = tuple(tree.Prefix("NOT", operand, node.span) for operand in inner.operands)
            return tree.Operation(("OR" if operator == "AND" else "AND",) * len(inner.operators), operands, node.span)
        case _:
            return None


def _of_condition(node: tree.Expression) -> Sequence[tree.Expression]:
    """The conditions that AND, OR and NOT connect."""
    inner = tree.unnest(node)
    match inner:
        case tree.Prefix(operator="NOT"):
            return _of_condition(inner.operand)
        case tree.Operation(operators=("AND" | "OR", *_)):
            return [part for operand in inner.operands for part in _of_condition(operand)]
        case _:
            return [inner]
