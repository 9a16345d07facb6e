"""The protocol of sources: where the changes of a table come from.

A pipeline restores a source to the offsets that its state has committed, asks it what is new, reads it batch by batch, and tells it which
batch a tick has committed. A source never commits anything itself: whatever a process dies at, the next one restores the last committed
offsets, and reads the same changes again. So each change is applied exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

Json: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that is not a valid change: where it is, why it is refused, and what it says. column: None if it is the row as a whole.

    file: what the row was read from. row: its number there, counted from 1. text: at most 10,000 characters of the row as it was read.
    """

    file: str
    row: int
    column: str | None
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far a source has been read, as JSON values that the state keeps.

    cursor: one value, replaced by each batch; None is the beginning. parts: values by name of what has been read whole, for sources that
    consist of parts, such as files. Each part is written to the state once, so the cost of a commit does not grow with their number.
    In the offsets of a batch, `parts` has only those that change; None removes one.
    """

    cursor: Json = None
    parts: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """The changes between two offsets: what one tick reads of a source.

    changes: the table's columns in its order and Arrow types, alone (all rows are inserts), or followed by `_op` or `_weight`; None if
    there are none. offsets: to be committed with the changes. rows: how many rows of the source were read, dead letters among them.
    parts: the names of the parts that rows came from, in order. dead_letters: the rows that are not changes.
    origin: where the i-th row of `changes` comes from, as error messages call it: "file a.csv, row 7".
    """

    changes: pa.Table | None
    offsets: Offsets
    rows: int
    parts: Sequence[str] = ()
    dead_letters: Sequence[DeadLetter] = ()
    origin: Callable[[int], str] | None = None


class Source(Protocol):
    """An open source of one table. Its methods raise SourceError, and DataError for a row that is not a change."""

    @property
    def location(self) -> str:
        """Where it reads from, for progress and messages: a folder, a URL."""

    def restore(self, offsets: Offsets) -> None:
        """Continues after these offsets, which the state has committed. Whatever was read since is forgotten."""

    def refresh(self, *, force: bool) -> None:
        """Looks for what is new. force: also where nothing seems to have changed."""

    def pending(self) -> Sequence[str]:
        """The names of what was new at the last `refresh` and has not been committed, in the order in which it will be read."""

    def read(self, limit_rows: int) -> SourceBatch | None:
        """The next batch, of at most `limit_rows` rows; None if there are no more. It is followed by `committed` or `restore`."""

    def committed(self, batch: SourceBatch) -> None:
        """The batch and its offsets are part of the state."""
