"""FROM: tables, views, CTEs, derived tables, VALUES, and the joins between them.

Equalities between the two sides of a join become its keys, as far as that raises nothing that the condition itself would not:
one whose sides can fail on a row is a key only if nothing but keys stands before it. The rest of the condition is the residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from deltic.errors import AmbiguousName, Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported
from deltic.expr import Call, Expr, Literal, can_fail, columns_of, resolve
from deltic.frontends.sql.bind_call import function_name
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_table_function import EXPLODES, bind_from_function, bind_lateral
from deltic.frontends.sql.bind_values import bind_values
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.frontends.sql.scope import Relation, Scope, ScopeColumn, did_you_mean, moved, relation
from deltic.plan.columns import conjunction, conjuncts, reference, shift
from deltic.plan.nodes import Join, JoinKind, Plan, Project, Reference, Table, Values
from deltic.schema import Schema, TableSchema

EQUAL: Final = "equal"
_KINDS: Final[dict[tuple[str, str], JoinKind]] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
    ("", "ANTI"): "anti",
}

NOTHING: Final = Relation(Values(((),), Schema(())), Scope((), Schema(())))
"""SELECT without FROM: one row without columns."""


def bind_from(select: exp.Select, env: Environment, bind_query: BindQuery) -> Relation:
    """The relation of FROM and its joins, in a scope inside that of the query around."""
    start = select.args.get("from_")
    if start is None and select.args.get("joins"):
        raise SyntaxFailure("JOIN without FROM", span=env.places.of(select.args["joins"][0]))
    joined = NOTHING if start is None else _joined(_item(start.this, env, bind_query), select.args.get("joins"), env, bind_query)
    for lateral in select.args.get("laterals") or ():
        _check_view(lateral, env)
        joined = bind_lateral(lateral, joined, env)
    return Relation(joined.plan, replace(joined.scope, outer=env.outer))


def _check_view(node: exp.Lateral, env: Environment) -> None:
    """What stands behind FROM without a comma or JOIN is LATERAL VIEW, which has a name, of functions of Spark's."""
    if not node.args.get("view"):
        raise SyntaxFailure(
            "LATERAL without a comma before it", span=env.places.of(node), expected=", LATERAL f(…) or LATERAL VIEW f(…) v AS x"
        )
    alias = node.args.get("alias")
    named = alias is not None and (alias.this is not None or alias.args.get("columns"))
    if not named and isinstance(node.this, exp.Anonymous) and function_name(node.this) in EXPLODES:
        raise SyntaxFailure("LATERAL VIEW without a name", span=env.places.of(node), expected="LATERAL VIEW f(…) v AS x")


def _joined(left: Relation, joins: Sequence[exp.Join] | None, env: Environment, bind_query: BindQuery) -> Relation:
    for node in joins or ():
        if isinstance(node.this, exp.Lateral):
            left = _lateral(left, node, env)
            continue
        left = _join(left, _item(node.this, env, bind_query), node, env)
    return left


def _lateral(left: Relation, node: exp.Join, env: Environment) -> Relation:
    """, LATERAL f(…), and CROSS JOIN LATERAL f(…)."""
    condition = node.args.get("on")
    if node.side or str(node.kind or "").upper() not in ("", "INNER", "CROSS") or not (condition is None or condition == exp.true()):
        remedy = "LATERAL VIEW OUTER keeps rows of which nothing is made"
        raise Unsupported("this join with LATERAL is not supported", span=env.places.of(node), expected=", LATERAL f(…)", remedy=remedy)
    return bind_lateral(node.this, left, env)


def _item(node: exp.Expr, env: Environment, bind_query: BindQuery) -> Relation:
    if isinstance(node, exp.Table):
        return _joined(_named(node, env), node.args.get("joins"), env, bind_query)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
        return _parenthesised(node, env, bind_query)
    if isinstance(node, exp.Subquery):
        plan = bind_query(node, env.alone())
    elif isinstance(node, exp.Values):
        plan = bind_values(node, env.places)
    else:
        raise Unsupported(f"{type(node).__name__.upper()} is not supported in FROM", span=env.places.of(node))
    return _aliased(plan, None, node, env)


def _parenthesised(node: exp.Subquery, env: Environment, bind_query: BindQuery) -> Relation:
    """(a JOIN b …), whose tables keep their names unless the whole has one."""
    inner = _item(node.this, env, bind_query)
    if not isinstance(node.args.get("alias"), exp.TableAlias):
        return inner
    shown = inner.scope.star(None)
    plan = Project(inner.plan, tuple((c.name, inner.scope.column(c)) for c in shown))
    return _aliased(plan, None, node, env)


