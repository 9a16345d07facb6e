"""Queries: SELECT, set operations, VALUES and CTEs into plans, with DISTINCT, and ORDER BY … LIMIT as TopK.

ORDER BY without LIMIT changes no relation: it is checked and left out of the plan (it acts on reading).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from deltic.errors import SyntaxFailure, TypeMismatch, Unsupported
from deltic.expr import Expr, cast, common_type
from deltic.frontends.sql.base_terms import reads
from deltic.frontends.sql.bind_condition import Inner
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_recursive import bind_recursive
from deltic.frontends.sql.bind_select import Block, bind_block, bind_order, onto_outputs
from deltic.frontends.sql.bind_values import bind_values
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.scope import relation
from deltic.plan.columns import reference
from deltic.plan.nodes import Distinct, Order, Plan, Project, SetKind, SetOperation, TopK, Union
from deltic.schema import Type

GREATEST_LIMIT: Final = 2**31 - 1
"""As in Spark."""
_KINDS: Final[dict[tuple[type[exp.Expr], bool], SetKind]] = {
    (exp.Except, True): "except",
    (exp.Except, False): "except_all",
    (exp.Intersect, True): "intersect",
    (exp.Intersect, False): "intersect_all",
}


def bind_tree(node: exp.Expr, env: Environment) -> Plan:
    """The plan of a query's tree."""
    env = _with_ctes(node, env)
    match node:
        case exp.Select():
            return _bind_select(node, env)
        case exp.Union() | exp.Except() | exp.Intersect():
            return _ordered(_set_operation(node, env), node, env)
        case exp.Subquery():
            return _ordered(bind_tree(node.this, env), node, env)
        case exp.Values():
            return bind_values(node, env.places)
        case _:
            raise Unsupported("this is no query", span=env.places.of(node), expected="SELECT, VALUES or WITH")


def bind_inner(node: exp.Expr, env: Environment) -> Inner:
    """A subquery of EXISTS or IN, whose DISTINCT and ORDER BY do not matter there."""
    while isinstance(node, exp.Subquery) and not any(node.args.get(part) for part in ("with_", "order", "limit")):
        node = node.this
    if isinstance(node, exp.Select) and not node.args.get("limit"):
        block = bind_block(node, _with_ctes(node, env), bind_tree, bind_inner)
        return Inner(block.plan, tuple(expr for _, expr in block.outputs), block.correlated)
    plan = bind_tree(node, env)
    return Inner(plan, tuple(reference(plan.schema, i) for i in range(len(plan.schema))))


def _with_ctes(node: exp.Expr, env: Environment) -> Environment:
    found = node.args.get("with_")
    names: set[str] = set()
    if found is None:
        return env
    for cte in found.expressions:
        name, alias = cte.alias, cte.args["alias"]
        if name.lower() in names:
            raise Unsupported(f"the CTE {name!r} is defined twice", span=env.places.of(alias), remedy="give it another name")
        names.add(name.lower())
        env = env.with_cte(name, _bind_cte(cte, bool(found.args.get("recursive")), env.alone()))
    return env


def _bind_cte(cte: exp.CTE, recursive: bool, env: Environment) -> Plan:
    columns = cte.args["alias"].args.get("columns") or []

    def bound(query: exp.Expr, inside: Environment) -> Plan:
        return renamed(bind_tree(query, inside), columns, inside)

    return bind_recursive(cte, env, bound) if recursive and reads(cte.this, cte.alias) else bound(cte.this, env)


def renamed(plan: Plan, columns: list[exp.Expr], env: Environment) -> Plan:
    """The plan with its columns called as listed; as it is where nothing is listed."""
    if not columns:
        return plan
    if len(columns) != len(plan.schema):
        expected = f"{len(plan.schema)} names, found {len(columns)}"
        raise TypeMismatch("the column names do not fit the query", span=env.places.of(columns[-1]), expected=expected)
    return Project(plan, tuple((column.name, reference(plan.schema, i)) for i, column in enumerate(columns)))


def _bind_select(node: exp.Select, env: Environment) -> Plan:
    block = bind_block(node, env, bind_tree, bind_inner)
    if block.correlated:
        raise Unsupported(
            "a correlated subquery with a LIMIT or in a set operation is not supported",
            span=block.correlated[0].span,
            remedy="join the two tables",
        )
    distinct, limit = bool(node.args.get("distinct")), _limit(node, env)
    if distinct:
        return _distinct(block, limit, node, env)
    return Project(block.plan, block.outputs) if limit is None else _top_k(block, limit)


