"""Circuits: ids, clocks, the schedule, errors and pictures."""

from __future__ import annotations

import pytest

from deltic.dbsp.circuit import ReferenceCircuit
from deltic.dbsp.nodes import ReferenceStream
from deltic.dbsp.streams import Apply
from deltic.dbsp.zset import ZSet
from deltic.errors import CircuitError, DelticError, Divergence
from deltic.trace.time import Time


class Watch(Apply):
    """Notes its clocks."""

    def __init__(self) -> None:
        super().__init__("watch", lambda zset: zset)
        self.events: list[str] = []

    def evaluate(self, now: Time, *inputs: ZSet) -> ZSet:
        self.events.append(f"at {now}")
        return inputs[0]

    def clock_start(self, scope: int) -> None:
        self.events.append(f"start {scope}")

    def clock_end(self, scope: int) -> None:
        self.events.append(f"end {scope}")


def rows(*elements: object) -> ZSet:
    return ZSet.of((element, None, 1) for element in elements)


def counter(circuit: ReferenceCircuit, source: ReferenceStream, until: int, limit: int = 100) -> tuple[ReferenceCircuit, ReferenceStream]:
    """A child that counts up from the source's numbers."""
    scope = circuit.child("count", limit)
    numbers = scope.feedback("numbers")
    scope.connect(numbers, numbers.map(lambda n: n + 1).filter(lambda n: n < until).plus(scope.import_stream(source)).distinct())
    return scope, numbers


def test_clock_hooks_fire_with_their_scope() -> None:
    circuit = ReferenceCircuit()
    source = circuit.source("rows")
    outer, numbers = counter(circuit, source, 1)
    inner = outer.child("inner")
    watch = Watch()
    inner.operator(watch, numbers)
    circuit.step(rows=rows(0))
    once = ["start 0", "at (0, 0, 0)", "end 0"]
    assert watch.events == [
        "start 2",
        "start 1",
        *once,
        "end 1",
        "start 1",
        *[e.replace("0, 0, 0", "0, 1, 0") for e in once],
        "end 1",
        "end 2",
    ]
    assert [node.clock for node in circuit.nodes] == [1, 1]
    assert {node.clock for node in outer.nodes} == {2}


def test_ids_are_paths() -> None:
    circuit = ReferenceCircuit()
    scope, numbers = counter(circuit, circuit.source("rows"), 3)
    assert (scope.path, numbers.id, numbers.node.local) == ((1,), "1.0", 0)
    ids = [vertex.id for vertex in circuit.vertices()]
    assert len(set(ids)) == len(ids)


def test_the_schedule_is_topological_whatever_the_order_of_making() -> None:
    """A child that was made before what it imports runs after it."""
    circuit = ReferenceCircuit()
    source = circuit.source("rows")
    scope = circuit.child("later")
    doubled = source.map(lambda n: 2 * n)
    sink = circuit.sink("out", scope.export(scope.import_stream(doubled).distinct()))
    circuit.step(rows=rows(1, 2))
    assert sink.value == rows(2, 4)
    places = {node: at for at, node in enumerate(circuit.schedule)}
    assert places[doubled.node] < places[scope.owner]


def test_streams_are_cells() -> None:
    circuit = ReferenceCircuit()
    source = circuit.source("rows")
    out = source.map(lambda n: n + 1)
    for n in range(5):
        circuit.step(rows=rows(n))
        assert (out.value, len(circuit.cells)) == (rows(n + 1), 2)


def test_a_child_runs_to_its_fixed_point_in_each_step() -> None:
    circuit = ReferenceCircuit()
    scope, numbers = counter(circuit, circuit.source("rows"), 4)
    out = circuit.sink("out", scope.export(numbers))
    circuit.step(rows=rows(1))
    assert out.value == rows(1, 2, 3)
    circuit.step(rows=rows(2))
    assert out.value == ZSet()
    circuit.step(rows=ZSet.of([(1, None, -1)]))
    assert out.value == ZSet.of([(1, None, -1)])


def test_a_child_may_use_exactly_its_limit() -> None:
    """limit iterations that change something, and one that does not."""
    circuit = ReferenceCircuit()
    counter(circuit, circuit.source("rows"), 5, limit=5)
    circuit.step(rows=rows(0))
    circuit = ReferenceCircuit()
    counter(circuit, circuit.source("rows"), 6, limit=5)
    with pytest.raises(
        Divergence, match=r"the child 1 count .* after 5 iterations: the last ones changed 1, 1, 1 rows of numbers, such as 5"
    ):
        circuit.step(rows=rows(0))
    with pytest.raises(DelticError, match="an earlier step of this circuit failed"):
        circuit.step()


def test_several_exports_and_a_sink_of_many() -> None:
    circuit = ReferenceCircuit()
    scope, numbers = counter(circuit, circuit.source("rows"), 3)
    seen: list[tuple[ZSet, ZSet]] = []
    indexed = scope.export(numbers.index_with(lambda n: n % 2))
    circuit.sink("both", scope.export(numbers), indexed.aggregate(len), callback=lambda *values: seen.append(values))
    circuit.step(rows=rows(0))
    assert seen == [(rows(0, 1, 2), rows((0, 2), (1, 1)))]


def test_a_cycle_without_feedback_is_refused() -> None:
    circuit = ReferenceCircuit()
    source = circuit.source("rows")
    scope = circuit.child("loop")
    out = scope.export(scope.import_stream(source))
    scope.import_stream(out.map(lambda n: n))
    with pytest.raises(CircuitError, match=r"a cycle without feedback: .*1 loop"):
        circuit.step(rows=rows(1))


def test_what_does_not_fit_is_refused() -> None:
    circuit, other = ReferenceCircuit(), ReferenceCircuit()
    scope = circuit.child("child")
    inside = scope.feedback("x")
    with pytest.raises(CircuitError, match=r"stream 0\.0 belongs neither to this circuit nor"):
        circuit.apply("map", lambda zset: zset, inside)
    with pytest.raises(CircuitError, match="cannot be exported"):
        circuit.export(other.source("rows"))
    with pytest.raises(CircuitError, match=r"feedback 0\.0 x is not connected"):
        circuit.step()
    with pytest.raises(CircuitError, match=r"feedback 0\.0 x is connected to a stream of another circuit"):
        scope.connect(inside, circuit.source("rows"))
    scope.connect(inside, inside)
    with pytest.raises(CircuitError, match="connected twice"):
        scope.connect(inside, inside)
    with pytest.raises(CircuitError, match="unknown source row"):
        circuit.step(row=ZSet())


def test_pictures() -> None:
    circuit = ReferenceCircuit()
    scope, numbers = counter(circuit, circuit.source("rows"), 3)
    circuit.sink("out", scope.export(numbers))
    assert circuit.text().splitlines() == [
        "0    source rows",
        "1    child count from 1.5",
        "  1.0  feedback numbers from 1.5 later",
        "  1.1  map from 1.0",
        "  1.2  filter from 1.1",
        "  1.3  import rows from 0",
        "  1.4  plus from 1.2, 1.3",
        "  1.5  distinct from 1.4",
        "2    sink out from 1",
    ]
    assert {'subgraph sn1["1"]', "n1_5 -.-> n1_0", "n0 --> n1_3"} <= {line.strip() for line in circuit.mermaid().splitlines()}
    drawn = {line.strip() for line in circuit.graphviz().splitlines()}
    assert {'subgraph cluster_n1 { label="1"', "n1_5 -> n1_0 [style=dashed]", 'n1_0 [label="1.0 feedback numbers"]'} <= drawn
