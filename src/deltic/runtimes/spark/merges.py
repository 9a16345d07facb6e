"""Background merges on Spark: one job, in which each merge is a task."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from deltic.errors import DelticError
from deltic.runtimes.durable.merges import Group, Merged, partition_of
from deltic.runtimes.spark.job_descriptions import described
from deltic.runtimes.spark.message import FRAME, LAST, Kind, Message, from_arrow, pack_json, to_arrow
from deltic.storage.files import FileRef, Origin
from deltic.storage.manifest import Manifest, SegmentRef
from deltic.storage.merging import merge_segments

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Maps messages, each with the batches of one merge, to messages with its result."""

    root: str
    generation: int
    epoch: int
    shards: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for message in from_arrow(batches):
            request = json.loads(message.payload)
            refs = {name: FileRef(name, size, crc) for name, size, crc in request["files"]}
            group = [SegmentRef(message.shard, request["arrangement"], name, rows, ranged) for name, rows, ranged in request["segments"]]
            origin = Origin(self.generation, self.epoch, message.shard, message.level)
            try:
                file, segment = merge_segments(self.root, refs, group, origin, partition=request["partition"], shards=self.shards)
            except DelticError as error:
                yield to_arrow([Message(message.shard, LAST, Kind.FAILURE, pack_json(str(error)))])
                continue
            result = None if file is None or segment is None else [file.name, file.size_bytes, file.checksum, segment.rows]
            yield to_arrow([Message(message.shard, LAST, Kind.OUTCOME, pack_json([request["number"], result]))])


def merge_on_spark(spark: SparkSession, root: str, manifest: Manifest, groups: Sequence[Group], origin: Origin) -> list[Merged]:
    """The merges that succeeded; see durable.merges.Perform."""
    rows = [Message(group[0].shard, 0, Kind.ASSIGNMENT, _request(i, group, manifest)) for i, group in enumerate(groups)]
    frame = spark.createDataFrame(pa.Table.from_batches([to_arrow([row]) for row in rows]), FRAME)
    task = MergeTask(root, origin.generation, origin.epoch, manifest.shards)
    with described(spark, f"deltic {root}: {len(groups)} background merges", "deltic-merges"):
        messages = from_arrow(frame.mapInArrow(task.__call__, FRAME).toArrow().to_batches())
    for failed in (m for m in messages if m.kind is Kind.FAILURE):
        _log.warning("a background merge of state failed: %s", json.loads(failed.payload))
    return [_result(groups, json.loads(m.payload)) for m in messages if m.kind is Kind.OUTCOME]


def _request(number: int, group: Group, manifest: Manifest) -> bytes:
    files = [manifest.files[segment.file] for segment in group]
    return pack_json(
        {
            "number": number,
            "arrangement": group[0].arrangement,
            "partition": partition_of(manifest, group),
            "files": [[f.name, f.size_bytes, f.checksum] for f in files],
            "segments": [[segment.file, segment.rows, segment.ranged] for segment in group],
        }
    )


def _result(groups: Sequence[Group], outcome: Any) -> Merged:
    number, result = outcome
    inputs = groups[number]
    if result is None:
        return Merged(inputs, None, None)
    name, size, crc, rows = result
    return Merged(inputs, FileRef(name, size, crc), SegmentRef(inputs[0].shard, inputs[0].arrangement, name, rows))
