"""Random circuits in circuits, of the room's operators, are what a from-scratch evaluation of them is."""

from __future__ import annotations

import random
from collections import Counter as Tally

import pytest

from deltic.dbsp.circuit import ReferenceCircuit
from deltic.dbsp.nested import DistinctTrace, JoinTrace
from deltic.dbsp.nodes import ReferenceStream
from deltic.dbsp.operators import count, greatest, least, total
from deltic.dbsp.streams import DelayTrace, TraceAppend
from deltic.dbsp.zset import ZSet
from deltic.errors import Divergence
from nested_programs import FILTERS, LIMIT, MAPS, Diverges, Heavy, Row, Scope, Spec, add, live, meaning, random_changes, random_content
from nested_programs import ZSet as Content
from nested_programs import random_program as random_scope
from seeds import rotating

REDUCTIONS = {"min": least, "max": greatest, "count": count, "sum": total}
ROWS = 3
TICKS = 4


def build(
    circuit: ReferenceCircuit, scope: Scope, given: list[ReferenceStream], one: ReferenceStream, rng: random.Random
) -> list[ReferenceStream]:
    """The streams of a scope's nodes. given: tables, or what is imported. one: a relation of one row."""
    streams: list[ReferenceStream] = []
    nodes = live(scope) if circuit.owner else set(range(len(scope.nodes)))
    for at, spec in enumerate(scope.nodes):
        inputs = [] if spec.kind in ("feedback", "import") else [streams[i] for i in spec.inputs]
        if at not in nodes:
            streams.append(one)
        elif spec.kind == "feedback":
            streams.append(circuit.feedback(f"x{at}"))
        elif spec.kind == "import":
            streams.append(circuit.import_stream(given[spec.inputs[0]]))
        elif spec.kind == "table":
            streams.append(given[at])
        elif spec.kind == "child":
            assert spec.inside is not None
            inner = circuit.child("inner", LIMIT)
            streams.append(inner.export(build(inner, spec.inside, inputs, one, rng)[spec.inside.export]))
        else:
            streams.append(operator(circuit, spec, inputs, one, rng))
    for at, spec in enumerate(scope.nodes):
        if spec.kind == "feedback":
            circuit.connect(streams[at], streams[spec.inputs[0]])
    return streams


def operator(
    circuit: ReferenceCircuit, spec: Spec, inputs: list[ReferenceStream], one: ReferenceStream, rng: random.Random
) -> ReferenceStream:
    a = inputs[0]
    match spec.kind:
        case "map":
            return a.map(lambda row: MAPS[spec.detail](*row))
        case "filter":
            return a.filter(lambda row: FILTERS[spec.detail](*row))
        case "negate" | "delay":
            return getattr(a, spec.kind)()
        case "plus" | "minus":
            return getattr(a, spec.kind)(inputs[1])
        case "join":
            return join(circuit, *(side.index_with(lambda row: row[0]) for side in inputs), raw=rng.random() < 0.5)
        case "distinct":
            timed_twice = len(circuit.path) == 1 and rng.random() < 0.5
            return circuit.operator(DistinctTrace(), a) if timed_twice else a.distinct()
        case "semijoin" | "antijoin":
            keys = inputs[1].map(lambda row: row[0]).distinct().index_with(lambda key: key)
            there = a.index_with(lambda row: row[0]).join(keys, lambda key, row, _: row)
            return there if spec.kind == "semijoin" else a.minus(there)
        case "reduce" if spec.detail == "all":
            rows = a.distinct().plus(circuit.import_stream(one)).index_with(lambda row: None)
            return rows.aggregate(lambda group: count(group) - 1).map(lambda pair: (pair[1], 0))
        case "reduce":
            values = a.distinct().map(tuple).index_with(lambda row: row[0])
            reduction = REDUCTIONS[spec.detail]
            return values.aggregate(lambda group: reduction({row[1]: weight for row, weight in group.items()}))
        case "top":
            return a.distinct().index_with(lambda row: None).top_k(2, lambda row: row).map(lambda pair: pair[1])
        case _:
            raise AssertionError(spec.kind)


def join(circuit: ReferenceCircuit, left: ReferenceStream, right: ReferenceStream, *, raw: bool) -> ReferenceStream:
    """raw: of join_trace, trace_append and delay_trace: left with right's trace before now, right with left's trace until now."""
    if not raw:
        return left.join(right, lambda key, x, y: (x[1], y[1]))
    before, until = [], []
    for side in (left, right):
        before.append(circuit.feedback("trace", DelayTrace()))
        until.append(circuit.operator(TraceAppend(), side, before[-1]))
        circuit.connect(before[-1], until[-1])
    first = circuit.operator(JoinTrace(lambda key, x, y: (x[1], y[1])), left, before[1])
    second = circuit.operator(JoinTrace(lambda key, y, x: (x[1], y[1])), right, until[0])
    return first.plus(second)


def expected(program: Scope, content: list[Content]) -> Content | None:
    """None if it diverges; raises Heavy."""
    try:
        return meaning(program, content)[program.export]
    except Diverges:
        return None


def zset(content: Content) -> ZSet:
    return ZSet.of((row, None, weight) for row, weight in content.items())


def check(seed: int) -> str:
    rng = random.Random(seed)
    program = random_scope(rng)
    content = [random_content(rng, rng.choice((0, ROWS, 3 * ROWS))) for _ in range(2)]
    circuit = ReferenceCircuit()
    tables = [circuit.source(f"t{i}") for i in range(2)]
    one = circuit.source("one")
    out = circuit.sink("out", build(circuit, program, tables, one, rng)[program.export])
    answer: dict[Row, int] = {}
    first = True
    for changes in [content, *random_changes(rng, content, TICKS)]:
        after = changes if first else [add([*table.items(), *change.items()]) for table, change in zip(content, changes, strict=True)]
        if any(weight < 0 for table in after for weight in table.values()):
            continue
        try:
            meant = expected(program, after)
        except Heavy:
            return "heavy"
        given = {f"t{i}": zset(change) for i, change in enumerate(changes)} | ({"one": zset({(9, 9): 1})} if first else {})
        if meant is None:
            with pytest.raises(Divergence, match=r"has not reached a fixed point after 12 iterations"):
                circuit.step(**given)
            return "diverges"
        circuit.step(**given)
        content, first = after, False
        answer = add([*answer.items(), *((row, weight) for row, _, weight in out.value.triples())])
        assert answer == meant, f"seed {seed}"
    return "same"


def test_random_circuits_are_as_from_scratch() -> None:
    tally = Tally(check(seed) for seed in range(150))
    assert tally["same"] > 100 and tally["diverges"] > 2, tally


@pytest.mark.slow
def test_thousands_of_random_circuits_of_the_room_are_as_from_scratch() -> None:
    tally = Tally(check(seed) for seed in rotating(3_000))
    assert tally["same"] > 2_000 and tally["diverges"] > 50, tally
