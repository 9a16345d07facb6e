"""Types, with all that other rooms ask of them.

A type here is Spark's. What always holds: types are immutable values, equal when they mean the same, and `Type.parse` reads what
`Type.sql` writes. What all types of one name have in common stands in the record of their kind (kinds.py);
trace/encoding.py makes words of it, expr/functions what can be computed with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from deltic.collations import BINARY_NAME, COLLATIONS
from deltic.kinds import DAY_TIME, KINDS, VARIANT_ARROW, YEAR_MONTH, TypeKind, interval_word
from deltic.variants import Variant

INTEGER_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EXACT_FLOAT: Final = {"FLOAT": 24, "DOUBLE": 53}


NESTED: Final = ("ARRAY", "MAP", "STRUCT")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Field:
    """A named column, or a part of a nested type."""

    name: str
    type: Type
    nullable: bool = True


OMITTED: Final = "omitted from ids by default"
"""Metadata of a field that counts in ids only where it differs from its default, so that ids of existing states stay."""


@dataclass(frozen=True, slots=True)
class Type:
    """A Spark SQL type; `precision` and `scale` are those of DECIMAL and 0 elsewhere, but for CHAR(n), VARCHAR(n) and TIME(p).

    collation: of a STRING, "" for UTF8_BINARY.
    parts: of an ARRAY its element, of a MAP its key and value, of a STRUCT its fields; a part may be NULL, but for a key.

    >>> decimal(10, 2).sql, array_type(struct((Field("a", INT), Field("b c", STRING)))).sql
    ('DECIMAL(10,2)', 'ARRAY<STRUCT<a: INT, `b c`: STRING>>')
    """

    name: str
    precision: int = 0
    scale: int = 0
    parts: tuple[Field, ...] = ()
    collation: str = field(default="", metadata={OMITTED: True})
    kind: TypeKind = field(init=False, compare=False, repr=False)
    """What it has in common with all types of its name."""
    is_collated: bool = field(init=False, compare=False, repr=False)
    """Whether texts of a collation other than UTF8_BINARY are in its values, which then can be equal in SQL and differ."""
    _hash: int = field(init=False, compare=False, repr=False)
    """Computed once: every tick looks up by types what depends on them alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", KINDS[self.name])
        object.__setattr__(self, "is_collated", bool(self.collation) or any(part.type.is_collated for part in self.parts))
        object.__setattr__(self, "_hash", hash(self._values))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._values

    def __eq__(self, other: object) -> bool:
        """The generated comparison, with shortcuts, since every tick compares types many times, and without recursion: that of a VARIANT
        may be nested deeply."""
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        left = [(self, other)]
        while left:
            one, two = left.pop()
            if one is two:
                continue
            if one._hash != two._hash or one._values_alone != two._values_alone or len(one.parts) != len(two.parts):
                return False
            for a, b in zip(one.parts, two.parts, strict=True):
                if a.name != b.name or a.nullable != b.nullable:
                    return False
                left.append((a.type, b.type))
        return True

    def __hash__(self) -> int:
        return self._hash

    @property
    def _values(self) -> tuple[str, int, int, tuple[Field, ...], str]:
        return self.name, self.precision, self.scale, self.parts, self.collation

    @property
    def _values_alone(self) -> tuple[str, int, int, str]:
        """Without the parts."""
        return self.name, self.precision, self.scale, self.collation

    @property
    def sql(self) -> str:
        """As Spark spells it."""
        if self.name == "STRUCT":
            return f"STRUCT<{', '.join(f'{quoted(part.name)}: {part.type.sql}' for part in self.parts)}>"
        if self.parts:
            return f"{self.name}<{', '.join(part.type.sql for part in self.parts)}>"
        if self.is_limited or self.is_time:
            return f"{self.name}({self.precision})"
        if self.collation:
            return f"{self.name} COLLATE {self.collation}"
        return f"DECIMAL({self.precision},{self.scale})" if self.is_decimal else self.name

    @property
    def catalog(self) -> str:
        """As Spark's catalog spells it, and TYPEOF.

        >>> map_type(STRING, struct((Field("camelCase", decimal(5, 1)),))).catalog
        'map<string,struct<camelCase:decimal(5,1)>>'
        """
        if self.name == "STRUCT":
            return f"struct<{','.join(f'{part.name}:{part.type.catalog}' for part in self.parts)}>"
        if self.collation:
            return f"string collate {self.collation}"
        return f"{self.name.lower()}<{','.join(part.type.catalog for part in self.parts)}>" if self.parts else self.sql.lower()

    @classmethod
    def parse(cls, sql: str) -> Type:
        """The type whose `sql` is this. Raises ValueError if there is none.

        >>> Type.parse("DECIMAL(10,2)") == decimal(10, 2), Type.parse("BIGINT") == BIGINT
        (True, True)
        """
        type, end = _parsed(sql, 0)
        if end != len(sql):
            raise ValueError(f"there is no type {sql}")
        return type

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGER_BITS

    @property
    def is_float(self) -> bool:
        return self.name in _EXACT_FLOAT

    @property
    def is_decimal(self) -> bool:
        return self.name == "DECIMAL"

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def has_bytes(self) -> bool:
        """Whether a value is bytes of any length, so that its word is their id, which has no order."""
        return self.kind.stored == "bytes"

    @property
    def is_limited(self) -> bool:
        """Whether it is CHAR(n) or VARCHAR(n), which only columns of tables are: an expression that reads one is a STRING."""
        return self.name in ("CHAR", "VARCHAR")

    @property
    def is_text(self) -> bool:
        """Whether its values are texts: STRING of any collation, CHAR(n) or VARCHAR(n)."""
        return self.name == "STRING" or self.is_limited

    @property
    def plain(self) -> Type:
        """The type of the same values with the collation UTF8_BINARY.

        >>> array_type(text("UTF8_LCASE")).plain.sql
        'ARRAY<STRING>'
        """
        if not self.is_collated:
            return self
        return STRING if self.collation else replace(self, parts=tuple(replace(part, type=part.type.plain) for part in self.parts))

    @property
    def read(self) -> Type:
        """What an expression that reads a column of this type is."""
        return STRING if self.is_limited else self

    @property
    def is_nested(self) -> bool:
        return self.name in NESTED

    @property
    def is_validated(self) -> bool:
        """Whether an Arrow array of it may have contents that are no values: texts that are not UTF-8, parts outside of their buffers."""
        return self.held.is_nested or pa.types.is_string(self.arrow) or pa.types.is_binary(self.arrow)

    @property
    def is_day_time(self) -> bool:
        """Whether it is an interval of days, hours, minutes or seconds: a number of microseconds."""
        return self.kind.fields is not None and self.kind.fields[0] in DAY_TIME

    @property
    def is_year_month(self) -> bool:
        """Whether it is an interval of years or months: a number of months."""
        return self.kind.fields is not None and self.kind.fields[0] in YEAR_MONTH

    @property
    def is_interval(self) -> bool:
        return self.kind.fields is not None

    @property
    def is_time(self) -> bool:
        """Whether it is TIME(p), a time of day in microseconds. As in Spark p is what casts from another TIME keep, and no bound."""
        return self.name == "TIME"

    @property
    def fields(self) -> tuple[str, str]:
        """Of an interval, the first and the last field."""
        assert self.kind.fields is not None
        return self.kind.fields

    @property
    def entries(self) -> Type:
        """Of a MAP, the ARRAY of its entries, STRUCTs of key and value; another type is itself."""
        return array_type(Type("STRUCT", parts=self.parts)) if self.name == "MAP" else self

    @property
    def held(self) -> Type:
        """What its values are to Arrow: a VARIANT a STRUCT of its two parts; another type is itself."""
        return _HELD_VARIANT if self.name == "VARIANT" else self

    def has(self, test: Callable[[Type], bool]) -> bool:
        """Whether it, or a type in it, passes the test."""
        return test(self) or any(part.type.has(test) for part in self.parts)

    @property
    def has_variant(self) -> bool:
        """Whether a VARIANT is in its values."""
        return self.name == "VARIANT" or any(part.type.has_variant for part in self.parts)

    @property
    def has_more_than_arrow(self) -> bool:
        """Whether Arrow's type does not say it: an INTERVAL, a TIME, a text with a collation, or a type with one of these in it."""
        return self.is_interval or self.is_time or self.is_collated or any(part.type.has_more_than_arrow for part in self.parts)

    @property
    def has_months(self) -> bool:
        """Whether it is an interval of years or months, or has one in it."""
        return self.is_year_month or any(part.type.has_months for part in self.parts)

    @property
    def has_map(self) -> bool:
        """Whether it is a MAP, or has one in it."""
        return self.name == "MAP" or any(part.type.has_map for part in self.parts)

    @property
    def has_zeros(self) -> bool:
        """Whether two of its values can be equal in SQL and differ: 0.0 and -0.0, also within a nested value."""
        return self.is_float or any(part.type.has_zeros for part in self.parts)

    @property
    def has_one_form(self) -> bool:
        """Whether values that are equal in SQL are the same: not so of 0.0 and -0.0, nor of texts with a collation."""
        return not self.has_zeros and not self.is_collated

    @property
    def is_ordered(self) -> bool:
        """Whether its values can be compared: a MAP and a VARIANT cannot, nor what has one in it."""
        return self.name not in ("MAP", "VARIANT") and all(part.type.is_ordered for part in self.parts)

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        return _nested_arrow(self) if self.is_nested else pa.decimal128(self.precision, self.scale) if self.is_decimal else self.kind.arrow

    @property
    def values(self) -> str:
        """What a column of this type takes, for messages."""
        if self.is_integer:
            bound = 2 ** (INTEGER_BITS[self.name] - 1)
            return f"{self.sql}, an integer from {-bound} to {bound - 1}"
        if self.is_float:
            return f"{self.sql}, a float, or an integer that {_EXACT_FLOAT[self.name]} bits hold exactly"
        if self.is_decimal:
            return f"{self.sql}, a decimal or an integer that it holds exactly"
        return f"{self.sql}, {self.kind.values}"

    def __str__(self) -> str:
        return self.sql


