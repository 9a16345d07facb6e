"""Clocks: what time it is in a scope, and who is told when it ticks.

Hooks are called with the kind of event, the scope (how many levels up from the innermost the clock that ticked is; 0 is the
innermost), and the time: clock_start before, clock_end after an evaluation.
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
    """The clock of a running circuit: one coordinate for each scope that is open, the root's first."""

    time: Time = ()
    hooks: list[Hook] = field(default_factory=list)

    @contextmanager
    def evaluation(self, coordinate: int, depth: int) -> Iterator[None]:
        """One evaluation of the scope at `depth` (0 is the root): its coordinate is set, deeper ones are gone."""
        assert depth <= len(self.time)
        self.time = (*self.time[:depth], coordinate)
        self._tell("clock_start", depth)
        yield
        self.time = self.time[: depth + 1]
        self._tell("clock_end", depth)
        self.time = self.time[:depth] if depth else self.time

    def _tell(self, event: Event, depth: int) -> None:
        for hook in self.hooks:
            hook(event, len(self.time) - 1 - depth, self.time)
