"""Binds FROM: tables, views, CTEs, derived tables, VALUES, and joins.

Equalities between the two sides of a join become its keys (plan/equalities.py). The rest of the condition is the residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import AmbiguousName, Span, UnknownName, Unsupported, did_you_mean
from deltic.expr import Call, Expr, resolve
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_asof_join import bind_asof_join
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_join_condition import join_with_subqueries
from deltic.frontends.sql.bind_lateral import bind_defined_lateral
from deltic.frontends.sql.bind_nearest_join import bind_nearest_join
from deltic.frontends.sql.bind_over_ticks import OVER_TICKS, bind_over_ticks
from deltic.frontends.sql.bind_pivot import bind_pivot, bind_unpivot
from deltic.frontends.sql.bind_subquery import Subqueries, has_subquery
from deltic.frontends.sql.bind_table_function import bind_from_function, bind_lateral, bind_lateral_view
from deltic.frontends.sql.bind_time import TimeCondition, reads_time
from deltic.frontends.sql.bind_values import bind_values
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.frontends.sql.scope import Outer, Scope, ScopeColumn, ScopedRelation, check_names, moved, relation
from deltic.frontends.sql.time_cases import TimeCases, conditions, timed
from deltic.plan.columns import conjunction, named_columns, reference, shift
from deltic.plan.equalities import EQUAL, split
from deltic.plan.nodes import DependentJoin, Filter, Join, JoinKind, Plan, Project, Reference, Table, Values
from deltic.schema import Schema, TableSchema

_KINDS: Final[dict[str, JoinKind]] = {
    ",": "inner",
    "": "inner",
    "INNER": "inner",
    "CROSS": "inner",
    "LEFT": "left",
    "RIGHT": "right",
    "FULL": "full",
    "LEFT SEMI": "semi",
    "SEMI": "semi",
    "LEFT ANTI": "anti",
    "ANTI": "anti",
}

NOTHING: Final = ScopedRelation(Values(((),), Schema(())), Scope((), Schema(())))
"""SELECT without FROM: one row without columns."""


def bind_from(select: tree.SelectQuery, env: Environment, bind_query: BindQuery) -> ScopedRelation:
    """The relation of FROM and its joins; its scope is inside that of the enclosing query."""
    joined = NOTHING if select.source is None else _item(select.source, env, bind_query)
    for view in select.laterals:
        joined = bind_lateral_view(view, joined)
    return ScopedRelation(joined.plan, replace(joined.scope, outer=env.outer))


def _item(node: tree.Source, env: Environment, bind_query: BindQuery) -> ScopedRelation:
    match node:
        case tree.TableName():
            return _aliased(_lookup(node, env), node.name.text, node.alias)
        case tree.DerivedTable():
            return _aliased(bind_query(node.query, env), None, node.alias)
        case tree.DefinedTable():
            return _aliased(bind_query(node.query, env.closed()), node.name, node.alias)
        case tree.DefinedLateral():
            return bind_defined_lateral(node, NOTHING, env, bind_query, outer=False)
        case tree.PipedRows():
            assert isinstance(node.relation, ScopedRelation)
            return node.relation
        case tree.ArgumentRows():
            assert env.given is not None, "only the query of a table function reads them"
            return env.given
        case tree.ValuesQuery():
            return _aliased(bind_values(node), None, node.alias)
        case tree.TableCall(call=tree.FunctionCall() as call) if call.name in OVER_TICKS and not node.lateral:
            return _aliased(bind_over_ticks(call, lambda name: _lookup(name, env)), None, node.alias)
        case tree.TableCall():
            start = replace(NOTHING, scope=replace(NOTHING.scope, outer=env.outer))
            return bind_lateral(node, start) if node.lateral else _aliased(bind_from_function(node.call, start).plan, None, node.alias)
        case tree.PivotedTable():
            return bind_pivot(node, _item(node.source, env, bind_query))
        case tree.UnpivotedTable():
            return bind_unpivot(node, _item(node.source, env, bind_query))
        case tree.JoinedTables():
            joined = _joined(_item(node.first, env, bind_query), node.joins, env, bind_query)
            return joined if node.alias is None else _as_one(joined, node.alias)


def bind_join(left: ScopedRelation, join: tree.JoinClause, env: Environment, bind_query: BindQuery) -> ScopedRelation:
    """A relation with one join."""
    return _joined(left, (join,), env, bind_query)


def _joined(left: ScopedRelation, joins: Sequence[tree.JoinClause], env: Environment, bind_query: BindQuery) -> ScopedRelation:
    for join in joins:
        right = join.right
        if join.match is not None:
            _check_asof(right, join)
            _check_reach(right, left)
            left = bind_asof_join(left, _item(right, env, bind_query), join, env)
        elif join.nearest is not None:
            _check_reach(right, left)
            left = bind_nearest_join(left, _item(right, env, bind_query), join, env)
        elif isinstance(right, tree.TableCall) and right.lateral and not (join.natural or join.columns) and _keeps_matches_alone(join):
            left = _lateral_function(left, right, join)
        elif isinstance(right, tree.TableCall | tree.DerivedTable) and right.lateral:
            left = _lateral(left, right, join, env, bind_query)
        elif isinstance(right, tree.DefinedLateral):
            left = _defined_lateral(left, right, join, env, bind_query)
        else:
            _check_reach(right, left)
            left = _join(left, _item(right, env, bind_query), join, env, bind_query)
    return left


def _keeps_matches_alone(join: tree.JoinClause) -> bool:
    """Whether no row of the left side is kept for which the function has rows, all of which the condition refuses."""
    return _KINDS.get(join.kind) == "inner" or (_KINDS.get(join.kind) == "left" and _is_true(join.condition))


def _is_true(condition: tree.Expression | None) -> bool:
    return condition is None or (isinstance(condition, tree.KeywordExpression) and condition.word == "TRUE")


def _lateral_function(left: ScopedRelation, node: tree.TableCall, join: tree.JoinClause) -> ScopedRelation:
    joined = bind_lateral(node, left, outer=_KINDS[join.kind] == "left")
    if _is_true(join.condition):
        return joined
    assert join.condition is not None
    condition = ExpressionBinder(joined.scope, "ON of LATERAL").condition(join.condition)
    return ScopedRelation(Filter(joined.plan, condition), joined.scope)


def _lateral(
    left: ScopedRelation, node: tree.TableCall | tree.DerivedTable, join: tree.JoinClause, env: Environment, bind_query: BindQuery
) -> ScopedRelation:
    """The rows of `left`, each joined with the rows of the query, or of the table function, that are evaluated for it."""
    kind = _KINDS.get(join.kind)
    if kind not in ("inner", "left") or join.columns or join.natural:
        raise _no_lateral(join)
    outer = Outer(replace(left.scope, outer=env.outer))
    right = _item(replace(node, lateral=False), env.within(outer), bind_query)
    scope = Scope(left.scope.columns + moved(right.scope.columns, len(left.plan.schema)), _both(left.plan, right.plan), env.outer)
    condition = None if join.condition is None else ExpressionBinder(scope, "ON of LATERAL").condition(join.condition)
    values = tuple((one.number, column) for column, one in outer.columns.values())
    joined = DependentJoin(left.plan, right.plan, "left" if kind == "left" else "inner", values, condition, span=node.span)
    plan = env.unnest(joined)
    return ScopedRelation(plan, Scope(scope.columns, plan.schema))


def _both(left: Plan, right: Plan) -> Schema:
    return Schema(left.schema.fields + right.schema.fields)


def _check_asof(right: tree.Source, join: tree.JoinClause) -> None:
    if isinstance(right, tree.DefinedLateral) or (isinstance(right, tree.TableCall | tree.DerivedTable) and right.lateral):
        raise Unsupported("ASOF JOIN LATERAL is not supported", span=join.span, remedy="a LATERAL query with ORDER BY … LIMIT 1")


def _defined_lateral(
    left: ScopedRelation, right: tree.DefinedLateral, join: tree.JoinClause, env: Environment, bind_query: BindQuery
) -> ScopedRelation:
    """The rows of `left`, each joined with those of a table function in SQL."""
    kind = _KINDS.get(join.kind)
    if kind not in ("inner", "left") or join.columns or join.natural:
        raise _no_lateral(join)
    joined = bind_defined_lateral(right, left, env, bind_query, outer=kind == "left")
    if join.condition is None:
        return joined
    condition = ExpressionBinder(joined.scope, "ON of LATERAL").condition(join.condition)
    if kind == "inner":
        return replace(joined, plan=Filter(joined.plan, condition))
    assert isinstance(joined.plan, Join)
    more, residual = split(condition, len(left.plan.schema))
    return replace(joined, plan=replace(joined.plan, keys=(*joined.plan.keys, *more), residual=residual))


def _no_lateral(join: tree.JoinClause) -> Unsupported:
    remedy = "CROSS JOIN LATERAL, or LEFT JOIN LATERAL … ON …"
    return Unsupported("this join with LATERAL is not supported", span=join.span, expected="INNER, CROSS or LEFT", remedy=remedy)


def _check_reach(right: tree.Source, left: ScopedRelation) -> None:
    """Raises UnknownName if a function in FROM reads a preceding relation without LATERAL."""
    call = right.call if isinstance(right, tree.TableCall) else None
    for node in tree.walk(call) if call is not None else ():
        if isinstance(node, tree.ColumnName) and len(node.parts) < 3:
            name, qualifier = node.parts[-1].text, node.parts[0].text if len(node.parts) > 1 else None
            if call is not None and left.scope.find(name, qualifier):
                message = f"a function in FROM reads {name!r} of a relation before it only with LATERAL"
                raise UnknownName(message, span=node.span, remedy=f"LATERAL {call.name}(…)")


def _as_one(inner: ScopedRelation, alias: tree.TableAlias) -> ScopedRelation:
    """(a JOIN b …) AS alias."""
    shown = inner.scope.star(None)
    return _aliased(Project(inner.plan, tuple((c.name, inner.scope.column(c)) for c in shown)), None, alias)


def _lookup(node: tree.TableName, env: Environment) -> Plan:
    name, span = node.name.text, node.name.span
    if name.lower() in env.ctes:
        return _placed(env.ctes[name.lower()], span)
    relation_of_name = env.catalog.relation(name)
    if relation_of_name is None:
        remedy = env.unready.get(name.lower()) or did_you_mean(name, [*env.ctes, *env.catalog.names()])
        raise UnknownName.of_relation(name, f"there is no table or view {name!r}", span=span, remedy=remedy)
    env.reads.add(next((defined for defined in env.catalog.names() if defined.lower() == name.lower()), name))
    return Table(relation_of_name, span) if isinstance(relation_of_name, TableSchema) else _placed(relation_of_name, span)


def _placed(plan: Plan, span: Span) -> Plan:
    return replace(plan, span=span) if isinstance(plan, Reference) else plan


def _aliased(plan: Plan, name: str | None, alias: tree.TableAlias | None) -> ScopedRelation:
    """The relation under its name or alias, with the alias's column names."""
    if alias is None:
        return relation(plan, name)
    if alias.columns:
        check_names(alias.columns, len(plan.schema), alias.span)
    return relation(plan, alias.name.text, [column.text for column in alias.columns] or None)


