"""Changes of a view from epoch to epoch: added and removed rows, with `_weight` and `_epoch`.

A position is the last epoch delivered, and the view's arrangement then. If the view was redefined in between, its old rows are removed
and its new ones added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from deltic.errors import StateError
from deltic.runtimes.spark.types import spark_type
from deltic.runtimes.stored_view import BATCH_ROWS, StoredView, file_strings
from deltic.runtimes.view_layout import ViewLayout
from deltic.storage.files import DataFile, FileRef
from deltic.storage.history import stored_manifest
from deltic.storage.program import VIEWS
from deltic.storage.reader import StateReader
from deltic.storage.reading import shaped
from deltic.trace.merge import merge
from deltic.trace.reading import WEIGHT
from deltic.trace.strings import StringTable

EPOCH: Final = "_epoch"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"


@dataclass(frozen=True, slots=True)
class Position:
    """Everything up to `epoch` has been delivered, from the arrangement `of` ("": none yet). snapshot: the whole content comes first."""

    epoch: int
    of: str = ""
    snapshot: bool = False

    @staticmethod
    def parse(offset: dict[str, Any]) -> Position:
        return Position(int(offset["epoch"]), str(offset["of"]), bool(offset["snapshot"]))

    def json(self) -> dict[str, Any]:
        """As Spark keeps it in a checkpoint."""
        return {"epoch": self.epoch, "of": self.of, "snapshot": self.snapshot}


@dataclass(frozen=True, slots=True)
class Piece:
    """An epoch's change in files; or, without files, the content of shards after `content_epoch`, added (sign 1) or removed (-1)."""

    view: ViewLayout
    epoch: int
    rows: int = 0
    files: tuple[FileRef, ...] = ()
    shards: tuple[int, ...] = ()
    content_epoch: int = 0
    sign: int = 1


@dataclass(frozen=True, slots=True)
class ViewFeed:
    """The changes of one view of the state that `reader` reads. columns: those delivered, with their types."""

    reader: StateReader
    view: str
    columns: StructType

    def begin(self, starting: str | None) -> Position:
        """The position of a new stream. starting: the first epoch, EARLIEST or LATEST; None for the content, then the changes."""
        epochs = self.reader.epochs()
        if starting is None:
            return Position(-1, snapshot=True)
        if starting == LATEST:
            return Position(epochs[-1], self._layout(epochs[-1]).arrangement)
        first = epochs[0] if starting == EARLIEST else int(starting)
        if not epochs[0] <= first <= epochs[-1] + 1:
            raise self._expired(first)
        # Nothing is known of the epoch before the first retained one: the view is assumed to be the same in both.
        before = max(first - 1, epochs[0]) if epochs[0] else first - 1
        return Position(first - 1, self._arrangement(before) if before >= 0 else "")

    def end(self, start: Position, last: int) -> Position:
        """The position after the epoch `last`. O(epochs since `start`)."""
        if last <= start.epoch and not start.snapshot:
            return start
        if start.snapshot:
            return Position(last, self._layout(last).arrangement)
        arrangement = start.of
        for epoch in self._following(start, last):
            if VIEWS in stored_manifest(self.reader.folder, epoch).change.notes:
                arrangement = self._arrangement(epoch)
        return Position(last, arrangement)

    def pieces(self, start: Position, end: Position) -> Iterator[Piece]:
        """What to read for the changes after `start` up to `end`. Raises StateError if they are not retained or have other columns."""
        if start.snapshot:
            yield from self._content(end.epoch, end.epoch, 1)
            return
        arrangement = start.of
        view = None
        for epoch in self._following(start, end.epoch):
            change = stored_manifest(self.reader.folder, epoch).change
            if VIEWS in change.notes and (current := self._arrangement(epoch)) != arrangement:
                if arrangement:
                    yield from self._content(epoch - 1, epoch, -1)
                if current:
                    yield from self._content(epoch, epoch, 1)
                arrangement, view = current, None
                continue
            segments = [segment for segment in change.views if segment.arrangement == arrangement]
            if segments:
                view = view or self._layout(epoch)
                refs = {file.name: file for file in change.files}
                # Without a hash that names a row's shard, one shard may add what another removes.
                for group in [segments] if view.partition is None else [[segment] for segment in segments]:
                    yield Piece(view, epoch, sum(s.rows for s in group), tuple(refs[s.file] for s in group))

    def _content(self, content_epoch: int, epoch: int, sign: int) -> Iterator[Piece]:
        view = self._layout(content_epoch)
        for shards in view.homes(None, self.reader.manifest_at(content_epoch).shards):
            yield Piece(view, epoch, shards=shards, content_epoch=content_epoch, sign=sign)

    def _following(self, start: Position, last: int) -> range:
        """The epochs after `start`."""
        epochs = self.reader.epochs()
        if start.epoch + 1 < epochs[0] and start.epoch < last:
            raise self._expired(start.epoch + 1)
        return range(start.epoch + 1, last + 1)

    def _expired(self, epoch: int) -> StateError:
        epochs = self.reader.epochs()
        return StateError(
            f"the state folder {self.reader.root} does not have the changes of epoch {epoch}",
            expected=f"epochs {epochs[0]} to {epochs[-1]} are readable",
            remedy="start a new stream, with a checkpoint of its own; a larger retain keeps more epochs",
        )

    def _arrangement(self, epoch: int) -> str:
        """The view's arrangement after an epoch; "" if there was no such view."""
        return self.reader.manifest_at(epoch).program.arrangement_of(self.view) or ""

    def _layout(self, epoch: int) -> ViewLayout:
        """The view after an epoch. Raises UnknownName, and StateError if its columns differ from the feed's."""
        view = ViewLayout.of(self.reader.manifest_at(epoch).program, self.view)
        own = {f.name: f for f in view.stored}
        for field in self.columns:
            current = own.get(field.name)
            if current is None or spark_type(current.type) != field.dataType or (current.nullable and not field.nullable):
                now = "is absent" if current is None else f"is {current.type}{'' if current.nullable else ' NOT NULL'}"
                kind = field.dataType.simpleString().upper()
                raise StateError(
                    f"view {self.view} has other columns at epoch {epoch}: {field.name}, a {kind}, {now}",
                    remedy="start a new stream, with a checkpoint of its own",
                )
        return view


def read_piece(root: str, piece: Piece, names: Collection[str]) -> Iterator[pa.Table]:
    """The named columns of its rows, `_weight` and `_epoch`, in tables of at most BATCH_ROWS rows."""
    for words, weights, strings in _rows(root, piece):
        for start in range(0, len(weights), BATCH_ROWS):
            cut = slice(start, start + BATCH_ROWS)
            table = piece.view.decoded([w[cut] for w in words], names, strings)
            signed = weights[cut] * piece.sign
            table = table.append_column(WEIGHT, pa.array(signed))
            yield table.append_column(EPOCH, pa.array(np.full(len(signed), piece.epoch, np.int64)))


def _rows(root: str, piece: Piece) -> Iterator[tuple[Sequence[np.ndarray], np.ndarray, StringTable]]:
    if not piece.files:
        reader = StateReader.open(root, piece.content_epoch)
        try:
            yield from StoredView(reader, piece.view.name)._scan(piece.shards)
        finally:
            reader.leave()
        return
    files = [DataFile(root, ref) for ref in piece.files]
    batch = merge([shaped(file.change(piece.view.arrangement), piece.view.widths, file.name) for file in files])
    yield batch.columns, batch.weights[0], file_strings(None, [file.dictionary() for file in files])
