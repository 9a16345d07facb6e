"""Pathway: Python over Rust's timely and differential dataflow; rows go in one by one through its Python connector.

Orders and customers come through one connector, so that a tick is one commit; a row that carries the tick's number says when it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
import pathway as pw

from benchmarks.checks import Change
from benchmarks.engine import Answer

ORDER, CUSTOMER, MARK = range(3)
TIMEOUT_S = 300.0
Row = tuple[int, int, int, int]
Tick = tuple[list[Row], list[Row]]


class Rows(pw.Schema):
    """An order (id, customer, amount), a customer (id, region) or the mark of a tick (0, its number)."""

    kind: int = pw.column_definition(primary_key=True)
    key: int = pw.column_definition(primary_key=True)
    first: int
    second: int


class Feed(pw.io.python.ConnectorSubject):
    """Hands over the ticks that are put on its queue; None ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks: SimpleQueue[Tick | None] = SimpleQueue()

    def run(self) -> None:
        self._disable_commits()
        for number, (old, new) in enumerate(iter(self.ticks.get, None)):
            if number:
                old = [*old, (MARK, 0, number - 1, 0)]
            for kind, key, first, second in old:
                self.delete(kind=kind, key=key, first=first, second=second)
            for kind, key, first, second in [*new, (MARK, 0, number, 0)]:
                self.next(kind=kind, key=key, first=first, second=second)
            self._enable_commits()
            self.commit()
            self._disable_commits()


class Incremental:
    def __init__(self) -> None:
        self.feed = Feed()
        self.view: dict[int, tuple[int, int]] = {}
        self.done = threading.Event()
        self.marked: int | None = None
        self.ended: dict[str, int] = {}
        rows = pw.io.python.read(self.feed, schema=Rows, autocommit_duration_ms=None)
        pw.io.subscribe(self._spend(rows), on_change=self._changed, on_time_end=self._ender("view"))
        pw.io.subscribe(rows.filter(pw.this.kind == MARK), on_change=self._mark, on_time_end=self._ender("mark"))
        threading.Thread(target=pw.run, kwargs={"monitoring_level": pw.MonitoringLevel.NONE}, daemon=True).start()

    @staticmethod
    def _spend(rows: Any) -> Any:
        orders, customers = rows.filter(pw.this.kind == ORDER), rows.filter(pw.this.kind == CUSTOMER)
        joined = orders.join(customers, orders.first == customers.key).select(region=customers.first, amount=orders.second)
        return joined.groupby(pw.this.region).reduce(pw.this.region, orders=pw.reducers.count(), amount=pw.reducers.sum(pw.this.amount))

    def _changed(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        held = (row["orders"], row["amount"])
        if is_addition:
            self.view[row["region"]] = held
        elif self.view.get(row["region"]) == held:
            del self.view[row["region"]]

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

    def prepare(self, orders: Change, customers: Change) -> Tick:
        rows = [(w, (ORDER, *row)) for w, *row in zip(*(column.tolist() for column in orders), strict=True)]
        rows += [(w, (CUSTOMER, *row, 0)) for w, *row in zip(*(column.tolist() for column in customers), strict=True)]
        return [row for w, row in rows if w < 0], [row for w, row in rows if w > 0]

    def tick(self, prepared: Tick) -> dict[int, tuple[int, int]]:
        self.done.clear()
        self.feed.ticks.put(prepared)
        assert self.done.wait(TIMEOUT_S), f"no answer within {TIMEOUT_S:.0f} s"
        return self.view

    def answer(self, read: dict[int, tuple[int, int]]) -> Answer:
        rows = np.array([(region, *held) for region, held in read.items()], np.int64).reshape(-1, 3)
        return Answer(tuple(rows.T), None)


def engine() -> Incremental:
    return Incremental()
