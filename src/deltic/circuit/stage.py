"""The stage function: what every runtime runs, for one shard of one level.

It is pure: from the shard's state as of the last commit and the changes that arrived, it computes the changes that leave and the batches to
append. It does no I/O and keeps no state. A user's error is a value, not an exception, so that no runtime retries it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from time import perf_counter
from typing import Final

from deltic import errors
from deltic.circuit.closing import error_in_window
from deltic.circuit.cube import Replicate
from deltic.circuit.decoded_change import DecodedChange
from deltic.circuit.nodes import Dataflow, Instruction, Level, Node, NodeKind, Port
from deltic.circuit.operator import Context, Delta, Tick
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.overflow import overflow_outside
from deltic.circuit.programs.passes import pass_natively
from deltic.circuit.programs.program import program_of
from deltic.circuit.programs.runner import ProgramRun
from deltic.errors import DataError, DelticError, EvaluationError, Span, WeightOverflow
from deltic.reentrant import ReentrantEvent
from deltic.stacks import roomy
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.partition import partition
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable
from deltic.trace.workers import ALONE, Workers

CORE: Final = os.environ.get("DELTIC_CORE", "native")
"""Which core runs levels: "native", their programs; "python", the operators' own steps, which are the reference."""
LARGE_TICK: Final = 1 << 17
"""Rows of a tick from which on kernels take all of its time, and what steps release early counts."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A user's error as data. The least by (table, ordinal, message) is reported, which does not depend on the number of shards."""

    table: str
    ordinal: int
    message: str
    kind: str
    span: Span | None
    expected: str | None
    remedy: str | None
    refused: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, error: DelticError) -> Failure:
        table, ordinal, refused = (error.table, error.ordinal, error.refused) if isinstance(error, DataError) else ("\uffff", 0, ())
        return cls(table, ordinal, error.message, type(error).__name__, error.span, error.expected, error.remedy, refused)

    @property
    def rank(self) -> tuple[str, int, str]:
        return (self.table, self.ordinal, self.message)

    def error(self) -> DelticError:
        """The exception that it represents."""
        kind = getattr(errors, self.kind, None)
        assert isinstance(kind, type) and issubclass(kind, DelticError)
        error = kind(self.message, span=self.span, expected=self.expected, remedy=self.remedy)
        if isinstance(error, DataError):
            error.table, error.ordinal, error.refused = self.table, self.ordinal, self.refused
        return error


@dataclass(slots=True)
class LevelResult:
    """sent: port → rows for each shard. appended: arrangement → batch. counters: by node name. failure: if set, the rest is void."""

    sent: dict[str, list[Delta]] = field(default_factory=dict)
    appended: dict[str, Batch] = field(default_factory=dict)
    counters: Mapping[str, Counters] = field(default_factory=dict)
    failure: Failure | None = None


def run_level(
    circuit: Dataflow,
    level: int | None,
    shard: int,
    shards: int,
    state: Mapping[str, Spine],
    strings: StringTable,
    arrived: dict[str, Delta],
    tick: Tick,
    *,
    native: bool = False,
    stop: ReentrantEvent | None = None,
    workers: Workers = ALONE,
) -> LevelResult:
    """Runs one level on one shard. level: None is the whole dataflow, for a single shard.

    state: arrangement → its old version; only those that are read are looked up. arrived: port → rows; absent ports are empty. If
    the operators' steps run, the rows are taken out of it, so that they are freed once they have been read.
    native: whether its program may run (`circuit/programs`), which opens all arrangements that the level reads.
    stop: once it is set, the next operator raises WorkStopped. workers: divide what turns out to be much work, and the operators' steps if
    many rows arrive, or the tick is a backfill.
    """
    plan = circuit.whole if level is None else circuit.levels[level]
    passes = None if CORE == "python" else pass_natively
    context = Context(shard, shards, tick, state, strings, ephemeral=circuit.ephemeral, stop=stop, passes=passes, workers=workers)
    result = LevelResult(appended=context.appended, counters=context.inner)
    try:
        if native and is_native(tick, arrived):
            return _run_program(circuit, plan, context, arrived, result)
        changes = _run_nodes(circuit, plan, context, arrived)
    except (DataError, EvaluationError) as error:
        return LevelResult(failure=Failure.of(error))
    for port in plan.leaves:
        result.sent[port.name] = _send(circuit.nodes[port.node], port, changes.__getitem__, shard, shards)
    return result


def is_native(tick: Tick, arrived: Mapping[str, Delta]) -> bool:
    """Whether programs run: not in backfills and amendments, nor in large ticks, in which the operators' own overhead is nothing."""
    return CORE != "python" and tick.fresh is None and not tick.amends and sum([rows.length for rows in arrived.values()]) <= LARGE_TICK


def _run_program(circuit: Dataflow, level: Level, context: Context, arrived: Mapping[str, Delta], result: LevelResult) -> LevelResult:
    run = ProgramRun(program_of(level), context)

    def step(number: int, inputs: Sequence[Delta]) -> Delta:
        context.counters = Counters(sum(map(len, inputs)))
        return _stepped_anywhere(circuit, level.instructions[number], inputs, context)

    try:
        run.run(arrived, step)
        result.counters = run.counters
        for port in level.leaves:
            result.sent[port.name] = _send(circuit.nodes[port.node], port, run.output, context.shard, context.shards)
    finally:
        run.close()
    return result


