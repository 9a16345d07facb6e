"""Changes of sources that tasks read where they run, and functions that run in tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from deltic.circuit.stage import Failure
from deltic.connectors.frames import OP
from deltic.connectors.source import POSITION, Json, RemoteRows, Run
from deltic.errors import DelticError
from deltic.runtimes.spark.changes import (
    EXTREMES,
    Encoder,
    InputPort,
    Messages,
    TaggedTable,
    extremes_of,
    extremes_row,
)
from deltic.runtimes.spark.failures import run_job
from deltic.runtimes.spark.message import FRAME, LAST, Kind, Message, pack_collision, pack_failure, to_arrow, unpack_failure
from deltic.schema import TableSchema
from deltic.trace.identity import Identity
from deltic.trace.strings import CollidingStrings


@dataclass(frozen=True, slots=True)
class SourceChanges(Messages):
    """The changes of a batch of a source: a task for each of its parts."""

    spark: SparkSession
    rows: RemoteRows
    table: TableSchema

    @property
    def tables(self) -> Mapping[str, TableSchema]:
        return {self.table.name: self.table}

    def extremes(self, columns: Mapping[str, str]) -> Mapping[str, tuple[int, int | None]]:
        column = columns.get(self.table.name)
        if column is None:
            return {}
        task = SourceExtremes(self.rows, self.table, column)
        return extremes_of(_numbers(self.spark, self.rows.parts).mapInArrow(task.__call__, EXTREMES), [self.table.name])

    def messages(self, spark: SparkSession, ports: Mapping[str, InputPort], shards: int, identity: Identity) -> DataFrame:
        task = SourceTask(self.rows, ports[self.table.name], shards, identity)
        return _numbers(spark, self.rows.parts).mapInArrow(task.__call__, FRAME)


@dataclass(frozen=True, slots=True)
class SourceTask:
    """Maps the numbers of parts to messages."""

    rows: RemoteRows
    port: InputPort
    shards: int
    identity: Identity

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _of(batches):
            try:
                for frame in self.rows.frames(number):
                    yield to_arrow(self._encoder(frame).messages(frame))
            except DelticError as error:
                yield self._stopped(Kind.FAILURE, pack_failure(Failure.of(error)))
            except CollidingStrings as collision:
                yield self._stopped(Kind.COLLISION, pack_collision(collision))

    def _encoder(self, frame: pa.Table) -> Encoder:
        ordered = OP in frame.column_names
        return Encoder(self.port, self.shards, self.identity, POSITION if ordered else None, inserts=not ordered)

    def _stopped(self, kind: Kind, content: bytes) -> pa.RecordBatch:
        return to_arrow([Message(shard, LAST, kind, content) for shard in range(self.shards)])


@dataclass(frozen=True, slots=True)
class SourceExtremes:
    """Maps the numbers of parts to rows of EXTREMES."""

    rows: RemoteRows
    table: TableSchema
    column: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _of(batches):
            try:
                for frame in self.rows.frames(number):
                    ordered = OP in frame.column_names
                    part = TaggedTable(self.table, POSITION if ordered else None, not ordered)
                    if (row := extremes_row(frame, 0, part, self.column)) is not None:
                        yield row
            except DelticError:  # the tick reports it
                continue


@dataclass(frozen=True, slots=True)
class NumberedTask:
    """Maps numbers to what a function gives for them, in JSON."""

    function: Callable[[int], Json]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _of(batches):
            try:
                answer, failure = json.dumps(self.function(number)), None
            except DelticError as error:
                answer, failure = None, pack_failure(Failure.of(error)).decode()
            texts = [pa.array([text], pa.string()) for text in (answer, failure)]
            yield pa.RecordBatch.from_arrays([pa.array([number], pa.int64()), *texts], ["number", "answer", "failure"])


def run_on_tasks(spark: SparkSession) -> Run:
    """Each call is one job with a task for each number."""

    def run(function: Callable[[int], Json], count: int) -> list[Json]:
        frame = _numbers(spark, count).mapInArrow(NumberedTask(function).__call__, "number BIGINT, answer STRING, failure STRING")
        rows = sorted(run_job(frame.collect), key=lambda row: row[0])
        if (failure := next((row[2] for row in rows if row[2] is not None), None)) is not None:
            raise unpack_failure(failure.encode()).error()
        return [json.loads(row[1]) for row in rows]

    return run


def _numbers(spark: SparkSession, count: int) -> DataFrame:
    """0 to count - 1, each in a partition of its own."""
    return spark.range(0, count, 1, max(count, 1))


def _of(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
