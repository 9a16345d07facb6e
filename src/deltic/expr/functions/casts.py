"""Casts in function syntax: bigint(x)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import Span
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Expr
from deltic.expr.registry import Builder, Rewrite
from deltic.expr.typing import cast
from deltic.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, INT, SMALLINT, STRING, TIME, TIMESTAMP, TINYINT, Type, decimal

_TYPES: Final = (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, decimal(10, 0), STRING, BINARY, DATE, TIME, TIMESTAMP)


def _cast(type: Type) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 1, span)
        return cast(arguments[0], type, span)

    return build


FUNCTIONS: Final = tuple(Rewrite(name=type.name.lower(), build=_cast(type)) for type in _TYPES)
