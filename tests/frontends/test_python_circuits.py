"""Circuits made in Python: each operator is what the oracle says of its plan, in a session, while the inputs change."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltic
from deltic.errors import CircuitError, EvaluationError, ImpureFunction, NegativeWeight, UnknownName, Unsupported
from deltic.frontends.python.functions import digest_of
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Join, Project
from deltic.plan.relation import Relation
from deltic.plan.show import show

PAIR = {"src": int, "dst": int}


def graph() -> tuple[deltic.Circuit, deltic.Stream, deltic.Stream]:
    circuit = deltic.Circuit()
    return circuit, circuit.input("edges", schema=PAIR), circuit.input("marks", schema=PAIR)


def check(build: Callable[[deltic.Stream, deltic.Stream], deltic.Stream], seed: int = 0, domain: int = 5) -> None:
    """Random insertions and deletions, tick by tick: the session's view is the oracle's relation."""
    circuit, edges, marks = graph()
    circuit.output("out", build(edges, marks))
    rng = random.Random(seed)
    content: dict[str, dict[tuple[int, int], int]] = {"edges": {}, "marks": {}}
    seen = 0
    with deltic.Session() as session:
        session.install(circuit)
        for _ in range(6):
            with session.transaction() as tx:
                for table, rows in content.items():
                    for _ in range(rng.randrange(5)):
                        row = (rng.randrange(domain), rng.randrange(domain))
                        if row in rows and rng.random() < 0.5:
                            tx.delete(table, [dict(zip(PAIR, row, strict=True))])
                            rows.pop(row)
                        elif row not in rows:
                            tx.insert(table, [dict(zip(PAIR, row, strict=True))])
                            rows[row] = 1
            expected = evaluate(circuit.outputs["out"], content)
            actual = Relation((tuple(row.values()), 1) for row in session.view("out").rows())
            assert actual == expected
            seen += len(expected)
    assert seen


def closure(circuit: deltic.Circuit, edges: deltic.Stream) -> deltic.Stream:
    @circuit.recursive("paths", schema={"src": int, "dst": int})
    def paths(paths):
        step = paths.index_with("dst").join(edges.index_with("src"), lambda key, path, edge: (path.src, edge.dst))
        return edges.plus(step).distinct()

    return paths


def test_the_closure_of_the_example() -> None:
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema={"src": int, "dst": int})
    circuit.output("paths", closure(circuit, edges))
    with deltic.Session() as session:
        session.install(circuit)
        with session.transaction() as tx:
            tx.insert("edges", [{"src": 0, "dst": 2}, {"src": 2, "dst": 0}, {"src": 2, "dst": 1}])
        assert {(r["src"], r["dst"]) for r in session.view("paths").rows()} == {(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)}
        with session.transaction() as tx:
            tx.delete("edges", [{"src": 2, "dst": 1}])
        assert {(r["src"], r["dst"]) for r in session.view("paths").rows()} == {(0, 0), (0, 2), (2, 0), (2, 2)}


def python_step(key: int, a: Any, b: Any) -> tuple[int, int]:
    return (a.src * 2, b.dst + key)


OPERATORS: dict[str, Callable[[deltic.Stream, deltic.Stream], deltic.Stream]] = {
    "map picks": lambda e, m: e.map(lambda row: (row.dst, row.src, 7)),
    "map function": lambda e, m: e.map(lambda row: (row.src // 2, f"{row.dst}"), schema={"half": int, "text": str}),
    "map one value": lambda e, m: e.map(lambda row: None if row.src > 2 else row.src / 4, schema={"quarter": float | None}),
    "map expressions": lambda e, m: e.map({"sum": "src + dst", "less": "src < dst"}),
    "map batches": lambda e, m: e.map(lambda rows: pc.add(rows["src"], rows["dst"]), schema={"sum": int}, on_batches=True),
    "filter function": lambda e, m: e.filter(lambda row: row.src < row.dst or row.src == 3),
    "filter text": lambda e, m: e.filter("src < dst OR src = 3"),
    "filter batches": lambda e, m: e.filter(lambda rows: pc.less(rows["src"], rows["dst"]), on_batches=True),
    "flat_map": lambda e, m: e.flat_map(lambda row: [(row.src, n) for n in range(row.dst)], schema={"src": int, "n": int}),
    "explode": lambda e, m: e.explode(lambda row: [(row.src, row.dst), (row.dst, 1)], schema={"node": int}),
    "join": lambda e, m: e.index_with("dst").join(m.index_with("src"), lambda key, a, b: (key, a.src, b.dst)),
    "join function": lambda e, m: e.index_with("dst").join(m.index_with("src"), python_step, schema={"x": int, "y": int}),
    "join side by side": lambda e, m: e.index_with("dst").join(m.index_with("src")),
    "join of a function's key": lambda e, m: e.index_with(lambda row: row.src % 2, schema={"k": int}).join(
        m.index_with(lambda row: row.dst % 2, schema={"k": int}), lambda key, a, b: (key, a.src, b.dst)
    ),
    "semijoin": lambda e, m: e.index_with("dst").semijoin(m.index_with("src")),
    "antijoin": lambda e, m: e.index_with("dst").antijoin(m.index_with("src")),
    "aggregate": lambda e, m: e.index_with("src").aggregate(n="count(*)", most="max(dst)", mean="avg(dst)"),
    "aggregate of all": lambda e, m: e.aggregate(n="count(*)", least="min(dst)"),
    "count": lambda e, m: e.index_with("src").count(),
    "sum": lambda e, m: e.index_with("src").sum("dst"),
    "min": lambda e, m: e.index_with("src").min("dst"),
    "max": lambda e, m: e.index_with("src").max("dst"),
    "avg": lambda e, m: e.index_with("src").avg("dst"),
    "distinct": lambda e, m: e.map(lambda row: row.src).distinct(),
    "plus": lambda e, m: e.plus(m, e),
    "minus": lambda e, m: e.plus(m).minus(m),
    "negate": lambda e, m: e.plus(e, m.negate(), m),
    "top_k": lambda e, m: e.top_k(2, "dst DESC, src"),
    "sql": lambda e, m: e.sql("SELECT dst, count(*) AS n FROM input GROUP BY dst HAVING count(*) > 1"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_equals_the_oracle(name: str) -> None:
    check(OPERATORS[name])


def test_recursion_with_a_function_of_rows() -> None:
    def build(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        circuit = deltic.Circuit()

        @circuit.recursive("reached", schema={"node": int})
        def reached(reached):
            step = reached.index_with("node").join(edges.index_with("src"), lambda key, r, e: (key + e.dst) % 5, schema={"node": int})
            return marks.map(lambda row: row.src).plus(step).distinct()

        return reached

    check(build, seed=1)


def test_shortest_paths_by_min() -> None:
    def build(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        circuit = deltic.Circuit()

        @circuit.recursive("near", schema={"node": int, "hops": int | None})
        def near(near):
            start = marks.map({"node": "src", "hops": "0L"})
            step = near.index_with("node").join(edges.index_with("src")).map({"node": "dst", "hops": "hops + 1"})
            return start.plus(step).index_with("node").min("hops")

        return near

    check(build, seed=2)


def test_mutual_recursion() -> None:
    def build(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        circuit = deltic.Circuit()

        @circuit.mutual({"odd": PAIR, "even": PAIR})
        def both(odd, even):
            def step(paths):
                return paths.index_with("dst").join(edges.index_with("src"), lambda key, path, edge: (path.src, edge.dst))

            return edges.plus(step(even)).distinct(), step(odd).distinct()

        return both["even"]

    check(build, seed=3)


def test_recursion_in_recursion() -> None:
    def build(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        circuit = deltic.Circuit()

        @circuit.recursive("outer", schema=PAIR)
        def outer(outer):
            @circuit.recursive("inner", schema=PAIR)
            def inner(inner):
                step = inner.index_with("dst").join(edges.index_with("src"), lambda key, path, edge: (path.src, edge.dst))
                return outer.plus(step).distinct()

            return marks.plus(inner.map(lambda row: (row.dst, row.src))).distinct()

        return outer

    check(build, seed=4, domain=4)


def test_a_function_that_only_picks_is_a_projection() -> None:
    _, edges, _ = graph()
    assert show(edges.map(lambda row: (row.dst, row.src)).plan).startswith("Project dst#1, src#0\n")
    plan = edges.index_with("dst").join(edges.index_with("src"), lambda key, a, b: (a, b.dst)).plan
    assert isinstance(plan, Project) and isinstance(plan.input, Join) and plan.schema.names == ("src", "dst", "dst_3")


@pytest.mark.parametrize(
    "function",
    [lambda r: (r.src if r.src is not None else 0,), lambda r: (r.src + 1,), lambda r: r.src[0], lambda r: (isinstance(r.src, int),)],
)
def test_a_function_that_does_more_needs_a_schema(function: Callable[..., Any]) -> None:
    _, edges, _ = graph()
    with pytest.raises(CircuitError, match=r"computes values, and has no schema[\s\S]*schema="):
        edges.map(function)


def test_a_state_identifies_a_function_by_its_name_and_code() -> None:
    def make(n: int) -> Callable[..., Any]:
        return lambda row: row.src + n

    _, edges, _ = graph()
    one, same, other = (fingerprint(edges.map(make(n), schema={"n": int}).plan) for n in (1, 1, 2))
    assert one == same != other
    assert digest_of(lambda row: row.src) != digest_of(lambda row: row.dst)


FACTOR = 3


class Adder:
    def __init__(self, n: object) -> None:
        self.n = n

    def __call__(self, row: Any) -> Any:
        return row.src + self.n


def test_a_digest_covers_captured_values() -> None:
    """Two that differ in it must not share state; functions that cannot be distinguished are refused."""

    def nested(row: Any) -> Any:
        def scaled() -> int:
            return row.src * FACTOR

        return scaled()

    makers: tuple[Callable[[int], Any], ...] = (Adder, lambda n: Adder(n).__call__, lambda n: partial(pow, n), lambda n: lambda row, m=n: m)
    for make in makers:
        assert digest_of(make(1)) == digest_of(make(1)) != digest_of(make(2))
    before = digest_of(nested)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "FACTOR", 4)
        assert digest_of(nested) != before
    assert digest_of(nested) == before
    with pytest.raises(CircuitError, match=r"captures .*, of class object"):
        digest_of(Adder(object()))


def test_a_digest_is_the_same_in_every_process() -> None:
    program = "from deltic.frontends.python.functions import digest_of; digest = digest_of(lambda r: {'a', 'b', r.x})"
    here: dict[str, object] = {"__name__": "__main__"}
    exec(compile(program, "<string>", "exec"), here)
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", f"{program}; print(digest)"]
    actual = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert actual == here["digest"]


def run(build: Callable[[deltic.Stream], deltic.Stream]) -> None:
    circuit, edges, _ = graph()
    circuit.output("out", build(edges))
    with deltic.Session() as session:
        session.install(circuit)
        with session.transaction() as tx:
            tx.insert("edges", [{"src": 1, "dst": 0}])
        raise AssertionError(session.view("out").rows())


@pytest.mark.usefixtures("repeated_calls")
def test_errors_of_functions_name_them() -> None:
    def dividing(row: Any) -> float:
        return row.src / row.dst

    place = rf"at {Path(__file__)}:\d+, called with \(Row\(src=1, dst=0\)\)"
    with pytest.raises(EvaluationError, match=rf"the function .*dividing raised ZeroDivisionError: division by zero, {place}"):
        run(lambda e: e.map(dividing, schema={"q": float}))
    with pytest.raises(EvaluationError, match=r"returned 'x'[\s\S]*expected: BIGINT NOT NULL"):
        run(lambda e: e.map(lambda row: "x" * row.src, schema={"n": int}))
    with pytest.raises(EvaluationError, match=r"returned None as value 2[\s\S]*expected: BIGINT NOT NULL"):
        run(lambda e: e.map(lambda row: (row.src, [].append(1)), schema={"n": int, "m": int}))
    with pytest.raises(EvaluationError, match="a tuple of 2 values"):
        run(lambda e: e.map(lambda row: row.src + 1, schema={"n": int, "m": int}))
    with pytest.raises(EvaluationError, match="an Arrow array of 1 values"):
        run(lambda e: e.map(lambda rows: pa.array([1, 2]), schema={"n": int}, on_batches=True))
    with pytest.raises(ImpureFunction, match=r"the function .* returned \d+ and then \d+ for the same"):
        run(lambda e: e.map(lambda row: random.getrandbits(60), schema={"n": int}))
    with pytest.raises(NegativeWeight):
        run(lambda e: e.negate())


def test_invalid_circuits_are_refused_when_they_are_built() -> None:
    circuit, edges, marks = graph()
    with pytest.raises(UnknownName, match=r"ambiguous column from[\s\S]*src, dst"):
        edges.index_with("from")
    with pytest.raises(UnknownName, match="ambiguous column weight"):
        edges.map(lambda row: row.weight)
    with pytest.raises(CircuitError, match="keys of the same types"):
        edges.index_with("src").join(marks.index_with("src", "dst"))
    with pytest.raises(CircuitError, match="different columns"):
        edges.plus(marks.map(lambda row: row.src))
    with pytest.raises(CircuitError, match="is already in use"):
        circuit.input("EDGES", schema=PAIR)
    with pytest.raises(CircuitError, match="column x: invalid type"):
        circuit.input("other", schema={"x": list})
    with pytest.raises(CircuitError, match="reads only itself"):
        circuit.recursive("x", schema=PAIR)(lambda x: x.distinct())
    with pytest.raises(CircuitError, match=r"returns \(src BIGINT NOT NULL\)"):
        circuit.recursive("x", schema=PAIR)(lambda x: edges.map(lambda row: row.src))
    with pytest.raises(Unsupported, match="recursive relation x is read"):
        circuit.recursive("x", schema=PAIR)(lambda x: edges.index_with("src").antijoin(x.index_with("src")))


def test_a_drawing_of_nested_scopes_shows_imports_and_exports() -> None:
    circuit, edges, _ = graph()

    @circuit.recursive("outer", schema=PAIR)
    def outer(outer: deltic.Stream) -> deltic.Stream:
        @circuit.recursive("inner", schema=PAIR)
        def inner(inner: deltic.Stream) -> deltic.Stream:
            step = inner.index_with("dst").join(edges.index_with("src"), lambda key, path, edge: (path.src, edge.dst))
            return outer.plus(step).distinct()

        return edges.plus(inner.map(lambda path: (path.dst, path.src))).distinct()

    circuit.output("out", outer)
    with deltic.Session() as session:
        session.install(circuit)
        picture = session.explain("out")
    by_id = {operator.id: operator for operator in picture.operators}
    scopes = {id for id, operator in by_id.items() if operator.operator == "child"}
    assert sorted(id.count(".") for id in scopes) == [0, 1]
    for id, operator in by_id.items():
        scope = id.rpartition(".")[0]
        assert all(read in by_id for read in operator.inputs)
        where = {read.rpartition(".")[0] for read in operator.inputs}
        if operator.operator == "import":
            assert where == {scope.rpartition(".")[0]}, operator  # of the scope around
        elif id in scopes:
            assert where == {id}, operator  # its own
        else:
            assert where <= {scope}, operator
    for drawn, arrow in ((picture.mermaid(), "-->"), (picture.graphviz(), "->")):
        for id, operator in by_id.items():
            end = f"{arrow} n{id.replace('.', '_')}\n"
            assert operator.operator in ("source", "feedback") or end in f"{drawn}\n", id
