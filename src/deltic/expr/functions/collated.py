"""COLLATE and COLLATION, the keys of texts, and the functions that search texts of UTF8_LCASE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.collations import BINARY_NAME, COLLATIONS, Collation, collation_of, full_name
from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr.arrays.datum import Datum
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import COLLATE, KEY, RETYPED, agreed, as_is, passing, retyped, stripped, with_collation
from deltic.expr.functions.signature import ANY, check_count, constant, first, takes, wrong_type
from deltic.expr.nodes import Call, Expr, Literal, is_fixed
from deltic.expr.registry import Collated, Function, Rewrite, resolve
from deltic.expr.rows import collated_text as rows
from deltic.expr.rows.maps import Entries, of_entries
from deltic.expr.typing import case, cast
from deltic.schema import BOOLEAN, INT, NULL, STRING, Type
from deltic.types import map_type, text

_PATTERN: Final = "pattern_key"
_CASELESS: Final = "(?iu)"
_FOLDED: Final = "folded_"
"""Before the name of a function, its form for UTF8_LCASE."""


def known_collation(name: str, span: Span | None) -> Collation:
    """The collation with a name. Raises Unsupported."""
    collation = collation_of(name)
    if collation is None:
        message = f"the collation {name.upper()} is not supported"
        raise Unsupported(message, span=span, expected=", ".join(COLLATIONS), remedy="UTF8_LCASE ignores case")
    return collation


def _collate(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, 2, span)
    value, literal = arguments[0], constant(arguments[1])
    if literal is None or not isinstance(literal.value, str):
        raise TypeMismatch("the name of a collation is not constant", span=arguments[1].span or span, expected="a STRING")
    collation = known_collation(literal.value, literal.span or span)
    if value.type == NULL:
        value = cast(value, STRING)
    if not value.type.is_text:
        raise wrong_type(name, 1, value, "STRING", span)
    return Call(COLLATE, (value,), text(collation.name), value.nullable, span)


def _collation(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    type = arguments[0].type
    if type != NULL and not type.is_text:
        raise wrong_type(name, 1, arguments[0], "STRING", span)
    return Literal(full_name(type.collation or BINARY_NAME), STRING, span)


def _keys(call: Call, length: int, values: Datum) -> Datum:
    """Texts in ASCII, which most are, are folded by Arrow."""
    collation = COLLATIONS.get(call.arguments[0].type.collation)
    if collation is None or not isinstance(values, pa.Array) or (collation.folds and pc.all(pc.string_is_ascii(values)).as_py() is False):
        return per_distinct(call, length, values)
    trimmed = pc.utf8_rtrim(values, " ") if collation.trims else values
    return pc.ascii_lower(trimmed) if collation.folds else trimmed


def _is_value(call: Call, length: int, values: Datum) -> Datum:
    return values


def searching(*trimmed: int) -> Collated:
    """The treatment of a function that searches a text. trimmed: which arguments lose their blanks where those do not count."""

    def build(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        same, collation_name = agreed(name, arguments, span)
        collation, parts = COLLATIONS[collation_name], [stripped(part) for part in same]
        if collation.trims:
            parts = [resolve("rtrim", [part]) if i in trimmed else part for i, part in enumerate(parts)]
        return _searched(record.built(name, parts, span), collation, name, span)

    return build


def _searched(built: Expr, collation: Collation, name: str, span: Span | None) -> Expr:
    if collation.folds:
        if not isinstance(built, Call):
            raise TypeMismatch(f"{name} does not support the collation {collation.name} here", span=span, remedy="x COLLATE UTF8_BINARY")
        built = replace(built, function=_FOLDED + built.function)
    return retyped(built, with_collation(built.type, collation.name))


def trimming(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """TRIM and its kin: with characters they compare."""
    same, collation_name = agreed(name, arguments, span)
    collation, built = COLLATIONS[collation_name], record.built(name, [stripped(part) for part in same], span)
    if len(arguments) == 1:
        return retyped(built, with_collation(built.type, collation_name))
    if collation.trims:
        raise TypeMismatch(f"{name} with characters does not support {collation_name}", span=span, remedy="x COLLATE UTF8_BINARY")
    return _searched(built, collation, name, span)


def matching(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """LIKE. It compares as Java's patterns do, and takes no collation that trims. As in Spark, simple patterns compare by the key where the
    text is not constant."""
    same, collation_name = agreed(name, arguments[:2], span)
    collation = COLLATIONS[collation_name]
    if collation.trims:
        raise TypeMismatch(f"{name} does not support {collation_name}", span=span, remedy="x COLLATE UTF8_BINARY")
    parts = [*(stripped(part) for part in same), *(stripped(part) for part in arguments[2:])]
    if not collation.folds:
        return record.built(name, parts, span)
    checked = record.built(name, parts, span)
    assert isinstance(checked, Call)
    pattern, escape = checked.arguments[1], checked.arguments[2]
    assert isinstance(escape, Literal)
    if isinstance(pattern, Literal) and not is_fixed(same[0]) and (simple := _simple(same[0], pattern, escape, span)):
        return simple
    keys = [Call(_PATTERN, (part,), STRING, part.nullable, part.span) for part in (parts[0], pattern)]
    return record.built(name, [*keys, *parts[2:]], span)


def _simple(value: Expr, pattern: Literal, escape: Literal, span: Span | None) -> Expr | None:
    """What Spark makes of LIKE with a simple pattern; None if it is not simple."""
    text = pattern.value
    if not isinstance(text, str) or "_" in text or str(escape.value) in text:
        return None

    def tested(test: str, part: str) -> Expr:
        return resolve(test, [value, Literal(part, value.type)], span)

    match text.split("%"):
        case [whole]:
            return tested("equal", whole)
        case ["", middle, ""] if middle:
            return tested("contains", middle)
        case [start, ""] if start:
            return tested("startswith", start)
        case ["", end] if end:
            return tested("endswith", end)
        case [start, end] if start and end:
            longer = resolve(">=", [resolve("length", [value]), Literal(len(start) + len(end), INT)], span)
            return resolve("and", [longer, tested("startswith", start), tested("endswith", end)], span)
        case _:
            return None


def matching_pattern(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a regular expression, the second argument: the collation of the text decides whether case counts; none that trims is taken."""
    text, pattern, *rest = arguments
    collation = COLLATIONS[text.type.collation or BINARY_NAME]
    _check_not_trimming(name, arguments[:2], span)
    parts = [stripped(text), without_case(stripped(pattern)) if collation.folds else stripped(pattern), *map(stripped, rest)]
    built = record.built(name, parts, span)
    return retyped(built, with_collation(built.type, collation.name)) if text.type.is_collated else built