BOOLEAN: Final = Type("BOOLEAN")
TINYINT: Final = Type("TINYINT")
SMALLINT: Final = Type("SMALLINT")
INT: Final = Type("INT")
BIGINT: Final = Type("BIGINT")
FLOAT: Final = Type("FLOAT")
DOUBLE: Final = Type("DOUBLE")
STRING: Final = Type("STRING")
DATE: Final = Type("DATE")
TIMESTAMP: Final = Type("TIMESTAMP")
TIMESTAMP_NTZ: Final = Type("TIMESTAMP_NTZ")
BINARY: Final = Type("BINARY")
VARIANT: Final = Type("VARIANT")
_HELD_VARIANT: Final = Type("STRUCT", parts=(Field("value", BINARY, False), Field("metadata", BINARY, False)))
NULL: Final = Type("VOID")  # the type of a bare NULL
PLAIN: Final[Mapping[str, Type]] = MappingProxyType(
    {
        one.name: one
        for one in (
            *(BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, VARIANT, NULL),
            *(Type(name) for name, kind in KINDS.items() if kind.fields is not None),
        )
    }
)
"""The types without parameters, by name: one object each, since every tick compares types."""


def _restored(name: str, precision: int, scale: int, parts: tuple[Field, ...], collation: str) -> Type:
    return PLAIN[name] if name in PLAIN and not collation else Type(name, precision, scale, parts, collation)


