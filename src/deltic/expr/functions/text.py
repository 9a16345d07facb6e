"""String functions. An argument that is no STRING is cast to one, as Spark does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.functions.signature import INTEGER, TEXT, Builder, accept, any_nullable, check_count, constant, function
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.rows.text import like_fault
from deltic.expr.typing import case
from deltic.schema import BOOLEAN, INT, STRING

MOST: Final = Literal(2**31 - 1, INT)
ONE: Final = Literal(1, INT)
EMPTY: Final = Literal("", STRING)
SPACE: Final = Literal(" ", STRING)
BACKSLASH: Final = Literal("\\", STRING)


def _concat(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    taken = tuple(accept(name, i, a, TEXT, span) for i, a in enumerate(arguments, 1))
    if not taken:
        return Literal("", STRING, span)
    return Call("concat", taken, STRING, any_nullable(taken), span)


def _concat_ws(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, None, span)
    taken = tuple(accept(name, i, a, TEXT, span) for i, a in enumerate(arguments, 1))
    return Call("concat_ws", taken, STRING, taken[0].nullable, span)


def _instr(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, 2, span)
    return _FIND(name, (arguments[1], arguments[0]), span)


def _like(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, 3, span)
    value, pattern = (accept(name, i, a, TEXT, span) for i, a in enumerate(arguments[:2], 1))
    escape = constant(arguments[2]) if len(arguments) == 3 else BACKSLASH
    if escape is None or not isinstance(escape.value, str) or len(escape.value) != 1:
        raise TypeMismatch("the escape of LIKE is not one character", span=arguments[2].span or span, expected="a STRING of one character")
    known = constant(pattern)
    if known is not None and isinstance(known.value, str) and (fault := like_fault(known.value, escape.value)):
        raise TypeMismatch(fault, span=pattern.span or span, expected=f"{escape.value!r} before _, % or itself only")
    return Call("like", (value, known or pattern, escape), BOOLEAN, value.nullable or pattern.nullable, span)


_FIND: Final = function("locate", [TEXT, TEXT, INTEGER], INT, defaults=[ONE])


def _locate(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """A NULL position finds nothing: 0, as in Spark, even in NULL."""
    call = _FIND(name, arguments, span)
    assert isinstance(call, Call)
    position = call.arguments[2]
    if not position.nullable:
        return call
    missing = Call("is_null", (position,), BOOLEAN, False, span)
    nothing = Literal(0, INT)
    if isinstance(position, Literal):
        return nothing
    return case([(missing, nothing)], call, span)


BUILDERS: Final[Mapping[str, Builder]] = {
    "upper": function("upper", [TEXT], STRING),
    "lower": function("lower", [TEXT], STRING),
    "initcap": function("initcap", [TEXT], STRING),
    "length": function("length", [TEXT], INT),
    "octet_length": function("octet_length", [TEXT], INT),
    "ascii": function("ascii", [TEXT], INT),
    "substring": function("substring", [TEXT, INTEGER, INTEGER], STRING, defaults=[MOST]),
    "left": function("left", [TEXT, INTEGER], STRING),
    "right": function("right", [TEXT, INTEGER], STRING),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "trim": function("trim", [TEXT], STRING),
    "ltrim": function("ltrim", [TEXT], STRING),
    "rtrim": function("rtrim", [TEXT], STRING),
    "replace": function("replace", [TEXT, TEXT, TEXT], STRING, defaults=[EMPTY]),
    "lpad": function("lpad", [TEXT, INTEGER, TEXT], STRING, defaults=[SPACE]),
    "rpad": function("rpad", [TEXT, INTEGER, TEXT], STRING, defaults=[SPACE]),
    "locate": _locate,
    "instr": _instr,
    "startswith": function("startswith", [TEXT, TEXT], BOOLEAN),
    "endswith": function("endswith", [TEXT, TEXT], BOOLEAN),
    "contains": function("contains", [TEXT, TEXT], BOOLEAN),
    "reverse": function("reverse", [TEXT], STRING),
    "repeat": function("repeat", [TEXT, INTEGER], STRING),
    "split_part": function("split_part", [TEXT, TEXT, INTEGER], STRING),
    "like": _like,
}
