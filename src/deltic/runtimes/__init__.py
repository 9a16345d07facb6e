"""The protocol of a runtime, which holds the state of a dataflow and runs its ticks, each atomically.

All runtimes run the same stage function (circuit/stage.py); they differ in the location of shards and in how rows move between them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.table import TableInput
from deltic.circuit.pending import PendingRows
from deltic.storage.program import ProgramDescription
from deltic.storage.state import RETAINED_EPOCHS
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

__all__ = ["RETAINED_EPOCHS", "Committed", "GroupingRuntime", "Runtime", "TickResult"]


@dataclass(frozen=True, slots=True)
class TickResult:
    """A committed tick: the change of each view that changed, the counters of each node (summed over shards), and the duration.

    installs: it installed the circuit and filled missing state; its changes are whole contents.
    """

    circuit: Dataflow = field(repr=False)
    epoch: int
    changes: Mapping[str, Batch]
    counters: Mapping[str, Counters] = field(repr=False)
    seconds: float
    installs: bool = False
    tick: TickResult | None = field(default=None, repr=False)
    """Of definitions that make no epoch: the commit that made this one."""

    @staticmethod
    def of_definitions(circuit: Dataflow, epoch: int, before: TickResult | None) -> TickResult:
        """Of definitions that fill nothing, and make no epoch. before: the last result."""
        tick = None if before is None else before.tick or before
        return TickResult(circuit, epoch, {}, {}, 0.0, installs=True, tick=None if tick is None or tick.epoch < epoch else tick)

    @property
    def rows_in(self) -> dict[str, int]:
        """Table → the number of rows of its change; tables without changes are left out. O(nodes)."""
        sources = [(node.name, node.operator.table.name) for node in self.circuit.nodes if isinstance(node.operator, TableInput)]
        return {table: rows for name, table in sources if name in self.counters and (rows := self.counters[name].rows_in)}


class Committed(Protocol):
    """An immutable snapshot of one commit: a reader that holds it sees one epoch."""

    @property
    def epoch(self) -> int:
        """The number of committed ticks."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """Named JSON values."""
        ...

    @property
    def program(self) -> ProgramDescription:
        """The program, as described by the notes."""
        ...

    @property
    def circuit(self) -> Dataflow:
        """The dataflow of the program."""
        ...

    @property
    def definitions(self) -> Any:
        """The definitions that the last `install` committed with the program; None before the first."""
        ...

    @property
    def last(self) -> TickResult | None:
        """The result of the last `tick` or `install` of this runtime."""
        ...

    def snapshot(self, arrangement: str) -> list[Spine]:
        """The arrangement, one spine for each shard."""
        ...


class Runtime(Protocol):
    """Runs one program. Not thread-safe, except `committed`, which each commit replaces atomically.

    After any exception anywhere in a method (MemoryError, KeyboardInterrupt), `committed` is either unchanged or the method's result.
    """

    strings: StringTable
    shards: int

    @property
    def root(self) -> str | None:
        """The state folder; None if the state is in memory."""
        ...

    @property
    def inherited(self) -> bool:
        """Whether the state is in a folder that another process opened, from which this one was forked."""
        ...

    def check_process(self) -> None:
        """Raises StateError if the state is inherited."""
        ...

    @property
    def committed(self) -> Committed:
        """The last commit."""
        ...

    @property
    def epoch(self) -> int:
        """The epoch of the last commit."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """The notes of the last commit."""
        ...

    def install(
        self, circuit: Dataflow, *, dropped: Collection[str] = (), notes: Mapping[str, Any] | None = None, definitions: object = None
    ) -> TickResult:
        """Installs a new program: keeps the state that it uses, fills missing state in one tick, and drops the rest.

        A table that is in the state but not in the circuit is kept, unless `dropped` names it. notes: as in `tick`. definitions: an object
        that is part of `committed` from the same commit on. Raises StateError if a table differs from that of the state; then nothing has
        changed.
        """
        ...

    def prepare(self, circuit: Dataflow, arrangements: Collection[str]) -> None:
        """Fills arrangements in one tick, for the next `install`, which keeps those that it uses.

        circuit: the installed one, or that of an empty program, with these arrangements. All other state stays, and so do the definitions.
        """
        ...

    def declare(self, definitions: object) -> None:
        """Replaces `committed.definitions` alone: the program and its state stay as they are."""
        ...

    def tick(
        self, changes: Mapping[str, PendingRows], notes: Mapping[str, Any] | None = None, *, amends: bool = False, listed: int = 0
    ) -> TickResult:
        """Applies changes, by table, and commits; if it raises, nothing has changed.

        notes: committed with the tick; None removes a note. amends, listed: see `circuit.operator.Tick`.
        """
        ...

    def note(self, notes: Mapping[str, Any]) -> None:
        """Commits notes alone, in an epoch that is no tick: no row changes, and `committed.last` and the content of streams stay."""
        ...

    def changes_at(self, view: str, epoch: int) -> Batch | None:
        """The change of a view in a retained epoch; None if there was none.

        Raises StateError for other epochs, and for those at which the view had another arrangement, or did not exist.
        """
        ...

    def snapshot(self, arrangement: str) -> list[Spine]:
        """The arrangement as of the last commit, one read-only spine for each shard."""
        ...

    def statistics(self) -> Mapping[str, tuple[int, int]]:
        """(rows, bytes) of each arrangement's state."""
        ...

    def fold(self) -> None:
        """Shows all commits to readers of the state folder, if some are in a commit log alone. Raises StateError."""
        ...

    @property
    def trim_is_due(self) -> bool:
        """Whether strings take so much memory that `trim` looks for those to release."""
        ...

    def trim(self) -> None:
        """Releases the memory of strings that no state refers to, or that can be read from it, if they are many.

        There must be no uncommitted changes with strings.
        """
        ...

    def close(self) -> None:
        """Releases all resources."""
        ...


class GroupingRuntime(Runtime, Protocol):
    """A runtime whose ticks can be made durable several at a time, as a group."""

    @property
    def newest(self) -> Committed:
        """What the next tick begins with: the last tick of the group, or the last commit, also if it is not shown yet."""
        ...

    @property
    def pending(self) -> bool:
        """Whether the group has ticks that are not durable."""
        ...

    @property
    def unshown(self) -> bool:
        """Whether ticks of a group are durable and not shown yet."""
        ...

    def group(self) -> AbstractContextManager[None]:
        """A block in which ticks `join` a group. At its end, those that `commit_group` has not made durable are undone."""
        ...

    def join(
        self, changes: Mapping[str, PendingRows], notes: Mapping[str, Any] | None = None, *, amends: bool = False, listed: int = 0
    ) -> bool:
        """Computes a tick on top of the last one of the group, as `tick` does; False if it must be in another group, after this one."""
        ...

    def commit_group(self) -> None:
        """Makes the ticks of the group durable together, and shows the first. Raises StateError; then none has happened."""
        ...

    def show_next(self) -> bool:
        """Makes the next tick of the last group the last commit; False if there is none."""
        ...
