"""How often a row counts in a percentile."""

from __future__ import annotations

from deltic.errors import Span
from deltic.expr.failures import invalid, overflow
from deltic.expr.nodes import Value

MOST = 2**63 - 1


def checked_frequency(value: Value, span: Span | None = None) -> int:
    """The frequency. Raises EvaluationError for a negative one."""
    assert isinstance(value, int)
    if value < 0:
        raise invalid(f"the frequency {value} is negative", span)
    return value


def checked_total(total: int, span: Span | None = None) -> int:
    """The frequencies of a group, added up. Raises ArithmeticOverflow beyond 64 bits."""
    if total > MOST:
        raise overflow("the sum of the frequencies of a group", span)
    return total
