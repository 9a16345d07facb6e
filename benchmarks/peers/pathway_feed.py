"""Pathway: Python over Rust's timely and differential dataflow; rows go in one by one through its Python connector.

All tables come through one connector, so that a tick is one commit; a row that carries the tick's number says when it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import pathway as pw

from benchmarks.checks import Change
from benchmarks.engine import Absent, Answer

MARK = -1
TIMEOUT_S = 300.0
Row = tuple[int, ...]
Tick = tuple[list[Row], list[Row]]
Changes = list[Row]


class Feed(pw.io.python.ConnectorSubject):
    """Hands over the ticks (old rows, new rows) that are put on its queue; None ends it. A tick's mark is (MARK, 0, its number, 0 …)."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names
        self.ticks: SimpleQueue[Tick | None] = SimpleQueue()

    def run(self) -> None:
        self._disable_commits()
        for number, (old, new) in enumerate(iter(self.ticks.get, None)):
            if number:
                old = [*old, self._mark(number - 1)]
            for row in old:
                self.delete(**dict(zip(self.names, row, strict=True)))
            for row in [*new, self._mark(number)]:
                self.next(**dict(zip(self.names, row, strict=True)))
            self._enable_commits()
            self.commit()
            self._disable_commits()

    def _mark(self, number: int) -> Row:
        return (MARK, 0, number, *[0] * (len(self.names) - 3))


class Incremental:
    """A view of the rows of one schema, whose first column says which table a row is of; the answer is the view's change."""

    def __init__(self, schema: Any, names: Sequence[str], view: Callable[[Any], Any]) -> None:
        self.feed = Feed(list(schema.column_names()))
        self.names = names
        self.changes: Changes = []
        self.done = threading.Event()
        self.marked: int | None = None
        self.ended: dict[str, int] = {}
        rows = pw.io.python.read(self.feed, schema=schema, autocommit_duration_ms=None)
        pw.io.subscribe(view(rows), on_change=self._changed, on_time_end=self._ender("view"))
        pw.io.subscribe(rows.filter(pw.this.kind == MARK), on_change=self._mark, on_time_end=self._ender("mark"))
        threading.Thread(target=pw.run, kwargs={"monitoring_level": pw.MonitoringLevel.NONE}, daemon=True).start()

    def _changed(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        self.changes.append((1 if is_addition else -1, *(row[name] for name in self.names)))

    def _mark(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        if is_addition:
            self.marked = time

    def _ender(self, name: str) -> Callable[[int], None]:
        def end(time: int) -> None:
            self.ended[name] = time
            if self.marked is not None and min(self.ended.get("view", -1), self.ended.get("mark", -1)) >= self.marked:
                self.marked = None
                self.done.set()

        return end

    def tick(self, prepared: Tick) -> Changes:
        self.changes = []
        self.done.clear()
        self.feed.ticks.put(prepared)
        if not self.done.wait(TIMEOUT_S):
            raise Absent(f"no answer to a tick within {TIMEOUT_S:.0f} s")
        return self.changes

    def answer(self, read: Changes) -> Answer:
        weights, *columns = np.array(read, np.int64).reshape(-1, len(self.names) + 1).T
        return Answer(columns, weights)


def rows_of(kind: int, change: Change, width: int) -> Tick:
    """A table's old and new rows, with its kind in front and filled up with 0 to `width` columns."""
    rows = [(w, (kind, *row, *[0] * (width - 1 - len(row)))) for w, *row in zip(*(column.tolist() for column in change), strict=True)]
    return [row for w, row in rows if w < 0], [row for w, row in rows if w > 0]