def _limit(node: exp.Expr, env: Environment) -> int | None:
    """n of LIMIT n."""
    limit = node.args.get("limit")
    if limit is None:
        return None
    span = env.places.of(limit)
    count = limit.expression
    if not (isinstance(count, exp.Literal) and not count.is_string and count.name.isdigit()):
        raise Unsupported("LIMIT wants a whole number", span=span, expected="LIMIT 10")
    if int(count.name) > GREATEST_LIMIT:
        raise Unsupported("LIMIT is too great a number", span=span, expected=f"at most {GREATEST_LIMIT:,}, as in Spark")
    if not node.args.get("order"):
        raise Unsupported("LIMIT without ORDER BY keeps rows by chance", span=span, remedy="ORDER BY … LIMIT n keeps the first n rows")
    return int(count.name)


def _distinct(block: Block, limit: int | None, node: exp.Select, env: Environment) -> Plan:
    plan = Distinct(Project(block.plan, block.outputs))
    terms = []
    for term, written in zip(block.order, node.args["order"].expressions if block.order else (), strict=True):
        expr = onto_outputs(term.expr, block.outputs)
        if expr is None:
            raise Unsupported(
                "ORDER BY of a SELECT DISTINCT reads a column that is not selected",
                span=env.places.of(written),
                remedy="select that column too",
            )
        terms.append(replace(term, expr=expr))
    return plan if limit is None else TopK(plan, tuple(terms), limit)


def _top_k(block: Block, limit: int) -> Plan:
    """The order's expressions that are not selected ride along, and are dropped behind."""
    outputs, terms = list(block.outputs), []
    for term in block.order:
        expr = onto_outputs(term.expr, outputs)
        if expr is None:
            outputs.append((f"order{len(outputs) - len(block.outputs) + 1}", term.expr))
            expr = onto_outputs(term.expr, outputs)
            assert expr is not None
        terms.append(replace(term, expr=expr))
    plan: Plan = TopK(Project(block.plan, tuple(outputs)), tuple(terms), limit)
    if len(outputs) == len(block.outputs):
        return plan
    return Project(plan, tuple((name, reference(plan.schema, i)) for i, (name, _) in enumerate(block.outputs)))


def _ordered(plan: Plan, node: exp.Expr, env: Environment) -> Plan:
    """ORDER BY and LIMIT behind a set operation or a query in parentheses."""
    limit, order = _limit(node, env), node.args.get("order")
    if order is None:
        return plan
    scope = relation(plan, None).scope
    outputs: list[tuple[str, Expr]] = [(c.name, scope.column(c)) for c in scope.columns]
    terms: tuple[Order, ...] = bind_order(order, ExpressionBinder(env.places, scope, "ORDER BY"), outputs)
    return plan if limit is None else TopK(plan, terms, limit)


def _set_operation(node: exp.Expr, env: Environment) -> Plan:
    for side in (node.this, node.expression):
        if isinstance(side, exp.Select) and (side.args.get("order") or side.args.get("limit")):
            raise SyntaxFailure("ORDER BY and LIMIT inside a set operation", span=env.places.of(side), remedy="put the side in parentheses")
    left, right = bind_tree(node.this, env), bind_tree(node.expression, env)
    word = type(node).__name__.upper()
    if len(left.schema) != len(right.schema):
        expected = f"{len(left.schema)}, found {len(right.schema)}"
        raise TypeMismatch(f"the sides of {word} have different numbers of columns", span=env.places.of(node.expression), expected=expected)
    types = [_common(word, i, left, right, node, env) for i in range(len(left.schema))]
    left, right = _widened(left, types), _widened(right, types)
    distinct = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        both = Union((left, right))
        return Distinct(both) if distinct else both
    return SetOperation(left, right, _KINDS[type(node), distinct])


def _common(word: str, index: int, left: Plan, right: Plan, node: exp.Expr, env: Environment) -> Type:
    ours, theirs = left.schema[index], right.schema[index]
    type = common_type([ours.type, theirs.type])
    if type is None:
        raise TypeMismatch(
            f"column {index + 1} of {word} has no one type",
            span=env.places.of(node.expression),
            expected=f"{ours.type.sql} as {ours.name!r} on the left, found {theirs.type.sql}",
            remedy="CAST one of them",
        )
    return type


def _widened(plan: Plan, types: list[Type]) -> Plan:
    if [field.type for field in plan.schema] == types:
        return plan
    return Project(plan, tuple((f.name, cast(reference(plan.schema, i), types[i])) for i, f in enumerate(plan.schema)))
