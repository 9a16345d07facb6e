"""Changes in Spark DataFrames: encoded by tasks, never collected."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from deltic.circuit.pending import UNORDERED, PendingRows, added
from deltic.circuit.stage import Failure, route
from deltic.connectors.frames import Changes, change_frame, rows_frame
from deltic.errors import DelticError, FrameError
from deltic.runtimes.distributed import Distributed
from deltic.runtimes.spark.failures import run_job
from deltic.runtimes.spark.message import FRAME, LAST, Kind, Message, NamedRows, pack_collision, pack_failure, pack_parts, to_arrow
from deltic.schema import Op, TableSchema
from deltic.trace.encoding import Layout
from deltic.trace.identity import Identity
from deltic.trace.intake import encode_changes
from deltic.trace.strings import CollidingStrings, StringTable

TAG: Final = "_table"
"""The column of a tagged frame with the number of a row's table."""
EXTREMES: Final = "tag INT, earliest BIGINT, latest BIGINT"
"""Least and greatest values, with the numbers of their tables."""
_LEAST: Final = -(1 << 63)


@dataclass(frozen=True, slots=True)
class InputPort:
    """Where a table's changes enter a circuit: port and level. key: the word columns by which rows are routed."""

    table: TableSchema
    key: tuple[int, ...]
    port: str
    level: int


class Messages(Distributed):
    """Changes that a Spark job can turn into messages."""

    __slots__ = ()

    @abstractmethod
    def messages(self, spark: SparkSession, ports: Mapping[str, InputPort], shards: int, identity: Identity) -> DataFrame:
        """A DataFrame with the schema FRAME; a user's error is a row of it. ports: by the table's name."""
        ...


class FrameMessages(Messages):
    """Those of a DataFrame."""

    __slots__ = ()

    @property
    @abstractmethod
    def read(self) -> tuple[DataFrame, tuple[TaggedTable, ...], tuple[str, ...] | None]:
        """The frame that tasks read, its tables, and the names of its columns; None if it is that of TaggedChanges.

        The columns themselves are numbered: `mapInArrow` refuses names with dots or backquotes.
        """
        ...

    def extremes(self, columns: Mapping[str, str]) -> Mapping[str, tuple[int, int | None]]:
        frame, parts, names = self.read
        task = ExtremesTask(tuple((part, columns.get(part.table.name)) for part in parts), names)
        return extremes_of(frame.mapInArrow(task.__call__, EXTREMES), [part.table.name for part in parts])


def extremes_of(frame: DataFrame, names: Sequence[str]) -> Mapping[str, tuple[int, int | None]]:
    """By table, the extremes of a frame of EXTREMES. names: by the numbers of the tables."""
    by_table: dict[str, tuple[int, int | None]] = {}
    for tag, earliest, latest in run_job(frame.collect):
        previous = by_table.get(names[tag], (earliest, latest))
        added = [moment for moment in (previous[1], latest) if moment is not None]
        by_table[names[tag]] = min(previous[0], earliest), max(added, default=None)
    return by_table


@dataclass(frozen=True, slots=True)
class SparkChanges(FrameMessages):
    """A change frame (the table's columns and `_op` or `_weight`) that stays on Spark.

    It must be deterministic, since Spark may read it twice. sequence: the column (integer, date or timestamp) that orders the changes
    of a key; without one, a key that occurs twice is an error. inserts: the frame has only the table's columns, and its rows are new.
    """

    frame: DataFrame
    table: TableSchema
    sequence: str | None = None
    inserts: bool = False

    @property
    def tables(self) -> Mapping[str, TableSchema]:
        return {self.table.name: self.table}

    @property
    def read(self) -> tuple[DataFrame, tuple[TaggedTable, ...], tuple[str, ...] | None]:
        names = tuple(self.frame.columns)
        numbered = self.frame.toDF(*(f"c{i}" for i in range(len(names))))
        return numbered, (TaggedTable(self.table, self.sequence, self.inserts),), names

    def messages(self, spark: SparkSession, ports: Mapping[str, InputPort], shards: int, identity: Identity) -> DataFrame:
        frame, _, names = self.read
        encoder = Encoder(ports[self.table.name], shards, identity, self.sequence, self.inserts)
        return frame.mapInArrow(EncodeTask((encoder,), names).__call__, FRAME)


@dataclass(frozen=True, slots=True)
class TaggedTable:
    """The format of one table's changes in a tagged frame; as in SparkChanges."""

    table: TableSchema
    sequence: str | None = None
    inserts: bool = False


@dataclass(frozen=True, slots=True)
class TaggedChanges(FrameMessages):
    """Changes of several tables in one frame: the number of a row's table in TAG, and a struct for each table, NULL in rows of others."""

    frame: DataFrame
    parts: tuple[TaggedTable, ...]

    @property
    def tables(self) -> Mapping[str, TableSchema]:
        return {part.table.name: part.table for part in self.parts}

    @property
    def read(self) -> tuple[DataFrame, tuple[TaggedTable, ...], tuple[str, ...] | None]:
        return self.frame, self.parts, None

    def messages(self, spark: SparkSession, ports: Mapping[str, InputPort], shards: int, identity: Identity) -> DataFrame:
        feeds = Counter(part.table.name for part in self.parts)
        encoders = [
            Encoder(ports[part.table.name], shards, identity, part.sequence, part.inserts, feeds[part.table.name] > 1)
            for part in self.parts
        ]
        return self.frame.mapInArrow(EncodeTask(tuple(encoders), None).__call__, FRAME)