def _named(node: exp.Table, env: Environment) -> Relation:
    if isinstance(node.this, exp.Anonymous):
        return _aliased(bind_from_function(node.this, NOTHING, env).plan, None, node, env)
    if not isinstance(node.this, exp.Identifier):
        span = env.places.of(node)
        raise Unsupported("this function is not supported in FROM", span=span, remedy="give the rows as a table of their own")
    behind = env.places.behind(node.this)
    if behind is not None and behind.token_type == TokenType.STAR:
        raise SyntaxFailure("syntax error at '*'", span=env.places.at(behind))
    return _aliased(_lookup(node, env), node.name, node, env)


def _lookup(node: exp.Table, env: Environment) -> Plan:
    name, span = node.name, env.places.of(node.this)
    if name.lower() in env.ctes:
        return _placed(env.ctes[name.lower()], span)
    found = env.catalog.relation(name)
    if found is None:
        remedy = did_you_mean(name, [*env.ctes, *env.catalog.names()])
        raise UnknownName(f"there is no table or view {name!r}", span=span, remedy=remedy)
    env.reads.add(next((known for known in env.catalog.names() if known.lower() == name.lower()), name))
    return Table(found, span) if isinstance(found, TableSchema) else _placed(found, span)


def _placed(plan: Plan, span: Span) -> Plan:
    return replace(plan, span=span) if isinstance(plan, Reference) else plan


def _aliased(plan: Plan, name: str | None, node: exp.Expr, env: Environment) -> Relation:
    """Under its alias, where there is one, and with the alias's column names."""
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return relation(plan, name)
    columns = alias.args.get("columns") or []
    if alias.this is None or not all(isinstance(column, exp.Identifier) for column in columns):
        raise SyntaxFailure("this is no alias", span=env.places.of(alias), expected="name, or name (column, …)")
    if columns and len(columns) != len(plan.schema):
        expected = f"{len(plan.schema)} names, found {len(columns)}"
        raise TypeMismatch("the column names do not fit the columns", span=env.places.of(alias), expected=expected)
    return relation(plan, alias.name or name, [column.name for column in columns] or None)


def _join(left: Relation, right: Relation, node: exp.Join, env: Environment) -> Relation:
    kind = _KINDS.get((str(node.side or "").upper(), str(node.kind or "").upper()))
    method = str(node.method or "").upper()
    if kind is None or method not in ("", "NATURAL") or (method and str(node.kind).upper() == "CROSS"):
        words = " ".join(word for word in (method, node.side, node.kind) if word)
        raise Unsupported(
            f"{words} JOIN is not supported", span=env.places.of(node), remedy="INNER, LEFT, RIGHT, FULL, CROSS, LEFT SEMI, LEFT ANTI"
        )
    if node.args.get("on") is not None and (method or node.args.get("using")):
        raise SyntaxFailure("a join has one of NATURAL, USING and ON", span=env.places.of(node.args["on"]))
    if method == "NATURAL":
        return _join_using(left, right, kind, _common_names(left, right), env)
    if node.args.get("using"):
        return _join_using(left, right, kind, [(part.name, env.places.of(part)) for part in node.args["using"]], env)
    width = len(left.plan.schema)
    both = _beside(left, right, Join(left.plan, right.plan, "inner"))  # ON sees the rows before any is filled up with NULL
    condition = node.args.get("on")
    keys, residual = (
        ((), None)
        if condition is None
        else split(ExpressionBinder(env.places, replace(both.scope, outer=env.outer), "ON").condition(condition), width)
    )
    hint = env.hint if kind == "inner" else None
    return _beside(left, right, Join(left.plan, right.plan, kind, keys, residual, hint=hint))


def _beside(left: Relation, right: Relation, plan: Join) -> Relation:
    if plan.kind in ("semi", "anti"):
        return Relation(plan, replace(left.scope, schema=plan.schema))
    columns = left.scope.columns + moved(right.scope.columns, len(left.plan.schema))
    return Relation(plan, Scope(columns, plan.schema))


Keys = tuple[tuple[Expr, Expr], ...]


def split(condition: Expr, width: int) -> tuple[Keys, Expr | None]:
    """A condition over (left, right), left `width` columns wide, as keys and residual."""
    keys: list[tuple[Expr, Expr]] = []
    rest: list[Expr] = []
    for part in conjuncts(condition):
        sides = _sides(part, width)
        if sides is not None and (not rest or not (can_fail(sides[0]) or can_fail(sides[1]))):
            keys.append((sides[0], shift(sides[1], -width)))
        elif not (isinstance(part, Literal) and part.value is True):
            rest.append(part)
    return tuple(keys), conjunction(rest) if rest else None


