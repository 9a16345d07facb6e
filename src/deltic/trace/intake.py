"""Intake: changes of integers as words, without Arrow's or NumPy's calls for each column. What it does not take, `encoding.py` encodes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.kernels import intake
from deltic.kernels.build import CHECKED
from deltic.kernels.memory import Words
from deltic.kernels.table import address
from deltic.schema import BIGINT, Op, TableSchema
from deltic.trace.encoding import MARKER
from deltic.trace.rows import Rows

FEW: Final = 64
"""Rows of a list of dicts up to which Python's values become words one by one."""
_OPS: Final = {"insert": Op.INSERT, "i": Op.INSERT, "c": Op.INSERT, "update": Op.UPDATE, "u": Op.UPDATE, "upsert": Op.UPSERT}
WEIGHT: Final = int(Op.WEIGHT)
"""Not the member of the enumeration: numba takes 40 µs to see that it is an integer."""
_DELETES: Final = ("delete", "d")
_release: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class IntegerColumns:
    """How the rows of a table of integers become words. bounds: by column the least and the greatest value.

    widths, flags: as for the kernel. words: of a row. known: how many columns are outside the primary key.
    """

    names: tuple[str, ...]
    nullable: tuple[bool, ...]
    bounds: tuple[tuple[int, int], ...]
    widths: Words
    flags: Words
    words: int
    others: int

    @staticmethod
    def of(table: TableSchema) -> IntegerColumns | None:
        """None if a column is of another type."""
        fields = table.schema.fields
        if not all(field.type.is_integer for field in fields):
            return None
        widths = [np.dtype(field.type.kind.stored).itemsize for field in fields]
        flags = [int(field.type == BIGINT and field.nullable) for field in fields]
        bounds = tuple((-(1 << 8 * width - 1), (1 << 8 * width - 1) - 1) for width in widths)
        return IntegerColumns(
            tuple(field.name for field in fields),
            tuple(field.nullable for field in fields),
            bounds,
            np.array(widths, np.int64),
            np.array(flags, np.int64),
            len(fields) + sum(flags),
            len(fields) - len(table.key),
        )

    def of_frame(self, frame: pa.RecordBatch, ordinal: int) -> Rows | None:
        """The pending rows of a batch of the table's columns and `_weight`; None if it has NULLs, or weights of 0."""
        if CHECKED:  # Arrow's memory has no handles
            return None
        n = frame.num_rows
        exported = np.zeros(intake.ARROW_ARRAY, np.int64)
        block = np.empty((self.words + 3) * n, np.int64)
        place, first = address(exported), address(block)
        frame._export_to_c(place)
        try:
            copied = intake.copy_frame(place, self.widths, self.flags, first, WEIGHT, ordinal)
        finally:
            _release(int(exported[intake.RELEASE]))(place)
        return Rows.packed(block, first, self.words + 2, 1, n) if copied == n else None

    def of_columns(self, columns: Sequence[Sequence[int]], weights: Sequence[int], ordinal: int) -> Rows | None:
        """The pending rows of columns of numbers that fit, none of them NULL, with weights other than 0; None for a table with NULLs."""
        if any(self.nullable):
            return None
        n = len(weights)
        block = np.array([*columns, [WEIGHT] * n, range(ordinal, ordinal + n), weights], np.int64).reshape(-1)
        return Rows.packed(block, address(block), self.words + 2, 1, n)

    def of_dicts(self, rows: Sequence[Any], ordinal: int, *, keyed: bool) -> Rows | None:
        """The pending rows of a few dicts with exactly the table's columns, and each with `_weight` or each with `_op`; None for others.

        keyed: whether the table has a primary key.
        """
        n = len(rows)
        if not 0 < n <= FEW:
            return None
        mark = "_weight" if type(rows[0]) is dict and "_weight" in rows[0] else "_op"
        columns: list[list[int]] = [[] for _ in range(self.words + 3)]
        for number, row in enumerate(rows):
            words = self._row(row, mark, keyed)
            if words is None:
                return None
            words[-2] = ordinal + number
            for column, word in zip(columns, words, strict=True):
                column.append(word)
        block = np.array(columns, np.int64).reshape(-1)
        return Rows.packed(block, address(block), self.words + 2, 1, n)

    def _row(self, row: Any, mark: str, keyed: bool) -> list[int] | None:
        """The words of a row, the op, 0, and the weight."""
        if type(row) is not dict or len(row) != len(self.names) + 1 or mark not in row:
            return None
        words: list[int] = []
        for name, nullable, (least, most), flagged in zip(self.names, self.nullable, self.bounds, self.flags.tolist(), strict=True):
            value = row.get(name, "")
            if type(value) is int and least <= value <= most:
                words += (1, value) if flagged else (value,)
            elif value is None and nullable:
                words += (0, 0) if flagged else (int(MARKER),)
            else:
                return None
        marked = self._mark(row, mark, keyed)
        return None if marked is None else [*words, marked[0], 0, marked[1]]

    def _mark(self, row: Mapping[str, Any], mark: str, keyed: bool) -> tuple[int, int] | None:
        """The op and the weight."""
        value = row[mark]
        if mark == "_weight":
            return (WEIGHT, value) if type(value) is int and value and -(2**63) <= value < 2**63 else None
        if type(value) is not str:
            return None
        if value in _DELETES:  # of a row with other columns that are not NULL, so not by its key
            others = keyed and self.others and None not in row.values()
            return (int(Op.DELETE_ROW), 1) if others else None
        op = _OPS.get(value)
        return None if op is None or (op is not Op.INSERT and not keyed) else (int(op), 1)
