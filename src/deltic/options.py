"""USING and OPTIONS as parsed: the name of a connector, and texts by key, each with its place in the user's text.

The connector validates them; every error has the place of its key or value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from deltic.errors import QueryError, Span, did_you_mean

_Value = TypeVar("_Value", bound=str)


@dataclass(frozen=True, slots=True)
class Option:
    """A value, its key as written, and the places of the two."""

    key: str
    value: str
    key_span: Span
    span: Span


@dataclass(frozen=True, slots=True)
class Options:
    """connector: its name as written. span: the place of the name. given: the options, by key in lower case.

    also: keys that the statement itself takes; they are not in `given`.
    """

    connector: str
    span: Span
    given: Mapping[str, Option] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    def check_keys(self, keys: Sequence[str], elsewhere: Mapping[str, str] | None = None) -> None:
        """Raises QueryError at the first key that is not one of `keys`, case-insensitive.

        elsewhere: remedies for keys, in lower case, that are valid in other statements.
        """
        names = {key.lower() for key in keys}
        for key, option in self.given.items():
            if key not in names:
                expected = f"one of {', '.join((*keys, *self.also))}"
                close = did_you_mean(option.key, (*keys, *self.also)) or ""
                remedy = (elsewhere or {}).get(key) or (close if close.startswith("did") else None)
                raise QueryError(f"there is no option {option.key} here", span=option.key_span, expected=expected, remedy=remedy)

    def place(self, key: str) -> Span:
        """The place of an option's value; that of the connector's name if it is not given."""
        return self.given[key].span if key in self.given else self.span

    def text(self, key: str, *, blank: bool = False) -> str | None:
        """A value; None if it is not given. blank: whether it may be blank. Raises QueryError, also for a NUL character."""
        option = self.given.get(key)
        if option is not None and not blank and not option.value.strip():
            raise QueryError(f"the option {option.key} is empty", span=option.span, remedy="give it a value, or leave it out")
        if option is not None and "\0" in option.value:
            raise QueryError(f"the option {option.key} contains a NUL character", span=option.span, remedy="remove it")
        return None if option is None else option.value

    def required(self, key: str, message: str) -> str:
        """A mandatory value. message: the error if it is not given."""
        value = self.text(key)
        if value is None:
            raise QueryError(message, span=self.span, expected=f"OPTIONS ({key} '…')")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """TRUE or FALSE."""
        if key not in self.given:
            return default
        return self.one_of(key, ("true", "false")) == "true"

    def one_of(self, key: str, values: Sequence[_Value], default: _Value | None = None) -> _Value:
        """One of the values, case-insensitive; mandatory without a default."""
        expected = " or ".join(f"{key} '{value}'" for value in values)
        option = self.given.get(key)
        if option is None and default is not None:
            return default
        if option is None:
            raise QueryError(f"the option {key} is missing", span=self.span, expected=expected)
        chosen = next((value for value in values if value == option.value.lower()), None)
        if chosen is None:
            remedy = did_you_mean(option.value, values) or ""
            raise QueryError(
                f"{option.key} is {option.value!r}",
                span=option.span,
                expected=expected,
                remedy=remedy if remedy.startswith("did") else None,
            )
        return chosen

    def refuse_both(self, key: str, other: str, why: str) -> None:
        """Raises QueryError at `key` if both are given."""
        if key in self.given and other in self.given:
            names = f"{self.given[key].key} and {self.given[other].key}"
            raise QueryError(f"{names} exclude each other: {why}", span=self.given[key].key_span, remedy="leave one of them out")