def _join(left: ScopedRelation, right: ScopedRelation, node: tree.JoinClause, env: Environment, bind_query: BindQuery) -> ScopedRelation:
    kind = _KINDS.get(node.kind)
    if kind is None or (node.natural and node.kind == "CROSS"):
        words = " ".join(word for word in ("NATURAL" * node.natural, node.kind) if word)
        raise Unsupported(f"{words} JOIN is not supported", span=node.span, remedy="INNER, LEFT, RIGHT, FULL, CROSS, LEFT SEMI, LEFT ANTI")
    if node.natural:
        return _join_using(left, right, kind, _common_names(left, right, node.span), env)
    if node.columns:
        return _join_using(left, right, kind, [(part.text, part.span) for part in node.columns], env)
    width = len(left.plan.schema)
    both = _beside(left, right, Join(left.plan, right.plan, "inner"))  # ON is evaluated before outer joins add NULLs
    binder = ExpressionBinder(replace(both.scope, outer=env.outer), "ON", timed=kind == "inner")
    if node.condition is not None and has_subquery(node.condition):
        with_subqueries = replace(binder, subqueries=Subqueries(env, bind_query))
        return _beside(left, right, join_with_subqueries(left.plan, right.plan, kind, node.condition, with_subqueries))
    condition = None if node.condition is None else binder.condition(node.condition)
    times: list[TimeCondition | TimeCases] = []
    if condition is not None and reads_time(condition):
        parts = conditions(condition)
        times = [part for part in parts if isinstance(part, TimeCondition | TimeCases)]
        others = [part for part in parts if not isinstance(part, TimeCondition | TimeCases)]
        condition = conjunction(others) if others else None
    keys, residual = ((), None) if condition is None else split(condition, width)
    hint = env.hint if kind == "inner" else None
    return _beside(left, right, timed(Join(left.plan, right.plan, kind, keys, residual, hint=hint, span=node.right.span), times))


