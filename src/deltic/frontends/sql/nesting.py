"""Reports Python's recursion limit as an error of the statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltic.errors import Span, SyntaxFailure


@contextmanager
def shallow(span: Span) -> Iterator[None]:
    """Raises SyntaxFailure instead of RecursionError; the caller's own frames may have used most of the stack."""
    try:
        yield
    except RecursionError as error:
        raise SyntaxFailure("the statement is nested too deeply", span=span, remedy="split it into views, or into CTEs") from error
