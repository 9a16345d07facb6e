"""SELECT: FROM, WHERE, GROUP BY, HAVING and the select list, into a block whose DISTINCT, order and limit are still open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sqlglot import exp

from deltic.errors import Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported
from deltic.expr import Column, Expr, columns_of
from deltic.frontends.sql.bind_aggregate import Collector, has_aggregate, onto
from deltic.frontends.sql.bind_condition import BindInner, Conjunct, Membership, apply, bind_conjuncts, outer_equality
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_relation import bind_from
from deltic.frontends.sql.bind_table_function import Made, bind_item, makes_rows
from deltic.frontends.sql.bind_time import Timely
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.frontends.sql.hints import check_followed, join_hint
from deltic.frontends.sql.naming import output_name
from deltic.frontends.sql.scope import AGGREGATED, OUTER, Relation, did_you_mean, reads_outer
from deltic.plan.columns import map_columns, reference
from deltic.plan.nodes import Aggregate, Order, Plan


@dataclass(frozen=True, slots=True)
class Block:
    """Rows, the select list and the order over them.

    correlated: conditions over (these rows, the outer row from OUTER on) that are left to the join with the outer query.
    """

    plan: Plan
    outputs: tuple[tuple[str, Expr], ...]
    order: tuple[Order, ...]
    correlated: tuple[Expr, ...]


@dataclass(slots=True)
class _Select:
    """A SELECT while it is bound. Expressions are over `relation`'s rows, aggregates stand from AGGREGATED on.

    collector: where the aggregates go; None in a SELECT without. made: the item that makes rows; its columns stand behind the relation's.
    """

    node: exp.Select
    env: Environment
    relation: Relation
    collector: Collector | None
    made: Made | None = None
    keys: list[Expr] = field(default_factory=list)
    outputs: list[tuple[str, Expr]] = field(default_factory=list)
    aliases: dict[str, list[Expr]] = field(default_factory=dict)

    def binder(self, clause: str) -> ExpressionBinder:
        return ExpressionBinder(self.env.places, self.relation.scope, clause, self.aliases, collector=self.collector)

    def add(self, name: str, expr: Expr) -> None:
        """One more output column, which later items and clauses may call by its name."""
        self.outputs.append((name, expr))
        self.aliases.setdefault(name.lower(), []).append(expr)


def bind_block(node: exp.Select, env: Environment, bind_query: BindQuery, bind_inner: BindInner) -> Block:
    """The SELECT bound."""
    _check_form(node, env)
    hint = join_hint(node, env.places)
    relation = bind_from(node, replace(env, hint=hint), bind_query)
    check_followed(hint, relation.plan)
    where = _where(node, relation, env, bind_inner)
    select = _Select(node, env, relation, Collector() if _is_grouped(node) else None)
    for item in node.expressions:
        _bind_item(select, item)
    _bind_keys(select)
    having = _having(select, bind_inner)
    order = _order(select)
    correlated = [part for part in where if not isinstance(part, Membership | Timely) and reads_outer(part)]
    plan = apply(relation.plan, [part for part in where if part not in correlated])
    if select.made is not None:
        plan = select.made.over(plan)
    if select.collector is None:
        return Block(plan, tuple(select.outputs), order, tuple(correlated))
    return _aggregated(select, plan, having, order, correlated)


def _check_form(node: exp.Select, env: Environment) -> None:
    """sqlglot takes the clauses in any order, and makes up a select list where there is none."""
    first = node.expressions[0] if node.expressions else None
    start = node.args.get("from_")
    if start is not None and isinstance(start.this, exp.Values) and isinstance(first, exp.Star):
        return  # VALUES as a side of a set operation
    if first is None or (isinstance(first, exp.Star) and env.places.text[env.places.of(first).start] != "*"):
        raise SyntaxFailure("SELECT of nothing", span=env.places.of(node), expected="columns, or *")
    clauses = [
        *(node.args.get("joins") or ()),
        *(node.args.get("laterals") or ()),
        *(node.args.get(name) for name in ("where", "group", "having", "order", "limit")),
    ]
    starts = [(env.places.of(part).start, part) for part in clauses if part is not None]
    for (start, _), (after, part) in pairwise(starts):
        if after < start and after > env.places.statement.start:
            raise SyntaxFailure(
                "the clauses are out of order", span=env.places.of(part), expected="FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT"
            )


def _where(node: exp.Select, relation: Relation, env: Environment, bind_inner: BindInner) -> list[Conjunct]:
    where = node.args.get("where")
    binder = ExpressionBinder(env.places, relation.scope, "WHERE", outer=env.outer is not None)
    return [] if where is None else bind_conjuncts(where.this, binder, env, bind_inner)


def _is_grouped(node: exp.Select) -> bool:
    order = node.args.get("order")
    listed = [*node.expressions, *(order.expressions if order else [])]
    return bool(node.args.get("group") or node.args.get("having")) or any(has_aggregate(item) for item in listed)


def _bind_item(select: _Select, item: exp.Expr) -> None:
    star = _star(item)
    if star is not None:
        _bind_star(select, item, star)
        return
    if makes_rows(item):
        _bind_made(select, item)
        return
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Tuple | exp.Aliases):
        raise Unsupported("a row in parentheses is not a value", span=select.env.places.of(item), remedy="list the columns without them")
    select.add(output_name(item, select.env.places), select.binder("SELECT").bind(inner))


def _bind_made(select: _Select, item: exp.Expr) -> None:
    span = select.env.places.of(item)
    if select.made is not None or select.collector is not None:
        what = "aggregates" if select.made is None else "another function that makes rows"
        remedy = "LATERAL VIEW, or a subquery in FROM"
        raise Unsupported(f"a function that makes rows is not supported beside {what}", span=span, remedy=remedy)
    select.made = bind_item(item, replace(select.binder("SELECT"), aliases={}))
    plan = select.made.over(select.relation.plan)
    for i in range(len(select.relation.plan.schema), len(plan.schema)):
        select.add(plan.schema[i].name, replace(reference(plan.schema, i), span=span))


def _star(item: exp.Expr) -> exp.Star | None:
    """The `*` of `*` or `t.*`."""
    inner = item.this if isinstance(item, exp.Column) else item
    return inner if isinstance(inner, exp.Star) else None


def _bind_star(select: _Select, item: exp.Expr, star: exp.Star) -> None:
    scope, places = select.relation.scope, select.env.places
    qualifier = item.args["table"].name if isinstance(item, exp.Column) and item.args.get("table") else None
    columns = scope.star(qualifier)
    if not columns:
        known = [c.qualifier for c in scope.columns if c.qualifier]
        message = f"there is no table {qualifier!r} in FROM" if qualifier else "there is nothing in FROM for *"
        raise UnknownName(message, span=places.of(item), remedy=did_you_mean(qualifier or "", known))
    left_out = {part.name.lower(): part for part in star.args.get("except_") or []}
    for name, part in left_out.items():
        if all(column.name.lower() != name for column in columns):
            remedy = did_you_mean(name, [c.name for c in columns])
            raise UnknownName(f"there is no column {part.name!r} to leave out", span=places.of(part), remedy=remedy)
    for column in columns:
        if column.name.lower() not in left_out:
            select.add(column.name, replace(scope.column(column), span=places.of(item)))


def _bind_keys(select: _Select) -> None:
    group = select.node.args.get("group")
    if group is None:
        return
    if group.args.get("all") and group.expressions:
        raise SyntaxFailure("GROUP BY ALL and more", span=select.env.places.of(group), expected="GROUP BY ALL, or the keys")
    if group.args.get("all"):
        found = [expr for _, expr in select.outputs if not _is_aggregated(expr)]
    else:
        found = [_key(select, part) for part in group.expressions]
    for key in found:
        if key not in select.keys:
            select.keys.append(key)


def _key(select: _Select, node: exp.Expr) -> Expr:
    span = select.env.places.of(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        key = _ordinal(node, select.outputs, "GROUP BY", span)
    else:
        key = replace(select.binder("GROUP BY"), collector=None).bind(node)
    if _is_aggregated(key):
        raise Unsupported("an aggregate is not allowed in GROUP BY", span=span, remedy="aggregate in a subquery of FROM first")
    return key


def _is_aggregated(expr: Expr) -> bool:
    return any(AGGREGATED <= index < OUTER for index in columns_of(expr))


def _ordinal(node: exp.Expr, outputs: Sequence[tuple[str, Expr]], clause: str, span: Span) -> Expr:
    """The select item whose number stands in GROUP BY or ORDER BY."""
    if not node.name.isdigit() or not 1 <= int(node.name) <= len(outputs):
        raise TypeMismatch(f"{clause} {node.name}: there is no such column", span=span, expected=f"1 to {len(outputs)}")
    return outputs[int(node.name) - 1][1]


def _having(select: _Select, bind_inner: BindInner) -> list[Conjunct]:
    having = select.node.args.get("having")
    binder = replace(select.binder("HAVING"), keys=tuple(select.keys))
    return [] if having is None else bind_conjuncts(having.this, binder, select.env, bind_inner)


def _order(select: _Select) -> tuple[Order, ...]:
    order = select.node.args.get("order")
    binder = replace(select.binder("ORDER BY"), aliases_first=True)
    return () if order is None else bind_order(order, binder, select.outputs)


def bind_order(order: exp.Order, binder: ExpressionBinder, outputs: Sequence[tuple[str, Expr]]) -> tuple[Order, ...]:
    """The terms of ORDER BY; numbers mean outputs."""
    terms = []
    for term in order.expressions:
        node = term.this
        if isinstance(node, exp.Literal) and not node.is_string:
            expr = _ordinal(node, outputs, "ORDER BY", binder.places.of(node))
        else:
            expr = binder.bind(node)
        terms.append(Order(expr, bool(term.args.get("desc")), bool(term.args.get("nulls_first"))))
    return tuple(terms)


def _aggregated(select: _Select, plan: Plan, having: list[Conjunct], order: tuple[Order, ...], correlated: list[Expr]) -> Block:
    """The block over an Aggregate: every expression brought onto its keys and aggregates."""
    assert select.collector is not None
    keys = [*select.keys, *_correlated_keys(select, correlated)]
    calls = select.collector.calls
    node = Aggregate(
        plan,
        tuple((_name(key, f"key{i}"), key) for i, key in enumerate(keys, 1)),
        tuple((f"{call.function}{i}", call) for i, call in enumerate(calls, 1)),
    )
    references = [reference(node.schema, i) for i in range(len(node.schema))]

    def over(clause: str, expr: Expr) -> Expr:
        return onto(expr, keys, references, clause)

    return Block(
        apply(node, having, lambda expr: over("HAVING", expr)),
        tuple((name, over("SELECT", expr)) for name, expr in select.outputs),
        tuple(replace(term, expr=over("ORDER BY", term.expr)) for term in order),
        tuple(over("WHERE", condition) for condition in correlated),
    )


def _name(key: Expr, otherwise: str) -> str:
    return key.name if isinstance(key, Column) and key.name else otherwise


def _correlated_keys(select: _Select, correlated: list[Expr]) -> list[Expr]:
    """The inner sides of the equalities with the outer row: each of its values makes groups of its own."""
    keys = []
    for condition in correlated:
        sides = outer_equality(condition)
        if sides is None or not select.keys:
            what = "without GROUP BY" if not select.keys else "with more than equalities"
            raise Unsupported(
                f"a correlated subquery that aggregates {what} is not supported",
                span=condition.span,
                remedy="GROUP BY the column that is compared, in a subquery of FROM, and join it",
            )
        if sides[1] not in select.keys and sides[1] not in keys:
            keys.append(sides[1])
    return keys


def onto_outputs(expr: Expr, outputs: Sequence[tuple[str, Expr]]) -> Expr | None:
    """An expression over a block's rows as one over its select list; None where it reads more."""
    expressions = [each for _, each in outputs]
    if expr in expressions:
        at = expressions.index(expr)
        return Column(at, expr.type, expr.nullable, outputs[at][0], expr.span)
    parts: list[bool] = []

    def move(column: Column) -> Expr:
        parts.append(column in expressions)
        return replace(column, index=expressions.index(column)) if column in expressions else column

    moved = map_columns(expr, move)
    return moved if all(parts) else None
