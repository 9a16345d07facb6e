"""Types: one record for each kind, with all that other rooms ask of it.

A type here is Spark's. What always holds: types are immutable values, equal when they mean the same, and `Type.parse` reads what
`Type.sql` writes. How a kind looks in SQL, in Arrow, in Python, in words and in messages stands in its record (`KINDS`) and nowhere else;
trace/encoding.py makes words of it, expr/functions what can be computed with it.
"""

from __future__ import annotations

import datetime
import decimal as decimals
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Self
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
    TypeKind(("VOID",), pa.null(), "none", (), "nothing but NULL", None),
)
KINDS: Final[Mapping[str, TypeKind]] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By Spark's name."""
KIND_WORDS: Final[Mapping[str, TypeKind]] = MappingProxyType({word: kind for kind in _ALL for word in kind.words if word != "VOID"})
"""By what SQL calls it in the declaration of a column."""
INTEGER_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EXACT_FLOAT: Final = {"FLOAT": 24, "DOUBLE": 53}


@dataclass(frozen=True, slots=True)
class Type:
    """A Spark SQL type; `precision` and `scale` are those of DECIMAL and 0 elsewhere.

    >>> decimal(10, 2).sql
    'DECIMAL(10,2)'
    """

    name: str
    precision: int = 0
    scale: int = 0
    kind: TypeKind = field(init=False, compare=False, repr=False)
    """What it has in common with all types of its name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", KINDS[self.name])

    def __reduce__(self) -> tuple[Any, ...]:
        return Type, (self.name, self.precision, self.scale)

    def __eq__(self, other: object) -> bool:
        """The generated comparison, with a shortcut for the same object: every tick compares types many times."""
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        return (self.name, self.precision, self.scale) == (other.name, other.precision, other.scale)

    def __hash__(self) -> int:
        return hash((self.name, self.precision, self.scale))

    @property
    def sql(self) -> str:
        """As Spark spells it."""
        return f"DECIMAL({self.precision},{self.scale})" if self.is_decimal else self.name

    @classmethod
    def parse(cls, sql: str) -> Self:
        """The type whose `sql` is this. Raises ValueError if there is none.

        >>> Type.parse("DECIMAL(10,2)") == decimal(10, 2), Type.parse("BIGINT") == BIGINT
        (True, True)
        """
        name, _, rest = sql.partition("(")
        if name not in KINDS or bool(rest) != (name == "DECIMAL"):
            raise ValueError(f"there is no type {sql}")
        if not rest:
            return cls(name)
        precision, scale = map(int, rest.removesuffix(")").split(","))
        _check_decimal(precision, scale)
        return cls(name, precision, scale)

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
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        return pa.decimal128(self.precision, self.scale) if self.is_decimal else self.kind.arrow

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


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale), 1 ≤ precision ≤ 38 and 0 ≤ scale ≤ precision."""
    _check_decimal(precision, scale)
    return Type("DECIMAL", precision, scale)


def _check_decimal(precision: int, scale: int) -> None:
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise ValueError(f"there is no type DECIMAL({precision},{scale})")


def outside_calendar(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> int:
    """The first row with a date or timestamp outside the years 1 to 9999, or -1. Arrow can hold these; Python cannot."""
    if type.kind.ends is None or column.null_count == len(column):
        return -1
    first, last = (pa.scalar(end, column.type) for end in type.kind.ends)
    row: int = pc.index(pc.or_(pc.less(column, first), pc.greater(column, last)), True).as_py()
    return row
