"""Functions that every program has: those of DDlog's library by their names, and the scalar functions of SQL by theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from deltic.errors import Span, TypeMismatch, UnknownName, most_like
from deltic.expr import cast, known_functions, resolve
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Column, Expr, Literal
from deltic.expr.typing import case
from deltic.frontends.datalog.declarations import BoundTerm, check_comparable
from deltic.frontends.datalog.kinds import (
    BOOL,
    DATE_KIND,
    MOMENT_KINDS,
    STRING_KIND,
    USIZE,
    Kind,
    MapKind,
    UnionKind,
    VectorKind,
    is_number,
    kind_of,
    stored,
)
from deltic.frontends.datalog.maps import MAP_FUNCTIONS, contains_key, map_get
from deltic.frontends.datalog.sets import SET_FUNCTIONS
from deltic.frontends.datalog.tree import CallTerm
from deltic.frontends.datalog.values import common, compared, converted, optional, part, tag_is, tuple_of
from deltic.schema import BIGINT, BOOLEAN, INT, STRING

if TYPE_CHECKING:
    from deltic.frontends.datalog.bind_term import TermBinder

Builtin: TypeAlias = "Callable[[TermBinder, CallTerm, Kind | None], BoundTerm]"


def call_builtin(binder: TermBinder, name: str, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """A call of a function of BUILTINS."""
    return BUILTINS[name](binder, term, expected)


def call_sql(name: str, arguments: Sequence[BoundTerm], span: Span, names: Sequence[str]) -> BoundTerm:
    """A call of a scalar function of SQL; a result that may be NULL becomes an Option."""
    if name.lower() not in known_functions():
        if name in ("groupby", "group"):
            remedy = "did you mean 'group_by'?"
        else:
            like = most_like(name, (*names, *known_functions()))
            declared = f"declare it: extern function {name}(…), and session.register({name!r}, …); or function {name}(…) = …"
            remedy = f"did you mean {like!r}? Or {declared}" if like else declared
        raise UnknownName(f"there is no function {name}", span=span, remedy=remedy)
    for argument in arguments:
        if isinstance(argument.kind, UnionKind):
            raise TypeMismatch(f"{name} does not accept {argument.kind}", span=argument.expr.span or span, expected="a value that SQL has")
    expr = resolve(name, [argument.expr for argument in arguments], span)
    kind = kind_of(expr.type)
    if kind is None:
        raise TypeMismatch(f"{name} returns {expr.type.sql}, which Datalog does not have", span=span)
    bare = resolve(name, [_never_null(argument.expr, i) for i, argument in enumerate(arguments)], span)
    value = cast(expr, stored(kind), span)
    return optional(value, kind, span) if bare.nullable else BoundTerm(value, kind)


def _never_null(expr: Expr, index: int) -> Expr:
    return expr if isinstance(expr, Literal) else Column(index, expr.type, False)


def shown_as_text(value: BoundTerm, span: Span) -> Expr:
    """The value in a text: of a number, a bool, a string, a date, a timestamp or a time."""
    if value.kind == STRING_KIND:
        return value.expr
    if value.kind == BOOL or is_number(value.kind) or value.kind in MOMENT_KINDS:
        return cast(value.expr, STRING, span)
    raise TypeMismatch(f"a value of {value.kind} has no text", span=span, expected="a number, bool, string, date, timestamp or time")


def _count(term: CallTerm, least: int, most: int | None = None) -> None:
    check_count(term.name, term.arguments, least, least if most is None else most, term.span)


def _to_string(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    _count(term, 1)
    return BoundTerm(shown_as_text(binder.bind(term.arguments[0]), term.span), STRING_KIND)


def _best(operator: str) -> Builtin:
    """min(x, y), max(x, y)."""

    def bound(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
        _count(term, 2)
        one = binder.bind(term.arguments[0], expected)
        other = binder.bind(term.arguments[1], one.kind)
        one, other = common(one, other, term.name, term.span)
        first = compared(operator, one, other, term.span).expr
        return BoundTerm(case([(first, one.expr)], other.expr, term.span), one.kind)

    return bound


def _option(binder: TermBinder, term: CallTerm, count: int) -> tuple[BoundTerm, UnionKind]:
    _count(term, count)
    value = binder.bind(term.arguments[0])
    if not isinstance(value.kind, UnionKind) or value.kind.name != "Option":
        raise TypeMismatch(f"{term.name} does not accept {value.kind}", span=term.span, expected="an Option")
    return value, value.kind


def _is_some(constructor: str) -> Builtin:
    def bound(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
        value, kind = _option(binder, term, 1)
        test = tag_is(value, kind, constructor, term.span)
        assert test is not None
        return BoundTerm(test, BOOL)

    return bound


def _unwrap_or(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    value, kind = _option(binder, term, 2)
    other = binder.bind(term.arguments[1], kind.arguments[0])
    some = tag_is(value, kind, "Some", term.span)
    assert some is not None
    return BoundTerm(case([(some, part(value, 1, kind.arguments[0], term.span).expr)], other.expr, term.span), kind.arguments[0])


def _vector(binder: TermBinder, term: CallTerm, count: int) -> tuple[BoundTerm, VectorKind]:
    _count(term, count)
    value = binder.bind(term.arguments[0])
    if not isinstance(value.kind, VectorKind):
        raise TypeMismatch(f"{term.name} does not accept {value.kind}", span=term.span, expected="a Vec or a Set")
    return value, value.kind


def _len(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """Of a string, a vector or a map."""
    _count(term, 1)
    value = binder.bind(term.arguments[0])
    if value.kind != STRING_KIND and not isinstance(value.kind, VectorKind | MapKind):
        raise TypeMismatch(f"{term.name} does not accept {value.kind}", span=term.span, expected="a string, a Vec, a Set or a Map")
    function = "length" if value.kind == STRING_KIND else "size"
    return BoundTerm(cast(resolve(function, [value.expr], term.span), BIGINT), USIZE)


def _is_empty(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    size = _len(binder, term, None)
    return BoundTerm(resolve("equal", [size.expr, Literal(0, BIGINT)], term.span), BOOL)


def _nth(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """The element at a place from 0, or None."""
    value, kind = _vector(binder, term, 2)
    index = converted(binder.bind(term.arguments[1]), USIZE, term.span)
    place = resolve("+", [index.expr, Literal(1, BIGINT)], term.span)
    return optional(resolve("try_element_at", [value.expr, cast(place, INT)], term.span), kind.item, term.span)


def _parse(target: str) -> Builtin:
    """Text as a number, None if it is malformed."""

    def bound(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
        _count(term, 1)
        value = binder.bind(term.arguments[0], STRING_KIND)
        kind = {"s64": kind_of(BIGINT), "double": kind_of(resolve("double", [value.expr]).type), "date": DATE_KIND}[target]
        assert kind is not None
        return optional(cast(value.expr, stored(kind), term.span, lenient=True), kind, term.span)

    return bound


def _text(function: str, *kinds: Kind) -> Builtin:
    """A function of strings that is never NULL, under DDlog's name."""

    def bound(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
        _count(term, len(kinds))
        values = [binder.bind(one, kind).expr for one, kind in zip(term.arguments, kinds, strict=True)]
        expr = resolve(function, values, term.span)
        kind = kind_of(expr.type)
        assert kind is not None
        return BoundTerm(expr, kind)

    return bound


def _contains(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """Whether a string has another in it, a vector an element, a map a key."""
    _count(term, 2)
    value = binder.bind(term.arguments[0])
    if isinstance(value.kind, MapKind):
        return contains_key(binder, term, expected)
    if not isinstance(value.kind, VectorKind):
        return _text("contains", _S, _S)(binder, term, expected)
    check_comparable(value.kind.item, "what is searched for", term.span)
    item = binder.bind(term.arguments[1], value.kind.item)
    contains = resolve("array_contains", [value.expr, item.expr], term.span)
    return BoundTerm(resolve("coalesce", [contains, Literal(False, BOOLEAN)], term.span), BOOL)


def _of_maps_or_sql(of_map: Builtin, name: str) -> Builtin:
    """A function of maps; of other values the function of SQL."""

    def bound(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
        arguments = [binder.bind(one) for one in term.arguments]
        if arguments and isinstance(arguments[0].kind, MapKind):
            return of_map(binder, term, expected)
        return call_sql(name, arguments, term.span, tuple(BUILTINS))

    return bound


def _substring(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    """string_substr(s, start, end): from 0, without the end."""
    _count(term, 3)
    value = binder.bind(term.arguments[0], STRING_KIND)
    start, end = (converted(binder.bind(one), USIZE, term.span).expr for one in term.arguments[1:])
    first = cast(resolve("+", [start, Literal(1, BIGINT)], term.span), INT)
    length = resolve("-", [end, start], term.span)
    return BoundTerm(resolve("substring", [value.expr, first, cast(length, INT)], term.span), STRING_KIND)


def _pair(binder: TermBinder, term: CallTerm, expected: Kind | None) -> BoundTerm:
    _count(term, 2)
    return tuple_of([binder.bind(one) for one in term.arguments], term.span)


_S: Final = STRING_KIND
BUILTINS: Final[dict[str, Builtin]] = {
    "to_string": _to_string,
    "min": _best("<="),
    "max": _best(">="),
    "is_some": _is_some("Some"),
    "is_none": _is_some("None"),
    "unwrap_or": _unwrap_or,
    "option_unwrap_or": _unwrap_or,
    "len": _len,
    "string_len": _len,
    "vec_len": _len,
    "map_size": _len,
    "is_empty": _is_empty,
    "nth": _nth,
    "pair": _pair,
    "parse_dec_i64": _parse("s64"),
    "parse_double": _parse("double"),
    "parse_date": _parse("date"),
    **MAP_FUNCTIONS,
    **SET_FUNCTIONS,
    "get": _of_maps_or_sql(map_get, "get"),
    "size": _of_maps_or_sql(_len, "size"),
    "substr": _substring,
    "string_substr": _substring,
    "string_contains": _text("contains", _S, _S),
    "contains": _contains,
    **dict.fromkeys(("vec_contains", "set_contains"), _contains),
    **dict.fromkeys(("string_starts_with", "starts_with"), _text("startswith", _S, _S)),
    **dict.fromkeys(("string_ends_with", "ends_with"), _text("endswith", _S, _S)),
    **dict.fromkeys(("string_to_uppercase", "to_uppercase"), _text("upper", _S)),
    **dict.fromkeys(("string_to_lowercase", "to_lowercase"), _text("lower", _S)),
    **dict.fromkeys(("string_trim", "trim"), _text("trim", _S)),
    **dict.fromkeys(("string_replace", "replace"), _text("replace", _S, _S, _S)),
    **dict.fromkeys(("string_reverse", "reverse"), _text("reverse", _S)),
}
"""By name. Other names are functions of SQL."""
