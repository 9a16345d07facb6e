"""User functions must be pure: equal rows give equal results. Each call is made once; DELTIC_REPEAT_CALLS=1 repeats all and compares.

Repetition is for tests of functions: it doubles their cost, and what they do besides, such as logging, happens twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from inspect import unwrap
from typing import Any, Final, Generic, TypeVar

from deltic.errors import ImpureFunction

Result = TypeVar("Result", bound=Hashable)

REPEATED = os.environ.get("DELTIC_REPEAT_CALLS", "") not in ("", "0")
"""Whether each call is repeated in this process. Tests set it."""
SHOWN: Final = 300
"""The number of characters of a value that an error shows."""


class Pure(Generic[Result]):
    """A user's function, whose calls are repeated if REPEATED. Raises ImpureFunction if the results differ."""

    def __init__(self, function: Callable[..., Result]) -> None:
        self.function = function

    @property
    def name(self) -> str:
        """The function's name for errors, with file and line if known."""
        return name_of(self.function)

    def __call__(self, *arguments: Any) -> Result:
        result = self.function(*arguments)
        if REPEATED and not isinstance(result, Iterator):  # an iterator has no result yet: its consumer reads or rejects it
            again = self.function(*arguments)
            if not same(result, again):
                raise ImpureFunction(
                    f"the function {self.name} returned {shown(result)} and then {shown(again)} for the same arguments {shown(arguments)}",
                    expected="a pure function: equal results for equal arguments",
                    remedy="pass time, randomness and state as columns of the row",
                )
        return result


def same(one: object, other: object) -> bool:
    """Whether two results are equal, comparing arrays by content, and NaN as equal to NaN.

    >>> same((float("nan"), 1), (float("nan"), 1)), same(1, 2)
    (True, False)
    """
    try:
        if one == other:
            return True
    except ValueError:  # NumPy arrays have no truth value
        pass
    return type(one) is type(other) and repr(_plain(one)) == repr(_plain(other))


def shown(value: object) -> str:
    """The value as an error shows it, truncated to SHOWN characters."""
    text = repr(_plain(value))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _plain(value: Any) -> Any:
    """Arrow and NumPy arrays, also within tuples and lists, as lists, whose repr shows all values."""
    if type(value) is tuple or type(value) is list:
        return type(value)(_plain(part) for part in value)
    if type(value).__module__ == "numpy" and getattr(value, "dtype", None) is not None and value.dtype.kind in "mM":
        return list(value) if value.shape else value  # of most times tolist makes numbers
    for listed in ("to_pylist", "tolist"):
        if not isinstance(value, type) and callable(convert := getattr(value, listed, None)):
            return convert()
    return value


def pure(function: Callable[..., Result]) -> Pure[Result]:
    """The function as a Pure; unchanged if it is one already."""
    return function if isinstance(function, Pure) else Pure(function)


def name_of(function: object) -> str:
    """A function's qualified name, with file and line if known; for a wrapper, those of the wrapped function."""
    named = unwrap(function) if callable(function) else function
    name = getattr(named, "__qualname__", None) or type(named).__qualname__
    code = getattr(named, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
