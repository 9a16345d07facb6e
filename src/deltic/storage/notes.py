"""Notes: the named JSON values of a manifest, an immutable mapping whose next version costs in proportion to its changes.

Each consumed file is a note, so there may be a hundred thousand, and every commit creates a new mapping. Versions therefore share a base
mapping and store their differences from it until these reach an eighth of the base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Json = Any
_SMALL: Final = 64
_SHARE: Final = 8


class Notes(Mapping[str, Json]):
    """Dictionaries passed in are not copied and must not be changed afterwards. In _over, None marks a removed name."""

    __slots__ = ("_base", "_length", "_over")

    def __init__(self, base: Mapping[str, Json] | None = None) -> None:
        self._base: Mapping[str, Json] = {} if base is None else base
        self._over: dict[str, Json] = {}
        self._length = len(self._base)

    def after(self, changes: Mapping[str, Json]) -> Notes:
        """The next version: sets these values, and removes those that are None. Amortised O(changes)."""
        if not changes:
            return self
        over = {**self._over, **changes}
        result = Notes(self._base)
        result._over = over
        result._length = self._length + sum((value is not None) - (name in self) for name, value in changes.items())
        return result if len(over) <= _SMALL + len(self._base) // _SHARE else Notes(dict(result))

    def __getitem__(self, name: str) -> Json:
        if name not in self._over:
            return self._base[name]
        if (value := self._over[name]) is None:
            raise KeyError(name)
        return value

    def get(self, name: str, default: Any = None) -> Any:  # a tick asks several times, mostly for what is not there
        value = self._over[name] if name in self._over else self._base.get(name)
        return default if value is None else value

    def __contains__(self, name: object) -> bool:
        return self._over[name] is not None if name in self._over else name in self._base

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in self._base if name not in self._over)
        yield from (name for name, value in self._over.items() if value is not None)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Notes({dict(self)!r})"
