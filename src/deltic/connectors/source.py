"""The protocol of sources: where the changes of a table come from.

A pipeline restores a source to the offsets committed in its state, refreshes it, reads it batch by batch, and confirms each batch that a
tick has committed. A source commits nothing itself: wherever a process dies, the next one restores the last committed offsets and reads
the same changes again, so each change is applied exactly once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

Json: TypeAlias = Any
Run: TypeAlias = Callable[[Callable[[int], Json], int], list[Json]]
"""(function, n) → what the function gives for 0 to n - 1, each computed by a task of a cluster. Raises the function's DelticErrors."""

POSITION: Final = "_deltic_position"
"""A column of RemoteRows: the position of a row in its batch."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that is not a valid change, with its place, the reason and its text. column: None if the whole row is invalid.

    file: the file of the row. row: its number in the file, counted from 1. reason: at most 2,000 characters. text: at most
    10,000 characters of the row as read.
    """

    file: str
    row: int
    column: str | None
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far a source has been read, as JSON values kept in the state.

    cursor: one value, replaced by each batch; None is the beginning. parts: a value for each part, such as a file, that has been read
    completely, by name. Each part is written to the state once, so the cost of a commit does not grow with their number. In the offsets of
    a batch, `parts` contains only those that change; None removes one.
    """

    cursor: Json = None
    parts: Mapping[str, Json] = field(default_factory=dict)


class RemoteRows(ABC):
    """The changes of a batch, which tasks read where they run, part by part. It can be pickled, and gives the same rows every time."""

    __slots__ = ()

    @property
    @abstractmethod
    def parts(self) -> int:
        """How many parts there are."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """How many rows of the source they are made of."""

    @abstractmethod
    def frames(self, part: int) -> Iterator[pa.Table]:
        """A part as change frames: the table's columns alone, whose rows are new ones of a table without a key, or with `_op` and POSITION.

        Raises SourceError, and DataError for a row that is not a valid change.
        """


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """The changes between two offsets, which one tick reads.

    changes: the table's columns in order, of its Arrow types, alone (all rows are inserts) or followed by `_op` or `_weight`; RemoteRows,
    of a source that is spread; None if there are none. offsets: to be committed with the changes. rows: how many rows of the source were
    read, including dead letters. parts: the names of the parts that were read, in order. dead_letters: rows that are not valid changes.
    origin: the place of the i-th row of `changes`, for error messages: "file a.csv, row 7". place: its file and number, for dead letters.
    """

    changes: pa.Table | RemoteRows | None
    offsets: Offsets
    rows: int
    parts: Sequence[str] = ()
    dead_letters: Sequence[DeadLetter] = ()
    origin: Callable[[int], str] | None = None
    place: Callable[[int], tuple[str, int]] | None = None


class Source(Protocol):
    """An open source of one table. Its methods raise SourceError, and DataError for a row that is not a valid change."""

    @property
    def location(self) -> str:
        """The folder or URL, for progress and messages."""

    def restore(self, offsets: Offsets) -> None:
        """Resumes after these committed offsets; whatever was read since is discarded."""

    def refresh(self, *, force: bool) -> None:
        """Looks for new data. force: even if nothing seems to have changed."""

    def pending(self) -> Sequence[str]:
        """The names of the uncommitted parts that the last `refresh` listed, in the order in which they will be read."""

    def read(self, limit_rows: int) -> SourceBatch | None:
        """The next batch, of at most `limit_rows` rows; None at the end. `committed` or `restore` follows."""

    def committed(self, batch: SourceBatch) -> None:
        """Called when the batch and its offsets have been committed."""


@runtime_checkable
class SpreadSource(Protocol):
    """A source whose batches may be RemoteRows, where there is a cluster that reads them."""

    def spread(self, run: Run) -> bool:
        """Called once, before the source is read: `run` uses the tasks of the cluster. Whether batches may be RemoteRows."""
