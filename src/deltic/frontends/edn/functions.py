"""The functions and predicates of queries, by Clojure's names, as expressions of SQL's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias
from typing import Literal as OneOf

from deltic.errors import Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import case, cast, resolve
from deltic.expr.nodes import TRUE, Expr, Literal
from deltic.frontends.edn.kinds import (
    ANY,
    BIGDEC,
    BIGINT_KIND,
    BOOLEAN_KIND,
    CHAR,
    DOUBLE_KIND,
    INSTANT,
    KEYWORD,
    LONG,
    NUMBERS,
    STRING_KIND,
    EdnKind,
    EdnTerm,
    common,
)
from deltic.plan.columns import conjunction
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING

Terms: TypeAlias = Sequence[EdnTerm]
Builder: TypeAlias = "Callable[[str, Terms, Span | None], EdnTerm]"
ORDERED: Final = (LONG, BIGINT_KIND, DOUBLE_KIND, BIGDEC, STRING_KIND, INSTANT)
"""Kinds whose values are ordered."""


def call(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    """A call of a function. Raises UnknownName, Unsupported and TypeMismatch."""
    bare = name.removeprefix("clojure.core/").replace("clojure.string/", "str/")
    if bare in _REFUSED:
        raise Unsupported(f"{name} is not supported", span=span, remedy=_REFUSED[bare])
    if bare not in _FUNCTIONS:
        names = [*_FUNCTIONS, *_OF_STORES]
        raise UnknownName(f"there is no function {name}", span=span, remedy=did_you_mean(bare, names))
    return _FUNCTIONS[bare](name, arguments, span)


def _count(name: str, arguments: Terms, least: int, most: int | None, span: Span | None) -> None:
    if len(arguments) < least or (most is not None and len(arguments) > most):
        expected = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
        raise TypeMismatch(f"{name} has {len(arguments)} arguments", span=span, expected=expected)


def _check(name: str, term: EdnTerm, kinds: Sequence[EdnKind], span: Span | None) -> None:
    if term.kind not in kinds:
        remedy = "declare the :db/valueType of its attribute" if term.kind == ANY else None
        if term.kind in (BIGINT_KIND, BIGDEC) and DOUBLE_KIND in kinds:
            remedy = "(double ?x) or (long ?x) first"
        expected, place = ", ".join(map(str, kinds)), term.expr.span or span
        raise TypeMismatch(f"{name} does not accept a value of kind {term.kind}", span=place, expected=expected, remedy=remedy)


def _numbers(name: str, arguments: Terms, span: Span | None) -> tuple[list[Expr], EdnKind]:
    """The arguments as longs, or as doubles if one of them is one."""
    for one in arguments:
        _check(name, one, NUMBERS, span)
    if all(one.kind == LONG for one in arguments):
        return [one.expr for one in arguments], LONG
    return [cast(one.expr, DOUBLE, span) for one in arguments], DOUBLE_KIND


def _comparable(name: str, arguments: Terms, span: Span | None) -> list[Expr]:
    """Numbers as values of one type: longs beside bigints or bigdecs are such."""
    kinds = {one.kind for one in arguments}
    for wide in (BIGINT_KIND, BIGDEC):
        if wide in kinds and kinds <= {LONG, wide}:
            return [cast(one.expr, wide.type, span) for one in arguments]
    return _numbers(name, arguments, span)[0]


def _folded(operator: str, alone: Literal | None) -> Builder:
    """alone: what a single argument is applied to; None if it is the result."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, None, span)
        exprs, kind = _numbers(name, arguments, span)
        if len(exprs) == 1 and alone is not None:
            return EdnTerm(resolve("negate", exprs, span), kind)
        result = exprs[0]
        for one in exprs[1:]:
            result = resolve(operator, [result, one], span)
        return EdnTerm(result, kind)

    return build


