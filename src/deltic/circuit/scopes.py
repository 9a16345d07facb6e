"""The context of operators in nested scopes: the time, their traces in this tick, and their queues.

An arrangement in a scope of depth d is an ordinary one whose rows have d more words at the end: the iterations, the outermost scope's
first. Past epochs are merged into one: the weights of equal rows at equal iterations are added. Rows added during a tick are held in memory
until it ends, and appended to the state as one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.clock import Clock
from deltic.circuit.due import Due, Path
from deltic.circuit.nodes import Node
from deltic.circuit.operator import Context
from deltic.circuit.operators.feedback import Feedback
from deltic.errors import Divergence
from deltic.expr.failures import GROWTH, SAMPLES, diverged
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import decode
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.time import Time
from deltic.types import frozen_list


class ScopedTrace:
    """An arrangement during a tick. Rows have their words, then `depth` iterations.

    past: as of the last commit. added: the rows appended in this tick. now, before: past and added, with and without the last append.
    """

    __slots__ = ("added", "before", "depth", "now", "past")

    def __init__(self, past: Spine, depth: int) -> None:
        self.past, self.depth = past, depth
        self.added = Spine(past.columns, past.weights)
        self.now = self.before = past

    def append(self, batch: Batch, time: Time) -> None:
        """Appends rows (without iterations) at `time`."""
        if self.depth:
            iterations = [np.full(len(batch), coordinate, np.int64) for coordinate in time[: self.depth]]
            batch = Batch.trusted((*batch.columns, *iterations), batch.weights)
        self.append_timed(batch)

    def append_timed(self, batch: Batch) -> None:
        """Appends rows with their iterations."""
        self.added = self.added.appended(batch)
        self.before, self.now = self.now, self.past.beside(self.added)


@dataclass(slots=True)
class ScopeContext(Context):
    """The context of all scopes below one node of the root, in one tick. path: the running node."""

    clock: Clock = field(default_factory=Clock)
    due: Due = field(default_factory=Due)
    path: Path = ()
    traces: dict[str, ScopedTrace] = field(default_factory=dict)

    @classmethod
    def of(cls, context: Context, clock: Clock) -> ScopeContext:
        own = context.shard, context.shards, context.tick, context.state, context.strings
        return cls(*own, inner=context.inner, stop=context.stop, clock=clock)

    @property
    def time(self) -> Time:
        """The current iterations, the outermost scope's first."""
        return self.clock.time[1:]

    @property
    def first(self) -> bool:
        """Whether all scopes are in their first iteration."""
        return not any(self.time)

    def trace(self, arrangement: str, columns: int, weights: int, depth: int) -> ScopedTrace:
        """The arrangement's trace in this tick. columns: the number of words of a row, iterations included."""
        trace = self.traces.get(arrangement)
        if trace is None:
            trace = self.traces[arrangement] = ScopedTrace(self.old(arrangement, columns, weights), depth)
        return trace

    def postpone(self, time: Time, rows: Rows) -> None:
        """Queues rows that the running node must process at a later time of this tick."""
        self.due.put(self.path, time, rows)

    def awaited(self) -> list[Rows]:
        """Removes and returns the queued rows that are due for the running node now."""
        return self.due.take(self.path, self.time)


def scope_context(context: Context) -> ScopeContext:
    """The context of an operator in a scope."""
    assert isinstance(context, ScopeContext)
    return context


def distinct_rows(parts: list[Rows], columns: int) -> tuple[np.ndarray, ...]:
    """The first `columns` words of the rows of all parts, distinct and sorted; weights are ignored."""
    if not columns:
        return ()
    if len(parts) == 1 and isinstance(parts[0], Batch) and len(parts[0].columns) == columns:
        return parts[0].columns
    words = [np.concatenate([part.columns[c] for part in parts]) for c in range(columns)]
    return consolidate(Rows(words, (np.ones(len(words[0]), np.int64),))).columns


def divergence(feedback: Node, limit: int, growth: Sequence[int], change: Rows, context: Context) -> Divergence:
    """The error for the relation of a feedback. growth: its changed rows by iteration. change: its change in the last iteration."""
    words = [column[:SAMPLES] for column in change.columns]
    fields = zip(feedback.shape.schema, feedback.shape.layout.slices, strict=True)
    columns = [frozen_list(decode(words[part], f, context.strings)) for f, part in fields]
    rows = list(zip(*columns, strict=True)) if columns else [()]
    assert isinstance(feedback.operator, Feedback)
    operator = feedback.operator
    return diverged(operator.relation or feedback.name, limit, growth[-GROWTH:], rows, operator.span, is_set=operator.is_set)
