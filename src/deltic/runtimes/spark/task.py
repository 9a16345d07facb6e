"""A Spark task: one level of the circuit for the shards whose rows it receives.

A task is a function of the immutable files of its shards and of the rows that arrive: it may be repeated, killed, or run twice at the
same time. It writes one new file for each shard, syncs it, and returns its name; only the driver's manifest makes it real. User errors
are rows, never exceptions, since Spark retries tasks that raise.

The cache of this module lives as long as its Python worker: the last circuit, and of the last few states open files and spines by shard and
level.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import cloudpickle

from deltic.circuit.nodes import Dataflow, Level
from deltic.circuit.operator import Delta, Tick
from deltic.circuit.stage import Failure, LevelResult, run_level
from deltic.errors import DelticError
from deltic.runtimes.durable.outcome import Outcome
from deltic.runtimes.durable.strings import StateStrings
from deltic.runtimes.durable.version import shard_arrangements
from deltic.runtimes.durable.writing import write_shard
from deltic.runtimes.spark.message import (
    LAST,
    STOPS,
    Kind,
    Message,
    NamedRows,
    from_arrow,
    pack_blocks,
    pack_collision,
    pack_failure,
    pack_json,
    pack_outcome,
    pack_parts,
    to_arrow,
    unpack_parts,
)
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import FileRef, Origin
from deltic.storage.manifest import Manifest, SegmentRef
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.identity import Identity
from deltic.trace.merge import merge
from deltic.trace.rows import Rows
from deltic.trace.strings import CollidingStrings, StringTable

DIFFERENT_CODE: Final = "this worker's Deltic lacks a part of the circuit"
"""What a task reports that has another version of Deltic than the driver."""
INLINE_BYTES: Final = 1 << 16
"""Changes of views, and new strings, up to this size are sent to the driver; it reads larger ones from their file."""

WARM_STATES: Final = 4
"""How many states a worker has open between tasks."""


@dataclass(frozen=True, slots=True)
class PickledCircuit:
    """A circuit for the workers: pickled once, and unpickled once by each of them."""

    digest: str
    pickled: bytes
    shards: int
    identity: Identity

    @staticmethod
    def of(circuit: Dataflow, shards: int, identity: Identity) -> PickledCircuit:
        pickled: bytes = cloudpickle.dumps(circuit)  # type: ignore[no-untyped-call]
        return PickledCircuit(hashlib.sha256(pickled).hexdigest(), pickled, shards, identity)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A tick's task for one shard and level: the writer's generation, the tick, and the files of the state."""

    root: str
    generation: int
    tick: Tick
    files: Mapping[str, FileRef]
    segments: Mapping[str, tuple[SegmentRef, ...]]

    @staticmethod
    def of(root: str, generation: int, tick: Tick, level: Level, manifest: Manifest, shard: int) -> Assignment:
        shard_state = manifest.shard_states[shard]
        segments = {name: shard_state[name] for name in (*level.reads, *level.owned) if name in shard_state}
        files = {s.file: manifest.files[s.file] for entries in segments.values() for s in entries}
        return Assignment(root, generation, tick, files, segments)

    def pack(self) -> bytes:
        numbers = {name: i for i, name in enumerate(self.files)}
        tick = self.tick
        fresh = None if tick.fresh is None else sorted(tick.fresh)
        return pack_json(
            {
                "root": self.root,
                "generation": self.generation,
                "tick": [tick.epoch, tick.now_us, fresh, tick.before_us, dict(tick.watermarks), tick.amends, tick.since, tick.listed],
                "files": [[f.name, f.size_bytes, f.checksum] for f in self.files.values()],
                "segments": {name: [[numbers[s.file], s.rows, s.ranged] for s in entries] for name, entries in self.segments.items()},
            }
        )

    @staticmethod
    def unpack(payload: bytes, shard: int) -> Assignment:
        fields = json.loads(payload)
        epoch, now_us, fresh, before_us, marks, amends, since, listed = fields["tick"]
        watermarks = {table: (before, after) for table, (before, after) in marks.items()}
        tick = Tick(epoch, now_us, None if fresh is None else frozenset(fresh), before_us, watermarks, amends, since, listed)
        files = [FileRef(*file) for file in fields["files"]]
        segments = {
            name: tuple(SegmentRef(shard, name, files[i].name, rows, ranged) for i, rows, ranged in entries)
            for name, entries in fields["segments"].items()
        }
        return Assignment(fields["root"], fields["generation"], tick, {f.name: f for f in files}, segments)


