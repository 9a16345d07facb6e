"""Types, fields and schemas, and how they are called in SQL and Arrow.

A type here is Spark's. What always holds: types and schemas are immutable values, equal when they mean the same.
This module knows nothing of how values are stored (trace/encoding.py does).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

INTEGER_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


@dataclass(frozen=True, slots=True)
class Type:
    """A Spark SQL type; `precision` and `scale` are those of DECIMAL and 0 elsewhere.

    >>> decimal(10, 2).sql
    'DECIMAL(10,2)'
    """

    name: str
    precision: int = 0
    scale: int = 0

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
        """The type whose `sql` is this.

        >>> Type.parse("DECIMAL(10,2)") == decimal(10, 2), Type.parse("BIGINT") == BIGINT
        (True, True)
        """
        name, _, rest = sql.partition("(")
        if not rest:
            assert name in _ARROW
            return cls(name)
        precision, scale = map(int, rest.removesuffix(")").split(","))
        return cls(name, precision, scale)

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGER_BITS

    @property
    def is_float(self) -> bool:
        return self.name in ("FLOAT", "DOUBLE")

    @property
    def is_decimal(self) -> bool:
        return self.name == "DECIMAL"

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        return pa.decimal128(self.precision, self.scale) if self.is_decimal else _ARROW[self.name]

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
NULL: Final = Type("VOID")  # the type of a bare NULL

_ARROW: Final = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "VOID": pa.null(),
}

_CALENDAR: Final[dict[Type, tuple[datetime.date, datetime.date]]] = {
    DATE: (datetime.date.min, datetime.date.max),
    TIMESTAMP: (datetime.datetime.min.replace(tzinfo=datetime.UTC), datetime.datetime.max.replace(tzinfo=datetime.UTC)),
}
"""The first and the last value of each type that has a year."""


def outside_calendar(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> int:
    """The first row with a date or timestamp outside the years 1 to 9999, or -1. Arrow can hold these; Python cannot."""
    if type not in _CALENDAR or column.null_count == len(column):
        return -1
    first, last = (pa.scalar(end, column.type) for end in _CALENDAR[type])
    row: int = pc.index(pc.or_(pc.less(column, first), pc.greater(column, last)), True).as_py()
    return row


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale), 1 ≤ precision ≤ 38 and 0 ≤ scale ≤ precision."""
    assert 1 <= precision <= 38 and 0 <= scale <= precision
    return Type("DECIMAL", precision, scale)


@dataclass(frozen=True, slots=True)
class Field:
    """A named column."""

    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in their order. Names are case-insensitive, as in Spark; inside a query they may repeat."""

    fields: tuple[Field, ...]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, index: int) -> Field:
        return self.fields[index]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def find(self, name: str) -> tuple[int, ...]:
        """Positions of the columns called `name`."""
        wanted = name.lower()
        return tuple(i for i, field in enumerate(self.fields) if field.name.lower() == wanted)

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type.arrow, f.nullable) for f in self.fields])


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A base table: its columns and the positions of its primary key, () if it is a multiset."""

    name: str
    schema: Schema
    key: tuple[int, ...] = ()


class Op(IntEnum):
    """The operation of a row of changes, and its code.

    WEIGHT rows are a Z-set: their order does not matter, and only the sum of a tick is checked.
    """

    INSERT = 0
    DELETE_ROW = 1
    UPSERT = 2
    DELETE_KEY = 3
    UPDATE = 4
    WEIGHT = 5
