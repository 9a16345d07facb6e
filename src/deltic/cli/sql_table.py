"""Rows on the terminal: as a table, or each as a list of its columns where a table is too wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from rich import box
from rich.table import Table
from rich.text import Text

from deltic.expr.rows.casts import cast_value
from deltic.schema import STRING, Type
from deltic.types import with_variants

SHOWN_ROWS: Final = 1000
"""More rows of an answer are not shown."""
PIPE_WIDTH: Final = 10_000
"""The width of an output that is not a terminal, so that programs find a row in a line."""
_LEGIBLE: Final = 26
"""Columns are not made narrower than this, which is the width of a TIMESTAMP, and one."""
_BETWEEN: Final = 3


def drawn(rows: pa.Table, types: Sequence[Type], width: int) -> Table:
    """The first rows; numbers to the right, NULL in dim letters. types: of the columns. width: of the terminal, in characters."""
    heads = [Text(name) for name in rows.schema.names]
    columns = [column.to_pylist() for column in rows.slice(0, SHOWN_ROWS).columns]
    cells = [[_cell(value, type) for value in column] for type, column in zip(types, columns, strict=True)]
    widths = [max(text.cell_len for text in (head, *texts)) for head, texts in zip(heads, cells, strict=True)]
    if len(widths) > 1 and sum(min(one, _LEGIBLE) for one in widths) + _BETWEEN * (len(widths) - 1) > width:
        return _records(heads, cells)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head, type in zip(heads, types, strict=True):
        table.add_column(head, justify="right" if type.is_numeric else "left", overflow="fold")
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    return table


def listed(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Texts in columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in head:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _records(heads: Sequence[Text], cells: Sequence[Sequence[Text]]) -> Table:
    """A line for each column of each row, below the number of the row."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=False)
    table.add_column(overflow="fold", ratio=1)
    table.add_column(overflow="fold", ratio=3)
    if not cells[0]:
        for head in heads:
            table.add_row(head)
    for number, row in enumerate(zip(*cells, strict=True), 1):
        table.add_row(Text(f"row {number}", style="dim"))
        for head, cell in zip(heads, row, strict=True):
            table.add_row(head, cell)
        table.add_section()
    return table


def _cell(value: Any, type: Type) -> Text:
    return Text("NULL", style="dim") if value is None else Text(_written(value, type))


def _written(value: Any, type: Type) -> str:
    """A value as a CAST to STRING writes it, but NULL and bytes as literals."""
    parts = [part.type for part in type.parts]
    match type.name:
        case _ if value is None:
            return "NULL"
        case "BINARY":
            return f"X'{value.hex().upper()}'"
        case "MAP":
            return f"{{{', '.join(f'{_written(key, parts[0])} -> {_written(item, parts[1])}' for key, item in value)}}}"
        case "ARRAY":
            return f"[{', '.join(_written(item, parts[0]) for item in value)}]"
        case "STRUCT":
            return f"{{{', '.join(_written(part, of) for part, of in zip(value.values(), parts, strict=True))}}}"
        case "VARIANT":
            return str(with_variants(value))
        case _:
            return str(cast_value(value, type, STRING))
