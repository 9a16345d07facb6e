"""Merges beside the ticks: a Spark job of its own, from a thread of the driver, at most one at a time."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from deltic.errors import DelticError
from deltic.runtimes.spark.message import FRAME, LAST, Kind, Message, from_arrow, pack_json, to_arrow
from deltic.storage.files import FileRef, Origin
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.merging import large_merges, merge_segments
from deltic.storage.state import State

_log = logging.getLogger(__name__)

Group = tuple[SegmentRef, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The inputs of a merge and what it wrote; nothing if all cancelled."""

    inputs: Group
    file: FileRef | None
    segment: SegmentRef | None


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Maps messages, each with the batches of one merge, to messages with its result."""

    root: str
    generation: int
    epoch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for message in from_arrow(batches):
            asked = json.loads(message.payload)
            refs = {name: FileRef(name, size, crc) for name, size, crc in asked["files"]}
            group = [SegmentRef(message.shard, asked["arrangement"], name, rows) for name, rows in asked["segments"]]
            origin = Origin(self.generation, self.epoch, message.shard, message.level)
            try:
                file, segment = merge_segments(self.root, refs, group, origin)
            except DelticError as error:
                yield to_arrow([Message(message.shard, LAST, Kind.FAILURE, pack_json(str(error)))])
                continue
            result = None if file is None or segment is None else [file.name, file.size_bytes, file.checksum, segment.rows]
            yield to_arrow([Message(message.shard, LAST, Kind.OUTCOME, pack_json([asked["number"], result]))])


class Merger:
    """Starts merges and keeps their results until a commit takes them."""

    def __init__(self, spark: SparkSession, state: State) -> None:
        self._spark, self._state = spark, state
        self._pool = ThreadPoolExecutor(1, "deltic-merge")
        self._running: Future[list[Merged]] | None = None
        self._pinned = ExitStack()

    def start(self) -> None:
        """Starts the merges that are due, unless some run already."""
        if self._running is not None or not (groups := large_merges(self._state.manifest)):
            return
        origin = self._pinned.enter_context(self._state.merging())
        self._running = self._pool.submit(self._run, self._state.manifest, groups, origin)

    def take(self, wait: bool = False) -> list[Merged]:
        """Results that have not been taken. wait: for those of merges that still run."""
        if self._running is None or not (wait or self._running.done()):
            return []
        try:
            return self._running.result()
        except Exception:
            # Ticks do not need merges; what is due is tried again after the next commit.
            _log.warning("merging state beside the ticks failed", exc_info=True)
            return []
        finally:
            self._running = None

    def release(self) -> None:
        """Lets garbage collection have what the finished merges used: their results are committed, or given up."""
        if self._running is None:
            self._pinned.close()

    def close(self) -> None:
        """Waits for what runs, and gives its results up."""
        self.take(wait=True)
        self.release()
        self._pool.shutdown()

    def _run(self, manifest: Manifest, groups: Sequence[Group], origin: Origin) -> list[Merged]:
        rows = [Message(group[0].shard, 0, Kind.ASSIGNMENT, _asked(i, group, manifest)) for i, group in enumerate(groups)]
        frame = self._spark.createDataFrame(pa.Table.from_batches([to_arrow([row]) for row in rows]), FRAME)
        task = MergeTask(self._state.root, origin.generation, origin.epoch)
        messages = from_arrow(frame.mapInArrow(task.__call__, FRAME).toArrow().to_batches())
        for failed in (m for m in messages if m.kind is Kind.FAILURE):
            _log.warning("merging state beside the ticks failed: %s", json.loads(failed.payload))
        return [_result(groups, json.loads(m.payload)) for m in messages if m.kind is Kind.OUTCOME]


def _asked(number: int, group: Group, manifest: Manifest) -> bytes:
    files = [manifest.files[segment.file] for segment in group]
    return pack_json(
        {
            "number": number,
            "arrangement": group[0].arrangement,
            "files": [[f.name, f.size_bytes, f.checksum] for f in files],
            "segments": [[segment.file, segment.rows] for segment in group],
        }
    )


def _result(groups: Sequence[Group], found: Any) -> Merged:
    number, result = found
    inputs = groups[number]
    if result is None:
        return Merged(inputs, None, None)
    name, size, crc, rows = result
    return Merged(inputs, FileRef(name, size, crc), SegmentRef(inputs[0].shard, inputs[0].arrangement, name, rows))


def adopted(change: Change, merges: Sequence[Merged], manifest: Manifest) -> Change:
    """The change, with those merges whose inputs are all still part of the state and not touched by the change itself."""
    for merged in merges:
        if not manifest.holds(merged.inputs) or set(merged.inputs) & set(change.dropped):
            continue
        files = () if merged.file is None else (merged.file,)
        added = () if merged.segment is None else (merged.segment,)
        change = Change((*change.files, *files), (*change.added, *added), (*change.dropped, *merged.inputs), change.views, change.notes)
    return change
