"""Test support: random programs in which one table is a stream, and their content after each tick by the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from deltic.circuit.nodes import Dataflow
from deltic.errors import Unsupported
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.nodes import Join, OverTicks, Plan, SetOperation, Table
from deltic.plan.relation import Relation
from deltic.plan.stream_checks import check_streams, is_stream
from deltic.plan.walk import map_inputs, nodes
from deltic.runtimes import Runtime
from deltic.schema import StreamSchema, TableSchema
from engines import Engine
from program_data import Tick
from programs import case


@dataclass(frozen=True, slots=True)
class StreamCase:
    """A program over one stream and tables. ticks: weighted rows by table; those of the stream are inserts."""

    seed: int
    stream: str
    tables: Mapping[str, TableSchema]
    views: Mapping[str, Plan]
    ticks: Sequence[Tick]

    def moments(self) -> list[Moment]:
        """The content of the tables after each tick: of the stream, the rows of the tick."""
        tables = {name: Relation() for name in self.tables}
        moments = []
        for number, tick in enumerate(self.ticks):
            held = {**tables, self.stream: Relation()}
            tables = {name: relation + Relation(tick.get(name, ())) for name, relation in held.items()}
            moments.append(Moment(dict(tables), epoch=number))
        return moments

    def expected(self) -> list[dict[str, Relation]]:
        """What each view holds after each tick."""
        moments = self.moments()
        return [
            {name: evaluate(plan, moment.tables, past=moments[:number], epoch=number) for name, plan in self.views.items()}
            for number, moment in enumerate(moments)
        ]


def stream_case(seed: int) -> StreamCase | None:
    """A random program, its first table a stream; None if its plans read no stream in a way that is defined."""
    rng = Random(f"streams {seed}")
    made = case(seed - seed % 10 + min(seed % 10, 8))  # those of 9 fail
    name = rng.choice(list(made.tables))
    table = made.tables[name]
    stream = StreamSchema(name, table.schema)
    tables = {**made.tables, name: stream}
    views = {view: changed for view, plan in made.views.items() if (changed := _over_stream(rng, plan, stream)) is not None}
    if not any(is_stream(plan) or _reads(plan, stream) for plan in views.values()):
        return None
    ticks = [{**tick, name: [(row, abs(weight)) for row, weight in tick.get(name, ())]} for tick in made.ticks]
    return StreamCase(seed, name, tables, views, ticks)


def _reads(plan: Plan, stream: TableSchema) -> bool:
    return any(isinstance(node, Table) and node.table == stream for node in nodes(plan))


def _over_stream(rng: Random, plan: Plan, stream: StreamSchema) -> Plan | None:
    """The plan over the stream: read as it is, a tick late, as a relation or summed up, at random, until that is a valid query."""
    for share in (0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        changed = _replaced(rng, plan, stream, share)
        try:
            check_streams(changed)
        except Unsupported:
            continue
        return changed
    return None


def _replaced(rng: Random, plan: Plan, stream: StreamSchema, share: float) -> Plan:
    if isinstance(plan, Table):
        if plan.table.name != stream.name:
            return plan
        table: Plan = replace(plan, table=stream)
        if rng.random() < 0.2:
            table = OverTicks(table, "delay")
        return OverTicks(table, rng.choice(("current", "integrate"))) if rng.random() < share else table
    changed = map_inputs(plan, lambda below: _replaced(rng, below, stream, share))
    if isinstance(changed, Join | SetOperation) and rng.random() < share and is_stream(changed.left):
        return replace(changed, left=OverTicks(changed.left, "current"))
    return changed


def compare(program: StreamCase, engine: Engine, reopened: Callable[[], Runtime] | None = None) -> None:
    """Each view's content and change after each tick, with a restart in the middle."""
    before = {name: engine.view(name) for name in program.views}
    for number, (tick, expected) in enumerate(zip(program.ticks, program.expected(), strict=True)):
        if reopened is not None and number == len(program.ticks) // 2:
            engine.restart(reopened)
        result = engine.tick(tick)
        for name, plan in program.views.items():
            where = f"stream_case({program.seed}), tick {number}, {name}"
            assert engine.view(name) == expected[name], where
            change = expected[name] if is_stream(plan) else expected[name] - before[name]
            assert engine.change(name, result) == change, f"{where}: change"
        before = expected
    assert not held(engine), "rows of a stream are kept"


def held(engine: Engine) -> Counter[str]:
    """The rows that are kept in arrangements of streams."""
    return Counter({name: rows for name, (rows, _) in engine.runtime.statistics().items() if rows and name in ephemeral(engine.circuit)})


def ephemeral(circuit: Dataflow) -> frozenset[str]:
    return frozenset(name for name, spec in circuit.arrangements.items() if spec.ephemeral)
