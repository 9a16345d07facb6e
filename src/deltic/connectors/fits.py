"""Whether the columns of a frame are those of a table: answered once for each Arrow schema, since names and types take longer to compare
than all else on a frame of few rows.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from deltic.connectors.fitting import fit
from deltic.schema import TableSchema, Type

OP_COLUMN: Final = "_op"
WEIGHT_COLUMN: Final = "_weight"
Verdict: TypeAlias = Literal["rows", "weighted", "operations", "no"]


class Fit(NamedTuple):
    """How the columns of a frame are those of a table: exactly, alone or followed by an int64 `_weight` or by a text `_op`, or not.

    others: the positions of columns that have another Arrow type than the table's. narrow: those of them that are of integers with
    fewer bytes than the table's, and how many bytes. wide: whether there are others that are not narrow.
    """

    table: TableSchema
    frame: pa.Schema
    verdict: Verdict
    others: tuple[int, ...]
    narrow: Mapping[int, int]
    wide: bool


# Kept for the last schema of each table: comparing names and types costs more than all else on a frame that fits.
_kept: dict[int, Fit] = {}
_MOST_KEPT: Final = 1024


def fit_of(frame: pa.Schema, table: TableSchema) -> Fit:
    kept = _kept.get(id(table))
    if kept is not None and kept.table is table and kept.frame.equals(frame):
        return kept
    names = list(table.schema.names)
    verdict: Verdict = "rows" if frame.names == names else "no"
    if frame.names == [*names, WEIGHT_COLUMN] and frame.field(len(names)).type == pa.int64():
        verdict = "weighted"
    elif frame.names == [*names, OP_COLUMN] and pa.types.is_string(frame.field(len(names)).type):
        verdict = "operations"
    others = () if verdict == "no" else tuple(i for i, field in enumerate(table.schema) if frame.field(i).type != field.type.arrow)
    if others and any(field.type.held.is_nested for field in table.schema):
        verdict, others = "no", ()  # `fit` validates nested values
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    narrow = {i: size for i in others if (size := _narrower(frame.field(i).type, table.schema[i].type))}
    kept = _kept[id(table)] = Fit(table, frame, verdict, others, narrow, len(others) > len(narrow))
    return kept


def _narrower(kind: pa.DataType, target: Type) -> int:
    """The bytes of signed integers that are fewer than those of the type; 0 for other types."""
    if not (target.is_integer and pa.types.is_signed_integer(kind) and kind.bit_width < target.arrow.bit_width):
        return 0
    size: int = kind.byte_width
    return size


def shaped(frame: pa.Table, table: TableSchema, but: Container[int] = ()) -> pa.Table:
    """The frame, whose columns are the table's by name, with the table's types. but: the columns that stay as they are."""
    for i in fit_of(frame.schema, table).others:
        if i in but:
            continue
        field = table.schema[i]
        frame = frame.set_column(i, pa.field(field.name, field.type.arrow), fit(frame.column(i), field, f"table {table.name}"))
    return frame
