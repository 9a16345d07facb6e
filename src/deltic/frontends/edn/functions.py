"""The functions and predicates of queries, by Clojure's names, as expressions of SQL's functions."""

from __future__ import annotations

from itertools import pairwise
from typing import Final
from typing import Literal as OneOf

from deltic.errors import Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import case, cast, resolve
from deltic.expr.nodes import TRUE, Expr, Literal
from deltic.frontends.edn.arguments import Builder, Terms, check_count, check_kind
from deltic.frontends.edn.kind_functions import KIND_FUNCTIONS
from deltic.frontends.edn.kinds import (
    BIGDEC,
    BIGINT_KIND,
    BOOLEAN_KIND,
    DOUBLE_KIND,
    INSTANT,
    LONG,
    NUMBERS,
    STRING_KIND,
    EdnKind,
    EdnTerm,
    common,
)
from deltic.frontends.edn.text_functions import TEXT_FUNCTIONS
from deltic.plan.columns import conjunction
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING

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


def _numbers(name: str, arguments: Terms, span: Span | None) -> tuple[list[Expr], EdnKind]:
    """The arguments as longs, or as doubles if one of them is one."""
    for one in arguments:
        check_kind(name, one, NUMBERS, span)
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


def _folded(operator: str, alone: Literal | None = None, none: int | None = None) -> Builder:
    """alone: what a single argument is applied to; None if it is the result. none: the result without arguments."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        if not arguments and none is not None:
            return EdnTerm(_long(none), LONG)
        check_count(name, arguments, 1, None, span)
        exprs, kind = _numbers(name, arguments, span)
        if len(exprs) == 1 and alone is not None:
            return EdnTerm(resolve("negate", exprs, span), kind)
        result = exprs[0]
        for one in exprs[1:]:
            result = resolve(operator, [result, one], span)
        return EdnTerm(result, kind)

    return build


def _divided(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 2, None, span)
    exprs, kind = _numbers(name, arguments, span)
    if kind == LONG:
        raise Unsupported("the quotient of two longs is a ratio", span=span, remedy="(quot ?a ?b), or (double ?a) first")
    result = exprs[0]
    for one in exprs[1:]:
        result = resolve("/", [result, one], span)
    return EdnTerm(result, kind)


def _whole(operator: OneOf["div", "%", "mod"]) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 2, 2, span)
        for one in arguments:
            check_kind(name, one, (LONG,), span)
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
        check_count(name, arguments, 1, 1, span)
        exprs, kind = _numbers(name, [*arguments, EdnTerm(_long(constant), LONG)], span)
        return EdnTerm(resolve(operator, exprs, span), result or kind)

    return build


def _best(operator: str) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, None, span)
        exprs, kind = _numbers(name, arguments, span)
        result = exprs[0]
        for one in exprs[1:]:
            result = case([(resolve(operator, [one, result], span), one)], result, span)
        return EdnTerm(result, kind)

    return build


def _absolute(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 1, 1, span)
    exprs, kind = _numbers(name, arguments, span)
    return EdnTerm(resolve("abs", exprs, span), kind)


def _ordered(operator: str) -> Builder:
    """Of numbers, or of other values of one kind; each with the next."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, None, span)
        if all(one.kind in (*NUMBERS, BIGINT_KIND, BIGDEC) for one in arguments):
            exprs = _comparable(name, arguments, span)
        else:
            for one in arguments:
                check_kind(name, one, ORDERED, span)
                common(arguments[0], one, f"an argument of {name}", span)
            exprs = [one.expr for one in arguments]
        return EdnTerm(conjunction([resolve(operator, [left, right], span) for left, right in pairwise(exprs)]), BOOLEAN_KIND)

    return build


def _ordered_pair(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    """-1, 0 or 1: the first of two values is less, equal or greater."""
    check_count(name, arguments, 2, 2, span)
    less, more = (_FUNCTIONS[operator](name, arguments, span).expr for operator in ("<", ">"))
    return EdnTerm(case([(less, _long(-1)), (more, _long(1))], _long(0), span), LONG)


def _bits(operator: str, count: int | None = None) -> Builder:
    """Of longs. count: how many there are, of which the second is one of bits; None is two or more."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, count or 2, count, span)
        for one in arguments:
            check_kind(name, one, (LONG,), span)
        result, *others = [one.expr for one in arguments]
        if count == 1:
            return EdnTerm(resolve(operator, [result], span), LONG)
        for other in others:
            second = other if count is None else cast(resolve("&", [other, _long(63)], span), INT, span)
            result = resolve(operator, [result, second], span)
        return EdnTerm(result, LONG)

    return build


def _of_booleans(operator: str) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, 1 if operator == "not" else None, span)
        for one in arguments:
            check_kind(name, one, (BOOLEAN_KIND,), span)
        result = resolve("not", [arguments[0].expr], span) if operator == "not" else arguments[0].expr
        for other in arguments[1:]:
            result = resolve(operator, [result, other.expr], span)
        return EdnTerm(result, BOOLEAN_KIND)

    return build


def _made_exact(kind: EdnKind) -> Builder:
    """A long, a bigint or a bigdec as a bigint or a bigdec."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, 1, span)
        check_kind(name, arguments[0], (LONG, BIGINT_KIND, *((BIGDEC,) if kind == BIGDEC else ())), span)
        return EdnTerm(cast(arguments[0].expr, kind.type, span), kind)

    return build


def equal(left: EdnTerm, right: EdnTerm, what: str, span: Span | None) -> Expr:
    """Whether two values are one. Raises TypeMismatch for values of different kinds."""
    left, right = common(left, right, what, span)
    return resolve("=", [left.expr, right.expr], span)


def _equal(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 1, None, span)
    pairs = [equal(left, right, f"an argument of {name}", span) for left, right in pairwise(arguments)]
    return EdnTerm(conjunction(pairs), BOOLEAN_KIND)


def _different(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    return EdnTerm(resolve("not", [_equal(name, arguments, span).expr], span), BOOLEAN_KIND)


def _numerically_equal(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 1, None, span)
    exprs = _comparable(name, arguments, span)
    return EdnTerm(conjunction([resolve("=", [left, right], span) for left, right in pairwise(exprs)]), BOOLEAN_KIND)


def _parity(operator: str) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, 1, span)
        check_kind(name, arguments[0], (LONG,), span)
        rest = resolve("%", [arguments[0].expr, _long(2)], span)
        return EdnTerm(resolve(operator, [rest, _long(0)], span), BOOLEAN_KIND)

    return build


def _is_boolean(value: bool) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, 1, span)
        return EdnTerm(equal(arguments[0], EdnTerm(Literal(value, BOOLEAN), BOOLEAN_KIND), f"the argument of {name}", span), BOOLEAN_KIND)

    return build


