"""A STRUCT with a field that is set or left out: SET of UPDATE and MERGE, and withField and dropFields of DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.errors import Span, TypeMismatch
from deltic.expr import Expr, Literal, case, resolve
from deltic.expr.nodes import Call, Case
from deltic.schema import NULL, STRING


def updated_field(struct: Expr, path: Sequence[str], value: Expr | None, span: Span, *, in_null: bool = False) -> Expr:
    """`struct` with `value` as the field at `path`, or without it. As in Spark, every field of the name is meant.

    NULL stays NULL; with in_null, it becomes a STRUCT whose other fields are NULL.

    Raises TypeMismatch for a value that is no STRUCT, a path through a field that there is not, and a STRUCT without a field.
    """
    if struct.type.name != "STRUCT":
        raise TypeMismatch(f"a field of {struct.type.sql} cannot be set or dropped", span=span, expected="a STRUCT")
    name, *rest = path
    held, origin = _fields(struct, span)
    at = [i for i, (other, _) in enumerate(held) if other.lower() == name.lower()]
    if rest and not at:
        expected = f"one of {', '.join(part.name for part in struct.type.parts)}"
        raise TypeMismatch(f"{struct.type.sql} has no field {name}", span=span, expected=expected)
    if rest:
        within = {i: updated_field(held[i][1], rest, value, span, in_null=in_null) for i in at}
        fields = [(other, within.get(i, part)) for i, (other, part) in enumerate(held)]
    elif value is None:
        fields = [one for i, one in enumerate(held) if i not in at]
    else:
        fields = [(name, value) if i in at else one for i, one in enumerate(held)]
        fields += [] if at else [(name, value)]
    if not fields:
        raise TypeMismatch(f"{struct.type.sql} would have no fields", span=span, expected="a field that stays")
    made = resolve("named_struct", [part for other, one in fields for part in (Literal(other, STRING), one)], span)
    return case([(resolve("is_null", [origin], span), Literal(None, NULL))], made, span) if origin.nullable and not in_null else made


def _fields(struct: Expr, span: Span) -> tuple[list[tuple[str, Expr]], Expr]:
    """(name, value) of each field where a STRUCT is not NULL, and what is NULL where it is.

    Of one that was updated before they are its parts: a field of it would be all of it again, for each update.
    """
    inner, origin = struct, struct
    match struct:
        case Case(branches=((Call(function="is_null", arguments=(tested,)), Literal(value=None)),), otherwise=Call() as made):
            inner, origin = made, tested
    if isinstance(inner, Call) and inner.function == "make_struct":
        return [(part.name, value) for part, value in zip(struct.type.parts, inner.arguments, strict=True)], origin
    return [(part.name, resolve("field", [struct, Literal(part.name, STRING)], span)) for part in struct.type.parts], struct
