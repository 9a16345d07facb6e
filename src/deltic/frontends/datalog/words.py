"""Bit operations on u64, which is stored as DECIMAL(20,0): on its halves of 32 bits, which are BIGINTs."""

from __future__ import annotations

import decimal
from typing import Final

from deltic.errors import Span
from deltic.expr import cast, resolve
from deltic.expr.nodes import Expr, Literal
from deltic.expr.typing import case
from deltic.schema import BIGINT, INT, Type
from deltic.schema import decimal as decimal_type

WORD: Final = decimal_type(20, 0)
_WIDE: Final = decimal_type(38, 0)
_HALF: Final = 1 << 32
_MASK: Final = Literal(_HALF - 1, BIGINT)
_NOTHING: Final = Literal(0, BIGINT)


def _number(value: int, type: Type) -> Literal:
    return Literal(decimal.Decimal(value) if type.is_decimal else value, type)


def _halves(word: Expr, span: Span) -> tuple[Expr, Expr]:
    """(the high half, the low half)."""
    half = _number(_HALF, _WIDE)
    low = resolve("%", [cast(word, _WIDE), half], span)
    high = resolve("/", [cast(resolve("-", [cast(word, _WIDE), low], span), _WIDE), half], span)
    return cast(high, BIGINT, span), cast(low, BIGINT, span)


def _joined(high: Expr, low: Expr, span: Span) -> Expr:
    product = resolve("*", [cast(high, WORD), _number(_HALF, WORD)], span)
    return cast(resolve("+", [cast(product, _WIDE), cast(low, _WIDE)], span), WORD, span)


def word_operation(operator: str, left: Expr, right: Expr, span: Span) -> Expr:
    """&, | or ^ of two words."""
    pairs = zip(_halves(left, span), _halves(right, span), strict=True)
    high, low = (resolve(operator, [one, other], span) for one, other in pairs)
    return _joined(high, low, span)


def inverted_word(word: Expr, span: Span) -> Expr:
    """Every bit inverted."""
    return cast(resolve("-", [_number((1 << 64) - 1, WORD), word], span), WORD, span)


def shifted_word(operator: str, word: Expr, count: Expr, span: Span) -> Expr:
    """The word << or >> an INT from 0 to 63. Bits that leave the word are lost."""
    high, low = _halves(word, span)
    beyond = resolve("-", [count, Literal(32, INT)], span)
    few = resolve("<", [count, Literal(32, INT)], span)

    def shifted(half: Expr, by: Expr, to: str = operator) -> Expr:
        return resolve(to, [half, by], span)

    def masked(half: Expr) -> Expr:
        return resolve("&", [half, _MASK], span)

    if operator == "<<":
        moved = shifted(low, count)
        carry = shifted(moved, Literal(32, INT), ">>>")
        near = _joined(masked(resolve("|", [shifted(high, count), carry], span)), masked(moved), span)
        far = _joined(masked(shifted(low, beyond)), _NOTHING, span)
    else:
        rest = shifted(high, resolve("-", [Literal(32, INT), count], span), "<<")
        near = _joined(shifted(high, count), masked(resolve("|", [rest, shifted(low, count)], span)), span)
        far = _joined(_NOTHING, shifted(high, beyond), span)
    return case([(few, near)], far, span)
