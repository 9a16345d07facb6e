"""The demo's output: progress on stderr, results on stdout. Colours, boxes and an updated line only on a terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from statistics import median
from typing import Any, Final

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from deltic.examples.flights.compare import Comparison

_PLAIN_WIDTH: Final = 140
_PLAIN_EVERY_S: Final = 5.0
_ROWS_SHOWN: Final = 10
_RECENT: Final = 50


class Pace:
    """The replay's totals, and the median of the last fifty ticks."""

    def __init__(self) -> None:
        self.ticks = self.changes = 0
        self.seconds: list[float] = []
        self._recent: deque[float] = deque(maxlen=_RECENT)

    def add(self, changes: int, seconds: float) -> None:
        self.ticks += 1
        self.changes += changes
        self.seconds.append(seconds)
        self._recent.append(seconds)

    def line(self, until_s: int) -> str:
        """One line: event time, changes, ticks, changes a second, tick time."""
        date = datetime.fromtimestamp(until_s, UTC)
        rate = self.changes / max(sum(self.seconds), 1e-9)
        tick = 1_000 * median(self._recent)
        return f"{date:%Y-%m-%d %H:%M}  {self.changes:,} changes  {self.ticks:,} ticks  {rate:,.0f} changes/s  tick {tick:.1f} ms"


class Screen:
    """Both outputs of one run."""

    def __init__(self) -> None:
        self.out, self.err = _console(stderr=False), _console(stderr=True)

    def say(self, text: str) -> None:
        """Prints a line of progress."""
        self.err.print(text, highlight=False)

    @contextmanager
    def progress(self, total: int) -> Iterator[Line]:
        """The line that is updated while ticks run; total: the number of changes."""
        if not self.err.is_terminal:
            yield Line(self, None, None)
            return
        columns = (BarColumn(bar_width=20), TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn(compact=True))
        with Progress(*columns, console=self.err) as bar:
            yield Line(self, bar, bar.add_task("first tick", total=total))

    def views(self, views: Sequence[tuple[str, pa.Table]]) -> None:
        """The head of each view."""
        for name, content in views:
            shown = min(_ROWS_SHOWN, content.num_rows)
            title = f"{name}: {content.num_rows:,} rows" + (f", the first {shown}" if shown < content.num_rows else "")
            self._table(title, content.column_names, [list(row.values()) for row in content.slice(0, shown).to_pylist()])

    def comparisons(self, reference: str, comparisons: Sequence[Comparison]) -> None:
        """View by view against the reference."""
        rows = [[c.view, f"{c.rows:,}", "equal" if not c.differing else f"{c.differing:,} rows differ"] for c in comparisons]
        self._table(f"Every view against {reference}", ["view", "rows", "verdict"], rows)
        for wrong in (c for c in comparisons if c.differing):
            self.out.print(f"{wrong.view}: {wrong.example}", highlight=False, markup=False)

    def figures(self, title: str, figures: Sequence[tuple[str, str]]) -> None:
        """Names and values."""
        self._table(title, ["", ""], [list(figure) for figure in figures])

    def _table(self, title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        terminal = self.out.is_terminal
        table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False, show_header=any(names))
        for i, name in enumerate(names):
            number = any(isinstance(row[i], int | float) for row in rows)
            table.add_column(name, justify="right" if number else "left")
        for row in rows:
            table.add_row(*map(_cell, row))
        self.out.print(f"\n{title}", style="bold" if terminal else None, highlight=False, markup=False)
        self.out.print(table, highlight=False, markup=False)


class Line:
    """The progress line; on a file or pipe, a line of text every few seconds."""

    def __init__(self, screen: Screen, bar: Progress | None, task: TaskID | None) -> None:
        self._screen, self._bar, self._task = screen, bar, task
        self._reported_s = time.monotonic()

    def tick(self, pace: Pace, until_s: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=pace.changes, description=pace.line(until_s))
        elif time.monotonic() - self._reported_s >= _PLAIN_EVERY_S:
            self._reported_s = time.monotonic()
            self._screen.say(pace.line(until_s))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_PLAIN_WIDTH)


def _cell(value: Any) -> Text:
    """Text, since rich reads square brackets in a string as markup."""
    if value is None:
        return Text("NULL")
    if isinstance(value, float):
        return Text(f"{value:,.2f}")
    return Text(f"{value:,}" if isinstance(value, int) else str(value))
