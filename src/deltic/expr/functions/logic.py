"""Comparisons, three-valued logic and conditional functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.functions.arithmetic import exact_operand
from deltic.expr.functions.signature import ANY, CONDITION, Builder, accept, any_nullable, check_count, function
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.typing import case, cast, common_type, common_type_without_strings
from deltic.schema import BOOLEAN, DOUBLE, FLOAT, NULL, STRING, Type


def _comparison(canonical: str) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 2, 2, span)
        left, right = comparable(name, arguments, span)
        return Call(canonical, (left, right), BOOLEAN, canonical != "same" and (left.nullable or right.nullable), span)

    return build


def comparable(name: str, arguments: Sequence[Expr], span: Span | None) -> tuple[Expr, Expr]:
    """Two expressions cast to the type in which they are compared."""
    left, right = arguments
    left, right = exact_operand(left, right.type), exact_operand(right, left.type)
    common = common_type([left.type, right.type])
    if common is None:
        found = f"{left.type.sql} and {right.type.sql}"
        raise TypeMismatch(f"{name} cannot compare {found}", span=span, expected="operands of one type", remedy="cast one of them")
    return cast(left, common), cast(right, common)


def _connective(canonical: str) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 2, 2, span)
        if all(a.type == STRING for a in arguments):
            raise TypeMismatch(f"{name} cannot take STRING and STRING", span=span, expected="BOOLEAN")
        left, right = (accept(name, i, a, CONDITION, span) for i, a in enumerate(arguments, 1))
        return Call(canonical, (left, right), BOOLEAN, left.nullable or right.nullable, span)

    return build


def _is(value: bool, negated: bool) -> Builder:
    """IS [NOT] TRUE, IS [NOT] FALSE."""

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 1, span)
        argument = accept(name, 1, arguments[0], CONDITION, span)
        same = Call("same", (argument, Literal(value, BOOLEAN)), BOOLEAN, False, span)
        return Call("not", (same,), BOOLEAN, False, span) if negated else same

    return build


def _in(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, None, span)
    common = common_type([a.type for a in arguments])
    if common is None:
        types = ", ".join(dict.fromkeys(a.type.sql for a in arguments))
        raise TypeMismatch(f"{name} cannot compare {types}", span=span, expected="one type", remedy="cast them to one type")
    taken = tuple(cast(a, common) for a in arguments)
    return Call("in", taken, BOOLEAN, any_nullable(taken), span)


def _between(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 3, 3, span)
    value, low, high = arguments
    above = BUILDERS["greater_equal"](name, (value, low), span)
    below = BUILDERS["less_equal"](name, (value, high), span)
    return Call("and", (above, below), BOOLEAN, above.nullable or below.nullable, span)


def _common(name: str, arguments: Sequence[Expr], type: Type | None, span: Span | None) -> tuple[Expr, ...]:
    if type is None:
        types = ", ".join(dict.fromkeys(a.type.sql for a in arguments))
        raise TypeMismatch(f"the arguments of {name} have no common type", span=span, expected=f"one type, found {types}")
    return tuple(cast(a, type) for a in arguments)


def _choice(canonical: str, least: int, most: int | None, strings_meet: bool) -> Builder:
    """A function that gives one of its arguments, and NULL only when all are NULL."""

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, least, most, span)
        types = [a.type for a in arguments]
        taken = _common(name, arguments, common_type(types) if strings_meet else common_type_without_strings(types), span)
        if len(taken) == 1:
            return taken[0]
        return Call(canonical, taken, taken[0].type, all(a.nullable for a in taken), span)

    return build


def _if(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 3, 3, span)
    condition, then, otherwise = arguments
    return case([(condition, then)], otherwise, span)


def _nvl2(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 3, 3, span)
    present = Call("is_not_null", (arguments[0],), BOOLEAN, False, span)
    return case([(present, arguments[1])], arguments[2], span)


def _nullif(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, 2, span)
    equal = BUILDERS["equal"](name, arguments, span)
    return case([(equal, Literal(None, NULL))], arguments[0], span)


def _isnan(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    argument = arguments[0]
    if argument.type != FLOAT:
        if not (argument.type.is_numeric or argument.type in (STRING, NULL)):
            found = argument.type.sql
            raise TypeMismatch(f"argument 1 of {name} has the wrong type", span=span, expected=f"DOUBLE or FLOAT, found {found}")
        argument = cast(argument, DOUBLE)
    return Call("isnan", (argument,), BOOLEAN, False, span)


def _normalize(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """The value as a key has it: 0.0 for -0.0. Other types than floats need none."""
    check_count(name, arguments, 1, 1, span)
    argument = arguments[0]
    return Call("normalize", (argument,), argument.type, argument.nullable, span) if argument.type.is_float else argument


BUILDERS: Final[Mapping[str, Builder]] = {
    "equal": _comparison("equal"),
    "not_equal": _comparison("not_equal"),
    "less": _comparison("less"),
    "less_equal": _comparison("less_equal"),
    "greater": _comparison("greater"),
    "greater_equal": _comparison("greater_equal"),
    "same": _comparison("same"),
    "and": _connective("and"),
    "or": _connective("or"),
    "not": function("not", [CONDITION], BOOLEAN),
    "is_null": function("is_null", [ANY], BOOLEAN, nullable="never"),
    "is_not_null": function("is_not_null", [ANY], BOOLEAN, nullable="never"),
    "is_true": _is(True, False),
    "is_not_true": _is(True, True),
    "is_false": _is(False, False),
    "is_not_false": _is(False, True),
    "isnan": _isnan,
    "in": _in,
    "between": _between,
    "coalesce": _choice("coalesce", 1, None, True),
    "nvl": _choice("coalesce", 2, 2, True),
    "greatest": _choice("greatest", 2, None, False),
    "least": _choice("least", 2, None, False),
    "if": _if,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "normalize": _normalize,
}
