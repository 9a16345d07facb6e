"""Loads: a source in chunks, each of them a tick.

Memory holds a chunk, not the source. A load that ends early, by an error, Ctrl-C or an exception of the listener, leaves a prefix: whole
chunks, in the order of the source. How many rows these are is committed with them if the load has a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deltic.connectors.file_loads import CsvOptions
from deltic.connectors.loading import Chunk, ChunkedSource
from deltic.errors import DataError, DelticError, SetupError, SubscriberError
from deltic.purity import shown
from deltic.schema import Op, TableSchema
from deltic.session.load_progress import LoadProgress, ProgressOption, reported
from deltic.session.transaction import PendingChanges

LOAD_ROWS: Final = 1 << 20
"""Rows of a tick of a load, by default."""


@dataclass(frozen=True, slots=True)
class Loader:
    """What a load needs of its session. gather: begins the changes of a tick. commit: them and notes. epoch: of the last commit."""

    gather: Callable[[], PendingChanges]
    commit: Callable[[PendingChanges, Mapping[str, Any]], None]
    epoch: Callable[[], int]
    notes: Callable[[], Mapping[str, Any]]

    def load(
        self,
        table: TableSchema,
        source: Any,
        *,
        upsert: bool,
        resume: str | None,
        rows_per_tick: int,
        format: str | None,
        csv: CsvOptions,
        progress: ProgressOption,
    ) -> LoadProgress:
        """See `Session.load`."""
        if not isinstance(rows_per_tick, int) or isinstance(rows_per_tick, bool) or rows_per_tick < 1:
            raise SetupError(f"invalid option rows_per_tick={rows_per_tick!r}", expected="an integer of 1 or more")
        done = self._loaded(resume)
        feed = ChunkedSource(source, table, format, csv)
        last = LoadProgress(table.name, done, feed.rows, 0.0)

        def keep(progress: LoadProgress) -> None:
            nonlocal last
            last = progress

        with reported(keep, table.name, feed.rows) as note, reported(progress, table.name, feed.rows) as report:
            try:
                for chunk in feed.chunks(rows_per_tick, skipped=done):
                    epoch = self.epoch()
                    try:
                        self._tick(table, chunk, Op.UPSERT if upsert else Op.INSERT, {} if resume is None else {resume: done + chunk.rows})
                    except BaseException as error:
                        # The epoch does not say it of an error: another thread may have committed meanwhile.
                        is_committed = isinstance(error, SubscriberError) if isinstance(error, DelticError) else self.epoch() > epoch
                        done += chunk.rows if is_committed else 0
                        raise
                    done += chunk.rows
                    note(done, feed.rows)
                    report(done, feed.rows)
            except BaseException as error:
                remedy = "" if resume is None else f"; the same load with resume={resume!r} continues after them"
                error.add_note(f"load of {table.name}: the first {done:,} rows are committed{remedy}")
                raise
        return last

    def _loaded(self, resume: str | None) -> int:
        """How many rows a load of this name has committed."""
        rows = 0 if resume is None else self.notes().get(resume, 0)
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
            raise SetupError(
                f"the note {shown(resume)} is {shown(rows)}, which is not that of a load", remedy="give the load another name to resume by"
            )
        return rows

    def _tick(self, table: TableSchema, chunk: Chunk, op: Op, notes: Mapping[str, Any]) -> None:
        pending = self.gather()
        for piece in chunk.pieces:
            try:
                pending.add_rows(table, op, piece.frame)
            except DataError as error:
                raise piece.located(error, table) from None
        try:
            self.commit(pending, notes)
        except DataError as error:
            raise chunk.located(error, table) from None
