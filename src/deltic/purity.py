"""User functions must be pure: one answer for one row, always. A sample of the calls is made twice, which finds most that are not."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from inspect import unwrap
from typing import Any, Final, Generic, TypeVar

from deltic.errors import ImpureFunction

Answer = TypeVar("Answer", bound=Hashable)

SAMPLE: Final = 8
"""The first calls, all made twice; of the later ones, those whose number is a power of two."""


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
        if self.calls <= SAMPLE or self.calls & (self.calls - 1) == 0:
            again = self.function(*arguments)
            if answer != again and repr(answer) != repr(again):  # NaN is not equal to itself
                raise ImpureFunction(
                    f"the function {self.name} gave {answer!r} and then {again!r} for the same arguments {arguments!r}",
                    expected="a pure function: one answer for one row, whenever it is asked",
                    remedy="take time, randomness and state from columns of the row",
                )
        return answer


def pure(function: Callable[..., Answer]) -> Pure[Answer]:
    """The function, watched; the very same one if it already is."""
    return function if isinstance(function, Pure) else Pure(function)


def name_of(function: object) -> str:
    """A function's name with the file and line that it was written at, where it has them; of one that wraps another, the other's."""
    named = unwrap(function) if callable(function) else function
    name = getattr(named, "__qualname__", None) or type(named).__qualname__
    code = getattr(named, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
