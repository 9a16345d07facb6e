"""JSON as values of a type, and values as JSON: FROM_JSON, TO_JSON, SCHEMA_OF_JSON, JSON_OBJECT_KEYS."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import PLAIN_TEXT, accept, check_count, constant, takes
from deltic.expr.nodes import Call, Expr, Literal, Value
from deltic.expr.registry import Function, Rewrite, Typed
from deltic.expr.rows import json_values as rows
from deltic.expr.rows.datetime_fields import Patterns
from deltic.expr.rows.datetime_patterns import fault, has_zone, is_clock
from deltic.expr.rows.json_schema import NestedType, inferred
from deltic.expr.rows.json_writing import JsonForm, is_key, json_of
from deltic.schema import STRING, Type
from deltic.types import DEEPEST, array_type, map_type

MODES: Final = ("PERMISSIVE", "FAILFAST")
CORRUPT: Final = "_corrupt_record"
_OPTIONS: Final = map_type(STRING, STRING)
_READING: Final = ("mode", "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat")
_WRITING: Final = ("ignoreNullFields", "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat")


def options_of(name: str, argument: Expr | None, supported: Collection[str], span: Span | None) -> dict[str, str]:
    """The options of a constant MAP, by their names in lower case. Raises Unsupported for one that is not among the supported ones."""
    if argument is None:
        return {}
    place, options = argument.span or span, constant(argument)
    if options is None or argument.type != _OPTIONS or not isinstance(options.value, tuple):
        raise TypeMismatch(f"the options of {name} are not a constant", span=place, expected="map('option', 'value', …) of constants")
    given = dict(options.value)
    for word in given:
        if word.lower() not in (one.lower() for one in supported):
            expected = f"one of {', '.join(supported)}"
            raise Unsupported(f"the option {word} of {name} is not supported", span=place, expected=expected, remedy="leave it out")
    given = {word.lower(): str(value) for word, value in given.items()}
    if (mode := given.get("mode", MODES[0]).upper()) not in MODES:
        raise Unsupported(f"the mode {mode} of {name} is not supported", span=place, expected=" or ".join(MODES))
    for word in ("dateformat", "timestampformat", "timestampntzformat"):
        if word in given and (words := fault(given[word], supported is _READING)):
            raise TypeMismatch(words, span=place, expected="a pattern of Spark's, such as 'yyyy-MM-dd'")
    if has_zone(given.get("timestampntzformat", "")):
        message = f"the pattern {given['timestampntzformat']!r} has a zone"
        raise TypeMismatch(message, span=place, expected="a pattern of TIMESTAMP_NTZ, without the letters VzOXxZ")
    if "timeformat" in given and not is_clock(given["timeformat"]):
        message = f"the pattern {given['timeformat']!r} is invalid for a TIME"
        raise TypeMismatch(message, span=place, expected="hours, minutes, seconds and their fraction, such as 'HH:mm:ss.SSS'")
    return given


def schema_type(name: str, argument: Expr, span: Span | None) -> Type:
    """The type that a constant names, as Type.sql writes it. Raises TypeMismatch."""
    place, word = argument.span or span, constant(argument)
    if word is None or not isinstance(word.value, str):
        raise TypeMismatch(f"the schema of {name} is not a constant", span=place, expected="a STRING such as 'a INT, b STRING'")
    try:
        return Type.parse(word.value)
    except ValueError as error:
        raise TypeMismatch(str(error), span=place, expected="the columns, such as 'a INT, b STRING', or a type") from None


def as_literal(options: dict[str, str]) -> Literal:
    return Literal(json.dumps(options, sort_keys=True), STRING)


@cache
def options_in(text: str) -> Mapping[str, str]:
    """What `as_literal` wrote."""
    return MappingProxyType(json.loads(text))


def patterns_in(options: Mapping[str, str]) -> Patterns:
    return Patterns(*(options.get(word) for word in ("dateformat", "timestampformat", "timeformat", "timestampntzformat")))


def _from_json(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text, schema[, options])."""
    check_count(name, arguments, 2, 3, span)
    text = accept(name, 1, arguments[0], PLAIN_TEXT, span)
    type = schema_type(name, arguments[1], span)
    _check_readable(name, type, arguments[1].span or span, nested=False)
    options = options_of(name, arguments[2] if len(arguments) > 2 else None, _READING, span)
    return Typed((text, Literal(type.sql, STRING), as_literal(options)), type, True)


