"""What a runtime is: it holds the state of a circuit and takes it from tick to tick, all or nothing.

All runtimes run the same stage function (circuit/stage.py); they differ in where shards live and how rows move between them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
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

__all__ = ["RETAINED_EPOCHS", "Committed", "Runtime", "TickResult"]


@dataclass(frozen=True, slots=True)
class TickResult:
    """A committed tick: the change of each view that changed, what each node of the circuit did (summed over shards), and how long it took.

    installs: it installed the circuit and filled what the state lacked; its changes are whole contents.
    """

    circuit: Dataflow
    epoch: int
    changes: Mapping[str, Batch]
    counters: Mapping[str, Counters]
    seconds: float
    installs: bool = False

    @property
    def rows_in(self) -> dict[str, int]:
        """How many rows of changes the tick had, by table; tables without changes are left out. O(nodes)."""
        sources = [(node.name, node.operator.table.name) for node in self.circuit.nodes if isinstance(node.operator, TableInput)]
        return {table: rows for name, table in sources if name in self.counters and (rows := self.counters[name].rows_in)}


class Committed(Protocol):
    """What one commit made, as a whole, never changed: who takes it once sees one epoch however long they read."""

    @property
    def epoch(self) -> int:
        """How many ticks have been committed."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """Named JSON values."""
        ...

    @property
    def program(self) -> ProgramDescription:
        """What the notes say of the program."""
        ...

    @property
    def circuit(self) -> Dataflow:
        """The program."""
        ...

    @property
    def definitions(self) -> object:
        """What `install` was given to be committed with the program; None before the first."""
        ...

    @property
    def last(self) -> TickResult | None:
        """What the last `tick` or `install` of this runtime did."""
        ...

    def snapshot(self, arrangement: str) -> list[Spine]:
        """The arrangement, one spine for each part."""
        ...


class Runtime(Protocol):
    """Runs one program. Not for use by two threads at once, but for `committed`, which is replaced as a whole by each commit.

    Whatever a method raises, and wherever (MemoryError, KeyboardInterrupt): `committed` is what it was, or what the method makes of it.
    """

    strings: StringTable
    shards: int

    @property
    def committed(self) -> Committed:
        """The last commit."""
        ...

    @property
    def epoch(self) -> int:
        """That of the last commit."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """Those of the last commit."""
        ...

    def install(
        self, circuit: Dataflow, *, dropped: Collection[str] = (), notes: Mapping[str, Any] | None = None, definitions: object = None
    ) -> TickResult:
        """Takes a new program: state that it knows is kept, state that it lacks is filled in one tick, the rest goes.

        A table that the state has and the circuit has not is kept, unless `dropped` names it. notes: as in `tick`. definitions: what the
        caller wants to find in `committed` as soon as the program is there. Raises StateError if a table is not as the state has it; then
        nothing has changed.
        """
        ...

    def tick(self, changes: Mapping[str, PendingRows], notes: Mapping[str, Any] | None = None) -> TickResult:
        """Applies changes, by table, and commits; or raises, and nothing has happened.

        notes: are committed with it; None removes one.
        """
        ...

    def changes_at(self, view: str, epoch: int) -> Batch | None:
        """What an epoch that is still retained did to a view; None if nothing. Raises StateError for other epochs."""
        ...

    def snapshot(self, arrangement: str) -> list[Spine]:
        """The arrangement as of the last commit, one read-only spine for each part."""
        ...

    def statistics(self) -> Mapping[str, tuple[int, int]]:
        """(rows, bytes) of each arrangement's state."""
        ...

    def trim(self) -> None:
        """Lets go of strings that no state names, or that can be found again in it, if they are many.

        None may be in changes that are not committed.
        """
        ...

    def close(self) -> None:
        """Frees what it holds."""
        ...