def text(collation: str) -> Type:
    """STRING with a collation of deltic.collations.

    >>> text("UTF8_LCASE").sql, text("UTF8_BINARY").sql
    ('STRING COLLATE UTF8_LCASE', 'STRING')
    """
    return STRING if collation in ("", BINARY_NAME) else Type("STRING", collation=collation)


def limited(name: str, length: int) -> Type:
    """CHAR(length) or VARCHAR(length), 1 ≤ length < 2^31. Raises ValueError."""
    if not 1 <= length < 1 << 31:
        raise ValueError(f"there is no type {name}({length})")
    return Type(name, length)


@cache
def time_type(precision: int) -> Type:
    """TIME(precision), 0 ≤ precision ≤ 6. Raises ValueError.

    >>> time_type(3).sql
    'TIME(3)'
    """
    if not 0 <= precision <= MOST_PLACES:
        raise ValueError(f"there is no type TIME({precision})")
    return Type("TIME", precision)


MOST_PLACES: Final = 6
"""Of the seconds of a TIME."""
TIME: Final = time_type(MOST_PLACES)


def interval(start: str, end: str) -> Type:
    """The intervals from one field to another.

    >>> interval("DAY", "SECOND").sql
    'INTERVAL DAY TO SECOND'
    """
    return PLAIN[interval_word(start, end)]


