"""A few rows of Python's values as words, one by one, since to make a frame of them costs more than a small tick.

What always holds: the words are those of `encoding.py`. Values of other types than a column's usual one, values that do not fit, and rows
that a table refuses are left to the general path, which takes them or says why it does not.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from deltic.kernels.floats import ordered
from deltic.kernels.table import address
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER_BITS, OPERATIONS, STRING, TIMESTAMP, TIMESTAMP_NTZ, Field, Op, TableSchema
from deltic.trace.encoding import MARKER, NEGATIVE_ZERO, Layout
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable
from deltic.trace.sums import NARROW

FEW: Final = 64
"""Rows up to which Python's values become words one by one."""
WEIGHT: Final = int(Op.WEIGHT)
"""Not the member of the enumeration, which numba and comparisons take longer for."""
EXACT: Final = 1 << 53
"""Integers of no greater magnitude are doubles."""
_NULL: Final = int(MARKER)
_DAY_0: Final = date(1970, 1, 1).toordinal()
_START, _LOCAL_START = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
_DOUBLE, _LONG = struct.Struct("<d"), struct.Struct("<q")

Convert = Callable[[Any], tuple[int, ...] | None]
"""The words of a value that is not None; None for one that is left to the general path."""


class _DictColumn(NamedTuple):
    """null: the words of NULL; None if there is none. place: of its first word."""

    name: str
    null: tuple[int, ...] | None
    convert: Convert
    place: int


@dataclass(frozen=True, slots=True)
class DictColumns:
    """How a few rows of a table become words.

    key: the columns of the primary key, in its order. texts: those of strings. words: of a row. others: how many columns are outside the
    key. blank: the words of a row without values. integers: whether all columns are NOT NULL integers.
    """

    columns: tuple[_DictColumn, ...]
    key: tuple[_DictColumn, ...]
    texts: tuple[_DictColumn, ...]
    words: int
    others: int
    blank: tuple[int, ...]
    integers: bool

    @staticmethod
    def of(table: TableSchema) -> DictColumns | None:
        """None if a column is of a type whose values are left to the general path."""
        layout, fields = Layout.of(table.schema), table.schema.fields
        columns = []
        for i, (field, part) in enumerate(zip(fields, layout.slices, strict=True)):
            convert = _convert(field, i in table.key)
            if convert is None:
                return None
            flagged = field.type == BIGINT and field.nullable
            null = (0, 0) if flagged else (_NULL, *[0] * (part.stop - part.start - 1))
            columns.append(_DictColumn(field.name, null if field.nullable else None, convert, part.start))
        return DictColumns(
            tuple(columns),
            tuple(columns[i] for i in table.key),
            tuple(column for column, field in zip(columns, fields, strict=True) if field.type == STRING),
            layout.width,
            len(fields) - len(table.key),
            tuple(layout.blank().tolist()),
            all(field.type.is_integer and not field.nullable for field in fields),
        )

    def of_columns(self, columns: Sequence[Sequence[int]], weights: Sequence[int], ordinal: int) -> Rows | None:
        """The pending rows of columns of numbers that fit, with weights other than 0; None for a table of other columns."""
        if not self.integers:
            return None
        n = len(weights)
        return _packed([*columns, [WEIGHT] * n, range(ordinal, ordinal + n), weights], self.words)

    def of_dicts(self, rows: Sequence[Any], ordinal: int, strings: StringTable, *, keyed: bool, op: int | None = None) -> Rows | None:
        """The pending rows of a few dicts with exactly the table's columns, and each with `_weight` or each with `_op`; None for others.

        keyed: whether the table has a primary key. op: that of all, which then have no mark. Raises CollidingStrings.
        """
        if not 0 < len(rows) <= FEW:
            return None
        mark = None if op is not None else "_weight" if type(rows[0]) is dict and "_weight" in rows[0] else "_op"
        listed = []
        for number, row in enumerate(rows):
            words = self._row(row, mark, keyed)
            if words is None:
                return None
            if op is not None:
                words[-3] = op
            words[-2] = ordinal + number
            listed.append(words)
        texts = [(column.place, [row[column.name] for row in rows]) for column in self.texts]
        return self._interned(listed, texts, strings)

    def of_keys(self, keys: Sequence[Any], ordinal: int, strings: StringTable) -> Rows | None:
        """Deletes by a few keys: values, or tuples of them if the key has several columns; None for others. Raises CollidingStrings."""
        if not 0 < len(keys) <= FEW:
            return None
        given = [(key,) for key in keys] if len(self.key) == 1 else keys
        listed = []
        for number, key in enumerate(given):
            words = [*self.blank, int(Op.DELETE_KEY), ordinal + number, 1]
            if type(key) is not tuple or len(key) != len(self.key):
                return None
            for column, value in zip(self.key, key, strict=True):
                converted = None if value is None else column.convert(value)
                if converted is None:
                    return None
                words[column.place : column.place + len(converted)] = converted
            listed.append(words)
        texts = [(column.place, [key[i] for key in given]) for i, column in enumerate(self.key) if column in self.texts]
        return self._interned(listed, texts, strings)

    def _interned(self, listed: list[list[int]], texts: list[tuple[int, list[Any]]], strings: StringTable) -> Rows | None:
        """The rows, with the ids of strings. texts: the position of the word, and the strings."""
        columns: list[Sequence[int]] = list(zip(*listed, strict=True))
        for place, values in texts:
            try:
                column = _strings(values)
            except (UnicodeError, OverflowError):  # a lone surrogate, or more than 2 GiB
                return None
            columns[place] = strings.intern(column).tolist()
        return _packed(columns, self.words)

    def _row(self, row: Any, mark: str | None, keyed: bool) -> list[int] | None:
        """The words of a row, the op, 0, and the weight; of a row without a mark that of an insert. Those of strings are to be replaced."""
        if type(row) is not dict or len(row) != len(self.columns) + (mark is not None) or (mark is not None and mark not in row):
            return None
        words: list[int] = []
        for name, null, convert, _ in self.columns:
            value = row.get(name, self)  # no value of a row is this object
            converted = null if value is None else convert(value)
            if converted is None:
                return None
            words += converted
        marked = (0, 1) if mark is None else self._mark(row, mark, keyed)
        return None if marked is None else [*words, marked[0], 0, marked[1]]

    def _mark(self, row: Mapping[str, Any], mark: str, keyed: bool) -> tuple[int, int] | None:
        """The op and the weight."""
        value = row[mark]
        if mark == "_weight":
            return (WEIGHT, value) if type(value) is int and value and -(2**63) <= value < 2**63 else None
        if type(value) is not str:
            return None
        op = OPERATIONS.get(value)
        if op is None or not (keyed or op is Op.INSERT):
            return None
        if op is Op.DELETE_ROW and (not self.others or None in row.values()):  # by its key, if its other columns are NULL
            return None
        return int(op), 1


