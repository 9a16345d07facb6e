"""The data source "deltic": a view of a state folder as a DataFrame, or its changes as a stream or as a DataFrame.

`load` fixes the epoch of a DataFrame. Spark requests the columns without saying whether it will stream, so a stream needs the option
`changes`; and it does not tell a Python data source which columns a query needs, so the option `columns` names those to decode. Each
process that reads takes a lease and lets it expire, since no task can tell whether it is the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructField, StructType

from deltic.errors import FrameError, SetupError
from deltic.runtimes.spark.arrays import for_spark, in_spark
from deltic.runtimes.spark.feed import EARLIEST, EPOCH, Piece, Position, ViewFeed, read_piece
from deltic.runtimes.spark.filters import columns_of, keys, passing
from deltic.runtimes.spark.read_options import LOCATION, ReadOptions
from deltic.runtimes.spark.types import spark_type
from deltic.runtimes.stored_view import StoredView
from deltic.runtimes.view_layout import ViewLayout
from deltic.schema import BIGINT, Field, Schema
from deltic.storage.reader import StateReader
from deltic.trace.reading import WEIGHT, copied

FORMAT: Final = "deltic"
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
PART_ROWS: Final = 1 << 18
"""How many rows of changes one task reads."""
_MARKS: Final = (Field(WEIGHT, BIGINT, nullable=False), Field(EPOCH, BIGINT, nullable=False))


def register(spark: SparkSession) -> None:
    """Makes `spark.read.format("deltic")` and `spark.readStream.format("deltic")` work in this session.

    It also lets Spark push filters into Python data sources, without which Spark refuses a read with the option `pushdown`.
    """
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(DelticSource)


def frame_of(spark: SparkSession, rows: pa.Table, schema: Schema) -> DataFrame:
    """Rows of this process as a DataFrame. rows: the columns of schema; intervals of months have the type of their Arrow form."""
    kinds = [
        from_arrow_type(arrow) if f.type.has_months else spark_type(f.type) for f, arrow in zip(schema, rows.schema.types, strict=True)
    ]
    return spark.createDataFrame(rows, StructType([StructField(f.name, kind, f.nullable) for f, kind in zip(schema, kinds, strict=True)]))


class DelticSource(DataSource):
    """The data source of `format("deltic")`; its options are those of ReadOptions."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """The view's columns, in its order; for changes, then `_weight` and `_epoch`. Fixes the epoch that is read, except for a table.

        The catalog keeps a table's options, but Spark 4.2 passes none to a reader, so the columns carry them.
        """
        options = ReadOptions.of(self.options)
        with leaving(StateReader.open(options.root, options.epoch, follows=False)) as reader:
            view = ViewLayout.of(reader.manifest.program, options.view)
            if not options.changes and LOCATION not in self.options:
                self.options["epoch"] = str(reader.epoch)
        fields = _chosen(view.schema, options.columns, view.name)
        marks = _marks(fields, view.name) if options.changes else ()
        carried = {FORMAT: dict(options.given)} if LOCATION in self.options else None
        return StructType([StructField(f.name, spark_type(f.type), f.nullable, carried) for f in (*fields, *marks)])

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._options(schema)
        if options.changes:
            return ChangesReader(options, schema)
        return FilteredReader(options, schema) if options.pushdown else ViewReader(options, schema)

    def streamReader(self, schema: StructType) -> ChangesStream:
        options = self._options(schema)
        if not options.changes:
            raise SetupError(
                f"the stream of view {options.view} lacks the columns {WEIGHT} and {EPOCH}",
                expected="a stream of changes",
                remedy='add .option("changes", "true") before load',
            )
        return ChangesStream(options, schema)

    def _options(self, schema: StructType) -> ReadOptions:
        """Those of the read, over those of the table."""
        carried = schema.fields[0].metadata.get(FORMAT, {}) if schema.fields else {}
        if not carried and not self.options:
            message = "the columns of a table in the format deltic were declared, so that it lost its options"
            raise SetupError(message, remedy="CREATE TABLE t USING deltic OPTIONS (view …, path …), without columns")
        return ReadOptions.of({**carried, **self.options})


class ViewReader(DataSourceReader):
    """A view's content at one epoch: a task for each shard that can have rows, or one for all shards if no hash names a row's shard."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        with leaving(StateReader.open(self._options.root, self._options.epoch, follows=False)) as reader:
            view = StoredView(reader, self._options.view)
            _checked(view._layout, self._schema)
            lookups = keys(self._filters, view._layout.leading)
            return [InputPartition((reader.epoch, shards, lookups)) for shards in view._layout.homes(lookups, view._shards)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's own partition if there is no other
            return
        epoch, shards, lookups = partition.value
        with leaving(StateReader.open(self._options.root, epoch, follows=False)) as reader:
            view = StoredView(reader, self._options.view)
            arrow = _arrow(self._schema, view._layout.schema)
            names = {*arrow.names, *columns_of(self._filters, view._layout.schema)}
            for words, weights, strings in view._scan(shards, lookups):
                copies = copied(words, weights)
                table = view._layout.decoded(copies, names, strings)
                yield from _batches(passing(table, self._filters, view._layout.schema), arrow)


class FilteredReader(ViewReader):
    """As ViewReader, for the rows that pass the query's filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Accepts all filters, and returns them so that Spark evaluates them again."""
        self._filters = filters
        return filters


class ChangesReader(DataSourceReader):
    """The changes of a range of epochs as a DataFrame."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options, self._schema = options, schema

    def partitions(self) -> Sequence[InputPartition]:
        with leaving(StateReader.open(self._options.root, oldest=True)) as reader:
            feed, newest = _feed(reader, self._options, self._schema), reader.epochs()[-1]
            start = feed.begin(self._options.starting or EARLIEST)
            last = newest if self._options.ending is None else min(self._options.ending, newest)
            return _parts(feed, start, feed.end(start, last))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _changes(self._options.root, self._schema, partition)


class ChangesStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The changes of a view, epoch by epoch. While the query runs, a lease retains the epochs that it has not read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._reader: StateReader | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        return self._feed.begin(self._options.starting).json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        feed = self._feed
        last = feed.reader.epochs()[-1] if self._target is None else self._target
        return feed.end(Position.parse(start), last).json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._feed.reader.epochs()[-1]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _parts(self._feed, Position.parse(start), Position.parse(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _changes(self._options.root, self._schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Releases the epochs before `end`."""
        before, self._reader = self._reader, StateReader.open(self._options.root, Position.parse(end).epoch)
        self._reader.share()
        if before is not None:
            before.close()

    def stop(self) -> None:
        if self._reader is not None:
            self._reader.close()

    @property
    def _feed(self) -> ViewFeed:
        """Its lease keeps all epochs from the last that was committed on; at first, those that are retained when it is opened."""
        if self._reader is None:
            self._reader = StateReader.open(self._options.root, oldest=True)
            self._reader.share()
        return _feed(self._reader, self._options, self._schema)


@contextmanager
def leaving(reader: StateReader) -> Iterator[StateReader]:
    """A reader whose lease outlives the block, for the processes that read next."""
    try:
        yield reader
    finally:
        reader.leave()


def _feed(reader: StateReader, options: ReadOptions, schema: StructType) -> ViewFeed:
    """Raises FrameError if the requested columns are not those of a change."""
    own = [field for field in schema.fields if field.name not in (WEIGHT, EPOCH)]
    if len(own) + len(_MARKS) != len(schema.fields):
        message = f"the requested changes of view {options.view} lack {WEIGHT} or {EPOCH}"
        raise FrameError(message, expected="both after the view's columns")
    return ViewFeed(reader, options.view, StructType(own))


def _parts(feed: ViewFeed, start: Position, end: Position) -> list[InputPartition]:
    """Contents by shard, changes by a number of rows."""
    parts: list[list[Piece]] = []
    rows = PART_ROWS
    for piece in feed.pieces(start, end):
        if not piece.files or rows + piece.rows > PART_ROWS:
            parts.append([])
            rows = 0
        parts[-1].append(piece)
        rows = PART_ROWS if not piece.files else rows + piece.rows
    return [InputPartition(part) for part in parts]


def _changes(root: str, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    for piece in partition.value or ():
        arrow = _arrow(schema, Schema((*piece.view.schema, *_MARKS)))
        for table in read_piece(root, piece, arrow.names):
            yield from _batches(table, arrow)


def _chosen(schema: Schema, columns: Sequence[str] | None, view: str) -> tuple[Field, ...]:
    """The fields that the option `columns` names, in its order."""
    if columns is None:
        return schema.fields
    for name in columns:
        if not schema.find(name):
            raise FrameError(f"view {view} has no column {name}", expected=f"some of {', '.join(schema.names)}")
    return tuple(schema[schema.find(name)[0]] for name in columns)


def _marks(fields: Iterable[Field], view: str) -> tuple[Field, ...]:
    reserved = {f.name.lower() for f in fields} & {f.name for f in _MARKS}
    if reserved:
        raise FrameError(f"view {view} has a column {reserved.pop()}, a reserved name in changes", remedy="rename the view's column")
    return _MARKS


def _checked(view: ViewLayout, schema: StructType) -> Schema:
    """The view's fields with these names, which must have these types: `.schema(…)` may name others."""
    own = {f.name: f for f in view.schema}
    for field in schema.fields:
        stored = own.get(field.name)
        if stored is None:
            raise FrameError(f"view {view.name} has no column {field.name}", expected=f"some of {', '.join(own)}")
        if spark_type(stored.type) != field.dataType or (stored.nullable and not field.nullable):
            kind = f"{stored.type}{'' if stored.nullable else ' NOT NULL'}"
            message = f"column {field.name} of view {view.name} is read as {field.dataType.simpleString().upper()}"
            raise FrameError(message + ("" if field.nullable else " NOT NULL"), expected=kind)
    return Schema(tuple(own[field.name] for field in schema.fields))


def _arrow(schema: StructType, fields: Schema) -> pa.Schema:
    """The Arrow schema that Spark requires: it compares names, types and nullability."""
    types = {f.name: in_spark(f.type.arrow) for f in fields}
    return pa.schema([pa.field(field.name, types[field.name], field.nullable) for field in schema.fields])


def _batches(table: pa.Table, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    columns = [
        pa.chunked_array([for_spark(chunk) for chunk in column.chunks], type)
        for column, type in zip(map(table.column, arrow.names), arrow.types, strict=True)
    ]
    whole = pa.Table.from_arrays(columns, schema=arrow)
    yield from whole.combine_chunks().to_batches()