def _beside(left: ScopedRelation, right: ScopedRelation, plan: Plan) -> ScopedRelation:
    if len(plan.schema) == len(left.plan.schema):
        return ScopedRelation(plan, replace(left.scope, schema=plan.schema))
    columns = left.scope.columns + moved(right.scope.columns, len(left.plan.schema))
    return ScopedRelation(plan, Scope(columns, plan.schema))


def _common_names(left: ScopedRelation, right: ScopedRelation, span: Span) -> list[tuple[str, Span]]:
    right_columns = {column.name.lower() for column in right.scope.star(None)}
    return [(column.name, span) for column in left.scope.star(None) if column.name.lower() in right_columns]


def _join_using(
    left: ScopedRelation, right: ScopedRelation, kind: JoinKind, names: Sequence[tuple[str, Span]], env: Environment
) -> ScopedRelation:
    """A join whose keys are the columns of `names`, which occur once in the result, first."""
    left_columns = [_using(left, name, span, "left") for name, span in names]
    right_columns = [_using(right, name, span, "right") for name, span in names]
    width, keys = len(left.plan.schema), []
    for (_, span), a, b in zip(names, left_columns, right_columns, strict=True):
        sides = (left.scope.column(a), shift(right.scope.column(b), width))
        equal = resolve(EQUAL, [replace(side, span=span) for side in sides], span)
        assert isinstance(equal, Call)
        keys.append((equal.arguments[0], shift(equal.arguments[1], -width)))
    plan = Join(left.plan, right.plan, kind, tuple(keys), hint=env.hint if kind == "inner" else None)
    if kind == "full":
        return _merged(left, right, plan, left_columns, right_columns, [span for _, span in names])
    kept_left = kind != "right"
    shown = left_columns if kept_left else list(moved(right_columns, width))
    hidden_columns = moved(right_columns, width) if kept_left else left_columns
    rest = [c for c in left.scope.columns if c not in left_columns]
    if kind in ("semi", "anti"):
        return ScopedRelation(plan, Scope((*shown, *rest), plan.schema))
    rest += [c for c in moved(right.scope.columns, width) if c not in moved(right_columns, width)]
    return ScopedRelation(plan, Scope((*shown, *rest, *(replace(c, hidden=True) for c in hidden_columns)), plan.schema))