def _divided(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 2, None, span)
    exprs, kind = _numbers(name, arguments, span)
    if kind == LONG:
        raise Unsupported("the quotient of two longs is a ratio", span=span, remedy="(quot ?a ?b), or (double ?a) first")
    result = exprs[0]
    for one in exprs[1:]:
        result = resolve("/", [result, one], span)
    return EdnTerm(result, kind)


def _whole(operator: OneOf["div", "%", "mod"]) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 2, 2, span)
        for one in arguments:
            _check(name, one, (LONG,), span)
        left, right = (one.expr for one in arguments)
        if operator != "mod":
            return EdnTerm(resolve(operator, [left, right], span), LONG)
        rest = resolve("%", [left, right], span)
        differs = resolve("<>", [resolve("<", [rest, _long(0)], span), resolve("<", [right, _long(0)], span)], span)
        moved = conjunction([resolve("<>", [rest, _long(0)], span), differs])
        return EdnTerm(case([(moved, resolve("+", [rest, right], span))], rest, span), LONG)

    return build


def _long(value: int) -> Expr:
    return Literal(value, BIGINT)


def _with_constant(operator: str, constant: int, result: EdnKind | None = None) -> Builder:
    """Of a number and a constant. result: its kind; by default that of the number."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, 1, span)
        exprs, kind = _numbers(name, [*arguments, EdnTerm(_long(constant), LONG)], span)
        return EdnTerm(resolve(operator, exprs, span), result or kind)

    return build


def _best(operator: str) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, None, span)
        exprs, kind = _numbers(name, arguments, span)
        result = exprs[0]
        for one in exprs[1:]:
            result = case([(resolve(operator, [one, result], span), one)], result, span)
        return EdnTerm(result, kind)

    return build


def _absolute(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 1, 1, span)
    exprs, kind = _numbers(name, arguments, span)
    return EdnTerm(resolve("abs", exprs, span), kind)


def _ordered(operator: str) -> Builder:
    """Of numbers, or of other values of one kind; each with the next."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, None, span)
        if all(one.kind in (*NUMBERS, BIGINT_KIND, BIGDEC) for one in arguments):
            exprs = _comparable(name, arguments, span)
        else:
            for one in arguments:
                _check(name, one, ORDERED, span)
                common(arguments[0], one, f"an argument of {name}", span)
            exprs = [one.expr for one in arguments]
        return EdnTerm(conjunction([resolve(operator, [left, right], span) for left, right in pairwise(exprs)]), BOOLEAN_KIND)

    return build


def equal(left: EdnTerm, right: EdnTerm, what: str, span: Span | None) -> Expr:
    """Whether two values are one. Raises TypeMismatch for values of different kinds."""
    left, right = common(left, right, what, span)
    return resolve("=", [left.expr, right.expr], span)


def _equal(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 1, None, span)
    pairs = [equal(left, right, f"an argument of {name}", span) for left, right in pairwise(arguments)]
    return EdnTerm(conjunction(pairs), BOOLEAN_KIND)


def _different(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    return EdnTerm(resolve("not", [_equal(name, arguments, span).expr], span), BOOLEAN_KIND)


def _numerically_equal(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 1, None, span)
    exprs = _comparable(name, arguments, span)
    return EdnTerm(conjunction([resolve("=", [left, right], span) for left, right in pairwise(exprs)]), BOOLEAN_KIND)


def _parity(operator: str) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, 1, span)
        _check(name, arguments[0], (LONG,), span)
        rest = resolve("%", [arguments[0].expr, _long(2)], span)
        return EdnTerm(resolve(operator, [rest, _long(0)], span), BOOLEAN_KIND)

    return build


def _is_boolean(value: bool) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, 1, span)
        return EdnTerm(equal(arguments[0], EdnTerm(Literal(value, BOOLEAN), BOOLEAN_KIND), f"the argument of {name}", span), BOOLEAN_KIND)

    return build


