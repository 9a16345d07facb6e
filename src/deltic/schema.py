"""Fields and schemas, and the operations of rows of changes. The types are defined in deltic.types and exported here too.

Invariant: schemas are immutable values, equal when they mean the same.
How values are stored is defined in trace/encoding.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import IntEnum
from typing import Final, TypeAlias

import pyarrow as pa

from deltic.errors import UnknownName
from deltic.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DAYS,
    DOUBLE,
    FLOAT,
    INT,
    INTEGER_BITS,
    NULL,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    YEAR_TO_MONTH,
    Field,
    Type,
    decimal,
    interval,
    time_type,
)

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DAYS",
    "DAY_TO_SECOND",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTEGER_BITS",
    "NULL",
    "SMALLINT",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "TINYINT",
    "VARIANT",
    "YEAR_TO_MONTH",
    "Field",
    "Forms",
    "Lateness",
    "Op",
    "Schema",
    "StreamSchema",
    "TableForm",
    "TableSchema",
    "Type",
    "decimal",
    "folded",
    "interval",
    "time_type",
]


TYPE: Final = "deltic.type"
"""The metadata of an Arrow field with the name of its type."""


def folded(name: object, kind: str) -> str:
    """A user's name of a table, view or column, in lower case: names are case-insensitive. Raises UnknownName if it is not a string."""
    if not isinstance(name, str):
        raise UnknownName(f"invalid name {name!r} of a {kind}", expected="a string")
    return name.lower()


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

    def __str__(self) -> str:
        """As in CREATE TABLE: (id BIGINT NOT NULL, name STRING)."""
        return f"({', '.join(f'{field.name} {field.type.sql}' + ('' if field.nullable else ' NOT NULL') for field in self.fields)})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def find(self, name: str) -> tuple[int, ...]:
        """Positions of the columns called `name`."""
        lowered = name.lower()
        return tuple(i for i, field in enumerate(self.fields) if field.name.lower() == lowered)

    @property
    def unnamed(self) -> tuple[tuple[Type, bool], ...]:
        """The type and the nullability of each column."""
        return tuple((field.type, field.nullable) for field in self.fields)

    @property
    def nullable(self) -> Schema:
        """The columns, any of which may be NULL."""
        return Schema(tuple(Field(field.name, field.type, True) for field in self.fields))

    def with_nulls_of(self, other: Schema) -> Schema:
        """The columns, each nullable where that of `other` in its place is."""
        fields = zip(self.fields, other.fields, strict=True)
        return Schema(tuple(Field(field.name, field.type, field.nullable or beside.nullable) for field, beside in fields))

    @property
    def read(self) -> Schema:
        """As expressions read it: CHAR(n) and VARCHAR(n) are STRING."""
        if not any(field.type.is_limited for field in self.fields):
            return self
        return Schema(tuple(Field(field.name, field.type.read, field.nullable) for field in self.fields))

    @property
    def arrow(self) -> pa.Schema:
        """With the name of a type beside it where Arrow's type does not say it: an INTERVAL's, a TIME's, and one with a collation."""
        return pa.schema(
            [pa.field(f.name, f.type.arrow, f.nullable, {TYPE: f.type.sql} if f.type.has_more_than_arrow else None) for f in self.fields]
        )


_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late the rows of a table may be, by a column of type TIMESTAMP, DATE or a whole number: its position, and microseconds, or units
    of the number.

    The watermark of the table is the greatest value that the column has had, less the delay. Rows before it are rejected, and so are those
    more than `ahead`, if given, after the clock of the machine; of a number, after the greatest value of the ticks before.
    """

    column: int
    delay: int
    ahead: int | None = None

    def __post_init__(self) -> None:
        assert self.delay >= 0
        assert self.ahead is None or self.ahead >= 0


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A base table: its columns and the positions of its primary key, () if it is a multiset.

    lateness: None if rows are never late. It does not belong to the rows, so a table may change it.
    """

    name: str
    schema: Schema
    key: tuple[int, ...] = ()
    lateness: Lateness | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        assert self.lateness is None or not self.key

    def shown_time(self, value: int) -> str:
        """A value or watermark of the column with LATENESS: a whole number, or a time from microseconds since 1970 UTC."""
        assert self.lateness is not None
        type_ = self.schema[self.lateness.column].type
        if type_.is_integer:
            return str(value)
        try:
            moment = _EPOCH + timedelta(microseconds=value)
        except OverflowError:
            return f"{value} µs"
        return str(moment.date() if type_ == DATE and moment.time() == time() else moment)


@dataclass(frozen=True, slots=True)
class StreamSchema(TableSchema):
    """A stream: it holds only the rows that the current tick inserts, and has no key."""

    def __post_init__(self) -> None:
        assert not self.key


@dataclass(frozen=True, slots=True)
class TableForm:
    """The columns that a table has or had. numbers: of each its number, which it keeps while other columns come and go."""

    table: TableSchema
    numbers: tuple[int, ...]


Forms: TypeAlias = tuple[TableForm, ...]
"""Those of a table that was altered, from the first to its own."""


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


OPERATIONS: Final = {
    "insert": Op.INSERT,
    "i": Op.INSERT,
    "c": Op.INSERT,
    "create": Op.INSERT,
    "update": Op.UPDATE,
    "u": Op.UPDATE,
    "upsert": Op.UPSERT,
    "delete": Op.DELETE_ROW,
    "d": Op.DELETE_ROW,
}
"""By the names in `_op`, in lower case."""
KNOWN_OPERATIONS: Final = "insert, update, delete or upsert (or i, u, d, c)"
