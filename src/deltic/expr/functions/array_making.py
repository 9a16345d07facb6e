"""ARRAYs made of values and of other ARRAYs: grown, cut, joined, zipped, and numbers in sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import collections as arrays
from deltic.expr.arrays.distinct import per_distinct, per_distinct_with_nulls
from deltic.expr.collating import as_is, choosing
from deltic.expr.functions import intervals
from deltic.expr.functions.array_elements import ARRAY, ARRAY_OR_NULL, element_type, with_value
from deltic.expr.functions.comparison import common_arguments
from deltic.expr.functions.nested import name_of
from deltic.expr.functions.signature import INTEGER, PLAIN_INTEGER, TypeRule, accept, accept_each, any_nullable, check_count, wrong_type
from deltic.expr.nodes import Expr, Literal
from deltic.expr.registry import Function, Nulls, Rewrite, Typed, resolve
from deltic.expr.rows import collections as rows
from deltic.expr.rows.sequences import sequence, sequence_by
from deltic.expr.typing import cast, common_type, type_names
from deltic.schema import BIGINT, DATE, INT, NULL, TIMESTAMP, TIMESTAMP_NTZ, Field, Type
from deltic.types import array_type, struct

_STEPPED: Final = "integers, DATEs or TIMESTAMPs"


def _grown(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(array, element)."""
    check_count(name, arguments, 2, 2, span)
    array, value = with_value(name, arguments[0], arguments[1], span)
    return Typed((array, value), array.type, array.nullable)


def _inserted(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(array, place, element)."""
    check_count(name, arguments, 3, 3, span)
    array, value = with_value(name, arguments[0], arguments[2], span, position=3)
    place = accept(name, 2, arguments[1], PLAIN_INTEGER, span)
    return Typed((array, place, value), array.type, array.nullable or place.nullable)


def _repeated(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(element, count)."""
    check_count(name, arguments, 2, 2, span)
    count = accept(name, 2, arguments[1], PLAIN_INTEGER, span)
    return Typed((arguments[0], count), array_type(arguments[0].type), count.nullable)


def _flattened(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 1, 1, span)
    array = arguments[0]
    if array.type.name != "ARRAY" or element_type(array).name != "ARRAY":
        raise wrong_type(name, 1, array, "an ARRAY of ARRAYs", span)
    return Typed((array,), element_type(array), True)


def _sliced(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(array, start, length)."""
    check_count(name, arguments, 3, 3, span)
    taken = (accept(name, 1, arguments[0], ARRAY, span), *(accept(name, i, a, INTEGER, span) for i, a in enumerate(arguments[1:], 2)))
    return Typed(taken, taken[0].type, any_nullable(taken))


def _concatenated(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    for i, argument in enumerate(arguments, 1):
        accept(name, i, argument, ARRAY, span)
    taken = common_arguments(name, arguments, common_type([a.type for a in arguments]), span)
    return Typed(taken, taken[0].type, any_nullable(taken))


def _zipped(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """ARRAYs: fields are called as columns and fields are, else by their positions from 0."""
    return _zipped_as(name, [name_of(a) or str(i) for i, a in enumerate(arguments)], arguments, span)


def _named_zipped(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """name, array, name, array, …: the names are constants."""
    names = [word.value for word in arguments[::2] if isinstance(word, Literal) and isinstance(word.value, str)]
    return _zipped_as(name, names, arguments[1::2], span).call("arrays_zip", span)


def _zipped_as(name: str, names: Sequence[str], arguments: Sequence[Expr], span: Span | None) -> Typed:
    taken = accept_each(name, arguments, ARRAY_OR_NULL, span)
    fields = tuple(Field(field, element_type(array)) for field, array in zip(names, taken, strict=True))
    try:
        return Typed(taken, array_type(struct(fields)), any_nullable(taken))
    except ValueError as error:
        raise TypeMismatch(str(error), span=span, expected="names that differ") from None


def _stepped(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """(start, stop[, step]): integers; or dates or timestamps by an INTERVAL, or a day apart."""
    check_count(name, arguments, 2, 3, span)
    if len(arguments) > 2 and (step := intervals.number(arguments[2])) is not None:
        by_months = arguments[2].type.is_year_month
        months, microseconds = (step, Literal(0, BIGINT)) if by_months else (Literal(0, INT), step)
        return resolve("sequence_by", [*arguments[:2], months, microseconds], span, written=name)
    if len(arguments) > 2 and _numbered(name, arguments[:2], span) in _MOMENTS:
        raise TypeMismatch(f"the step of {name}() is not an INTERVAL", span=arguments[2].span or span, expected="INTERVAL 1 DAY")
    type = _numbered(name, arguments, span)
    taken = tuple(cast(argument, type) for argument in arguments)
    return Typed(taken, array_type(type), any_nullable(taken))


def _stepped_by(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(start, stop, months, microseconds): dates or timestamps."""
    start, stop, months, microseconds = arguments
    type = _numbered(name, (start, stop), span)
    if type not in _MOMENTS:
        raise TypeMismatch(f"{name}() by an INTERVAL does not support these types", span=span, expected="DATEs or TIMESTAMPs")
    taken = (cast(start, type), cast(stop, type))
    return Typed((*taken, months, microseconds), array_type(type), any_nullable((*taken, months, microseconds)))


_MOMENTS: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def _numbered(name: str, arguments: Sequence[Expr], span: Span | None) -> Type:
    type = common_type([argument.type for argument in arguments])
    if type == NULL:
        return INT
    if type is None or not (type.is_integer or type in _MOMENTS):
        raise TypeMismatch(f"{name}() does not support these types", span=span, expected=f"{_STEPPED}, found {type_names(arguments)}")
    return type


def _making(name: str, signature: TypeRule, of_row: object, **more: object) -> Function:
    return Function(name=name, signature=signature, nulls=Nulls.SEEN, rows=of_row, arrays=per_distinct_with_nulls, **more)  # type: ignore[arg-type]


FUNCTIONS: Final = (
    _making("array_append", _grown, rows.append, can_fail=False, collated=choosing),
    _making("array_prepend", _grown, rows.prepend, can_fail=False, collated=as_is),
    _making("array_insert", _inserted, rows.insert, can_fail=True, collated=as_is),
    _making("array_repeat", _repeated, rows.repeat, can_fail=True, collated=as_is),
    Function(name="flatten", collated=as_is, signature=_flattened, can_fail=False, rows=rows.flatten, arrays=arrays.flatten),
    Function(name="slice", collated=as_is, signature=_sliced, can_fail=True, rows=rows.slice_of, arrays=per_distinct),
    Function(
        name="concat_arrays", named=False, signature=_concatenated, can_fail=False, rows=rows.concatenated, arrays=arrays.concatenated
    ),
    Function(name="arrays_zip", collated=as_is, signature=_zipped, can_fail=False, rows=rows.zipped, arrays=per_distinct),
    Rewrite(name="named_arrays_zip", named=False, build=_named_zipped),
    Function(name="sequence", signature=_stepped, can_fail=True, rows=sequence, arrays=per_distinct),
    Function(name="sequence_by", named=False, signature=_stepped_by, can_fail=True, rows=sequence_by, arrays=per_distinct),
)