def _strings(values: Sequence[str | None]) -> pa.StringArray:
    """As `pa.array`, in a third of the time. Raises UnicodeError, OverflowError."""
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = pa.py_buffer(array("i", accumulate(map(len, encoded), initial=0)))
    valid = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little")) if None in values else None
    return pa.Array.from_buffers(pa.string(), len(values), [valid, offsets, pa.py_buffer(b"".join(encoded))])


def _packed(columns: Sequence[Sequence[int]], words: int) -> Rows:
    block = np.array(columns, np.int64)
    n, flat = block.shape[1], block.reshape(-1)
    return Rows.packed(flat, address(flat), words + 2, 1, n)


def _convert(field: Field, in_key: bool) -> Convert | None:
    """How a column's values become words; None if the general path converts all."""
    type_ = field.type
    if type_.is_integer:
        return _integer(INTEGER_BITS[type_.name], flagged=type_ == BIGINT and field.nullable)
    if type_.is_decimal:
        return _decimal(type_.precision, type_.scale)
    if type_ == DOUBLE:
        return _double(0 if in_key else int(NEGATIVE_ZERO))
    return _CONVERTS.get(type_.name) if type_ in (BOOLEAN, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ) else None


def _integer(bits: int, *, flagged: bool) -> Convert:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1

    def convert(value: Any) -> tuple[int, ...] | None:
        if type(value) is not int or not least <= value <= most:
            return None
        return (1, value) if flagged else (value,)

    return convert


def _double(negative_zero: int) -> Convert:
    def convert(value: Any) -> tuple[int, ...] | None:
        if type(value) is int and -EXACT <= value <= EXACT:
            value = float(value)
        if type(value) is not float:
            return None
        word = ordered(*_LONG.unpack(_DOUBLE.pack(value)))
        return (negative_zero if word == NEGATIVE_ZERO else word,)

    return convert


def _decimal(precision: int, scale: int) -> Convert:
    bound = 10**precision

    def convert(value: Any) -> tuple[int, ...] | None:
        if type(value) is int:
            value = Decimal(value)
        if type(value) is not Decimal or not value.is_finite():
            return None
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        if not 0 <= scale + exponent <= precision or len(digits) > precision:
            return None
        number = int("".join(map(str, digits))) * 10 ** (scale + exponent)
        if number >= bound:
            return None
        number = -number if sign else number
        return (number,) if precision <= NARROW else (number >> 64, (number & 2**64 - 1) - 2**63)

    return convert


def _boolean(value: Any) -> tuple[int, ...] | None:
    return (int(value),) if type(value) is bool else None


def _date(value: Any) -> tuple[int, ...] | None:
    return (value.toordinal() - _DAY_0,) if type(value) is date else None


def _timestamp(value: Any) -> tuple[int, ...] | None:
    if type(value) is not datetime or value.utcoffset() is None:
        return None
    words = _microseconds(value, _START)
    return words if _FIRST <= words <= _LAST else None  # in UTC its year may be 0 or 10000


def _local_timestamp(value: Any) -> tuple[int, ...] | None:
    return _microseconds(value, _LOCAL_START) if type(value) is datetime and value.tzinfo is None else None


def _microseconds(value: datetime, start: datetime) -> tuple[int, ...]:
    since = value - start
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds,)


_FIRST, _LAST = _microseconds(datetime.min, _LOCAL_START), _microseconds(datetime.max, _LOCAL_START)


def _text(value: Any) -> tuple[int, ...] | None:
    """A place for its id."""
    return (0,) if type(value) is str else None


_CONVERTS: Final[Mapping[str, Convert]] = {
    "BOOLEAN": _boolean,
    "DATE": _date,
    "STRING": _text,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_NTZ": _local_timestamp,
}