INTERVALS: Final = tuple(name for name in PLAIN if KINDS[name].fields is not None)
"""The names of all types of intervals."""
DAY_TO_SECOND: Final = interval("DAY", "SECOND")
DAYS: Final = interval("DAY", "DAY")
YEAR_TO_MONTH: Final = interval("YEAR", "MONTH")


def array_type(element: Type) -> Type:
    """ARRAY<element>."""
    return Type("ARRAY", parts=(Field("element", element),))


def map_type(key: Type, value: Type) -> Type:
    """MAP<key, value>."""
    return Type("MAP", parts=(Field("key", key, False), Field("value", value)))


def struct(fields: tuple[Field, ...]) -> Type:
    """STRUCT of the fields. Raises ValueError if two have one name; case does not count."""
    names = [part.name.lower() for part in fields]
    if len(set(names)) < len(names):
        raise ValueError(f"two fields of a STRUCT are called {next(name for name in names if names.count(name) > 1)}")
    return Type("STRUCT", parts=fields)


@cache
def _nested_arrow(type: Type) -> pa.DataType:
    if type.name == "ARRAY":
        return pa.list_(pa.field("element", type.parts[0].type.arrow))
    if type.name == "MAP":
        return pa.map_(type.parts[0].type.arrow, type.parts[1].type.arrow)
    return pa.struct([pa.field(part.name, part.type.arrow, part.nullable) for part in type.parts])


def quoted(name: str) -> str:
    """The name as Spark shows it: in back quotes if it has other characters than letters, digits and _."""
    return name if _NAME.fullmatch(name) else backquoted(name)


def backquoted(name: str) -> str:
    """The name as SQL reads it, whatever its characters are."""
    return "`" + name.replace("`", "``") + "`"


DEEPEST: Final = 100
"""The most nested types within one another."""
_WORD: Final = re.compile(r"[A-Z_ ]+?(?=[^A-Z_ ]|$| COLLATE )")
_COLLATION: Final = re.compile(r" COLLATE ([A-Z0-9_]+)")
_FIELD: Final = re.compile(r"(?:([A-Za-z_][A-Za-z0-9_]*)|`((?:[^`]|``)*)`): ")
_LENGTH: Final = re.compile(r"\((\d{1,10})\)")
_DIGITS: Final = re.compile(r"\((\d{1,2}), ?(\d{1,2})\)")


def _parsed(sql: str, position: int, depth: int = 0) -> tuple[Type, int]:
    """The type at a position, and where it ends. Raises ValueError."""
    word = _WORD.match(sql, position)
    name = word[0] if word else ""
    if word is None or name not in KINDS or depth > DEEPEST:
        raise ValueError(f"there is no type {sql[:1000]}")
    end = word.end()
    if name in ("CHAR", "VARCHAR"):
        length = _LENGTH.match(sql, end)
        if length is None:
            raise ValueError(f"there is no type {sql[:1000]}")
        return limited(name, int(length[1])), length.end()
    if name == "TIME":
        places = _LENGTH.match(sql, end)
        return (TIME, end) if places is None else (time_type(int(places[1])), places.end())
    if name == "DECIMAL":
        digits = _DIGITS.match(sql, end)
        if digits is None:
            raise ValueError(f"there is no type {sql[:1000]}")
        return decimal(int(digits[1]), int(digits[2])), digits.end()
    if name == "STRING" and (collation := _COLLATION.match(sql, end)) is not None and collation[1] in COLLATIONS:
        return text(collation[1]), collation.end()
    return _parsed_parts(sql, name, end, depth) if name in NESTED else (PLAIN.get(name) or Type(name), end)