def _merged(
    left: ScopedRelation,
    right: ScopedRelation,
    plan: Join,
    left_columns: list[ScopeColumn],
    right_columns: list[ScopeColumn],
    spans: Sequence[Span],
) -> ScopedRelation:
    """FULL JOIN USING: a key is coalesce(left, right)."""
    width, schema = len(left.plan.schema), plan.schema
    columns: list[tuple[str, Expr]] = [*named_columns(schema)]
    shown = []
    for a, b, span in zip(left_columns, moved(right_columns, width), spans, strict=True):
        shown.append(ScopeColumn(a.name, None, len(columns)))
        columns.append((a.name, resolve("coalesce", [reference(schema, one.index, span) for one in (a, b)], span)))
    project = Project(plan, tuple(columns))
    both = left.scope.columns + moved(right.scope.columns, width)
    keys = {c.index for c in (*left_columns, *moved(right_columns, width))}
    rest = [c for c in both if c.index not in keys]
    hidden = [replace(c, hidden=True) for c in both if c.index in keys]
    return ScopedRelation(project, Scope((*shown, *rest, *hidden), project.schema))


def _using(side: ScopedRelation, name: str, span: Span, which: str) -> ScopeColumn:
    matches = side.scope.find(name, None)
    if len(matches) > 1:
        raise AmbiguousName(f"the name {name!r} is ambiguous on the {which} side", span=span, remedy="JOIN … ON with qualified names")
    if not matches:
        remedy = did_you_mean(name, [c.name for c in side.scope.star(None)])
        raise UnknownName(f"there is no column {name!r} on the {which} side", span=span, remedy=remedy)
    return matches[0]