@dataclass(slots=True)
class _WarmState:
    """What a worker has opened of a state for one of its writers, by shard and level."""

    generation: int
    files: dict[tuple[int, int], OpenFiles] = field(default_factory=dict)
    opened: dict[tuple[int, int], ShardArrangements] = field(default_factory=dict)


@dataclass(slots=True)
class _Warm:
    """A worker's cache between tasks. states: by folder, the last used one last."""

    circuits: dict[str, Dataflow] = field(default_factory=dict)
    states: dict[str, _WarmState] = field(default_factory=dict)
    frozen: bool = False

    def circuit(self, program: PickledCircuit) -> Dataflow:
        if program.digest not in self.circuits:
            self.circuits.clear()
            try:
                self.circuits[program.digest] = cloudpickle.loads(program.pickled)
            except AttributeError as error:
                raise RuntimeError(f"{DIFFERENT_CODE}: {error}") from error
        return self.circuits[program.digest]

    def arrangements(self, assignment: Assignment, circuit: Dataflow, shard: int, shards: int, level: int) -> ShardArrangements:
        """The shard's arrangements; spines whose batches are those of the last tick are reused."""
        state, key = self._state(assignment), (shard, level)
        files = state.files.setdefault(key, OpenFiles(assignment.root))
        files.keep(assignment.files)
        plan = circuit.levels[level]
        specs = {name: circuit.arrangements[name] for name in (*plan.reads, *plan.owned)}
        opened = shard_arrangements(files, assignment.files, assignment.segments, specs, shard, shards, state.opened.get(key))
        state.opened[key] = opened
        return opened

    def _state(self, assignment: Assignment) -> _WarmState:
        """That of an assignment, as the last used one.

        The files of earlier ones, and of earlier writers, are closed: nothing tells a worker that a state is.
        """
        state = self.states.pop(assignment.root, None)
        if state is None or state.generation != assignment.generation:
            state = _WarmState(assignment.generation)
        self.states[assignment.root] = state
        while len(self.states) > WARM_STATES:
            del self.states[next(iter(self.states))]
        return state

    def freeze(self) -> None:
        """Spark's worker collects garbage after each task; permanent objects need not be scanned each time."""
        if not self.frozen:
            gc.collect()
            gc.freeze()
            self.frozen = True


_warm = _Warm()