def _identity(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 1, 1, span)
    return arguments[0]


def _tuple(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 1, None, span)
    for one in arguments:
        if not one.kind.is_scalar:
            raise TypeMismatch(f"{name} does not accept a value of kind {one.kind}", span=one.expr.span or span, expected="a scalar")
    fields = [part for i, one in enumerate(arguments) for part in (Literal(_part_name(i), STRING), one.expr)]
    made = resolve("named_struct", fields, span)
    return EdnTerm(made, EdnKind("tuple", made.type, parts=tuple(one.kind for one in arguments)))


def untupled(name: str, arguments: Terms, span: Span | None) -> list[EdnTerm]:
    """The values of a tuple. Raises TypeMismatch."""
    _count(name, arguments, 1, 1, span)
    (whole,) = arguments
    if not whole.kind.parts:
        raise TypeMismatch(f"{name} does not accept a value of kind {whole.kind}", span=whole.expr.span or span, expected="a tuple")
    fields = [resolve("field", [whole.expr, Literal(_part_name(i), STRING)], span) for i in range(len(whole.kind.parts))]
    return [EdnTerm(field, kind) for field, kind in zip(fields, whole.kind.parts, strict=True)]


def _part_name(position: int) -> str:
    return f"v{position}"


def _text(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 1, None, span)
    for one in arguments:
        if one.kind in (ANY, CHAR, INSTANT, BIGDEC) or not one.kind.is_scalar:
            raise TypeMismatch(f"{name} does not accept a value of kind {one.kind}", span=one.expr.span or span, expected="another kind")
    return EdnTerm(resolve("concat", [cast(one.expr, STRING, span) for one in arguments], span), STRING_KIND)


def _of_strings(function: str, kind: EdnKind, count: int = 1) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, count, count, span)
        for one in arguments:
            _check(name, one, (STRING_KIND,), span)
        return EdnTerm(cast(resolve(function, [one.expr for one in arguments], span), kind.type, span), kind)

    return build


