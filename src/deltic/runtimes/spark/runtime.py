"""The Spark runtime: a tick is one action whose tasks run the stage function, committed by one manifest.

The driver fixes what must be the same everywhere (epoch, time, the files of the state) and commits. It computes small ticks itself, as the
embedded runtime does: that takes less time than to make a plan for Spark. Otherwise it reads state only for users. Only the DataFrame API
is used.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from deltic.circuit.functions import fills_by_functions
from deltic.circuit.nodes import Dataflow, Port
from deltic.circuit.operator import Tick
from deltic.circuit.pending import PendingRows
from deltic.circuit.stage import route
from deltic.errors import SetupError
from deltic.runtimes import RETAINED_EPOCHS
from deltic.runtimes.durable.merges import Group, Merged
from deltic.runtimes.durable.outcome import PerformedTick
from deltic.runtimes.durable.version import DurableVersion
from deltic.runtimes.embedded.durable import DurableEmbedded
from deltic.runtimes.embedded.levels import Budget, BudgetExceeded, work_of
from deltic.runtimes.spark.changes import InputPort, Messages
from deltic.runtimes.spark.failures import check_workers, run_job
from deltic.runtimes.spark.job_descriptions import described, tick_description
from deltic.runtimes.spark.merges import merge_on_spark
from deltic.runtimes.spark.message import (
    FRAME,
    Kind,
    Message,
    NamedRows,
    bundle,
    from_arrow,
    pack_parts,
    to_arrow,
    unpack_collision,
    unpack_failure,
    unpack_outcome,
    unpack_parts,
)
from deltic.runtimes.spark.reach import check_reach
from deltic.runtimes.spark.task import Assignment, LevelTask, PickledCircuit
from deltic.schema import TableSchema
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import FileRef, Origin
from deltic.storage.folder import open_folder
from deltic.storage.history import epochs_in
from deltic.storage.manifest import Manifest
from deltic.trace.batch import Batch

DRIVER_ROWS: Final = "spark.deltic.driverRows"
"""The setting of a Spark session: a tick of up to so many rows is computed by the driver. 0: every tick is a job."""
SMALL_ROWS: Final = 1 << 17
"""Its default."""
SMALL_WORK: Final = 1 << 21
"""How much the driver may do for a tick, see `work_of`: about a fifth of a second. One that takes more starts again on Spark."""
FEW_SHARDS: Final = 32
"""With more shards the driver computes no tick: it would write their files one after another."""
BUNDLE_BYTES: Final = 1 << 23
"""The most that the driver sends to one shard without an exchange."""

Tables = Mapping[str, PendingRows | Messages]


class SparkRuntime(DurableEmbedded):
    """state: the folder, which tasks and driver must both reach; by default a temporary one that is deleted with the runtime.

    shards: the number of hash ranges of the state (default: unchanged; of a new one, the session's parallelism). shared_state: every
    machine of the cluster has the folder under this path. Raises StateError if tasks cannot reach it.
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
        check_workers(spark)
        check_reach(spark, state, shared_state)
        self._driver_rows = driver_rows(spark)
        self._spark = spark
        self._temporary = tempfile.TemporaryDirectory(prefix="deltic-") if state is None else None
        root = self._temporary.name if self._temporary else state
        assert root is not None
        if shards is None and not epochs_in(open_folder(root)):
            shards = parallelism(spark)
        self._written_strings: tuple[Dictionary, ...] = ()
        super().__init__(root, shards, retain=retain)
        self._program: tuple[Dataflow, PickledCircuit] | None = None
        self._laborious = False
        """Whether the last small changes took more than SMALL_WORK."""

    def close(self) -> None:
        """Unlocks the state folder; the Spark session stays open."""
        super().close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def dictionaries(self) -> Iterable[Dictionary]:
        """Those of the committed state, and of the tick being committed."""
        return (*self._written_strings, *super().dictionaries())

    def _perform(self, version: DurableVersion, changes: Tables, tick: Tick) -> PerformedTick:
        small = self._is_small(version, changes, tick)
        if small and not self._laborious:
            self._written_strings = ()
            try:
                held = {name: rows for name, rows in changes.items() if isinstance(rows, PendingRows)}
                return self._written(version, *self._ran(version, held, tick, Budget(SMALL_WORK)), tick)
            except BudgetExceeded:
                pass  # nothing was written
        performed = self._performed_on_spark(version, changes, tick)
        if small:
            self._laborious = sum(work_of(outcome.counters) for outcome in performed.outcomes) > SMALL_WORK
        return performed

    def _is_small(self, version: DurableVersion, changes: Tables, tick: Tick) -> bool:
        """Whether the driver may compute the tick: its rows are few and here, and so are the files of the state, which it maps.

        Rows of a backfill are those of the state. One that calls functions is a job, which fails where workers lack their modules.
        """
        if (
            not self._driver_rows
            or self.shards > FEW_SHARDS
            or not self._state.folder.local
            or any(isinstance(change, Messages) for change in changes.values())
            or (tick.fresh is not None and fills_by_functions(version.circuit, tick.fresh))
        ):
            return False
        read = 0 if tick.fresh is None else sum(segment.rows for segment in version.manifest.segments())
        return read + sum(len(pending.rows) for pending in changes.values() if isinstance(pending, PendingRows)) <= self._driver_rows

    def _performed_on_spark(self, version: DurableVersion, changes: Tables, tick: Tick) -> PerformedTick:
        """Tasks compute string ids by hashing alone; if strings turn out to share one, they get other ids, and the tick runs again."""
        while isinstance(performed := self._performed(version, changes, tick), frozenset):
            self._written_strings = ()
            self.strings.intern(pa.array(sorted(performed), pa.large_binary()))
        return performed

    def _performed(self, version: DurableVersion, changes: Tables, tick: Tick) -> PerformedTick | frozenset[bytes]:
        """One run of the tick, or strings whose ids collide."""
        self._written_strings = ()
        circuit = version.circuit
        frame = self._frame(circuit, self._program_of(circuit), changes, tick)
        named = tick_description(self._state.root, tick.epoch, len(circuit.levels), [*changes], fills=tick.fresh is not None)
        with described(self._spark, named, f"deltic-epoch-{tick.epoch}"):
            messages = from_arrow(run_job(frame.toArrow).to_batches())
        if collisions := [unpack_collision(m.payload) for m in messages if m.kind is Kind.COLLISION]:
            return frozenset(string for strings in collisions for string in strings)
        failures = [unpack_failure(m.payload) for m in messages if m.kind is Kind.FAILURE]
        if failures:
            raise min(failures, key=lambda f: f.rank).error()
        outcomes = [unpack_outcome(m.shard, m.payload) for m in messages if m.kind is Kind.OUTCOME]
        assert len(outcomes) == self.shards * len(version.circuit.levels), "a task's outcome is missing"
        if clashing := self._clashing(messages, {o.file.name: o.file for o in outcomes if o.file is not None}):
            return clashing
        return PerformedTick(outcomes, self._inline([(m.shard, m.payload) for m in messages if m.kind is Kind.CHANGE]))

    def _clashing(self, messages: Sequence[Message], files: Mapping[str, FileRef]) -> frozenset[bytes]:
        """The tasks' new strings whose ids belong to other strings: in the state, on other shards, or in pending changes.

        From now on these strings are interned as if they were committed.
        """
        new = [unpack_parts(m.payload)[1] for m in messages if m.kind is Kind.STRINGS]
        new += [self._files[files[m.payload.decode()]].dictionary().verified() for m in messages if m.kind is Kind.FILE_STRINGS]
        if not new:
            return frozenset()
        ids, values = np.concatenate([part.ids for part in new]), pa.concat_arrays([part.values for part in new])
        with self.strings.lock:
            clashing = self.strings.clashing(ids, values)
            self._written_strings = tuple(new)
        return clashing

    def _merge(self, manifest: Manifest, groups: Sequence[Group], origin: Origin) -> list[Merged]:
        return merge_on_spark(self._spark, self._state.root, manifest, groups, origin)

    def _program_of(self, circuit: Dataflow) -> PickledCircuit:
        if self._program is None or self._program[0] is not circuit:
            self._program = circuit, PickledCircuit.of(circuit, self.shards, self.strings.identity)
        elif self._program[1].identity is not self.strings.identity:
            self._program = circuit, replace(self._program[1], identity=self.strings.identity)
        return self._program[1]

    def _inline(self, messages: Sequence[tuple[int, bytes]]) -> dict[tuple[int, str], Batch]:
        """The small changes of views that arrived with the outcomes."""
        parts: dict[tuple[int, str], Batch] = {}
        for shard, payload in messages:
            rows_by_view, dictionary = unpack_parts(payload)
            self.strings.absorb(dictionary.export())
            parts.update(((shard, name), Batch.trusted(rows.columns, rows.weights)) for name, rows in rows_by_view.items())
        return parts

    def _frame(self, circuit: Dataflow, program: PickledCircuit, changes: Tables, tick: Tick) -> DataFrame:
        """The tick as one Spark plan: the driver's messages, changes on Spark, and a stage for each level after an exchange."""
        ports = {port.name: port for level in circuit.levels for port in level.arrives if port.source_level < 0}
        held = {name: rows for name, rows in changes.items() if isinstance(rows, PendingRows)}
        distributed = {id(change): change for change in changes.values() if isinstance(change, Messages)}
        messages = self._messages(circuit, held, ports, tick)
        frame, exchanged = self._first(messages, bool(distributed))
        for change in distributed.values():
            targets = {name: _target(circuit, table, ports) for name, table in change.tables.items()}
            frame = frame.union(change.messages(self._spark, targets, self.shards, program.identity))
        for level in circuit.levels:
            if level.index or exchanged:
                frame = frame.repartitionById(self.shards, "shard")
            frame = frame.mapInArrow(LevelTask(program, level.index, len(circuit.levels)), FRAME)
        return frame

    def _messages(self, circuit: Dataflow, held: Mapping[str, PendingRows], ports: Mapping[str, Port], tick: Tick) -> list[list[Message]]:
        """The driver's messages to each shard."""
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
        parts: dict[tuple[int, int], list[NamedRows]] = {}
        for name, pending in held.items():
            port = ports[f"table:{name}"]
            for shard, part in enumerate(route(pending.rows, circuit.routes[name], self.shards)):
                if len(part):
                    parts.setdefault((shard, port.target_level), []).append(NamedRows(port.name, part, port.strings))
        for (shard, level), inbox in parts.items():
            messages[shard] += [Message(shard, level, Kind.ROWS, payload) for payload in pack_parts(inbox, self.strings)]
        return messages

    def _first(self, messages: Sequence[Sequence[Message]], distributed: bool) -> tuple[DataFrame, bool]:
        """The driver's messages as a frame, and whether an exchange must send them to their shards."""
        large = any(sum(len(m.payload) for m in inbox) > BUNDLE_BYTES for inbox in messages)
        if distributed or large:
            batches = [to_arrow([message]) for inbox in messages for message in inbox]
        else:
            batches = [to_arrow([bundle(shard, inbox)]) for shard, inbox in enumerate(messages)]
        return self._spark.createDataFrame(pa.Table.from_batches(batches), FRAME), distributed or large


def _target(circuit: Dataflow, table: TableSchema, ports: Mapping[str, Port]) -> InputPort:
    port = ports[f"table:{table.name}"]
    return InputPort(table, circuit.routes[table.name], port.name, port.target_level)


def driver_rows(spark: SparkSession) -> int:
    """The setting DRIVER_ROWS. Raises SetupError."""
    text = spark.conf.get(DRIVER_ROWS, str(SMALL_ROWS)) or ""
    if not text.isdecimal():
        raise SetupError(
            f"the Spark setting {DRIVER_ROWS} is {text!r}", expected="a number of rows", remedy="0 makes every tick a Spark job"
        )
    return int(text)


def parallelism(spark: SparkSession) -> int:
    """How many tasks the session runs at a time: from its settings, or else from a Spark job."""
    if (setting := spark.conf.get("spark.default.parallelism", "")) and setting.isdigit():
        return int(setting)
    if match := re.fullmatch(r"local\[(\d+|\*)(?:,\d+)?\]", spark.conf.get("spark.master", "") or ""):
        return (os.cpu_count() or 1) if match[1] == "*" else int(match[1])
    return spark.range(1 << 16).select(spark_partition_id()).distinct().count()
