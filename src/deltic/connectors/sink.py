"""The protocol of sinks: where the content of a view goes.

The state records the last epoch delivered to each sink. After a crash a pipeline delivers the later epochs again, with the same rows. A
sink recognises an epoch that it holds and ignores it, so each epoch arrives exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

Mode: TypeAlias = Literal["changes", "snapshot"]


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a sink's location: the id of a state, the sink's name in it, its mode, and its view; all in lower case."""

    state: str
    sink: str
    mode: Mode
    view: str


class Sink(Protocol):
    """A sink of one view, on behalf of an Owner. Its methods raise SinkError."""

    @property
    def location(self) -> str:
        """The folder or URL, for progress and messages."""

    def epoch(self) -> int | None:
        """The last epoch that it holds; 0 if it is claimed and holds none, or does not know; None if it was never claimed."""

    def check(self) -> None:
        """Raises SinkError if `claim` would; writes nothing."""

    def claim(self) -> None:
        """Claims the location for the owner, or verifies that it is the owner's. Removes unfinished files of a dead writer.

        Raises SinkError if it belongs to another owner.
        """

    def deliver(self, epoch: int, rows: pa.Table) -> None:
        """Writes the rows of an epoch, durably. Does nothing if it holds the epoch with the same rows; raises SinkError if with other rows.

        rows: in mode "changes", the net change of the epoch, never empty: the view's columns and `_weight`; in mode "snapshot", the view's
        content after the epoch. Epochs arrive in order; those that do not change the view are skipped.
        """


@runtime_checkable
class ClaimedSink(Protocol):
    """A sink that can tell its location from others that it has claimed before."""

    def claim_id(self) -> str | None:
        """The id that the location got when it was claimed; None if it has none."""


def claim_id_of(sink: Sink) -> str | None:
    """The id of the sink's claim; None if it has none, or cannot say."""
    claim = sink.claim_id() if isinstance(sink, ClaimedSink) and callable(sink.claim_id) else None
    return None if claim is None else str(claim)
