"""The Spark runtime: state in a folder, each tick one action whose tasks run the stage function, committed by one manifest.

The driver decides what must be the same everywhere (epoch, time, which files are the state) and commits; it reads state only for
users. Only the DataFrame API is used. Until the manifest is there nothing has happened: files that tasks wrote are garbage.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from deltic.circuit.nodes import Circuit, Port
from deltic.circuit.operator import Tick
from deltic.circuit.stage import route
from deltic.errors import StateError
from deltic.runtimes import TickResult
from deltic.runtimes.embedded.runtime import DEFAULT_SEED
from deltic.runtimes.program import EMPTY, Notes, backfill, described, next_tick
from deltic.runtimes.spark.changes import EncodeTask, SparkChanges
from deltic.runtimes.spark.merges import Merger, adopted
from deltic.runtimes.spark.message import (
    FRAME,
    Kind,
    Message,
    Part,
    bundle,
    from_arrow,
    pack_parts,
    to_arrow,
    unpack_counters,
    unpack_failure,
    unpack_parts,
)
from deltic.runtimes.spark.task import Assignment, LevelTask, Program, find_strings
from deltic.storage.files import FileRef
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.reading import OpenFiles, Shelved
from deltic.storage.state import RETAINED_EPOCHS, State
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

BUNDLE_BYTES: Final = 1 << 23
"""What the driver sends to one shard without an exchange."""

CROWDED: Final = 40
"""From how many batches of one arrangement on a tick waits for the merge that runs."""

HASH_VERSION: Final = 1
Tables = Mapping[str, Rows | SparkChanges]


@dataclass(frozen=True, slots=True)
class _Current:
    """What readers see: one commit as a whole."""

    circuit: Circuit
    manifest: Manifest
    shelves: tuple[Shelved, ...]


class SparkRuntime:
    """state: the folder, which tasks and driver must both reach; without one, a temporary one that goes with the runtime.

    shards: into how many hash ranges a new state is split (default: the session's parallelism).
    """

    def __init__(
        self,
        spark: SparkSession,
        state: str | None = None,
        shards: int | None = None,
        *,
        retain: int = RETAINED_EPOCHS,
        shared_state: bool = False,
    ) -> None:
        self._spark, self._shared_state = spark, shared_state
        self._temporary = tempfile.TemporaryDirectory(prefix="deltic-") if state is None else None
        root = self._temporary.name if self._temporary else state
        assert root is not None
        facts = {"seed": DEFAULT_SEED, "hash": HASH_VERSION, **EMPTY}
        new = shards is None and not os.path.isdir(os.path.join(root, "manifests"))
        self._state = State.open(root, shards=parallelism(spark) if new else shards, facts=facts, retain=retain)
        self.shards = self._state.manifest.shards
        self._files = OpenFiles(self._state.root)
        self._current = self._view(Circuit.empty(), None)
        self.strings: StringTable = DriverStrings(self._state.manifest.notes["seed"], _Kept(self))
        self._program = Program.of(self._current.circuit, self.shards, self.strings.seed)
        self._merger = Merger(spark, self._state)

    @property
    def epoch(self) -> int:
        return self._current.manifest.epoch

    @property
    def notes(self) -> Notes:
        return self._current.manifest.notes

    def install(self, circuit: Circuit, *, dropped: Collection[str] = (), notes: Notes | None = None) -> TickResult:
        """A new program; see Runtime. One tick for what has to be filled, one commit at most."""
        manifest = self._state.manifest
        notes = {**(notes or {}), **described(circuit, manifest.notes, dropped)}
        fresh = frozenset(circuit.arrangements) - frozenset(manifest.notes["arrangements"])
        gone = tuple(s for s in manifest.segments() if s.arrangement not in notes["arrangements"])
        program = Program.of(circuit, self.shards, self.strings.seed)
        base = Change(dropped=gone, notes={k: note for k, note in notes.items() if note != manifest.notes.get(k)})
        if fresh:
            tick = backfill(manifest.epoch, manifest.notes, notes, fresh)
            result = self._run(circuit, program, {}, tick, base)
        else:
            if gone or base.notes:
                self._state.commit(base)
            self._current = self._view(circuit, self._current)
            result = TickResult(self.epoch, {}, {}, 0.0)
        self._program = program
        return result

    def tick(self, changes: Tables, notes: Notes | None = None) -> TickResult:
        """One tick; see Runtime. A table's changes may be a frame that stays on Spark."""
        tick = next_tick(self._state.epoch, self._state.manifest.notes, notes or {})
        return self._run(self._current.circuit, self._program, changes, tick, Change(notes=notes or {}))

    def changes_at(self, view: str, epoch: int) -> Batch | None:
        """See Runtime."""
        manifest = self._current.manifest
        if epoch != manifest.epoch:
            raise StateError(f"the changes of epoch {epoch} are not kept", expected=f"epoch {manifest.epoch}")
        arrangement = self._current.circuit.views[view]
        segments = [segment for segment in manifest.views if segment.arrangement == arrangement]
        parts = [self._files[manifest.files[segment.file]].change(arrangement) for segment in segments]
        return merge(parts) if parts else None

    def snapshot(self, arrangement: str) -> list[Spine]:
        return [shelved[arrangement] for shelved in self._current.shelves]

    def statistics(self) -> Mapping[str, tuple[int, int]]:
        """(rows, bytes) of each arrangement; the bytes of words, indexes apart. Reads no state."""
        current = self._current
        rows = dict.fromkeys(current.circuit.arrangements, 0)
        for segment in current.manifest.segments():
            if segment.arrangement in rows:
                rows[segment.arrangement] += segment.rows
        specs = current.circuit.arrangements
        return {name: (n, 8 * n * (specs[name].columns + specs[name].weights)) for name, n in rows.items()}

    def settle(self) -> None:
        """Waits for the merges that run beside the ticks, and commits them in an epoch of their own."""
        if merges := self._merger.take(wait=True):
            self._finish(self._current.circuit, adopted(Change(), merges, self._state.manifest))

    def close(self) -> None:
        """Gives the state folder back; the Spark session is the user's."""
        self._merger.close()
        self._state.close()
        self._files.keep(())
        if self._temporary is not None:
            self._temporary.cleanup()

    def dictionaries(self) -> Iterable[Any]:
        """Those of the committed state, the newest first."""
        manifest = self._current.manifest
        return (self._files[manifest.files[name]].dictionary() for name in sorted(manifest.files, reverse=True))

    def _run(self, circuit: Circuit, program: Program, changes: Tables, tick: Tick, base: Change) -> TickResult:
        start = time.perf_counter()
        frame = self._frame(circuit, program, changes, tick)
        messages = from_arrow(frame.toArrow().to_batches())
        failures = [unpack_failure(m.payload) for m in messages if m.kind is Kind.FAILURE]
        if failures:
            raise min(failures, key=lambda f: f.rank).error()
        outcomes = [(m.shard, json.loads(m.payload)) for m in messages if m.kind is Kind.OUTCOME]
        assert len(outcomes) == self.shards * len(circuit.levels), "a task's outcome is missing"
        found = _change(outcomes, base)
        inline = [(m.shard, m.payload) for m in messages if m.kind is Kind.CHANGE]
        views = self._view_changes(circuit, found, inline)
        self._commit(circuit, found)
        return TickResult(tick.epoch, views, _counted(outcomes), time.perf_counter() - start)

    def _commit(self, circuit: Circuit, change: Change) -> None:
        crowded = any(len(segments) >= CROWDED for shelf in self._state.manifest.shelves for segments in shelf.values())
        merges = self._merger.take(wait=crowded)
        self._finish(circuit, adopted(change, merges, self._state.manifest))

    def _finish(self, circuit: Circuit, change: Change) -> None:
        self._state.commit(change)
        self._merger.release()
        self._current = self._view(circuit, self._current)
        self._files.keep(self._current.manifest.files)
        self._merger.start()

    def _view(self, circuit: Circuit, before: _Current | None) -> _Current:
        manifest = self._state.manifest
        widths = {name: (spec.columns, spec.weights) for name, spec in circuit.arrangements.items()}
        shelves = tuple(
            Shelved(self._files, manifest.files, shelf, widths, before.shelves[shard] if before else None)
            for shard, shelf in enumerate(manifest.shelves)
        )
        return _Current(circuit, manifest, shelves)

    def _frame(self, circuit: Circuit, program: Program, changes: Tables, tick: Tick) -> DataFrame:
        """The tick as one plan: what the driver has, what stays on Spark, and a stage for each level with an exchange before it."""
        ports = {port.name: port for level in circuit.levels for port in level.arrives if port.source_level < 0}
        held = {name: rows for name, rows in changes.items() if isinstance(rows, Rows)}
        distributed = {name: found for name, found in changes.items() if isinstance(found, SparkChanges)}
        messages = self._messages(circuit, held, ports, tick)
        frame, exchanged = self._first(messages, bool(distributed))
        for name, found in distributed.items():
            port = ports[f"table:{name}"]
            key = circuit.routes[name]
            task = EncodeTask(found.table, key, port.name, port.target_level, self.shards, self.strings.seed, found.sequence)
            frame = frame.union(found.frame.mapInArrow(task.__call__, FRAME))
        for level in circuit.levels:
            if level.index or exchanged:
                frame = frame.repartitionById(self.shards, "shard")
            frame = frame.mapInArrow(LevelTask(program, level.index).__call__, FRAME)
        return frame

    def _messages(self, circuit: Circuit, held: Mapping[str, Rows], ports: Mapping[str, Port], tick: Tick) -> list[list[Message]]:
        """What each shard gets from the driver."""
        manifest = self._state.manifest
        messages = [
            [
                Message(
                    shard,
                    level.index,
                    Kind.ASSIGNMENT,
                    Assignment.of(self._state.root, self._state.generation, tick, level, manifest, shard).pack(),
                )
                for level in circuit.levels
            ]
            for shard in range(self.shards)
        ]
        parts: dict[tuple[int, int], list[Part]] = {}
        for name, rows in held.items():
            port = ports[f"table:{name}"]
            for shard, part in enumerate(route(rows, circuit.routes[name], self.shards)):
                if len(part):
                    parts.setdefault((shard, port.target_level), []).append(Part(port.name, part, port.strings))
        for (shard, level), found in parts.items():
            messages[shard] += [Message(shard, level, Kind.ROWS, payload) for payload in pack_parts(found, self.strings)]
        return messages

    def _first(self, messages: Sequence[Sequence[Message]], distributed: bool) -> tuple[DataFrame, bool]:
        """The driver's messages as a frame, and whether an exchange must bring them to their shards."""
        large = any(sum(len(m.payload) for m in found) > BUNDLE_BYTES for found in messages)
        if distributed or large:
            batches = [to_arrow([message]) for found in messages for message in found]
        else:
            batches = [to_arrow([bundle(shard, found)]) for shard, found in enumerate(messages)]
        return self._spark.createDataFrame(pa.Table.from_batches(batches), FRAME), distributed or large

    def _view_changes(self, circuit: Circuit, change: Change, inline: Sequence[tuple[int, bytes]]) -> dict[str, Batch]:
        """The change of each view that changed, its shards merged; what is not inline is read from its file."""
        parts: dict[tuple[int, str], Batch] = {}
        for shard, payload in inline:
            found, dictionary = unpack_parts(payload)
            self.strings.absorb(dictionary.export())
            parts.update(((shard, name), Batch.trusted(rows.columns, rows.weights)) for name, rows in found.items())
        refs = {file.name: file for file in change.files}
        for segment in change.views:
            if (segment.shard, segment.arrangement) not in parts:
                parts[segment.shard, segment.arrangement] = self._files[refs[segment.file]].change(segment.arrangement)
        changes = {}
        for view, arrangement in circuit.views.items():
            mine = [batch for (_, name), batch in sorted(parts.items(), key=lambda item: item[0]) if name == arrangement]
            if mine and len(merged := merge(mine)):
                changes[view] = merged
        return changes


def _change(outcomes: Sequence[tuple[int, Any]], base: Change) -> Change:
    """What all tasks together did, beside `base`."""
    files: list[FileRef] = list(base.files)
    added, dropped, views = list(base.added), list(base.dropped), list(base.views)
    for shard, outcome in outcomes:
        if outcome["file"] is not None:
            name, size, crc = outcome["file"]
            files.append(FileRef(name, size, crc))
            added += [SegmentRef(shard, arrangement, name, rows) for arrangement, rows in outcome["added"]]
            views += [SegmentRef(shard, arrangement, name, rows) for arrangement, rows in outcome["views"]]
        dropped += [SegmentRef(shard, arrangement, file, rows) for arrangement, file, rows in outcome["dropped"]]
    return Change(tuple(files), tuple(added), tuple(dropped), tuple(views), base.notes)


def _counted(outcomes: Sequence[tuple[int, Any]]) -> dict[str, Counters]:
    """By node, summed over the shards."""
    total: dict[str, Counters] = {}
    for _, outcome in outcomes:
        for name, counters in unpack_counters(outcome["counters"]).items():
            total[name] = total.get(name, Counters())
            total[name] += counters
    return total


def parallelism(spark: SparkSession) -> int:
    """How many tasks the session runs at a time; its settings say it, or else Spark is asked."""
    if (found := spark.conf.get("spark.default.parallelism", "")) and found.isdigit():
        return int(found)
    if match := re.fullmatch(r"local\[(\d+|\*)(?:,\d+)?\]", spark.conf.get("spark.master", "") or ""):
        return (os.cpu_count() or 1) if match[1] == "*" else int(match[1])
    return spark.range(1 << 16).select(spark_partition_id()).distinct().count()


class _Kept:
    """The strings of the committed state, for the driver's table."""

    def __init__(self, runtime: SparkRuntime) -> None:
        self._runtime = runtime
        self._interning = local()

    @contextmanager
    def interning(self) -> Any:
        """While this thread interns, nothing is looked up: tasks verify new strings against their shard's files, where they belong."""
        self._interning.now = True
        try:
            yield
        finally:
            self._interning.now = False

    def find(self, ids: Any) -> tuple[Any, pa.BinaryArray]:
        if getattr(self._interning, "now", False):
            return np.zeros(len(ids), bool), pa.array([], pa.binary())
        return find_strings(self._runtime.dictionaries(), ids)


class DriverStrings(StringTable):
    """The driver's string table: new strings are taken as they come, old ones are found in the state when they are read."""

    def intern(self, array: pa.Array) -> Any:
        assert isinstance(self.parent, _Kept)
        with self.parent.interning():
            return super().intern(array)
