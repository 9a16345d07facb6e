"""Types: one record for each kind, with all that other rooms ask of it.

A type here is Spark's. What always holds: types are immutable values, equal when they mean the same, and `Type.parse` reads what
`Type.sql` writes. How a kind looks in SQL, in Arrow, in Python, in words and in messages stands in its record (`KINDS`) and nowhere else;
trace/encoding.py makes words of it, expr/functions what can be computed with it.
"""

from __future__ import annotations

import datetime
import decimal as decimals
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Final
from typing import Literal as OneOf

import pyarrow as pa
import pyarrow.compute as pc

Stored = OneOf["bits", "i1", "i2", "i4", "i8", "f4", "f8", "decimal", "bytes", "none"]
"""What a value is in Arrow's buffer: a bit, a number of NumPy's dtype, 16 bytes of a DECIMAL; or bytes of any length, or nothing at all."""


@dataclass(frozen=True, slots=True)
class TypeKind:
    """What all types of one name have in common.

    words: how SQL calls it, Spark's own name first. arrow: the Arrow type of a column; None where it depends on the type's parameters.
    stored: of a value in Arrow. A kind of `bytes` has values of any length: a value's word is the id of its bytes (trace/strings.py).
    python: the classes whose values may be values of it. values: what it takes, for messages; None for numbers, which say their range.
    zero: any value of it. ends: its first and last value, where it has a year.
    """

    words: tuple[str, ...]
    arrow: pa.DataType | None
    stored: Stored
    python: tuple[type, ...]
    values: str | None = None
    zero: Any = 0
    ends: tuple[Any, Any] | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.words[0]


_LAST_MOMENT: Final = datetime.datetime.max.replace(tzinfo=datetime.UTC)
_FIRST_MOMENT: Final = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_ALL: Final = (
    TypeKind(("BOOLEAN",), pa.bool_(), "bits", (bool,), "true or false", False),
    TypeKind(("TINYINT", "BYTE"), pa.int8(), "i1", (int,)),
    TypeKind(("SMALLINT", "SHORT"), pa.int16(), "i2", (int,)),
    TypeKind(("INT", "INTEGER"), pa.int32(), "i4", (int,)),
    TypeKind(("BIGINT", "LONG"), pa.int64(), "i8", (int,)),
    TypeKind(("FLOAT", "REAL"), pa.float32(), "f4", (float, int)),
    TypeKind(("DOUBLE",), pa.float64(), "f8", (float, int)),
    TypeKind(("DECIMAL", "DEC", "NUMERIC"), None, "decimal", (decimals.Decimal, int)),
    TypeKind(("STRING",), pa.string(), "bytes", (str,), "text in UTF-8", ""),
    TypeKind(("VARCHAR",), pa.string(), "bytes", (str,), "text of at most so many characters", ""),
    TypeKind(("CHAR", "CHARACTER"), pa.string(), "bytes", (str,), "text of at most so many characters, filled with blanks", ""),
    TypeKind(("BINARY",), pa.binary(), "bytes", (bytes, bytearray), "bytes", b""),
    TypeKind(("DATE",), pa.date32(), "i4", (datetime.date,), "a date without a time", 0, (datetime.date.min, datetime.date.max)),
    TypeKind(
        ("TIMESTAMP", "TIMESTAMP_LTZ"),
        pa.timestamp("us", tz="UTC"),
        "i8",
        (datetime.datetime,),
        "a date with a time in whole microseconds, in UTC if it names no zone",
        0,
        (_FIRST_MOMENT, _LAST_MOMENT),
    ),
    TypeKind(
        ("TIMESTAMP_NTZ", "TIMESTAMP WITHOUT TIME ZONE"),
        pa.timestamp("us"),
        "i8",
        (datetime.datetime,),
        "a date with a time in whole microseconds, without a zone",
        0,
        (datetime.datetime.min, datetime.datetime.max),
    ),
    TypeKind(("ARRAY",), None, "bytes", (list, tuple), "a list", []),
    TypeKind(("MAP",), None, "bytes", (dict, list, tuple), "a dict, or pairs of keys and values", []),
    TypeKind(("STRUCT",), None, "bytes", (dict, tuple), "a dict with its fields"),
    TypeKind(("VOID",), pa.null(), "none", (), "nothing but NULL", None),
)
KINDS: Final[Mapping[str, TypeKind]] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By Spark's name."""
KIND_WORDS: Final[Mapping[str, TypeKind]] = MappingProxyType({word: kind for kind in _ALL for word in kind.words if word != "VOID"})
"""By what SQL calls it in the declaration of a column."""
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


