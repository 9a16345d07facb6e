"""The predicates of queries that say of which kind a value is, by Clojure's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr import resolve
from deltic.expr.nodes import Literal
from deltic.frontends.edn.arguments import Builder, Terms, check_count
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
    SYMBOL,
    UUID,
    EdnKind,
    EdnTerm,
)
from deltic.schema import BIGINT, BOOLEAN, STRING


def _of_kind(kinds: Sequence[EdnKind], pattern: str) -> Builder:
    """Whether a value is of one of the kinds; pattern: of the text of such a value of any kind."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, 1, span)
        (value,) = arguments
        if value.kind != ANY:
            return EdnTerm(Literal(value.kind in kinds, BOOLEAN, span), BOOLEAN_KIND)
        return EdnTerm(resolve("rlike", [value.expr, Literal(pattern, STRING)], span), BOOLEAN_KIND)

    return build


def _whole_number(operator: str) -> Builder:
    """Whether a long is as the operator says of it and 0; no value of another kind is."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, 1, 1, span)
        (value,) = arguments
        if value.kind == ANY:
            raise TypeMismatch(f"{name} does not accept a value of kind any", span=value.expr.span or span, expected="long")
        if value.kind != LONG:
            return EdnTerm(Literal(False, BOOLEAN, span), BOOLEAN_KIND)
        return EdnTerm(resolve(operator, [value.expr, Literal(0, BIGINT)], span), BOOLEAN_KIND)

    return build


_WHOLE_NUMBER: Final = "^[+-]?[0-9]+N?$"
_DOUBLE_NUMBER: Final = r"^([+-]?[0-9]+\.[0-9]+(E[+-]?[0-9]+)?|##Inf|##-Inf|##NaN)$"
_DECIMAL_NUMBER: Final = r"^[+-]?[0-9.]+(E[+-]?[0-9]+)?M$"
KIND_FUNCTIONS: Final[Mapping[str, Builder]] = {
    "pos-int?": _whole_number(">"),
    "neg-int?": _whole_number("<"),
    "nat-int?": _whole_number(">="),
    "string?": _of_kind((STRING_KIND,), '^"'),
    "keyword?": _of_kind((KEYWORD,), "^:"),
    "boolean?": _of_kind((BOOLEAN_KIND,), "^(true|false)$"),
    "int?": _of_kind((LONG,), "^[+-]?[0-9]+$"),
    "integer?": _of_kind((LONG, BIGINT_KIND), _WHOLE_NUMBER),
    "double?": _of_kind((DOUBLE_KIND,), _DOUBLE_NUMBER),
    "float?": _of_kind((DOUBLE_KIND,), _DOUBLE_NUMBER),
    "decimal?": _of_kind((BIGDEC,), _DECIMAL_NUMBER),
    "symbol?": _of_kind((SYMBOL,), r'^(?!true$|false$)([^"\\:#0-9+\-]|[+\-]([^0-9]|$))'),
    "char?": _of_kind((CHAR,), r"^\\"),
    "uuid?": _of_kind((UUID,), "^#uuid"),
    "inst?": _of_kind((INSTANT,), "^#inst"),
    "number?": _of_kind((*NUMBERS, BIGINT_KIND, BIGDEC), f"{_WHOLE_NUMBER}|{_DOUBLE_NUMBER}|{_DECIMAL_NUMBER}"),
}