class _Changes:
    """The changes of a level's nodes, each held until the last node that reads it is done, or to the end if it leaves the level."""

    def __init__(self, nodes: Sequence[Node], level: Level, arrived: dict[str, Delta], decoded: dict[int, DecodedChange]) -> None:
        self._level, self._decoded, self._lock = level, decoded, Lock()
        self._left = {port.node for port in level.leaves} | {i for port in level.leaves for i in nodes[port.node].inputs}
        self._readers = Counter(i for node in level.instructions for i in set(node.inputs))
        self._by_node: dict[int, Delta] = {}
        for port in level.arrives:
            self._set(port.node, _arrived(port, arrived))

    def __getitem__(self, node: int) -> Delta:
        return self._by_node[node]

    def inputs(self, node: Instruction) -> list[Delta]:
        return [self._by_node.get(node.id, node.nothing)] if node.source else [self._by_node[i] for i in node.inputs]

    def finish(self, node: Instruction, change: Delta) -> None:
        """Notes what the node has made of its inputs, some of which may be needed no longer."""
        with self._lock:
            self._set(node.id, change)
            for i in set(node.inputs):
                self._readers[i] -= 1
                if not self._readers[i] and i not in self._left:
                    self._decoded.pop(id(self._by_node.pop(i)), None)

    def _set(self, node: int, change: Delta) -> None:
        self._by_node[node] = change
        if node in self._level.shared and len(change):  # that without rows is the same object for many nodes
            self._decoded.setdefault(id(change), DecodedChange())


@roomy
def _run_nodes(circuit: Dataflow, level: Level, context: Context, arrived: dict[str, Delta]) -> _Changes:
    """The changes that leave the level. Of many rows, nodes that do not depend on one another are stepped at the same time."""
    many = context.backfill or context.workers.divides(sum(map(len, arrived.values())))
    workers = context.workers if many else ALONE
    changes = _Changes(circuit.nodes, level, arrived, context.decoded)
    fresh = context.tick.fresh
    needed = None if fresh is None else circuit.upstream(fresh)

    def is_idle(node: Instruction, rows_in: int) -> bool:
        if fresh is not None and needed is not None:
            idle = node.idle_in_backfill(fresh, needed)
        else:
            idle = context.tick.amends and node.stream and node.keeps is None
        return idle or not (rows_in or node.eager)

    def run(node: Instruction, stop: ReentrantEvent) -> Context | None:
        """Steps the node; returns its own part of the context, None of an idle one."""
        inputs = changes.inputs(node)
        rows_in = sum(map(len, inputs))
        if is_idle(node, rows_in):
            changes.finish(node, node.nothing)
            return None
        own = replace(context, counters=Counters(), appended={}, inner={}, stop=context.stop if workers.threads == 1 else stop)
        own.counters = own.inner[node.name] = Counters(rows_in)
        changes.finish(node, _stepped(circuit, node, inputs, own))
        return own

    for own in workers.map(run, level.instructions, level.dependencies):
        if own is not None:
            context.appended.update(own.appended)
            context.inner.update(own.inner)
    return changes


def _stepped(circuit: Dataflow, node: Instruction, inputs: Sequence[Delta], context: Context) -> Delta:
    """What the operator's `step` returns; `context.counters` are the node's."""
    context.check_needed()
    counters = context.counters
    start = perf_counter()
    try:
        output = node.operator.step(inputs, context)
    except WeightOverflow as error:
        if circuit.nodes[node.id].kind is NodeKind.CHILD:
            raise
        raise overflow_outside(circuit, circuit.nodes[node.id], inputs, context.strings) from error
    except EvaluationError as error:
        raise error_in_window(error, circuit, node.id, context.tick) from None
    counters.seconds = perf_counter() - start
    counters.rows_out = len(output)
    return output


_stepped_anywhere: Final = roomy(_stepped)
"""For a program, which may run on a stack that is nearly full: any of its operators may be left to its step."""


def _arrived(port: Port, arrived: dict[str, Delta]) -> Delta:
    rows = arrived.pop(port.name, None)
    return Rows.empty(port.columns, port.weights) if rows is None else rows


def _send(node: Node, port: Port, value: Callable[[int], Delta], shard: int, shards: int) -> list[Delta]:
    """The port's rows for each shard: by the hash of the key at an exchange, otherwise all for this shard."""
    exchange = port.source_level < node.level
    rows = value(node.inputs[0] if exchange else node.id)
    if shards == 1:
        return [rows]
    none = Rows.empty(port.columns, port.weights)
    if not len(rows):
        return [none] * shards
    if not exchange:
        return [rows if i == shard else none for i in range(shards)]
    assert isinstance(node.operator, Exchange)
    if isinstance(node.operator, Replicate):
        return list(node.operator.route(consolidate(rows), shards))
    return route(rows if isinstance(rows, Batch) else consolidate(rows), node.operator.key, shards)


def route(rows: Delta, key: tuple[int, ...] | None, shards: int, workers: Workers = ALONE, *, moves: bool = False) -> list[Delta]:
    """Rows for each shard by the hash of the `key` words; () sends all to the home shard, None all to every shard. workers: divide many.

    moves: see `partition`.
    """
    if shards == 1:
        return [rows]
    if key is None:
        return [rows] * shards
    if not key:
        return [rows, *([Rows.empty(len(rows.columns), len(rows.weights))] * (shards - 1))]
    return list(partition(Rows(rows.columns, rows.weights), key, shards, workers, moves=moves))
