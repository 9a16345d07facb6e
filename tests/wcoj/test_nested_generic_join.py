"""Generic join in recursions equals the recursion computed from scratch, after inserts and deletes, at one level and at two."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from deltic.dbsp.circuit import ReferenceCircuit
from deltic.dbsp.nodes import ReferenceStream
from deltic.dbsp.zset import ZSet as Changes
from deltic.wcoj.index import Atom
from deltic.wcoj.nested import GenericJoin
from join_shapes import atoms, joined, variables
from seeds import rotating

Pairs = set[tuple[int, int]]
PAIRS = [*product(range(4), repeat=2)]
RULES = {
    "the closure": ("p(x,y) p(y,z)", "xz"),
    "a triangle that grows": ("p(x,y) e(y,z) p(x,z)", "zx"),
    "a cycle of four": ("p(a,b) e(b,c) p(c,d) e(d,a)", "ac"),
    "paths as long as an edge": ("p(x,y) p(y,z) e(z,x)", "xz"),
    "with a constant": ("p(x,y) e(y,1) p(1,z)", "xz"),
}


def positions_of(query: list[Atom], head: str) -> list[int]:
    order = [variable.name for variable in variables(query)]
    return [order.index(name) for name in head]


def derived(query: list[Atom], positions: list[int], p: Pairs, e: Pairs) -> Pairs:
    rows = joined(query, {"p": dict.fromkeys(p, 1), "e": dict.fromkeys(e, 1)})
    return {tuple(row[position] for position in positions) for row in rows}


def closed(step: Callable[[Pairs], Pairs], base: Pairs) -> Pairs:
    while (longer := base | step(base)) != base:
        base = longer
    return base


def derivation(
    circuit: ReferenceCircuit, query: list[Atom], positions: list[int], p: ReferenceStream, e: ReferenceStream
) -> ReferenceStream:
    operator = GenericJoin(query)
    rows = circuit.operator(operator, *({"p": p, "e": e}[name] for name in operator.relations))
    return rows.map(lambda row: tuple(row[position] for position in positions))


def recursion(query: list[Atom], positions: list[int]) -> ReferenceCircuit:
    """p = distinct(b + rule(p, e))."""
    circuit = ReferenceCircuit()
    base, e = circuit.source("b"), circuit.source("e")
    scope = circuit.child("scope")
    p = scope.feedback("p")
    scope.connect(p, scope.import_stream(base).plus(derivation(scope, query, positions, p, scope.import_stream(e))).distinct())
    circuit.sink("p", scope.export(p))
    return circuit


def recursion_in_recursion(query: list[Atom], positions: list[int]) -> ReferenceCircuit:
    """q = distinct(b + turned(p)), where for each iteration p = distinct(q + rule(p, e))."""
    circuit = ReferenceCircuit()
    base, e = circuit.source("b"), circuit.source("e")
    outer = circuit.child("outer")
    q = outer.feedback("q")
    inner = outer.child("inner")
    p = inner.feedback("p")
    edges = inner.import_stream(outer.import_stream(e))
    inner.connect(p, inner.import_stream(q).plus(derivation(inner, query, positions, p, edges)).distinct())
    turned = inner.export(p).map(lambda pair: (pair[1], pair[0]))
    outer.connect(q, outer.import_stream(base).plus(turned).distinct())
    circuit.sink("p", outer.export(q))
    return circuit


def check(name: str, seeds: range, build: Callable[[list[Atom], list[int]], ReferenceCircuit], turned: bool) -> None:
    rule, head = RULES[name]
    query = atoms(rule)
    positions = positions_of(query, head)
    most = 0
    for seed in seeds:
        rng, circuit = random.Random(seed), build(query, positions)
        (sink,) = (node for node in circuit.nodes if node.kind == "sink")
        tables: dict[str, Pairs] = {"b": set(), "e": set()}
        content = Changes()
        for tick in range(5):
            before = {table: set(pairs) for table, pairs in tables.items()}
            for pairs in tables.values():
                for pair in rng.sample(PAIRS, 5 if tick == 0 else rng.choice([0, 1, 2])):
                    pairs ^= {pair}
            changes = {
                table: Changes.of((pair, None, 1 if pair in pairs else -1) for pair in pairs ^ before[table])
                for table, pairs in tables.items()
            }
            circuit.step(**changes)
            content = Changes.sum([*content.weights.items(), *sink.value.weights.items()])
            e = tables["e"]
            expected = closed(lambda p, e=e: derived(query, positions, p, e) | ({(y, x) for x, y in p} if turned else set()), tables["b"])
            assert content == Changes.of((pair, None, 1) for pair in expected), (name, seed, tick)
            most = max(most, len(expected - tables["b"]))
    assert most > 1


@pytest.mark.parametrize("name", RULES)
def test_generic_join_in_a_recursion(name: str) -> None:
    check(name, range(4), recursion, turned=False)


@pytest.mark.parametrize("name", ["the closure", "a triangle that grows"])
def test_generic_join_in_a_recursion_in_a_recursion(name: str) -> None:
    check(name, range(2), recursion_in_recursion, turned=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_generic_join_in_many_recursions(name: str) -> None:
    check(name, rotating(36), recursion, turned=False)
    check(name, rotating(16), recursion_in_recursion, turned=True)
