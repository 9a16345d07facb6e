"""Rows as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from rich import box
from rich.table import Table
from rich.text import Text

from deltic.types import with_variants

SHOWN_ROWS: Final = 1000
"""More rows of an answer are not shown."""


def drawn(rows: pa.Table) -> Table:
    """The first rows; numbers to the right, NULL in dim letters."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        table.add_column(Text(field.name), justify="right" if number else "left", overflow="fold")
    columns = [column.to_pylist() for column in rows.slice(0, SHOWN_ROWS).columns]
    for row in zip(*columns, strict=True):
        table.add_row(*map(_cell, row))
    return table


def listed(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Texts in columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in head:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _cell(value: Any) -> Text:
    return Text("NULL", style="dim") if value is None else Text(str(with_variants(value)))
