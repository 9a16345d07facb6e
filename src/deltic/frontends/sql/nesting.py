"""Python's recursion limit as an error of the statement that is nested too deeply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltic.errors import Span, SyntaxFailure


@contextmanager
def shallow(span: Span | None) -> Iterator[None]:
    """Turns Python's recursion limit, which the caller's own frames may have used up, into an error of the statement."""
    try:
        yield
    except RecursionError as error:
        raise SyntaxFailure("the statement is nested too deeply", span=span, remedy="split it into views, or into CTEs") from error
