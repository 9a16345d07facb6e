"""Clocks: the time in each scope, and the hooks that observe it.

Hooks are called with the event (clock_start before, clock_end after an evaluation), the scope whose clock ticked (counted from the
innermost, which is 0), and the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal as OneOf

from deltic.trace.time import Time

Event = OneOf["clock_start", "clock_end"]
Hook = Callable[[Event, int, Time], None]


@dataclass(slots=True)
class Clock:
    """The clock of a running circuit: one coordinate for each open scope, the root's first."""

    time: Time = ()
    hooks: list[Hook] = field(default_factory=list)

    @contextmanager
    def evaluation(self, coordinate: int, depth: int) -> Iterator[None]:
        """One evaluation of the scope at `depth` (0 is the root): sets its coordinate and removes deeper ones."""
        assert depth <= len(self.time)
        self.time = (*self.time[:depth], coordinate)
        self._notify("clock_start", depth)
        yield
        self.time = self.time[: depth + 1]
        self._notify("clock_end", depth)
        self.time = self.time[:depth] if depth else self.time

    def _notify(self, event: Event, depth: int) -> None:
        for hook in self.hooks:
            hook(event, len(self.time) - 1 - depth, self.time)
