"""Values as PySpark passes them to functions of rows: an ARRAY is a list, a MAP a dict, a STRUCT a row with names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from deltic.types import Type


class NamedRow(tuple[Any, ...]):
    """The values of a STRUCT, by position and by name, with the reading methods of PySpark's Row."""

    __slots__ = ()
    __fields__: tuple[str, ...] = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.__fields__:
                raise ValueError(key)
            key = self.__fields__.index(key)
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        if name not in self.__fields__:
            raise AttributeError(name)
        return super().__getitem__(self.__fields__.index(name))

    def __contains__(self, key: object) -> bool:
        return key in self.__fields__

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        """The values by name."""
        return {name: _as_dict(value) if recursive else value for name, value in zip(self.__fields__, self, strict=True)}


def _as_dict(value: Any) -> Any:
    if isinstance(value, NamedRow):
        return value.asDict(True)
    if isinstance(value, list):
        return [_as_dict(item) for item in value]
    return {key: _as_dict(item) for key, item in value.items()} if isinstance(value, dict) else value


@lru_cache(maxsize=256)
def _row_of(names: tuple[str, ...]) -> type[NamedRow]:
    return type("Row", (NamedRow,), {"__slots__": (), "__fields__": names})


def spark_value(type: Type, value: Any) -> Any:
    """The value of an argument; one that is not nested as it is, and an ARRAY that is the key of a MAP, since a list is no key."""
    if value is None or not type.is_nested:
        return value
    match type.name:
        case "STRUCT":
            parts = [spark_value(part.type, item) for part, item in zip(type.parts, value, strict=True)]
            return _row_of(tuple(part.name for part in type.parts))(parts)
        case "MAP":
            key, item = (part.type for part in type.parts)
            return {k if key.name == "ARRAY" else spark_value(key, k): spark_value(item, v) for k, v in value}
        case _:
            return [spark_value(type.parts[0].type, item) for item in value]
