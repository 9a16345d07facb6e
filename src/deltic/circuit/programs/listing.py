"""Expressions in the listings of programs."""

from __future__ import annotations

from typing import Final

from deltic.expr.nodes import Call, Case, Cast, Column, Constants, Expr, Literal, children, unwidened
from deltic.expr.registry import FUNCTIONS

LONGEST: Final = 60
"""Characters of an expression."""


def show(expr: Expr) -> str:
    """One line, cut if it is long: columns by name, operators between their operands.

    >>> from deltic.schema import BOOLEAN, INT
    >>> show(Call("less", (Column(0, INT, True, "x"), Literal(1, INT)), BOOLEAN, True))
    'x < 1'
    """
    text = _text(unwidened(expr), outer=True)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _text(expr: Expr, *, outer: bool = False) -> str:
    parts = [_text(unwidened(part)) for part in children(expr)]
    match expr:
        case Column():
            return expr.name or f"#{expr.index}"
        case Literal():
            return "null" if expr.value is None else repr(expr.value) if isinstance(expr.value, str) else str(expr.value)
        case Constants():
            return ", ".join(map(str, expr.values[:3])) + (", …" if len(expr.values) > 3 else "")
        case Cast():
            return f"cast({parts[0]} as {expr.type.sql})"
        case Case():
            branches = " ".join(f"when {c} then {v}" for c, v in zip(parts[:-1:2], parts[1::2], strict=True))
            return f"case {branches} else {parts[-1]} end"
        case Call(function=name):
            symbol = name if name in ("and", "or") else next(iter(getattr(FUNCTIONS.get(name), "symbols", ())), None)
            if symbol is None or len(parts) < 2:
                return f"{name}({', '.join(parts)})"
            joined = f" {symbol} ".join(parts)
            return joined if outer else f"({joined})"
    return type(expr).__name__