def _check_readable(name: str, type: Type, place: Span | None, *, nested: bool) -> None:
    if not nested and not type.held.is_nested:
        raise TypeMismatch(f"the schema of {name} is {type.sql}", span=place, expected="columns, a STRUCT, an ARRAY, a MAP or VARIANT")
    if type.name == "MAP" and type.parts[0].type != STRING:
        raise Unsupported(f"{name} does not support {type.sql}", span=place, expected="MAPs with keys of STRING")
    if not (type.is_nested or type.is_decimal or type.is_time or type.is_interval or type in rows.READABLE):
        raise Unsupported(f"{name} does not support {type.sql}", span=place, remedy="STRING, and a cast")
    for part in type.parts:
        if not nested and type.name == "STRUCT" and part.name == CORRUPT:
            raise Unsupported(f"the column {CORRUPT} of {name} is not supported", span=place, remedy="leave it out, and keep the text")
        _check_readable(name, part.type, place, nested=True)


def _read(call: Call, text: str, schema: str, options: str) -> Value:
    settings = options_in(options)
    strict = settings.get("mode", MODES[0]).upper() == "FAILFAST"
    convert = rows.reader(call.type, patterns_in(settings), strict=strict)
    try:
        value = rows.value_of_type(text, call.type, convert)
    except rows.MalformedJson:
        if strict:
            raise invalid(f"from_json: the text {text!r} is not {schema}", call.span) from None
        return (None,) * len(call.type.parts) if call.type.name == "STRUCT" else None
    _check_keys(call, value, call.type)
    return value


def _check_keys(call: Call, value: Any, type: Type) -> None:
    """Raises EvaluationError for a MAP with a key that comes twice: Spark keeps both."""
    if value is None or not type.is_nested:
        return
    if type.name == "MAP" and len({key for key, _ in value}) < len(value):
        raise invalid(f"from_json: a name comes twice in an object, which a MAP cannot hold: {value!r}", call.span)
    parts = [item for entry in value for item in entry] if type.name == "MAP" else value
    types = [part.type for part in type.parts] * (len(parts) if type.name == "ARRAY" else len(value) if type.name == "MAP" else 1)
    for part, inner in zip(parts, types, strict=True):
        _check_keys(call, part, inner)


def _read_can_fail(call: Call) -> bool:
    options = call.arguments[2]
    return call.type.has_map or not isinstance(options, Literal) or "FAILFAST" in str(options.value).upper()


def _to_json(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(value[, options])."""
    check_count(name, arguments, 1, 2, span)
    value = arguments[0]
    if not value.type.held.is_nested:
        expected = "a STRUCT, an ARRAY, a MAP or a VARIANT"
        raise TypeMismatch(f"argument 1 of {name} is {value.type.sql}", span=value.span or span, expected=expected)
    _check_writable(name, value.type, value.span or span)
    options = options_of(name, arguments[1] if len(arguments) > 1 else None, _WRITING, span)
    return Typed((value, as_literal(options)), STRING, value.nullable)


def _check_writable(name: str, type: Type, place: Span | None) -> None:
    if type.name == "MAP" and not is_key(type.parts[0].type):
        raise Unsupported(f"{name} does not support {type.sql}", span=place, expected="MAPs with keys that are not nested or BINARY")
    for part in type.parts:
        _check_writable(name, part.type, place)


def _write(call: Call, value: Any, options: str) -> str:
    settings = options_in(options)
    form = JsonForm(settings.get("ignorenullfields", "true").lower() == "false", patterns_in(settings))
    return json_of(value, call.arguments[0].type, form)


def _schema(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(text[, options]), of a constant: the type as text."""
    check_count(name, arguments, 1, 2, span)
    options_of(name, arguments[1] if len(arguments) > 1 else None, (), span)
    place, text = arguments[0].span or span, constant(arguments[0])
    if text is None or not isinstance(text.value, str):
        raise TypeMismatch(f"argument 1 of {name} is not a constant", span=place, expected="a STRING of JSON")
    try:
        return Literal(inferred(text.value), STRING, span)
    except rows.MalformedJson:
        raise TypeMismatch(f"argument 1 of {name} is not JSON", span=place, expected="a STRING of JSON") from None
    except NestedType as error:
        raise Unsupported(f"argument 1 of {name} is {error}", span=place, expected=f"at most {DEEPEST}") from None
    except ValueError as error:
        raise TypeMismatch(str(error), span=place, expected="names that differ") from None


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    Function(name="from_json", collated=ignoring, signature=_from_json, can_fail=_read_can_fail, rows=_read, arrays=per_distinct),
    Function(name="to_json", collated=ignoring, signature=_to_json, can_fail=False, rows=_write, arrays=per_distinct),
    Rewrite(name="schema_of_json", build=_schema),
    Function(
        name="json_object_keys",
        collated=ignoring,
        signature=takes([PLAIN_TEXT], array_type(STRING), nullable="always"),
        can_fail=False,
        rows=lambda call, text: rows.keys(text),
        arrays=per_distinct,
    ),
    Function(
        name="json_field",
        named=False,
        signature=takes([PLAIN_TEXT, PLAIN_TEXT], STRING, nullable="always"),
        can_fail=False,
        rows=lambda call, text, name: rows.field_text(text, name),
        arrays=per_distinct,
    ),
)