@dataclass(frozen=True, slots=True)
class LevelTask:
    """The function that Spark maps over the partitions of a level."""

    program: PickledCircuit
    level: int
    levels: int

    @property
    def __name__(self) -> str:
        """What Spark's plans call it."""
        return f"deltic_level_{self.level + 1}_of_{self.levels}"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = from_arrow(batches)
        circuit = _warm.circuit(self.program)
        for shard in sorted({m.shard for m in messages}):
            own = [m for m in messages if m.shard == shard]
            passing = [m for m in own if m.level > self.level]
            if any(m.kind in STOPS for m in own):
                yield to_arrow([m for m in passing if m.level == LAST])
                continue
            yield to_arrow([*passing, *self._run(circuit, shard, [m for m in own if m.level == self.level])])
        _warm.freeze()

    def _run(self, circuit: Dataflow, shard: int, messages: Sequence[Message]) -> list[Message]:
        (assigned,) = (m for m in messages if m.kind is Kind.ASSIGNMENT)
        assignment = Assignment.unpack(assigned.payload, shard)
        try:
            arrangements = _warm.arrangements(assignment, circuit, shard, self.program.shards, self.level)
            plan = circuit.levels[self.level]
            stored = StateStrings(arrangements.dictionaries()) if _has_strings(circuit, plan) else None
            strings = StringTable(self.program.identity, stored, resolves=False)
            arrived = _arrived([m.payload for m in messages if m.kind is Kind.ROWS], strings)
            result = run_level(circuit, self.level, shard, self.program.shards, arrangements, strings, arrived, assignment.tick)
            if result.failure is not None:
                return self._stopped(Kind.FAILURE, pack_failure(result.failure))
            outcome = write_shard(
                circuit,
                arrangements,
                result.appended,
                result.counters,
                strings,
                root=assignment.root,
                origin=Origin(assignment.generation, assignment.tick.epoch, shard, self.level),
                shards=self.program.shards,
                filled=assignment.tick.fresh is not None,
            )
        except DelticError as error:
            return self._stopped(Kind.FAILURE, pack_failure(Failure.of(error)))
        except CollidingStrings as collision:
            return self._stopped(Kind.COLLISION, pack_collision(collision))
        return [*self._sent(circuit, shard, result, strings), *_report(circuit, outcome, result.appended, strings)]

    def _stopped(self, kind: Kind, payload: bytes) -> list[Message]:
        """For the driver; and for every shard, once, so that the later levels do nothing."""
        return [Message(shard, LAST, kind, payload) for shard in range(self.program.shards)]

    def _sent(self, circuit: Dataflow, shard: int, result: LevelResult, strings: StringTable) -> list[Message]:
        messages = []
        ports = {port.name: port for port in circuit.levels[self.level].leaves}
        for level in sorted({port.target_level for port in ports.values()}):
            for target in range(self.program.shards):
                parts = [
                    NamedRows(name, result.sent[name][target], port.strings)
                    for name, port in ports.items()
                    if port.target_level == level and len(result.sent[name][target])
                ]
                messages += [Message(target, level, Kind.ROWS, payload) for payload in pack_parts(parts, strings)]
        return messages


def _has_strings(circuit: Dataflow, level: Level) -> bool:
    ports = (*level.arrives, *level.leaves)
    return any(p.strings for p in ports) or any(circuit.arrangements[a].strings for a in (*level.reads, *level.owned))


def _arrived(payloads: Iterable[bytes], strings: StringTable) -> dict[str, Delta]:
    """The rows of each port, and their strings in the table. Blocks come in any order: sorted, the same rows give the same result."""
    parts: dict[str, list[Rows]] = {}
    for payload in sorted(payloads):
        rows, dictionary = unpack_parts(payload)
        if len(dictionary):
            strings.absorb(dictionary.export())
        for name, part in rows.items():
            parts.setdefault(name, []).append(part)
    return {name: _joined(pieces) for name, pieces in parts.items()}


def _joined(parts: Sequence[Rows]) -> Rows:
    """A batch if all parts are: what a level passes on to its own shard stays one."""
    batches = [part for part in parts if isinstance(part, Batch)]
    return merge(batches) if len(batches) == len(parts) else Rows.concat(parts)


def _report(circuit: Dataflow, outcome: Outcome, appended: Mapping[str, Batch], strings: StringTable) -> list[Message]:
    """The messages of a task to the driver: its outcome, its new strings, and small changes of views."""
    small = [
        NamedRows(name, appended[name], circuit.arrangements[name].strings)
        for name, _ in outcome.views
        if appended[name].nbytes <= INLINE_BYTES
    ]
    changes = [Message(outcome.shard, LAST, Kind.CHANGE, payload) for payload in pack_parts(small, strings)]
    return [Message(outcome.shard, LAST, Kind.OUTCOME, pack_outcome(outcome)), *_new_strings(outcome, strings), *changes]


def _new_strings(outcome: Outcome, strings: StringTable) -> list[Message]:
    """Those that may be stored on this shard for the first time."""
    fresh = Dictionary.of(strings.fresh())
    if outcome.file is None or not len(fresh):
        return []
    if fresh.ids.nbytes + fresh.text.nbytes > INLINE_BYTES:
        return [Message(outcome.shard, LAST, Kind.FILE_STRINGS, outcome.file.name.encode())]
    return [Message(outcome.shard, LAST, Kind.STRINGS, pack_blocks((), fresh))]
