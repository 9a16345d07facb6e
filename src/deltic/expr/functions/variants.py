"""VARIANT: from JSON and from values of SQL, the part at a path, and its schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deltic.errors import EvaluationError, MalformedVariant, Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct, per_distinct_with_nulls
from deltic.expr.collating import ignoring
from deltic.expr.functions.json_values import schema_type
from deltic.expr.functions.signature import PLAIN_TEXT, TEXT, Parameter, accept, any_nullable, check_count, constant, takes
from deltic.expr.nodes import Call, Expr, Literal, Value
from deltic.expr.registry import Function, Nulls, Typed
from deltic.expr.rows import variants as rows
from deltic.expr.rows.casts import cast_value
from deltic.expr.typing import holds
from deltic.schema import BOOLEAN, NULL, STRING, VARIANT, Field, Type
from deltic.types import array_type, struct
from deltic.variant_bytes import Parts, VariantPlace
from deltic.variant_json import parsed
from deltic.variants import Variant

_VARIANT: Final = Parameter("VARIANT", lambda t: VARIANT if t in (VARIANT, NULL) else None)
_PATH: Final = "$, then steps such as .name, ['name'] and [0]"
_ENTRIES: Final = array_type(struct((Field("key", STRING), Field("value", VARIANT))))


def _parse(call: Call, text: str) -> Variant:
    try:
        return Variant(*parsed(text))
    except MalformedVariant as error:
        remedy = "try_parse_json gives NULL instead"
        raise EvaluationError(f"the text {text!r} is not JSON: {error.message}", span=call.span, remedy=remedy) from None


def _try_parse(call: Call, text: str) -> Variant | None:
    try:
        return Variant(*parsed(text))
    except MalformedVariant:
        return None


def _get(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(value, path[, type])."""
    check_count(name, arguments, 2, 3, span)
    value, path = accept(name, 1, arguments[0], _VARIANT, span), accept(name, 2, arguments[1], TEXT, span)
    type = schema_type(name, arguments[2], span) if len(arguments) > 2 else VARIANT
    if not holds(type, objects=True):
        expected = "a type that a VARIANT holds, with keys of STRING"
        raise TypeMismatch(f"cannot cast VARIANT to {type.sql}", span=arguments[2].span or span, expected=expected)
    literal = constant(path)
    if literal is not None and isinstance(literal.value, str) and rows.steps(literal.value) is None:
        raise TypeMismatch(f"invalid path {literal.value!r}", span=path.span or span, expected=_PATH)
    return Typed((value, path), type, True)


def _getting(*, lenient: bool) -> Callable[[Call, Parts, str], Value]:
    def get(call: Call, value: Parts, path: str) -> Value:
        way = rows.steps(path)
        if way is None:
            raise EvaluationError(f"invalid path {path!r}", span=call.span, expected=_PATH)
        part = rows.part_at(VariantPlace(*value), way)

        def cast(scalar: Value, source: Type, target: Type) -> Value:
            return cast_value(scalar, source, target, call.span)

        return None if part is None else rows.read(part, call.type, cast, call.span, lenient=lenient)

    return get


def _try_can_fail(call: Call) -> bool:
    """By its path; or by a number that is a TIMESTAMP outside the years 1 to 9999."""
    return not isinstance(call.arguments[1], Literal) or call.type != VARIANT


def _to_object(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 1, span)
    (value,) = arguments
    if not value.type.is_nested or not holds(value.type, objects=True):
        expected = "an ARRAY, a STRUCT, or a MAP with keys of STRING, of types that a VARIANT holds"
        raise TypeMismatch(f"argument 1 of {name} is {value.type.sql}", span=value.span or span, expected=expected)
    return Typed((value,), VARIANT, any_nullable(arguments))


def _is_null(call: Call, value: Any) -> bool:
    return value is not None and VariantPlace(*value).kind == "NULL"


FUNCTIONS: Final = (
    Function(name="parse_json", collated=ignoring, signature=takes([PLAIN_TEXT], VARIANT), can_fail=True, rows=_parse, arrays=per_distinct),
    Function(
        name="try_parse_json",
        collated=ignoring,
        signature=takes([PLAIN_TEXT], VARIANT, nullable="always"),
        can_fail=False,
        rows=_try_parse,
        arrays=per_distinct,
    ),
    Function(name="variant_get", signature=_get, can_fail=True, rows=_getting(lenient=False), arrays=per_distinct),
    Function(name="try_variant_get", signature=_get, can_fail=_try_can_fail, rows=_getting(lenient=True), arrays=per_distinct),
    Function(
        name="to_variant_object",
        collated=ignoring,
        signature=_to_object,
        can_fail=False,
        rows=lambda call, value: rows.written(value, call.arguments[0].type),
        arrays=per_distinct,
    ),
    Function(
        name="is_variant_null",
        signature=takes([_VARIANT], BOOLEAN, nullable="never"),
        can_fail=False,
        nulls=Nulls.SEEN,
        rows=_is_null,
        arrays=per_distinct_with_nulls,
    ),
    Function(  # every table, file and function checks the bytes that it takes
        name="is_valid_variant",
        signature=takes([_VARIANT], BOOLEAN),
        can_fail=False,
        rows=lambda call, value: True,
        arrays=per_distinct,
    ),
    Function(
        name="schema_of_variant",
        signature=takes([_VARIANT], STRING),
        can_fail=False,
        rows=lambda call, value: rows.schema_text(rows.schema_of(value)),
        arrays=per_distinct,
    ),
    Function(
        name="variant_entries",
        named=False,
        signature=takes([_VARIANT], _ENTRIES),
        can_fail=False,
        rows=lambda call, value: rows.exploded(value),
        arrays=per_distinct,
    ),
)