def _identity(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 1, 1, span)
    return arguments[0]


def _tuple(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 1, None, span)
    for one in arguments:
        if not one.kind.is_scalar:
            raise TypeMismatch(f"{name} does not accept a value of kind {one.kind}", span=one.expr.span or span, expected="a scalar")
    fields = [part for i, one in enumerate(arguments) for part in (Literal(_part_name(i), STRING), one.expr)]
    made = resolve("named_struct", fields, span)
    return EdnTerm(made, EdnKind("tuple", made.type, parts=tuple(one.kind for one in arguments)))


def untupled(name: str, arguments: Terms, span: Span | None) -> list[EdnTerm]:
    """The values of a tuple. Raises TypeMismatch."""
    check_count(name, arguments, 1, 1, span)
    (whole,) = arguments
    if not whole.kind.parts:
        raise TypeMismatch(f"{name} does not accept a value of kind {whole.kind}", span=whole.expr.span or span, expected="a tuple")
    fields = [resolve("field", [whole.expr, Literal(_part_name(i), STRING)], span) for i in range(len(whole.kind.parts))]
    return [EdnTerm(field, kind) for field, kind in zip(fields, whole.kind.parts, strict=True)]


def _part_name(position: int) -> str:
    return f"v{position}"


def _converted(kind: EdnKind) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, 1, span)
        check_kind(name, arguments[0], (*NUMBERS, BIGINT_KIND, BIGDEC), span)
        return EdnTerm(cast(arguments[0].expr, kind.type, span), kind)

    return build


_FUNCTIONS: Final[dict[str, Builder]] = {
    "+": _folded("+", none=0),
    "-": _folded("-", alone=Literal(0, BIGINT)),
    "*": _folded("*", none=1),
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
    "identical?": _equal,
    "compare": _ordered_pair,
    "not": _of_booleans("not"),
    "and": _of_booleans("and"),
    "or": _of_booleans("or"),
    "bit-and": _bits("&"),
    "bit-or": _bits("|"),
    "bit-xor": _bits("^"),
    "bit-not": _bits("~", 1),
    "bit-shift-left": _bits("shiftleft", 2),
    "bit-shift-right": _bits("shiftright", 2),
    "tuple": _tuple,
    "vector": _tuple,
    "long": _converted(LONG),
    "double": _converted(DOUBLE_KIND),
    "bigint": _made_exact(BIGINT_KIND),
    "bigdec": _made_exact(BIGDEC),
}
_FUNCTIONS.update({**TEXT_FUNCTIONS, **KIND_FUNCTIONS})
_OF_STORES: Final = ("ground", "get-else", "missing?", "untuple")
FUNCTION_NAMES: Final = tuple(name.replace("str/", "clojure.string/") for name in (*_FUNCTIONS, *_OF_STORES))
"""Those that a query can call."""
_REFUSED: Final = {
    "rand": "a view has the same rows whenever it is computed",
    "rand-int": "a view has the same rows whenever it is computed",
    "get-some": "(get-else …) for each attribute",
    **dict.fromkeys(("re-find", "re-matches", "re-seq", "re-pattern"), "clojure.string/starts-with?, ends-with? or includes?"),
    **dict.fromkeys(("list", "set", "hash-map", "array-map", "vec", "range"), "values are scalars, or a tuple of them: (tuple ?x ?y)"),
    **dict.fromkeys(("contains?", "get", "nth"), "a relation of constants: [(ground [[1 :a] [2 :b]]) [[?x ?y]]]"),
    **dict.fromkeys(("keyword", "symbol"), "not every text is one: compare (name ?k) with the string"),
    **dict.fromkeys(("complement", "every?", "-differ?"), "(not …) around the clause"),
    **dict.fromkeys(("type", "class", "meta"), "string?, keyword?, int? and the like"),
    **dict.fromkeys(("pr-str", "print-str", "prn-str", "println-str"), "str"),
    "nil?": "missing?, since no value is nil",
    "some?": "a data pattern, since no value is nil",
}


def truth(term: EdnTerm, name: str, span: Span | None) -> Expr:
    """The condition that a predicate is. Raises TypeMismatch."""
    if term.kind != BOOLEAN_KIND:
        remedy = f"bind its result: [({name} …) ?x]"
        raise TypeMismatch(f"{name} is not a predicate: its result is a {term.kind}", span=span, expected="a boolean", remedy=remedy)
    return TRUE if term.expr == TRUE else term.expr
