"""User functions must be pure: one answer for one row, always. A sample of the calls is made twice, which finds most that are not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from inspect import unwrap
from typing import Any, Final, Generic, TypeVar

from deltic.errors import ImpureFunction

Answer = TypeVar("Answer", bound=Hashable)

SAMPLE: Final = 8
"""The first calls, all made twice; of the later ones, those whose number is a power of two."""
SHOWN: Final = 300
"""How many characters of a value an error shows."""


class Pure(Generic[Answer]):
    """A user's function, a sample of whose calls is made twice. Raises ImpureFunction where the answers differ."""

    def __init__(self, function: Callable[..., Answer]) -> None:
        self.function, self.calls = function, 0

    @property
    def name(self) -> str:
        """What the error calls it: its name and, if it has one, its place."""
        return name_of(self.function)

    def __call__(self, *arguments: Any) -> Answer:
        answer = self.function(*arguments)
        self.calls += 1
        watched = self.calls <= SAMPLE or self.calls & (self.calls - 1) == 0
        if watched and not isinstance(answer, Iterator):  # that is no answer yet: whoever takes it goes through it, or refuses it
            again = self.function(*arguments)
            if not same(answer, again):
                raise ImpureFunction(
                    f"the function {self.name} gave {shown(answer)} and then {shown(again)} for the same arguments {shown(arguments)}",
                    expected="a pure function: one answer for one row, whenever it is asked",
                    remedy="take time, randomness and state from columns of the row",
                )
        return answer


def same(one: object, other: object) -> bool:
    """Whether two answers are one, arrays by what they hold. NaN is NaN here, and not equal to itself.

    >>> same((float("nan"), 1), (float("nan"), 1)), same(1, 2)
    (True, False)
    """
    try:
        if one == other:
            return True
    except ValueError:  # NumPy's arrays have no one truth
        pass
    return type(one) is type(other) and repr(_plain(one)) == repr(_plain(other))


def shown(value: object) -> str:
    """The value as an error shows it: of a large one, how it begins."""
    text = repr(_plain(value))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _plain(value: Any) -> Any:
    """Arrow's and NumPy's arrays, also in a tuple, as lists, whose repr has all of their values."""
    if type(value) is tuple or type(value) is list:
        return type(value)(_plain(part) for part in value)
    for listed in ("to_pylist", "tolist"):
        if not isinstance(value, type) and callable(found := getattr(value, listed, None)):
            return found()
    return value


def pure(function: Callable[..., Answer]) -> Pure[Answer]:
    """The function, watched; the very same one if it already is."""
    return function if isinstance(function, Pure) else Pure(function)


def name_of(function: object) -> str:
    """A function's name with the file and line that it was written at, where it has them; of one that wraps another, the other's."""
    named = unwrap(function) if callable(function) else function
    name = getattr(named, "__qualname__", None) or type(named).__qualname__
    code = getattr(named, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
