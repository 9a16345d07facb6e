"""The protocol of sinks: where the content of a view goes.

The state says how far each sink is. After a crash a pipeline delivers again what the state does not know to be delivered: the same epochs,
with the same rows. A sink recognises an epoch that it has, and passes over it. So each epoch arrives exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

Mode: TypeAlias = Literal["changes", "snapshot"]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes to a sink: the id of a state, the sink's name in it, its mode, and the view that it reads; all in lower case."""

    state: str
    sink: str
    mode: Mode
    view: str


class Sink(Protocol):
    """A sink of one view, on behalf of an Owner. Making one writes nothing. Its methods raise SinkError."""

    @property
    def location(self) -> str:
        """Where it writes to, for progress and messages: a folder, a URL."""

    def epoch(self) -> int | None:
        """The last epoch that it holds; 0 if it was claimed and holds none, or cannot say which; None if it was never claimed."""

    def check(self) -> None:
        """Raises SinkError if `claim` would. Writes nothing."""

    def claim(self) -> None:
        """Makes the place the owner's, or verifies that it is. Removes what a dead writer left unfinished.

        Raises SinkError if it is another owner's.
        """

    def deliver(self, epoch: int, rows: pa.Table) -> None:
        """Durable when it returns. An epoch that it holds with the same rows changes nothing; with other rows it is a SinkError.

        rows: of mode "changes" the net change of the epoch, the view's columns and `_weight`, never empty; of mode "snapshot" all that the
        view holds after the epoch. Epochs arrive in order, those that did not change the view are left out.
        """
