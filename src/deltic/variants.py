"""Variant: a value of type VARIANT in Python."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from deltic.errors import MalformedVariant
from deltic.purity import shown
from deltic.variant_bytes import Form, VariantPlace, Writer, fault, folded
from deltic.variant_json import parsed, text_of

_LONG: Final = 2**63


class Variant(NamedTuple):
    """A value of type VARIANT: its two parts, encoded as Parquet and Spark encode them. PySpark's VariantVal has the same.

    Two are equal if their bytes are.

    >>> v = Variant.parse_json('{"b": [1, 2.50, null], "a": "x"}')
    >>> v.to_json(), v.to_python()
    ('{"a":"x","b":[1,2.5,null]}', {'a': 'x', 'b': [1, Decimal('2.5'), None]})
    >>> Variant.of({"b": 1}).to_json()
    '{"b":1}'
    """

    value: bytes
    metadata: bytes

    @classmethod
    def parse_json(cls, text: str) -> Variant:
        """The value that a JSON text is, as SQL's parse_json. Raises MalformedVariant, which is a ValueError."""
        if not isinstance(text, str):
            raise MalformedVariant(f"invalid text {shown(text)} of a VARIANT", expected="JSON as a string")
        try:
            return cls(*parsed(text))
        except MalformedVariant as error:
            wrong = error.message
        except UnicodeEncodeError:
            wrong = "half of a surrogate pair"
        raise MalformedVariant(f"the text {shown(text)} is not JSON: {wrong}")

    @classmethod
    def of(cls, value: Any) -> Variant:
        """Of a None, bool, int, float, Decimal, str, bytes, date or datetime, or a dict or list of them. Raises MalformedVariant."""
        writer = Writer()
        try:
            writer.tree(value, _form)
        except UnicodeEncodeError as error:
            raise MalformedVariant(f"a VARIANT cannot hold {shown(value)}: {error}") from None
        return cls(*writer.result)

    def to_python(self) -> Any:
        """The value in the classes of `of`; a TIMESTAMP is in UTC. Raises MalformedVariant for parts that are no VARIANT."""
        return folded(self._checked(), lambda place: place.scalar, list, dict)

    def to_json(self) -> str:
        """The value as JSON, as SQL's to_json. Raises MalformedVariant for parts that are no VARIANT."""
        return text_of(self._checked())

    def __str__(self) -> str:
        return self.to_json()

    def _checked(self) -> VariantPlace:
        if (wrong := fault(self.value, self.metadata)) is not None:
            raise MalformedVariant(f"the bytes are no VARIANT: {wrong}")
        return VariantPlace(self.value, self.metadata)


def of_pyspark(value: Any) -> Any:
    """PySpark's VariantVal as a Variant; any other value is itself."""
    if type(value).__name__ != "VariantVal" or not type(value).__module__.startswith("pyspark."):
        return value
    return Variant(bytes(value.value), bytes(value.metadata))


def _form(value: Any) -> tuple[Form, Any]:
    match value:
        case Variant():
            return "place", value._checked()
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise MalformedVariant(f"the names of fields are not all strings: {shown(list(value))}")
            return "object", list(value.items())
        case list() | tuple():
            return "array", list(value)
        case int() if not -_LONG <= value < _LONG:
            return "scalar", Decimal(value)
        case None | bool() | int() | float() | Decimal() | str() | bytes() | datetime.date():
            return "scalar", value
        case _:
            raise MalformedVariant(f"a VARIANT cannot hold {shown(value)}")