def splitting_to_map(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """STR_TO_MAP. Without case its delimiters are no regular expressions, as in Spark."""
    _check_not_trimming(name, arguments, span)
    same, collation_name = agreed(name, arguments, span)
    built = record.built(name, [stripped(part) for part in same], span)
    assert isinstance(built, Call)
    built = replace(built, type=with_collation(built.type, collation_name))
    return replace(built, function=_FOLDED + built.function) if COLLATIONS[collation_name].folds else built


def _check_not_trimming(name: str, arguments: Sequence[Expr], span: Span | None) -> None:
    trimming = next((a for a in arguments if a.type.is_text and COLLATIONS[a.type.collation or BINARY_NAME].trims), None)
    if trimming is not None:
        message = f"{name} does not support {trimming.type.collation}"
        raise TypeMismatch(message, span=trimming.span or span, remedy="x COLLATE UTF8_BINARY, or UTF8_LCASE")


def without_case(pattern: Expr) -> Expr:
    """A regular expression with the flags i and u, which Spark puts before it for UTF8_LCASE. An empty one stays empty."""
    if isinstance(pattern, Literal):
        return replace(pattern, value=_CASELESS + pattern.value) if isinstance(pattern.value, str) and pattern.value else pattern
    empty = Literal("", STRING)
    with_flags = resolve("concat", [Literal(_CASELESS, STRING), pattern], pattern.span)
    return case([(resolve("=", [pattern, empty]), empty)], with_flags, pattern.span)


def without_folding(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """INITCAP: for collations that ignore case Spark takes the words of ICU's BreakIterator, which no library has."""
    folding = next((a.type.collation for a in arguments if COLLATIONS[a.type.collation or BINARY_NAME].folds), None)
    if folding is not None:
        raise TypeMismatch(f"{name} does not support {folding}", span=span, remedy=f"{name}(x COLLATE UTF8_BINARY)")
    return passing(record, name, arguments, span)


def found_in_set(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """FIND_IN_SET compares the parts by their keys."""
    same, collation_name = agreed(name, arguments, span)
    built = record.built(name, [stripped(part) for part in same], span)
    assert isinstance(built, Call)
    return replace(built, function=_FOLDED + built.function, arguments=(*built.arguments, Literal(collation_name, STRING)))


def _found(call: Call, word: str, words: str, collation: str) -> int:
    key = COLLATIONS[collation].key
    keys = list(map(key, words.split(",")))
    return keys.index(key(word)) + 1 if "," not in word and key(word) in keys else 0


def _entries(call: Call, value: str, between: str, after_key: str) -> Entries:
    return of_entries(call, rows.entries(value, between, after_key))


def _internal(
    name: str, type: Type | Callable[[Sequence[Type]], Type], rows: Callable[..., object], arrays: Callable[..., Datum]
) -> Function:
    return Function(
        name=name,
        named=False,
        signature=takes([ANY], type),
        can_fail=False,
        rows=rows,
        arrays=arrays,
        ignores_sign_of_zero=False,
        collated=as_is,
    )


def _folding(name: str, count: int, type: Type, rows: Callable[..., object], *, can_fail: bool = False) -> Function:
    return Function(
        name=_FOLDED + name, named=False, signature=takes([ANY] * count, type), can_fail=can_fail, rows=rows, arrays=per_distinct
    )


FUNCTIONS: Final = (
    Function(
        name=COLLATE,
        signature=_collate,
        can_fail=False,
        rows=lambda call, value: value,
        arrays=_is_value,
        collated=as_is,
    ),
    Rewrite(name="collation", build=_collation),
    _internal(RETYPED, first, lambda call, value: value, _is_value),
    _internal(KEY, lambda types: types[0].plain, lambda call, value: rows.key_of_value(value, call.arguments[0].type), _keys),
    _internal(_PATTERN, STRING, lambda call, value: rows.pattern_key(value), per_distinct),
    _folding("contains", 2, BOOLEAN, lambda call, s, part: rows.contains(s, part)),
    _folding("startswith", 2, BOOLEAN, lambda call, s, prefix: rows.starts_with(s, prefix)),
    _folding("endswith", 2, BOOLEAN, lambda call, s, suffix: rows.ends_with(s, suffix)),
    _folding("locate", 3, INT, lambda call, search, s, position: rows.locate(search, s, position)),
    _folding("replace", 3, STRING, lambda call, s, search, by: rows.replace(s, search, by, call.span), can_fail=True),
    _folding("translate", 3, STRING, lambda call, s, search, by: rows.translate(s, search, by)),
    _folding("str_to_map", 3, map_type(STRING, STRING), _entries, can_fail=True),
    _folding("split_part", 3, STRING, lambda call, s, by, n: rows.split_part(s, by, n, call.span), can_fail=True),
    _folding("substring_index", 3, STRING, lambda call, s, by, n: rows.substring_index(s, by, n)),
    _folding("find_in_set", 3, INT, _found),
    _folding("trim", 2, STRING, lambda call, s, characters: rows.trimmed(s, characters)),
    _folding("ltrim", 2, STRING, lambda call, s, characters: rows.trimmed_left(s, characters)),
    _folding("rtrim", 2, STRING, lambda call, s, characters: rows.trimmed_right(s, characters)),
)
