"""What an engine must offer to be measured by benchmarks.drive, and the kinds of ticks that there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from benchmarks.checks import Change, Words

CHANGE, SINGLE, UPSERT = "change", "single", "upsert"


class Absent(Exception):
    """The engine cannot run here; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tick gave: the view's change with its weights, or the whole view (weights None)."""

    columns: Sequence[Words]
    weights: Words | None


class Engine(Protocol):
    """One engine and its view; benchmarks.drive has the tables of the feed in the folder's order."""

    def prepare(self, *tables: Change) -> object:
        """A tick, one change for each table, in the form that the engine is handed; not timed."""

    def tick(self, prepared: object) -> object:
        """Applies a tick until the answer can be read; timed. The first one is the load."""

    def answer(self, read: object) -> Answer:
        """What `tick` gave, as columns; not timed."""


class TakesUpserts(Engine, Protocol):
    """An engine that can also be handed new rows and deletions instead of old and new rows."""

    def prepare_upserts(self, *tables: Change) -> object: ...


def arrow(change: Change, names: Sequence[str]) -> pa.Table:
    """A tick's rows as a table of the named columns and `_weight`."""
    weight, *columns = change
    return pa.table([*columns, weight], names=[*names, "_weight"])
