"""Rows as people see them: tables of text, and of HTML in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

import pyarrow as pa

from deltic.types import with_variants

SHOWN: Final = 20
"""Of more rows, so many are shown."""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns of equal width; numbers to the right.

    >>> print(table(["name", "rows"], [["a", 12000], ["long", 5]]))
    name    rows
    a     12,000
    long       5
    """
    cells = list(rows)
    texts = [list(head), *([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in cells)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    right = [bool(cells) and isinstance(cells[0][i], int) for i in range(len(head))]
    lines = ("  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)


def rows_text(shown: pa.Table, rows: int) -> str:
    """The first rows of so many, and their number."""
    return f"{table(shown.column_names, _texts(shown))}\n{_count(shown, rows)}"


def rows_html(shown: pa.Table, rows: int) -> str:
    """The same as HTML.

    >>> rows_html(pa.table({"a": [1], "b": ["<"]}), 2)
    '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>&lt;</td></tr></table><p>2 rows, the first 1 are shown</p>'
    """
    lines = [_line(shown.column_names, "th"), *(_line(row, "td") for row in _texts(shown))]
    return f"<table>{''.join(lines)}</table><p>{_count(shown, rows)}</p>"


def _line(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _texts(shown: pa.Table) -> list[tuple[str, ...]]:
    columns = [["NULL" if value is None else str(with_variants(value)) for value in column.to_pylist()] for column in shown.columns]
    return list(zip(*columns, strict=True))


def _count(shown: pa.Table, rows: int) -> str:
    return f"{rows:,} row{'s' * (rows != 1)}" + (f", the first {shown.num_rows:,} are shown" if shown.num_rows < rows else "")
