"""The time of a statement that runs once, a query or a change of rows: now() and the functions like it are constants there.

A view has no such time: it would change without a change of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeGuard, TypeVar

from deltic.errors import Span, TypeMismatch
from deltic.expr import Expr, Literal
from deltic.expr.functions.signature import check_count
from deltic.frontends.sql import literals, tree
from deltic.schema import BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ, Type
from deltic.types import MOST_PLACES, TIME, time_type

Node = TypeVar("Node")
_EPOCH: Final = datetime(1970, 1, 1)  # in UTC
_FORMS: Final[dict[str, tuple[Type, Callable[[datetime], str]]]] = {
    **dict.fromkeys(("now", "current_timestamp"), (TIMESTAMP, lambda moment: f"{moment.isoformat()}Z")),
    "localtimestamp": (TIMESTAMP_NTZ, datetime.isoformat),
    **dict.fromkeys(("current_date", "curdate"), (DATE, lambda moment: moment.date().isoformat())),
    "current_time": (TIME, lambda moment: moment.time().isoformat()),
}
_SECONDS: Final = "unix_timestamp"
"""With arguments it is a function of them."""


def with_time(node: Node, now_us: int | None) -> Node:
    """The tree in which the functions of the time have it. now_us: in microseconds since 1970 UTC; None for a statement that has none."""

    def timed(part: Any) -> Any:
        return replace(part, now_us=now_us) if _reads_time(part) else part

    if now_us is None or not any(map(_reads_time, tree.walk(node))):
        return node
    return tree.rewritten(node, timed)


def lacks_time(node: object) -> bool:
    """Whether a function of the time in the tree has none."""
    return any(_reads_time(part) and part.now_us is None for part in tree.walk(node))


def _reads_time(part: object) -> TypeGuard[tree.FunctionCall | tree.KeywordExpression]:
    if isinstance(part, tree.FunctionCall):
        return part.name in _FORMS or (part.name == _SECONDS and not part.arguments)
    return isinstance(part, tree.KeywordExpression) and part.word.lower() in _FORMS


def time_literal(name: str, now_us: int, arguments: Sequence[Expr], span: Span) -> Literal:
    """The value of a function of the time. Raises TypeMismatch for arguments, but for the digits of current_time."""
    check_count(name, arguments, 0, 1 if name == "current_time" else 0, span)
    if name == _SECONDS:
        return Literal(now_us // 1_000_000, BIGINT, span)
    type, form = _FORMS[name]
    if arguments:
        digits = _digits(arguments[0])
        now_us, type = now_us - now_us % 10 ** (MOST_PLACES - digits), time_type(digits)
    return literals.typed(form(_EPOCH + timedelta(microseconds=now_us)), type, span)


def _digits(argument: Expr) -> int:
    if isinstance(argument, Literal) and isinstance(argument.value, int) and 0 <= argument.value <= MOST_PLACES:
        return argument.value
    raise TypeMismatch("invalid number of digits of current_time", span=argument.span, expected=f"a constant from 0 to {MOST_PLACES}")