@dataclass(frozen=True, slots=True)
class EncodeTask:
    """Maps batches of a frame to messages, with an encoder for each of its tables. names: as of `FrameMessages.read`."""

    encoders: tuple[Encoder, ...]
    names: tuple[str, ...] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stop: tuple[Kind, bytes] | None = None
        for batch in batches:
            for tag, part in split(batch, self.names):
                encoder = self.encoders[tag]
                if stop is not None or not part.num_rows:
                    continue  # the rest is still read: Spark kills a worker that leaves input unread
                try:
                    yield to_arrow(encoder.messages(part))
                except DelticError as error:
                    stop = Kind.FAILURE, pack_failure(Failure.of(error))
                except CollidingStrings as collision:
                    stop = Kind.COLLISION, pack_collision(collision)
        if stop is not None:
            yield to_arrow([Message(shard, LAST, *stop) for shard in range(self.encoders[0].shards)])


@dataclass(frozen=True, slots=True)
class ExtremesTask:
    """Maps batches of a frame to rows of EXTREMES. parts: each table, and the column to read. names: as of `FrameMessages.read`."""

    parts: tuple[tuple[TaggedTable, str | None], ...]
    names: tuple[str, ...] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for tag, rows in split(batch, self.names):
                part, column = self.parts[tag]
                if column is not None and (extremes := extremes_row(rows, tag, part, column)) is not None:
                    yield extremes


def extremes_row(frame: pa.Table, tag: int, part: TaggedTable, column: str) -> pa.RecordBatch | None:
    """A row of EXTREMES; None for a frame without values, and for an invalid one, which the tick reports."""
    if not frame.num_rows or (extremes := _extremes(frame, part, column)) is None:
        return None
    earliest, latest = (pa.array([moment], pa.int64()) for moment in extremes)
    return pa.RecordBatch.from_pydict({"tag": pa.array([tag], pa.int32()), "earliest": earliest, "latest": latest})


def split(batch: pa.RecordBatch, names: tuple[str, ...] | None) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each table, with its number. names: as of `FrameMessages.read`."""
    if names is not None:
        yield 0, pa.Table.from_batches([batch]).rename_columns(list(names))
        return
    tags = batch.column(0)
    for tag in pc.unique(tags).to_pylist():
        struct = batch.column(1 + tag).filter(pc.equal(tags, tag))
        yield tag, pa.Table.from_arrays(struct.flatten(), names=[field.name for field in struct.type])


def _extremes(frame: pa.Table, part: TaggedTable, column: str) -> tuple[int, int | None] | None:
    """The column's least word, and its greatest in rows that are added; None also for an invalid frame, which the tick reports."""
    try:
        changes = inserted(frame, part.table) if part.inserts else change_frame(frame, part.table, part.sequence)
    except DelticError:
        return None
    values = changes.rows.column(part.table.schema.find(column)[0])
    values = (values.cast(pa.int32()) if pa.types.is_date32(values.type) else values).cast(pa.int64())
    earliest = pc.min(values).as_py()
    latest = pc.max(values.filter(pa.array(added(changes.ops, changes.weights)))).as_py()
    return None if earliest is None else (earliest, latest)


def inserted(frame: pa.Table, table: TableSchema) -> Changes:
    """A frame of new rows as changes."""
    rows = rows_frame(frame, table)
    n = rows.num_rows
    return Changes(rows, np.full(n, Op.INSERT if table.key else Op.WEIGHT, np.int64), np.arange(n), np.ones(n, np.int64))


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns frames into messages for the table's port, by shard. operations: weights become operations, which frames of others may have."""

    target: InputPort
    shards: int
    identity: Identity
    sequence: str | None = None
    inserts: bool = False
    operations: bool = False

    def messages(self, frame: pa.Table) -> Sequence[Message]:
        """Raises FrameError, ConstraintViolation, CollidingStrings."""
        strings = StringTable(self.identity, resolves=False)
        table = self.target.table
        changes = inserted(frame, table) if self.inserts else change_frame(frame, table, self.sequence)
        words = encode_changes(changes.rows, table, strings)
        pending = PendingRows.of(words, changes.ops, self._ordinals(frame, changes), changes.weights)
        pending = pending.as_operations() if self.operations else pending
        positions = Layout.of(table.schema).strings
        return [
            Message(shard, self.target.level, Kind.ROWS, payload)
            for shard, part in enumerate(route(pending.rows, self.target.key, self.shards))
            for payload in pack_parts([NamedRows(self.target.port, part, positions)] if len(part) else [], strings)
        ]

    def _ordinals(self, frame: pa.Table, changes: Changes) -> np.ndarray:
        """The values of the sequence column, not ranks, which could not be compared between batches."""
        if self.sequence is None:
            return np.full(len(changes.ops), UNORDERED, np.int64)
        (name,) = (name for name in frame.column_names if name.lower() == self.sequence.lower())
        values = frame.column(name)
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        elif pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        if not pa.types.is_integer(values.type):
            message = f"table {self.target.table.name}: the sequence column {name} is of type {values.type}"
            raise FrameError(message, expected="an integer, date or timestamp column")
        ascending = values.take(pc.sort_indices(values)).cast(pa.int64()).to_numpy()
        sequence = ascending[changes.ordinals]
        if (sequence == _LEAST).any():  # negative values move down by one, so that none of them is UNORDERED
            message = f"table {self.target.table.name}: the sequence column {name} has the value {_LEAST}"
            raise FrameError(message, expected=f"values from {_LEAST + 1} on")
        ordinals: np.ndarray = np.where(sequence < 0, sequence - 1, sequence)
        return ordinals
