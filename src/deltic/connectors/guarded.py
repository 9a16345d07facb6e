"""Connectors of other packages, guarded: whatever one raises becomes an error that names it, what it was doing, and where.

Errors of Deltic pass through as they are. So do MemoryError, and exceptions that are not an `Exception`, such as KeyboardInterrupt. The
original exception is the cause of the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import pyarrow as pa

from deltic.connectors.connector import SinkSpec, SourceSpec
from deltic.connectors.sink import Mode, Owner, Sink, claim_id_of
from deltic.connectors.source import Json, Offsets, Source, SourceBatch
from deltic.errors import DelticError, SinkError, SourceError, Span
from deltic.schema import TableSchema

Spec = TypeVar("Spec", SourceSpec, SinkSpec)


@dataclass(frozen=True, slots=True)
class ConnectorGuard:
    """Names a connector in errors. connector: as USING names it, and its package. subject: "table t" or "sink s". span: of USING."""

    connector: str
    package: str
    subject: str
    span: Span
    kind: type[SourceError] | type[SinkError]

    @contextmanager
    def doing(self, action: str) -> Iterator[None]:
        """Raises an error of `kind` for whatever the connector raises while it tries to `action`."""
        try:
            yield
        except (DelticError, MemoryError):
            raise
        except Exception as error:
            raise self.failure(f"cannot {action}: {type(error).__name__}: {error}", "the chained exception says where") from error

    def failure(self, message: str, details: str | None = None, expected: str | None = None) -> DelticError:
        remedy = f"this is a fault of the connector's package, {self.package}" + (f"; {details}" if details else "")
        return self.kind(f"{self.subject}: connector {self.connector} {message}", span=self.span, expected=expected, remedy=remedy)


@dataclass(frozen=True, slots=True)
class _GuardedSpec(Generic[Spec]):
    """What the specs of sources and sinks have in common."""

    spec: Spec
    guard: ConnectorGuard

    @property
    def location(self) -> str:
        with self.guard.doing("name its location"):
            return self.spec.location

    @property
    def span(self) -> Span:
        return self.spec.span

    def describe(self) -> str:
        with self.guard.doing("describe itself"):
            return self.spec.describe()

    def facts(self) -> dict[str, Json]:
        with self.guard.doing("describe itself"):
            return self.spec.facts()


@dataclass(frozen=True, slots=True)
class GuardedSourceSpec(_GuardedSpec[SourceSpec]):
    """A SourceSpec of another package."""

    @property
    def dead_letter_path(self) -> str | None:
        with self.guard.doing("name its dead letter path"):
            return self.spec.dead_letter_path

    @property
    def dead_letter_span(self) -> Span | None:
        return self.spec.dead_letter_span

    def open(self, table: TableSchema, base: Path) -> Source:
        with self.guard.doing(f"open {self.location}"):
            return GuardedSource(self.spec.open(table, base), self.guard, self.location)


@dataclass(frozen=True, slots=True)
class GuardedSource:
    """A Source of another package. place: its location, as the statement has it."""

    source: Source
    guard: ConnectorGuard
    place: str

    @property
    def location(self) -> str:
        with self.guard.doing("name its location"):
            return self.source.location

    def restore(self, offsets: Offsets) -> None:
        with self.guard.doing(f"resume {self.place} at the committed offsets"):
            self.source.restore(offsets)

    def refresh(self, *, force: bool) -> None:
        with self.guard.doing(f"look for new data in {self.place}"):
            self.source.refresh(force=force)

    def pending(self) -> Sequence[str]:
        with self.guard.doing(f"list the new data in {self.place}"):
            return self.source.pending()

    def read(self, limit_rows: int) -> SourceBatch | None:
        with self.guard.doing(f"read {self.place}"):
            batch: object = self.source.read(limit_rows)
        if batch is not None and not isinstance(batch, SourceBatch):
            raise self.guard.failure(f"returned {type(batch).__name__} from read()", expected="a SourceBatch, or None")
        return batch

    def committed(self, batch: SourceBatch) -> None:
        with self.guard.doing(f"note that rows of {self.place} are committed"):
            self.source.committed(batch)


@dataclass(frozen=True, slots=True)
class GuardedSinkSpec(_GuardedSpec[SinkSpec]):
    """A SinkSpec of another package."""

    @property
    def mode(self) -> Mode:
        with self.guard.doing("name its mode"):
            return self.spec.mode

    def open(self, owner: Owner, base: Path) -> Sink:
        with self.guard.doing(f"open {self.location}"):
            return GuardedSink(self.spec.open(owner, base), self.guard, self.location)


@dataclass(frozen=True, slots=True)
class GuardedSink:
    """A Sink of another package. place: its location, as the statement has it."""

    sink: Sink
    guard: ConnectorGuard
    place: str

    @property
    def location(self) -> str:
        with self.guard.doing("name its location"):
            return self.sink.location

    def epoch(self) -> int | None:
        with self.guard.doing(f"read the last epoch of {self.place}"):
            return self.sink.epoch()

    def claim_id(self) -> str | None:
        with self.guard.doing(f"read the id of its claim on {self.place}"):
            return claim_id_of(self.sink)

    def check(self) -> None:
        with self.guard.doing(f"check {self.place}"):
            self.sink.check()

    def claim(self) -> None:
        with self.guard.doing(f"claim {self.place}"):
            self.sink.claim()

    def deliver(self, epoch: int, rows: pa.Table) -> None:
        with self.guard.doing(f"deliver epoch {epoch} to {self.place}"):
            self.sink.deliver(epoch, rows)