@dataclass(frozen=True, slots=True)
class Type:
    """A Spark SQL type; `precision` and `scale` are those of DECIMAL and 0 elsewhere.

    parts: of an ARRAY its element, of a MAP its key and value, of a STRUCT its fields; a part may be NULL, but for a key.

    >>> decimal(10, 2).sql, array_type(struct((Field("a", INT), Field("b c", STRING)))).sql
    ('DECIMAL(10,2)', 'ARRAY<STRUCT<a: INT, `b c`: STRING>>')
    """

    name: str
    precision: int = 0
    scale: int = 0
    parts: tuple[Field, ...] = ()
    kind: TypeKind = field(init=False, compare=False, repr=False)
    """What it has in common with all types of its name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", KINDS[self.name])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.name, self.precision, self.scale, self.parts)

    def __eq__(self, other: object) -> bool:
        """The generated comparison, with a shortcut for the same object: every tick compares types many times."""
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        return (self.name, self.precision, self.scale, self.parts) == (other.name, other.precision, other.scale, other.parts)

    def __hash__(self) -> int:
        return hash((self.name, self.precision, self.scale, self.parts))

    @property
    def sql(self) -> str:
        """As Spark spells it."""
        if self.name == "STRUCT":
            return f"STRUCT<{', '.join(f'{_quoted(part.name)}: {part.type.sql}' for part in self.parts)}>"
        if self.parts:
            return f"{self.name}<{', '.join(part.type.sql for part in self.parts)}>"
        if self.is_limited:
            return f"{self.name}({self.precision})"
        return f"DECIMAL({self.precision},{self.scale})" if self.is_decimal else self.name

    @property
    def catalog(self) -> str:
        """As Spark's catalog spells it, and TYPEOF.

        >>> map_type(STRING, struct((Field("camelCase", decimal(5, 1)),))).catalog
        'map<string,struct<camelCase:decimal(5,1)>>'
        """
        if self.name == "STRUCT":
            return f"struct<{','.join(f'{part.name}:{part.type.catalog}' for part in self.parts)}>"
        return f"{self.name.lower()}<{','.join(part.type.catalog for part in self.parts)}>" if self.parts else self.sql.lower()

    @classmethod
    def parse(cls, sql: str) -> Type:
        """The type whose `sql` is this. Raises ValueError if there is none.

        >>> Type.parse("DECIMAL(10,2)") == decimal(10, 2), Type.parse("BIGINT") == BIGINT
        (True, True)
        """
        found, end = _parsed(sql, 0)
        if end != len(sql):
            raise ValueError(f"there is no type {sql}")
        return found

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
    def read(self) -> Type:
        """What an expression that reads a column of this type is."""
        return STRING if self.is_limited else self

    @property
    def is_nested(self) -> bool:
        return self.name in NESTED

    @property
    def entries(self) -> Type:
        """Of a MAP, the ARRAY of its entries, STRUCTs of key and value; another type is itself."""
        return array_type(Type("STRUCT", parts=self.parts)) if self.name == "MAP" else self

    @property
    def has_zeros(self) -> bool:
        """Whether two of its values can be equal in SQL and differ: 0.0 and -0.0, also within a nested value."""
        return self.is_float or any(part.type.has_zeros for part in self.parts)

    @property
    def is_ordered(self) -> bool:
        """Whether its values can be compared: a MAP cannot, nor what has one in it."""
        return self.name != "MAP" and all(part.type.is_ordered for part in self.parts)

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
NULL: Final = Type("VOID")  # the type of a bare NULL
PLAIN: Final[Mapping[str, Type]] = MappingProxyType(
    {
        one.name: one
        for one in (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, NULL)
    }
)
"""The types without parameters, by name: one object each, since every tick compares types."""


def _restored(name: str, precision: int, scale: int, parts: tuple[Field, ...]) -> Type:
    return PLAIN[name] if name in PLAIN else Type(name, precision, scale, parts)


def limited(name: str, length: int) -> Type:
    """CHAR(length) or VARCHAR(length), 1 ≤ length < 2^31. Raises ValueError."""
    if not 1 <= length < 1 << 31:
        raise ValueError(f"there is no type {name}({length})")
    return Type(name, length)


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


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


_DEEPEST: Final = 100
_WORD: Final = re.compile(r"[A-Z_ ]+")
_FIELD: Final = re.compile(r"(?:([A-Za-z_][A-Za-z0-9_]*)|`((?:[^`]|``)*)`): ")
_LENGTH: Final = re.compile(r"\((\d{1,10})\)")
_DIGITS: Final = re.compile(r"\((\d{1,2}), ?(\d{1,2})\)")


def _parsed(sql: str, at: int, depth: int = 0) -> tuple[Type, int]:
    """The type at a position, and where it ends. Raises ValueError."""
    word = _WORD.match(sql, at)
    name = word[0] if word else ""
    if word is None or name not in KINDS or depth > _DEEPEST:
        raise ValueError(f"there is no type {sql[:1000]}")
    end = word.end()
    if name in ("CHAR", "VARCHAR"):
        length = _LENGTH.match(sql, end)
        if length is None:
            raise ValueError(f"there is no type {sql[:1000]}")
        return limited(name, int(length[1])), length.end()
    if name == "DECIMAL":
        digits = _DIGITS.match(sql, end)
        if digits is None:
            raise ValueError(f"there is no type {sql[:1000]}")
        return decimal(int(digits[1]), int(digits[2])), digits.end()
    return _parsed_parts(sql, name, end, depth) if name in NESTED else (PLAIN.get(name) or Type(name), end)


def _parsed_parts(sql: str, name: str, at: int, depth: int) -> tuple[Type, int]:
    parts: list[Field] = []
    at = _expect(sql, "<", at)
    while not sql.startswith(">", at):
        at = _expect(sql, ", ", at) if parts else at
        found = _FIELD.match(sql, at) if name == "STRUCT" else None
        if name == "STRUCT" and found is None:
            raise ValueError(f"there is no type {sql[:1000]}")
        called = "" if found is None else found[1] or found[2].replace("``", "`")
        part, at = _parsed(sql, at if found is None else found.end(), depth + 1)
        parts.append(Field(called, part))
    if name == "STRUCT":
        return struct(tuple(parts)), at + 1
    if len(parts) != (1 if name == "ARRAY" else 2):
        raise ValueError(f"there is no type {sql[:1000]}")
    return (array_type if name == "ARRAY" else map_type)(*(part.type for part in parts)), at + 1


def _expect(sql: str, mark: str, at: int) -> int:
    if not sql.startswith(mark, at):
        raise ValueError(f"there is no type {sql[:1000]}")
    return at + len(mark)


@cache
def type_of(arrow: pa.DataType) -> Type:
    """The type whose columns have this Arrow type."""
    t = pa.types
    if t.is_struct(arrow):
        return Type("STRUCT", parts=tuple(Field(part.name, type_of(part.type)) for part in arrow))
    if t.is_list(arrow):
        return array_type(type_of(arrow.value_type))
    if t.is_map(arrow):
        return map_type(type_of(arrow.key_type), type_of(arrow.item_type))
    if t.is_decimal(arrow):
        return decimal(arrow.precision, arrow.scale)
    return next(type_ for type_ in PLAIN.values() if type_.kind.arrow == arrow)


def frozen(value: Any) -> Any:
    """A value from Arrow as expressions and the oracle hold it, hashable: an ARRAY as a tuple, a STRUCT as the tuple of its fields' values,
    a MAP as a tuple of pairs."""
    if isinstance(value, dict):
        return tuple(map(frozen, value.values()))
    return tuple(map(frozen, value)) if type(value) in (list, tuple) else value


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


def has_distinct_keys(value: Any, type: Type) -> bool:
    """Whether no MAP in a frozen value has a key that is NULL or comes twice."""
    if value is None or not type.is_nested:
        return True
    if type.name == "STRUCT":
        return all(has_distinct_keys(part, f.type) for part, f in zip(value, type.parts, strict=True))
    if type.name == "ARRAY":
        return all(has_distinct_keys(part, type.parts[0].type) for part in value)
    keys = {key for key, _ in value}
    return None not in keys and len(keys) == len(value) and all(has_distinct_keys(item, type.parts[1].type) for _, item in value)


def outside_calendar(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> int:
    """The first row with a date or timestamp outside the years 1 to 9999, or -1. Arrow can hold these; Python cannot."""
    if type.is_nested:
        return _outside_in_parts(type, column) if _has_calendar(type) else -1
    if type.kind.ends is None or column.null_count == len(column):
        return -1
    first, last = (pa.scalar(end, column.type) for end in type.kind.ends)
    row: int = pc.index(pc.or_(pc.less(column, first), pc.greater(column, last)), True).as_py()
    return row


@cache
def _has_calendar(type: Type) -> bool:
    return type.kind.ends is not None or any(_has_calendar(part.type) for part in type.parts)


def _outside_in_parts(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> int:
    """As `outside_calendar`, of a nested type."""
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) and column.num_chunks else column
    if type.name == "MAP":
        return _outside_in_parts(type.entries, array.cast(type.entries.arrow))
    if type.name == "STRUCT":
        rows = [outside_calendar(part.type, values) for part, values in zip(type.parts, array.flatten(), strict=True)]
        return min((row for row in rows if row >= 0), default=-1)
    element = outside_calendar(type.parts[0].type, array.flatten())
    return -1 if element < 0 else int(pc.list_parent_indices(array)[element].as_py())