def _parsed_parts(sql: str, name: str, position: int, depth: int) -> tuple[Type, int]:
    parts: list[Field] = []
    position = _expect(sql, "<", position)
    while not sql.startswith(">", position):
        position = _expect(sql, ", ", position) if parts else position
        match = _FIELD.match(sql, position) if name == "STRUCT" else None
        if name == "STRUCT" and match is None:
            raise ValueError(f"there is no type {sql[:1000]}")
        called = "" if match is None else match[1] or match[2].replace("``", "`")
        part, position = _parsed(sql, position if match is None else match.end(), depth + 1)
        parts.append(Field(called, part))
    if name == "STRUCT":
        return struct(tuple(parts)), position + 1
    if len(parts) != (1 if name == "ARRAY" else 2):
        raise ValueError(f"there is no type {sql[:1000]}")
    return (array_type if name == "ARRAY" else map_type)(*(part.type for part in parts)), position + 1


def _expect(sql: str, mark: str, position: int) -> int:
    if not sql.startswith(mark, position):
        raise ValueError(f"there is no type {sql[:1000]}")
    return position + len(mark)


_VARIANT_FIELDS: Final = [(part.name, part.type, part.metadata) for part in VARIANT_ARROW]


def is_variant(arrow: pa.DataType) -> bool:
    """Whether it is the Arrow type of VARIANTs, or Spark's."""
    return pa.types.is_struct(arrow) and [(part.name, part.type, part.metadata) for part in arrow] == _VARIANT_FIELDS


@cache
def type_of(arrow: pa.DataType) -> Type:
    """The type whose columns have this Arrow type."""
    t = pa.types
    if is_variant(arrow):
        return VARIANT
    if t.is_struct(arrow):
        return Type("STRUCT", parts=tuple(Field(part.name, type_of(part.type)) for part in arrow))
    if t.is_list(arrow):
        return array_type(type_of(arrow.value_type))
    if t.is_map(arrow):
        return map_type(type_of(arrow.key_type), type_of(arrow.item_type))
    if t.is_decimal(arrow):
        return decimal(arrow.precision, arrow.scale)
    if t.is_time64(arrow):
        return TIME
    return next(type_ for type_ in PLAIN.values() if type_.kind.arrow == arrow)


_VARIANT_PARTS: Final = {"value", "metadata"}


def frozen(value: Any) -> Any:
    """A value from Arrow as expressions and the oracle hold it, hashable: an ARRAY as a tuple, a STRUCT as the tuple of its fields' values,
    a MAP as a tuple of pairs, a VARIANT as a Variant, which is a tuple of its parts."""
    if isinstance(value, dict):
        parts = tuple(map(frozen, value.values()))
        return Variant(*parts) if "metadata" in value and value.keys() == _VARIANT_PARTS else parts
    return tuple(map(frozen, value)) if type(value) in (list, tuple) else value


def with_variants(value: Any) -> Any:
    """A value from Arrow with a Variant for each VARIANT in it."""
    if isinstance(value, dict):
        if value.keys() == _VARIANT_PARTS:
            return Variant(value["value"], value["metadata"])
        return {name: with_variants(part) for name, part in value.items()}
    return type(value)(map(with_variants, value)) if isinstance(value, list | tuple) else value


def frozen_list(array: pa.Array | pa.ChunkedArray[Any]) -> list[Any]:
    """The values of an Arrow array, frozen."""
    values: list[Any] = array.to_pylist()
    return list(map(frozen, values)) if pa.types.is_nested(array.type) else values


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale), 1 ≤ precision ≤ 38 and 0 ≤ scale ≤ precision."""
    _check_decimal(precision, scale)
    return Type("DECIMAL", precision, scale)


def _check_decimal(precision: int, scale: int) -> None:
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise ValueError(f"there is no type DECIMAL({precision},{scale})")
