"""All that a function makes of one row, which an engine asks for tuple by tuple and column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from deltic.purity import pure


class Tuples:
    """A row's tuples; those of the row that was asked for last are kept, so that it costs one call however many there are."""

    def __init__(self, function: Callable[..., Iterable[Any]]) -> None:
        @wraps(function)
        def listed(row: Any) -> tuple[Any, ...]:
            return tuple(function(row))

        self._listed = pure(listed)
        self._last: tuple[Any, tuple[Any, ...]] | None = None

    def __call__(self, row: Any) -> tuple[Any, ...]:
        last = self._last
        if last is not None and last[0] == row and repr(last[0]) == repr(row):  # 0.0 equals -0.0, and is another row
            return last[1]
        found = self._listed(row)
        self._last = (row, found)
        return found
