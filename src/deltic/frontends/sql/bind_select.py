"""Binds SELECT: FROM, WHERE, GROUP BY, HAVING, the select list, windows and QUALIFY; DISTINCT, order and limit are applied later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final

from deltic.errors import TypeMismatch, Unsupported
from deltic.expr import Column, Expr, columns_of
from deltic.expr.functions.comparison import check_grouped, check_ordered
from deltic.frontends.sql import literals, tree
from deltic.frontends.sql.bind_aggregate import Collector, has_aggregate, onto, position_of
from deltic.frontends.sql.bind_condition import Conjunct, apply, bind_conjuncts
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_grouping import SET_NUMBER, GroupingSets, grouping_sets, reads_grouping
from deltic.frontends.sql.bind_relation import bind_from
from deltic.frontends.sql.bind_star import outputs_of_star, with_columns
from deltic.frontends.sql.bind_subquery import Subqueries
from deltic.frontends.sql.bind_table_function import TableFunctionCall, bind_item, makes_rows
from deltic.frontends.sql.bind_time_window import TimeWindow, check_no_session, time_window_of
from deltic.frontends.sql.bind_window import WindowCollector, levels, with_whole_rows, with_windows_in_place
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.frontends.sql.hints import check_followed, join_hint
from deltic.frontends.sql.lateral_aliases import Aliases, with_items_below
from deltic.frontends.sql.naming import output_name
from deltic.frontends.sql.rows_of_groups import rows_of_groups
from deltic.frontends.sql.scope import AGGREGATED, SUBQUERY, WINDOWED, ScopedRelation, reads_windows
from deltic.frontends.sql.shared_below import over_shared, with_shared_below
from deltic.plan.columns import all_columns, map_columns, reference
from deltic.plan.nodes import Aggregate, AggregateCall, Order, Plan, Project, Window
from deltic.plan.walk import expressions, map_expressions

_WITH_WINDOWS: Final = ("SELECT", "QUALIFY", "ORDER BY")
"""The clauses that may have window functions."""


@dataclass(frozen=True, slots=True)
class SelectBlock:
    """A bound SELECT: rows, and the select list and order over them."""

    plan: Plan
    outputs: tuple[tuple[str, Expr], ...]
    order: tuple[Order, ...]


@dataclass(slots=True)
class _Select:
    """A SELECT that is being bound. Expressions are over `relation`'s rows; aggregates and window functions have indexes of their own.

    collector: of the aggregates; None without aggregates. windows: of the window functions. table_functions: their columns follow the
    relation's, one after the other's.
    made: the relation with them, for its columns.
    time_window: the windows of event time, whose columns follow the relation's; a SELECT has them or table functions.
    """

    node: tree.SelectQuery
    terms: tuple[tree.OrderTerm, ...]
    relation: ScopedRelation
    collector: Collector | None
    subqueries: Subqueries
    windows: WindowCollector
    made: Plan
    time_window: TimeWindow | None = None
    table_functions: list[TableFunctionCall] = field(default_factory=list)
    keys: list[Expr] = field(default_factory=list)
    sets: GroupingSets = field(default_factory=GroupingSets)
    outputs: list[tuple[str, Expr]] = field(default_factory=list)
    aliases: Aliases = field(default_factory=Aliases)

    def binder(self, clause: str, nodes: Sequence[tree.Expression] | None = None) -> ExpressionBinder:
        """The binder of a clause. nodes: what it binds that is evaluated over the select list; None: it is evaluated below that."""
        windows = self.windows if clause in _WITH_WINDOWS else None
        return ExpressionBinder(
            self.relation.scope,
            clause,
            self.aliases.whole if nodes is None else self.aliases.read_by(nodes),
            collector=self.collector,
            subqueries=self.subqueries,
            windows=windows,
            time_window=self.time_window,
        )

    def add(self, name: str, expr: Expr) -> None:
        """Adds an output column, which later items and clauses may reference by name."""
        self.outputs.append((name, expr))
        sets = self.node.group is not None and self.node.group.sets is not None  # a key is NULL in the rows of sets without it
        self.aliases.add(name, expr, substituted=sets or self.time_window is not None)


def bind_block(node: tree.SelectQuery, terms: tuple[tree.OrderTerm, ...], env: Environment, bind_query: BindQuery) -> SelectBlock:
    """The bound SELECT. terms: those of its ORDER BY."""
    node = with_windows_in_place(node)
    hint = join_hint(node)
    relation = bind_from(node, replace(env, hint=hint), bind_query)
    check_followed(hint, relation.plan)
    node = replace(node, items=tuple(replace(item, expression=with_columns(item.expression, relation.scope)) for item in node.items))
    grouped = is_grouped(node)
    if grouped and (split := rows_of_groups(node, relation.scope)) is not None:
        return bind_block(split, terms, env, bind_query)
    subqueries = Subqueries(env, bind_query)
    where = _where(node, relation, subqueries)
    collector = Collector() if grouped or any(has_aggregate(term.expression) for term in terms) else None
    timed = _time_window(node, terms, relation)
    select = _Select(node, terms, relation, collector, subqueries, WindowCollector(), relation.plan, timed)
    for item in node.items:
        _bind_item(select, item)
    _bind_keys(select)
    having = _having(select)
    qualify = None if node.qualify is None else _qualify(select, node.qualify)
    binder = select.binder("ORDER BY", [term.expression for term in terms])
    order = bind_order(terms, replace(binder, aliases_first=True), select.outputs)
    plan = _made(select, apply(relation.plan, where, subqueries))
    if _is_grouped_itself(select, order):
        block = _aggregated(select, plan, having, qualify, order)
    else:
        block = with_windows(SelectBlock(plan, tuple(select.outputs), order), select, qualify)
    plan, outputs, order = with_items_below(block.plan, block.outputs, block.order)
    plan, exprs = with_shared_below(plan, [*(expr for _, expr in outputs), *(term.expr for term in order)])
    names = [name for name, _ in outputs]
    listed = tuple(zip(names, exprs, strict=False))
    return SelectBlock(plan, listed, tuple(replace(term, expr=expr) for term, expr in zip(order, exprs[len(names) :], strict=True)))


def _qualify(select: _Select, node: tree.Expression) -> Expr:
    """The condition. As in Spark, names of the select list hide columns where the list has window functions."""
    return replace(select.binder("QUALIFY"), aliases_first=bool(select.windows.calls)).condition(node)


def _is_grouped_itself(select: _Select, order: tuple[Order, ...]) -> bool:
    """Whether there are groups: not where all aggregates are those of enclosing queries."""
    if select.collector is None or select.node.group is not None or select.node.having is not None:
        return select.collector is not None
    exprs = [*(expr for _, expr in select.outputs), *(term.expr for term in order)]
    return bool(select.collector.calls) or any(map(reads_grouping, exprs))


def _time_window(node: tree.SelectQuery, terms: tuple[tree.OrderTerm, ...], relation: ScopedRelation) -> TimeWindow | None:
    """The windows of event time that the clauses after WHERE name."""
    nodes = [*node.items, *terms, *(part for part in (node.group, node.having, node.qualify) if part is not None)]
    window = time_window_of(nodes, ExpressionBinder(relation.scope, "window()"), len(relation.plan.schema))
    optional = node.group is not None and node.group.sets is not None
    return replace(window, optional=True) if window is not None and optional else window


def _made(select: _Select, plan: Plan) -> Plan:
    """The rows after WHERE with the columns that their windows of event time and table functions add to those of FROM."""
    width = len(select.relation.plan.schema)
    makers: list[TimeWindow | TableFunctionCall] = [*([] if select.time_window is None else [select.time_window]), *select.table_functions]
    if makers and len(plan.schema) > width:  # WHERE has subqueries, whose values follow
        plan = Project(plan, tuple((select.relation.plan.schema[i].name, reference(plan.schema, i)) for i in range(width)))
        select.subqueries.places.clear()
    for maker in makers:
        plan = maker.over(plan)
    return plan


def _where(node: tree.SelectQuery, relation: ScopedRelation, subqueries: Subqueries) -> list[Conjunct]:
    binder = ExpressionBinder(relation.scope, "WHERE", subqueries=subqueries)
    return [] if node.where is None else bind_conjuncts(node.where, binder)


def _with_subqueries(block: SelectBlock, subqueries: Subqueries, over: Callable[[Expr], Expr] = lambda expr: expr) -> SelectBlock:
    """The block over its rows with the values of the subqueries that it selects and sorts by."""
    plan = subqueries.joined(block.plan, [*(expr for _, expr in block.outputs), *(term.expr for term in block.order)], over)
    outputs = tuple((name, subqueries.filled(expr)) for name, expr in block.outputs)
    return SelectBlock(plan, outputs, tuple(replace(term, expr=subqueries.filled(term.expr)) for term in block.order))


def is_grouped(node: tree.SelectQuery) -> bool:
    listed: list[object] = [*(item.expression for item in node.items), *node.windows]
    listed += [] if node.qualify is None else [node.qualify]
    return node.group is not None or node.having is not None or any(has_aggregate(expression) for expression in listed)


def _bind_item(select: _Select, item: tree.SelectItem) -> None:
    node = item.expression
    if isinstance(node, tree.Star):
        _bind_star(select, node)
    elif makes_rows(node):
        _bind_table_function(select, item)
    elif len(item.names) > 1:
        raise Unsupported(f"{len(item.names)} names for one column", span=item.span, remedy="give it one name")
    else:
        select.add(output_name(item, select.relation.scope), select.binder("SELECT", [node]).bind(node))


def _bind_table_function(select: _Select, item: tree.SelectItem) -> None:
    if select.time_window is not None:
        remedy = "LATERAL VIEW, or a subquery in FROM"
        raise Unsupported("a table function is not supported beside windows of event time", span=item.span, remedy=remedy)
    if select.collector is not None:
        remedy = "LATERAL VIEW, or a subquery in FROM"
        raise Unsupported("a table function is not supported beside aggregates", span=item.span, remedy=remedy)
    call = bind_item(item, replace(select.binder("SELECT"), aliases={}, subqueries=None, windows=None))
    before, select.made = len(select.made.schema), call.over(select.made)
    select.table_functions.append(call)
    for i in range(before, len(select.made.schema)):
        select.add(select.made.schema[i].name, replace(reference(select.made.schema, i), span=item.span))


def _bind_star(select: _Select, star: tree.Star) -> None:
    binder = select.binder("SELECT")
    for name, expr in outputs_of_star(star, replace(binder, aliases={}), select.relation.scope):
        select.add(name, expr)


def _bind_keys(select: _Select) -> None:
    group = select.node.group
    if group is None:
        return
    bound = _every_key(select) if _is_every(select, group) else [_key(select, part) for part in group.keys]
    for key in bound:
        check_grouped(key.type, key.span or group.span)
        check_no_session(select.relation.plan, key)
    if select.time_window is not None:
        bound = select.time_window.as_keys(bound, group)
    places = []
    for key in bound:
        if (place := position_of(key, select.keys)) is None:
            place = len(select.keys)
            select.keys.append(key)
        places.append(place)
    select.sets = grouping_sets(select.keys, places, group)


def _is_every(select: _Select, group: tree.GroupClause) -> bool:
    """Whether it is GROUP BY ALL: `all` is a keyword unless a column has that name."""
    return group.every and not select.relation.scope.find("all", None) and "all" not in select.aliases.whole


def _every_key(select: _Select) -> list[Expr]:
    return [expr for expr in _whole(select) if not _is_aggregated(expr, select.subqueries)]


def _whole(select: _Select) -> list[Expr]:
    """The select list over the rows below it."""
    return [select.aliases.expanded(expr) for _, expr in select.outputs]


def _key(select: _Select, node: tree.Expression) -> Expr:
    key = _ordinal(node, _whole(select), "GROUP BY") or replace(select.binder("GROUP BY"), collector=None).bind(node)
    if _is_aggregated(key, select.subqueries):
        what = "a window function" if reads_windows(key) else "an aggregate"
        raise Unsupported(f"{what} is not allowed in GROUP BY", span=node.span, remedy="compute it in a subquery of FROM first")
    return key


def _is_aggregated(expr: Expr, subqueries: Subqueries) -> bool:
    """Whether the expression reads an aggregate or a window function, itself or in a subquery."""
    read = columns_of(expr)
    read = read.union(*(subqueries.reads(index) for index in read if index >= SUBQUERY))
    return any(AGGREGATED <= index < SUBQUERY for index in read) or reads_grouping(expr)


def _ordinal(node: tree.Expression, outputs: Sequence[Expr], clause: str) -> Expr | None:
    """The select item with the ordinal in GROUP BY or ORDER BY; None if the node is not a number."""
    number = tree.unnest(node)
    if not isinstance(number, tree.NumberText):
        return None
    ordinal = literals.whole(number, len(outputs))
    if not ordinal:
        raise TypeMismatch(f"{clause} {number.text:.40} is not in the select list", span=node.span, expected=f"1 to {len(outputs)}")
    return outputs[ordinal - 1]


def _having(select: _Select) -> list[Conjunct]:
    having = select.node.having
    binder = replace(select.binder("HAVING"), keys=tuple(select.keys))
    bound = [] if having is None else bind_conjuncts(having, binder)
    for part in bound:
        if isinstance(part, Expr) and reads_windows(part):
            raise Unsupported("a window function is not allowed in HAVING", span=part.span, remedy="QUALIFY tests window functions")
    return bound


def bind_order(terms: tuple[tree.OrderTerm, ...], binder: ExpressionBinder, outputs: Sequence[tuple[str, Expr]]) -> tuple[Order, ...]:
    """The terms of ORDER BY; numbers are positions of outputs, and ALL means all of them."""
    if len(terms) == 1 and _is_all(terms[0].expression, binder):
        return tuple(Order(expr, terms[0].descending, terms[0].nulls_first) for _, expr in outputs)
    bound = []
    for term in terms:
        expr = _ordinal(term.expression, [expr for _, expr in outputs], "ORDER BY") or binder.bind(term.expression)
        check_ordered("ORDER BY", expr.type, expr.span or term.expression.span)
        bound.append(Order(expr, term.descending, term.nulls_first))
    return tuple(bound)


def _is_all(node: tree.Expression, binder: ExpressionBinder) -> bool:
    """Whether it is ORDER BY ALL: `all` is a keyword unless a column has that name."""
    named = isinstance(node, tree.ColumnName) and [part.text.lower() for part in node.parts] == ["all"]
    return named and not binder.scope.find("all", None) and "all" not in binder.aliases


def _aggregated(select: _Select, plan: Plan, having: list[Conjunct], qualify: Expr | None, order: tuple[Order, ...]) -> SelectBlock:
    """The block over an Aggregate: every expression is rewritten over its keys and aggregates."""
    assert select.collector is not None
    subqueries = select.subqueries
    plan, calls = _with_arguments(plan, select.collector.calls, subqueries)
    plan, filled, keyed = subqueries.keyed(plan, select.keys)
    session = None if select.time_window is None else select.time_window.session_of(filled, calls)
    if session is not None:
        plan, calls = session.sessions(plan, filled), [session.greatest_end, *calls]
        filled = [reference(plan.schema, len(plan.schema) - 1) if key == session.start else key for key in filled]
    keys, sets = keyed.keys, replace(select.sets, keys=tuple(keyed.keys))
    filled = [_over(plan, key) for key in filled]
    plan, grouped = replace(sets, keys=tuple(filled)).expanded(plan, [_name(key, f"key{i}") for i, key in enumerate(select.keys, 1)])
    node = Aggregate(
        plan,
        tuple(grouped),
        tuple((f"{call.function}{i}", sets.call(call, plan)) for i, call in enumerate(calls, 1)),
    )
    references: list[Expr] = [*all_columns(node.schema)]
    keys = [*keys, *[SET_NUMBER][: len(grouped) - len(keys)]]
    if session is not None:
        keys.append(session.own_end)  # the first aggregate
    elif select.time_window is not None and select.time_window.value in keys:
        part = select.time_window.start_in(references[keys.index(select.time_window.value)])
        keys, references = [*keys, select.time_window.start], [*references[: len(keys)], part, *references[len(keys) :]]

    def over(clause: str, expr: Expr) -> Expr:
        return onto(sets.resolved(keyed.over(expr), SET_NUMBER), keys, references, clause)

    having = [keyed.over(condition) if isinstance(condition, Expr) else condition for condition in having]
    block = SelectBlock(
        apply(over_shared(node), having, subqueries, lambda expr: over("HAVING", expr)),
        tuple((name, over("SELECT", expr)) for name, expr in select.outputs),
        tuple(replace(term, expr=over("ORDER BY", term.expr)) for term in order),
    )
    return with_windows(block, select, qualify, over)


def _over(plan: Plan, key: Expr) -> Expr:
    """The key over the rows: a window of event time is NULL in sets without it, and never in a row."""
    return map_columns(key, lambda column: replace(column, nullable=plan.schema[column.index].nullable))


def _with_arguments(plan: Plan, calls: Sequence[AggregateCall], subqueries: Subqueries) -> tuple[Plan, list[AggregateCall]]:
    """The rows with the values of the subqueries in arguments of aggregates, and the aggregates over them."""
    exprs = [[*call.arguments, *(() if call.filter is None else (call.filter,))] for call in calls]
    plan = subqueries.joined(plan, [expr for part in exprs for expr in part])

    def filled(call: AggregateCall) -> AggregateCall:
        arguments = tuple(map(subqueries.filled, call.arguments))
        return replace(call, arguments=arguments, filter=None if call.filter is None else subqueries.filled(call.filter))

    return plan, [filled(call) for call in calls]


def with_windows(
    block: SelectBlock, select: _Select, qualify: Expr | None, over: Callable[[str, Expr], Expr] = lambda _, expr: expr
) -> SelectBlock:
    """The block after its window functions and QUALIFY. over: rewrites the expressions of a clause over the block's rows."""
    calls = select.windows.calls
    if not calls:
        if qualify is not None:
            raise TypeMismatch("QUALIFY without a window function", span=qualify.span, remedy="WHERE or HAVING tests other values")
        return _with_subqueries(block, select.subqueries, lambda expr: over("a subquery", expr))
    plan, subqueries, places = block.plan, select.subqueries, dict[int, int]()

    def placed(column: Column) -> Expr:
        return replace(reference(plan.schema, places[column.index]), span=column.span) if column.index in places else column

    def inner(expr: Expr, clause: str = "a subquery") -> Expr:
        return map_columns(over(clause, expr), placed)

    windows = [(level, key) for level, (key, _) in zip(levels(calls, subqueries.reads), calls, strict=True)]
    for level, key in sorted(dict.fromkeys(windows), key=itemgetter(0)):
        own = [(i, call) for i, (_, call) in enumerate(calls) if windows[i] == (level, key)]
        bound = Window(plan, key.keys, key.order, tuple((f"{call.function}{i}", call) for i, call in own))
        plan = subqueries.joined(plan, expressions(bound), lambda expr: inner(expr, "a window function"))
        window = map_expressions(replace(bound, input=plan), lambda expr: subqueries.filled(inner(expr, "a window function")))
        places |= {WINDOWED + i: len(plan.schema) + place for place, (i, _) in enumerate(own)}
        assert isinstance(window, Window)
        calls_over = tuple((name, with_whole_rows(call, window.order, block.plan.schema)) for name, call in window.calls)
        plan = over_shared(replace(window, calls=calls_over))

    outputs = tuple((name, map_columns(expr, placed)) for name, expr in block.outputs)
    order = tuple(replace(term, expr=map_columns(term.expr, placed)) for term in block.order)
    if qualify is not None:
        plan = apply(plan, [qualify], select.subqueries, lambda expr: inner(expr, "QUALIFY"))
    return _with_subqueries(SelectBlock(plan, outputs, order), select.subqueries, inner)


def _name(key: Expr, otherwise: str) -> str:
    return key.name if isinstance(key, Column) and key.name else otherwise


def onto_outputs(expr: Expr, outputs: Sequence[tuple[str, Expr]]) -> Expr | None:
    """An expression over a block's rows, rewritten over its select list; None if it reads other columns."""
    expressions = [each for _, each in outputs]
    if expr in expressions:
        position = expressions.index(expr)
        return Column(position, expr.type, expr.nullable, outputs[position][0], expr.span)
    parts: list[bool] = []

    def move(column: Column) -> Expr:
        parts.append(column in expressions)
        return replace(column, index=expressions.index(column)) if column in expressions else column

    moved = map_columns(expr, move)
    return moved if all(parts) else None