def _blank(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    _count(name, arguments, 1, 1, span)
    _check(name, arguments[0], (STRING_KIND,), span)
    trimmed = resolve("rlike", [arguments[0].expr, Literal(r"^\s*$", STRING)], span)
    return EdnTerm(trimmed, BOOLEAN_KIND)


def _part(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    """Of a string, from a position counted from 0, to before another."""
    _count(name, arguments, 2, 3, span)
    text, *bounds = arguments
    _check(name, text, (STRING_KIND,), span)
    for one in bounds:
        _check(name, one, (LONG,), span)
    start = cast(bounds[0].expr, INT, span)
    first = resolve("+", [start, Literal(1, INT)], span)
    length = [resolve("-", [cast(bounds[1].expr, INT, span), start], span)] if len(bounds) == 2 else []
    return EdnTerm(resolve("substring", [text.expr, first, *length], span), STRING_KIND)


def _converted(kind: EdnKind) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, 1, span)
        _check(name, arguments[0], (*NUMBERS, BIGINT_KIND, BIGDEC), span)
        return EdnTerm(cast(arguments[0].expr, kind.type, span), kind)

    return build


def _of_kind(kinds: Sequence[EdnKind], pattern: str) -> Builder:
    """Whether a value is of one of the kinds; pattern: of the text of such a value of any kind."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        _count(name, arguments, 1, 1, span)
        (value,) = arguments
        if value.kind != ANY:
            return EdnTerm(Literal(value.kind in kinds, BOOLEAN, span), BOOLEAN_KIND)
        return EdnTerm(resolve("rlike", [value.expr, Literal(pattern, STRING)], span), BOOLEAN_KIND)

    return build


_WHOLE_NUMBER: Final = "^[+-]?[0-9]+N?$"
_DOUBLE_NUMBER: Final = r"^([+-]?[0-9]+\.[0-9]+(E[+-]?[0-9]+)?|##Inf|##-Inf|##NaN)$"
_DECIMAL_NUMBER: Final = r"^[+-]?[0-9.]+(E[+-]?[0-9]+)?M$"
_FUNCTIONS: Final[dict[str, Builder]] = {
    "+": _folded("+", None),
    "-": _folded("-", Literal(0, BIGINT)),
    "*": _folded("*", None),
    "/": _divided,
    "quot": _whole("div"),
    "rem": _whole("%"),
    "mod": _whole("mod"),
    "inc": _with_constant("+", 1),
    "dec": _with_constant("-", 1),
    "max": _best(">"),
    "min": _best("<"),
    "abs": _absolute,
    "<": _ordered("<"),
    ">": _ordered(">"),
    "<=": _ordered("<="),
    ">=": _ordered(">="),
    "=": _equal,
    "not=": _different,
    "!=": _different,
    "==": _numerically_equal,
    "zero?": _with_constant("=", 0, BOOLEAN_KIND),
    "pos?": _with_constant(">", 0, BOOLEAN_KIND),
    "neg?": _with_constant("<", 0, BOOLEAN_KIND),
    "even?": _parity("="),
    "odd?": _parity("<>"),
    "true?": _is_boolean(True),
    "false?": _is_boolean(False),
    "identity": _identity,
    "tuple": _tuple,
    "str": _text,
    "count": _of_strings("length", LONG),
    "subs": _part,
    "long": _converted(LONG),
    "double": _converted(DOUBLE_KIND),
    "str/upper-case": _of_strings("upper", STRING_KIND),
    "str/lower-case": _of_strings("lower", STRING_KIND),
    "str/trim": _of_strings("trim", STRING_KIND),
    "str/starts-with?": _of_strings("startswith", BOOLEAN_KIND, 2),
    "str/ends-with?": _of_strings("endswith", BOOLEAN_KIND, 2),
    "str/includes?": _of_strings("contains", BOOLEAN_KIND, 2),
    "str/blank?": _blank,
    "string?": _of_kind((STRING_KIND,), '^"'),
    "keyword?": _of_kind((KEYWORD,), "^:"),
    "boolean?": _of_kind((BOOLEAN_KIND,), "^(true|false)$"),
    "int?": _of_kind((LONG,), "^[+-]?[0-9]+$"),
    "integer?": _of_kind((LONG, BIGINT_KIND), _WHOLE_NUMBER),
    "double?": _of_kind((DOUBLE_KIND,), _DOUBLE_NUMBER),
    "decimal?": _of_kind((BIGDEC,), _DECIMAL_NUMBER),
    "number?": _of_kind((*NUMBERS, BIGINT_KIND, BIGDEC), f"{_WHOLE_NUMBER}|{_DOUBLE_NUMBER}|{_DECIMAL_NUMBER}"),
}
_OF_STORES: Final = ("ground", "get-else", "missing?", "untuple")
FUNCTION_NAMES: Final = tuple(name.replace("str/", "clojure.string/") for name in (*_FUNCTIONS, *_OF_STORES))
"""Those that a query can call."""
_REFUSED: Final = {
    "rand": "a view has the same rows whenever it is computed",
    "rand-int": "a view has the same rows whenever it is computed",
    "get-some": "(get-else …) for each attribute",
    "re-find": "clojure.string/starts-with?, ends-with? or includes?",
    "nil?": "missing?, since no value is nil",
    "some?": "a data pattern, since no value is nil",
}


def truth(term: EdnTerm, name: str, span: Span | None) -> Expr:
    """The condition that a predicate is. Raises TypeMismatch."""
    if term.kind != BOOLEAN_KIND:
        remedy = f"bind its result: [({name} …) ?x]"
        raise TypeMismatch(f"{name} is not a predicate: its result is a {term.kind}", span=span, expected="a boolean", remedy=remedy)
    return TRUE if term.expr == TRUE else term.expr