def _sides(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """The left and the right side of an equality between the two relations."""
    if not (isinstance(part, Call) and part.function == EQUAL):
        return None
    for left, right in (part.arguments, part.arguments[::-1]):
        ours, theirs = columns_of(left), columns_of(right)
        if ours and theirs and max(ours) < width <= min(theirs):
            return left, right
    return None


def with_equality(plan: Plan, condition: Expr) -> Plan | None:
    """`plan` with an equality of WHERE as a key of an inner join in it; None where it cannot be one."""
    if not (isinstance(plan, Join) and plan.kind in ("inner", "left") and isinstance(condition, Call) and condition.function == EQUAL):
        return None
    width, read = len(plan.left.schema), columns_of(condition)
    sides = _sides(condition, width)
    if sides is not None and plan.kind == "inner" and not any(can_fail(side) for side in sides):
        return replace(plan, keys=(*plan.keys, (sides[0], shift(sides[1], -width))))
    if read and max(read) < width:
        left = with_equality(plan.left, condition)
        return None if left is None else replace(plan, left=left)
    if read and min(read) >= width and plan.kind == "inner":
        right = with_equality(plan.right, shift(condition, -width))
        return None if right is None else replace(plan, right=right)
    return None


def _common_names(left: Relation, right: Relation) -> list[tuple[str, Span | None]]:
    theirs = {column.name.lower() for column in right.scope.star(None)}
    return [(column.name, None) for column in left.scope.star(None) if column.name.lower() in theirs]


def _join_using(left: Relation, right: Relation, kind: JoinKind, names: Sequence[tuple[str, Span | None]], env: Environment) -> Relation:
    """The columns of `names` are keys and come out once, first."""
    ours = [_using(left, name, span, "left") for name, span in names]
    theirs = [_using(right, name, span, "right") for name, span in names]
    width, keys = len(left.plan.schema), []
    for (_, span), a, b in zip(names, ours, theirs, strict=True):
        equal = resolve(EQUAL, [left.scope.column(a), shift(right.scope.column(b), width)], span)
        assert isinstance(equal, Call)
        keys.append((equal.arguments[0], shift(equal.arguments[1], -width)))
    plan = Join(left.plan, right.plan, kind, tuple(keys), hint=env.hint if kind == "inner" else None)
    if kind == "full":
        return _merged(left, right, plan, ours, theirs)
    kept_left = kind != "right"
    shown = ours if kept_left else list(moved(theirs, width))
    gone = moved(theirs, width) if kept_left else ours
    rest = [c for c in left.scope.columns if c not in ours]
    if kind in ("semi", "anti"):
        return Relation(plan, Scope((*shown, *rest), plan.schema))
    rest += [c for c in moved(right.scope.columns, width) if c not in moved(theirs, width)]
    return Relation(plan, Scope((*shown, *rest, *(replace(c, hidden=True) for c in gone)), plan.schema))


def _merged(left: Relation, right: Relation, plan: Join, ours: list[ScopeColumn], theirs: list[ScopeColumn]) -> Relation:
    """FULL JOIN USING: the key is that of whichever side is there."""
    width, schema = len(left.plan.schema), plan.schema
    columns: list[tuple[str, Expr]] = [(field.name, reference(schema, i)) for i, field in enumerate(schema)]
    shown = []
    for a, b in zip(ours, moved(theirs, width), strict=True):
        shown.append(ScopeColumn(a.name, None, len(columns)))
        columns.append((a.name, resolve("coalesce", [reference(schema, a.index), reference(schema, b.index)], None)))
    project = Project(plan, tuple(columns))
    both = left.scope.columns + moved(right.scope.columns, width)
    keys = {c.index for c in (*ours, *moved(theirs, width))}
    rest = [c for c in both if c.index not in keys]
    hidden = [replace(c, hidden=True) for c in both if c.index in keys]
    return Relation(project, Scope((*shown, *rest, *hidden), project.schema))


def _using(side: Relation, name: str, span: Span | None, which: str) -> ScopeColumn:
    found = side.scope.find(name, None)
    if len(found) > 1:
        raise AmbiguousName(f"the name {name!r} is ambiguous on the {which} side", span=span, remedy="JOIN … ON with qualified names")
    if not found:
        remedy = did_you_mean(name, [c.name for c in side.scope.star(None)])
        raise UnknownName(f"there is no column {name!r} on the {which} side", span=span, remedy=remedy)
    return found[0]
