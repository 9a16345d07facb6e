"""What a value of an input must be: rows come as Python, Arrow or files have them, and a STRUCT can hold what no value of its kind is."""

from __future__ import annotations

from deltic.errors import Span
from deltic.expr import resolve
from deltic.expr.nodes import Expr, Lambda, LambdaVariable, Literal
from deltic.expr.typing import case
from deltic.frontends.datalog.declarations import BoundTerm
from deltic.frontends.datalog.kinds import STRING_KIND, IntegerKind, Kind, MapKind, TupleKind, UnionKind, VectorKind, stored
from deltic.frontends.datalog.values import checked, field_index, part
from deltic.plan.columns import conjunction
from deltic.schema import BOOLEAN, STRING


def checked_input(column: Expr, kind: Kind, name: str, span: Span) -> Expr:
    """The column of an input; a value that is not one of the kind fails the tick."""
    if isinstance(kind, IntegerKind):
        return column if kind.is_exact else checked(column, kind, span).expr
    if not isinstance(kind, TupleKind | UnionKind | VectorKind | MapKind):
        return column
    valid = resolve("coalesce", [_valid(column, kind, 0, span), Literal(False, BOOLEAN)], span)
    failure = resolve("raise_error", [Literal(f"a value of the column {name} is not of type {kind}", STRING)], span)
    return case([(valid, column)], failure, span)


def _valid(value: Expr, kind: Kind, level: int, span: Span) -> Expr:
    """Whether it is a value of the kind; not TRUE if it is not. level: of a lambda over it."""
    conditions = [resolve("isnotnull", [value], span)]
    whole = BoundTerm(value, kind)
    match kind:
        case IntegerKind() if not kind.is_exact:
            ends = [(">=", kind.least), ("<=", kind.greatest)]
            conditions += [resolve(operator, [value, Literal(end, stored(kind))], span) for operator, end in ends]
        case TupleKind():
            conditions += [_valid(part(whole, i, item, span).expr, item, level, span) for i, item in enumerate(kind.items)]
        case VectorKind():
            conditions.append(_all_valid(value, kind.item, level, span))
        case MapKind():
            conditions.append(_all_valid(resolve("map_keys", [value], span), kind.key, level, span))
            conditions.append(_all_valid(resolve("map_values", [value], span), kind.value, level, span))
        case UnionKind() if kind.is_tagged:
            conditions.append(resolve("or", [_of_constructor(whole, kind, one.name, level, span) for one in kind.constructors], span))
        case UnionKind():
            conditions.append(_of_constructor(whole, kind, None, level, span))
        case _:
            pass
    return conjunction(conditions)


def _all_valid(array: Expr, kind: Kind, level: int, span: Span) -> Expr:
    item = LambdaVariable(level, 0, stored(kind), True, "x", span)
    return resolve("forall", [array, Lambda((item,), _valid(item, kind, level + 1, span))], span)


def _of_constructor(value: BoundTerm, kind: UnionKind, name: str | None, level: int, span: Span) -> Expr:
    """Whether the value has the constructor's tag and fields, and no others. name: None of a struct."""
    own = dict(next(one for one in kind.constructors if name in (None, one.name)).fields)
    conditions = []
    if name is not None:
        conditions.append(resolve("=", [part(value, 0, STRING_KIND, span).expr, Literal(name, STRING)], span))
    for field, inner in kind.fields.items():
        expr = part(value, field_index(kind, field), inner, span).expr
        conditions.append(_valid(expr, inner, level, span) if field in own else resolve("isnull", [expr], span))
    return conjunction(conditions)
