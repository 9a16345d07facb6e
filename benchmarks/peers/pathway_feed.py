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
    """Hands over the ticks (old rows, new rows) that are put on its queue; None ends it.

    A tick's mark is the row (MARK, 0, the tick's number from 1 on, 0 …).
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names
        self.ticks: SimpleQueue[Tick | None] = SimpleQueue()

    def run(self) -> None:
        self._disable_commits()
        for number, (old, new) in enumerate(iter(self.ticks.get, None), 1):
            if number > 1:
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
        self.marked = False
        self.done = threading.Event()
        rows = pw.io.python.read(self.feed, schema=schema, autocommit_duration_ms=None)
        pw.io.subscribe(self._with_marks(view(rows), rows), on_change=self._changed, on_time_end=self._time_ended)
        threading.Thread(target=pw.run, kwargs={"monitoring_level": pw.MonitoringLevel.NONE}, daemon=True).start()

    def _with_marks(self, view: Any, rows: Any) -> Any:
        """The view and the ticks' marks as one table: no call says that a tick is done with a table that it leaves as it is."""
        marks = rows.filter(pw.this.kind == MARK).select(mark=pw.this[self.feed.names[2]], **dict.fromkeys(self.names, 0))
        view = view.select(mark=0, **{name: pw.this[name] for name in self.names})
        pw.universes.promise_are_pairwise_disjoint(view, marks)
        return view.update_id_type(pw.Pointer).concat(marks.update_id_type(pw.Pointer))

    def _changed(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if row["mark"]:
            self.marked = True
        else:
            self.changes.append((1 if is_addition else -1, *(row[name] for name in self.names)))

    def _time_ended(self, time: int) -> None:
        if self.marked:
            self.marked = False
            self.done.set()

    def tick(self, prepared: Tick) -> Changes:
        self.done.clear()
        self.feed.ticks.put(prepared)
        if not self.done.wait(TIMEOUT_S):
            raise Absent(f"no answer to a tick within {TIMEOUT_S:.0f} s")
        changes, self.changes = self.changes, []  # with what was there before the first tick
        return changes

    def answer(self, read: Changes) -> Answer:
        weights, *columns = np.array(read, np.int64).reshape(-1, len(self.names) + 1).T
        return Answer(columns, weights)


def rows_of(kind: int, change: Change, width: int) -> Tick:
    """A table's old and new rows, with its kind in front and filled up with 0 to `width` columns."""
    rows = [(w, (kind, *row, *[0] * (width - 1 - len(row)))) for w, *row in zip(*(column.tolist() for column in change), strict=True)]
    return [row for w, row in rows if w < 0], [row for w, row in rows if w > 0]
