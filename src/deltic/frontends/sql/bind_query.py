"""Binds queries: SELECT, set operations, VALUES and CTEs, DISTINCT, and ORDER BY … LIMIT … OFFSET as TopK.

ORDER BY without LIMIT does not change a relation: it is checked and omitted from the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Expr, cast, common_type
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.typing import differ_in_names
from deltic.frontends.sql import tree
from deltic.frontends.sql.base_terms import reads
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_limit import Slice, cut, slice_of
from deltic.frontends.sql.bind_pipe import bind_pipe
from deltic.frontends.sql.bind_recursive import bind_recursive
from deltic.frontends.sql.bind_select import SelectBlock, bind_block, bind_order, onto_outputs
from deltic.frontends.sql.bind_time_window import check_no_session
from deltic.frontends.sql.bind_values import bind_values
from deltic.frontends.sql.by_name import by_name
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.scope import relation
from deltic.plan.columns import reference
from deltic.plan.nodes import Distinct, Order, Plan, Project, SetKind, SetOperation, Union
from deltic.schema import Type
from deltic.stacks import unbounded

_KINDS: Final[dict[tuple[str, bool], SetKind]] = {
    ("EXCEPT", True): "except",
    ("EXCEPT", False): "except_all",
    ("INTERSECT", True): "intersect",
    ("INTERSECT", False): "intersect_all",
}


@unbounded
def bind_tree(node: tree.Query, env: Environment) -> Plan:
    """The plan of a query."""
    match node:
        case tree.SelectQuery():
            return _bind_select(tree.WholeQuery((), False, node, (), None, node.span), env)
        case tree.SetQuery():
            return _union(node, env) if node.operator == "UNION" else _set_operation(node, env)
        case tree.ValuesQuery():
            return _named(bind_values(node), node.alias)
        case tree.GivenQuery():
            plan: Plan = node.bind(env)
            return plan
        case tree.PipeQuery():
            return bind_pipe(node, env, bind_tree)
        case tree.WholeQuery():
            env = with_ctes(node, env)
            return _bind_select(node, env) if isinstance(node.body, tree.SelectQuery) else _ordered(bind_tree(node.body, env), node)


def _named(plan: Plan, alias: tree.TableAlias | None) -> Plan:
    return plan if alias is None else renamed(plan, alias.columns)


def with_ctes(node: tree.WholeQuery | tree.WithClause, env: Environment) -> Environment:
    """The environment with the queries of its WITH."""
    names: set[str] = set()
    for i, cte in enumerate(node.ctes):
        name = cte.name.text
        if name.lower() in names:
            raise Unsupported(f"the CTE {name!r} is defined twice", span=cte.name.span, remedy="give it another name")
        names.add(name.lower())
        env = env.with_cte(name, _bind_cte(cte, node.recursive, env.before(_unready(node.ctes[i:]))))
    return env


def _unready(ctes: Sequence[tree.CommonTable]) -> dict[str, str]:
    """What to write, in the query of the first one, instead of the names of these."""
    own, *later = (cte.name.text for cte in ctes)
    mutual = "if they read each other, make them views after DECLARE RECURSIVE VIEW"
    return {name.lower(): f"define {name} before {own}; {mutual}" for name in later} | {
        own.lower(): f"write WITH RECURSIVE, since the query of {own} reads {own}"
    }


def _bind_cte(cte: tree.CommonTable, recursive: bool, env: Environment) -> Plan:
    def bound(query: tree.Query, inside: Environment) -> Plan:
        return renamed(bind_tree(query, inside), cte.columns)

    return bind_recursive(cte, env, bound) if recursive and reads(cte.query, cte.name.text) else bound(cte.query, env)


def renamed(plan: Plan, columns: Sequence[tree.Name]) -> Plan:
    """The plan with its columns renamed; unchanged if there are no names."""
    if not columns:
        return plan
    if len(columns) != len(plan.schema):
        expected = f"{len(plan.schema)} names, found {len(columns)}"
        raise TypeMismatch("the column names do not fit the query", span=columns[-1].span, expected=expected)
    return Project(plan, tuple((column.text, reference(plan.schema, i)) for i, column in enumerate(columns)))


def _bind_select(node: tree.WholeQuery, env: Environment) -> Plan:
    select = node.body
    assert isinstance(select, tree.SelectQuery)
    block = bind_block(select, node.order, env, bind_tree)
    plan = Project(block.plan, block.outputs)
    part = slice_of(node)
    if select.distinct:
        _check_comparable("DISTINCT", plan, node.span)
        return _distinct(Distinct(plan), block, part, node)
    if part is None:
        return plan
    return _top_k(block, part) if block.order else cut(plan, (), part)


def _check_comparable(word: str, plan: Plan, span: Span) -> None:
    """Raises TypeMismatch if rows of the plan cannot be compared: there is a MAP in them."""
    for i, field in enumerate(plan.schema):
        check_ordered(word, field.type, span)
        check_no_session(plan, reference(plan.schema, i), span)


def _distinct(plan: Plan, block: SelectBlock, part: Slice | None, node: tree.WholeQuery) -> Plan:
    terms = []
    places = node.order if len(node.order) == len(block.order) else node.order * len(block.order)  # ORDER BY ALL
    for term, written in zip(block.order, places, strict=True):
        expr = onto_outputs(term.expr, block.outputs)
        if expr is None:
            raise Unsupported(
                "ORDER BY of a SELECT DISTINCT reads a column that is not selected",
                span=written.expression.span,
                remedy="select that column too",
            )
        terms.append(replace(term, expr=expr))
    return plan if part is None else cut(plan, tuple(terms), part)


def _top_k(block: SelectBlock, part: Slice) -> Plan:
    """TopK; expressions of the order that are not selected are added before it and dropped after it."""
    outputs, terms = list(block.outputs), []
    for term in block.order:
        expr = onto_outputs(term.expr, outputs)
        if expr is None:
            outputs.append((f"order{len(outputs) - len(block.outputs) + 1}", term.expr))
            expr = onto_outputs(term.expr, outputs)
            assert expr is not None
        terms.append(replace(term, expr=expr))
    plan: Plan = cut(Project(block.plan, tuple(outputs)), tuple(terms), part)
    if len(outputs) == len(block.outputs):
        return plan
    return Project(plan, tuple((name, reference(plan.schema, i)) for i, (name, _) in enumerate(block.outputs)))


def _ordered(plan: Plan, node: tree.WholeQuery) -> Plan:
    """ORDER BY and LIMIT after a set operation or a query in parentheses."""
    part = slice_of(node)
    if not node.order:
        return plan if part is None else cut(plan, (), part)
    scope = relation(plan, None).scope
    outputs: list[tuple[str, Expr]] = [(c.name, scope.column(c)) for c in scope.columns]
    terms: tuple[Order, ...] = bind_order(node.order, ExpressionBinder(scope, "ORDER BY"), outputs)
    return plan if part is None else cut(plan, terms, part)


def _union(node: tree.SetQuery, env: Environment) -> Plan:
    """A chain of UNIONs as one node, for as long as the column types stay the same."""
    first, *others = node.parts
    plans = [bind_tree(part, env) for part in node.parts]
    if node.by_name:
        plans = by_name(plans, node)
    inputs = plans[:1]
    for part, plan in zip(others, plans[1:], strict=True):
        types = _common_types("UNION", inputs[0], plan, part.span)
        if [field.type for field in inputs[0].schema] != types:
            inputs = [_widened(_united(inputs, node.distinct), types, first.span)]
        inputs.append(_widened(plan, types, part.span))
    if node.distinct:
        _check_comparable("UNION", inputs[0], node.span)
    return _united(inputs, node.distinct)


def _united(inputs: list[Plan], distinct: bool) -> Plan:
    if len(inputs) == 1:
        return inputs[0]
    union = Union(tuple(inputs))
    return Distinct(union) if distinct else union


def _set_operation(node: tree.SetQuery, env: Environment) -> Plan:
    left, right = (bind_tree(part, env) for part in node.parts)
    types = _common_types(node.operator, left, right, node.parts[1].span)
    _check_comparable(node.operator, left, node.span)
    first, second = (_widened(side, types, part.span) for side, part in zip((left, right), node.parts, strict=True))
    return SetOperation(first, second, _KINDS[node.operator, node.distinct])


def _common_types(word: str, left: Plan, right: Plan, span: Span) -> list[Type]:
    if len(left.schema) != len(right.schema):
        expected = f"{len(left.schema)}, found {len(right.schema)}"
        raise TypeMismatch(f"the sides of {word} have different numbers of columns", span=span, expected=expected)
    types = []
    for i, (field, other) in enumerate(zip(left.schema, right.schema, strict=True), 1):
        type = common_type([field.type, other.type])
        if type is None and word == "UNION" and differ_in_names(field.type, other.type):
            type = field.type
        if type is None:
            raise TypeMismatch(
                f"column {i} of {word} has no common type",
                span=span,
                expected=f"{field.type.sql} as {field.name!r} on the left, found {other.type.sql}",
                remedy="CAST one of them",
            )
        types.append(type)
    return types


def _widened(plan: Plan, types: list[Type], span: Span) -> Plan:
    """The columns cast to these types. span: of the query that gives them."""
    if [field.type for field in plan.schema] == types:
        return plan
    return Project(plan, tuple((f.name, cast(reference(plan.schema, i), types[i], span)) for i, f in enumerate(plan.schema)))
