"""Cubes: the shards of rows, and that every result of a multiway join is computed exactly once, under any skew."""

from __future__ import annotations

import doctest
import importlib
from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest

from deltic.circuit.cube import Cube, Replicate
from deltic.circuit.operators.linear import Exchange
from deltic.plan.columns import reference
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Aggregate, AggregateCall, MultiwayJoin, Plan, Table
from deltic.plan.relation import Relation
from deltic.schema import BIGINT, Field, Schema, TableSchema
from deltic.trace.rows import Rows
from engines import embedded
from programs import Case, applied, empty

EDGES = tuple((pair, 1.0) for pair in ((0, 1), (0, 2), (1, 2)))
TRIANGLE = Cube(3, EDGES)
PLACEMENTS = ((0, 1, None), (0, None, 1), (None, 0, 1))
"""The placements of an edge as the first, second and third side."""


def test_the_examples() -> None:
    result = doctest.testmod(importlib.import_module("deltic.circuit.cube"))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("shards", range(1, 28))
def test_shares_use_as_many_shards_as_they_can(shards: int) -> None:
    cells = prod(TRIANGLE.shares(shards))
    assert cells <= shards and cells > shards / 2


def test_a_large_relation_is_not_replicated() -> None:
    skewed = Cube(3, (((0, 1), 1e6), ((0, 2), 10.0), ((1, 2), 10.0)))
    assert skewed.shares(16)[2] == 1 and prod(skewed.shares(16)) == 16


@pytest.mark.parametrize("shards", [2, 3, 8, 12])
def test_the_rows_of_a_result_meet_on_exactly_one_shard(shards: int) -> None:
    """Each placement alone is one copy for each coordinate that the edge does not determine."""
    values = np.array([[x, y] for x, y in product(range(12), range(12))], np.int64)
    rows = Rows((values[:, 0].copy(), values[:, 1].copy()), (np.ones(len(values), np.int64),))
    shares = TRIANGLE.shares(shards)
    held = []
    for number, placement in enumerate(PLACEMENTS):
        sent = Replicate((), TRIANGLE, (placement,)).route(rows, shards)
        assert len(sent) == shards and sum(map(len, sent)) == len(rows) * shares[2 - number]
        held.append([set(zip(part.columns[0].tolist(), part.columns[1].tolist(), strict=True)) for part in sent])
    together = Replicate((), TRIANGLE, PLACEMENTS).route(rows, shards)
    for shard, part in enumerate(together):
        assert set(zip(part.columns[0].tolist(), part.columns[1].tolist(), strict=True)) == set().union(*(each[shard] for each in held))
    for x, y, z in product(range(12), repeat=3):
        meeting = [s for s in range(shards) if (x, y) in held[0][s] and (x, z) in held[1][s] and (y, z) in held[2][s]]
        own = [
            s
            for s in range(prod(shares))
            if all(len(TRIANGLE.cell(s, shards).own(np.array([value]), d)) for d, value in enumerate((x, y, z)))
        ]
        assert meeting == own and len(own) == 1


G = Table(TableSchema("g", Schema((Field("src", BIGINT, False), Field("dst", BIGINT, False)))))
JOIN = MultiwayJoin((G, G, G), ((0, 1), (0, 2), (1, 2)), (0, 1, 3))


def counted() -> Plan:
    z = reference(JOIN.schema, 2)
    calls = (("n", AggregateCall("count", (), BIGINT, False)), ("z", AggregateCall("sum", (z,), BIGINT, True)))
    return Aggregate(JOIN, (), calls)


def hub(seed: int) -> Case:
    """45 % of the edges lead to one node, and 45 % away from it."""
    rng = Random(seed)

    def edge() -> tuple[int, int]:
        kind = rng.random()
        return (rng.randrange(30), 0) if kind < 0.45 else (0, rng.randrange(30)) if kind < 0.9 else (rng.randrange(30), rng.randrange(30))

    load = [edge() for _ in range(150)]
    ticks = [{"g": [(row, 1) for row in load]}]
    ticks += [{"g": [*((row, -1) for row in load[i : i + 10]), *((edge(), 1) for _ in range(10))]} for i in range(0, 60, 10)]
    return Case(seed, {"g": G.table}, {"listed": JOIN, "counted": counted()}, ticks, False)


@pytest.mark.parametrize("shards", [2, 5, 8])
def test_heavy_hitters_are_counted_once(shards: int) -> None:
    program = hub(shards)
    engine = embedded(program.tables, program.views, shards)
    tables = empty(program.tables)
    for tick in program.ticks:
        engine.tick(tick)
        tables = applied(tables, tick)
        for name, plan in program.views.items():
            actual = evaluate(plan, tables)
            assert engine.view(name) == actual and len(actual) > 0, name


@pytest.mark.parametrize(("shards", "whole"), [(2, True), (3, True), (8, False)])
def test_on_few_shards_each_has_a_share_of_the_changes(shards: int, whole: bool) -> None:
    """In a self-join all rows are on both shards: the last variable is summed over without being listed."""
    assert all(TRIANGLE.cell(shard, shards, [PLACEMENTS, PLACEMENTS]).whole == whole for shard in range(shards))
    engine = embedded({"g": G.table}, {"counted": counted()}, shards)
    engine.tick({"g": [((x, y), 1) for x, y in product(range(20), range(20)) if x != y and (x, y) != (0, 1)]})
    result = engine.tick({"g": [((0, 1), 1)]})
    (join,) = (node for node in engine.circuit.nodes if node.operator.name == "multiway_join")
    assert engine.change("counted", result) != Relation()
    assert (result.counters[join.name].rows_out == 3) == whole, "one row for each rule"


@pytest.mark.parametrize("shards", [2, 3, 8])
def test_results_are_removed_on_the_shard_that_added_them(shards: int) -> None:
    """Each shard keeps its own MIN: a triangle that was added by one edge is removed by another, which hashes to another shard."""
    z = reference(JOIN.schema, 2)
    least = Aggregate(JOIN, (), (("least", AggregateCall("min", (z,), BIGINT, True)), ("n", AggregateCall("count", (z,), BIGINT, False))))
    engine = embedded({"g": G.table}, {"least": least}, shards)
    rng = Random(shards)
    for _ in range(2):
        x, y, z = (rng.randrange(100) for _ in range(3))
        sides = [((x, y), 1), ((x, z), 1), ((y, z), 1)]
        for came, (row, _) in product(sides, sides):
            others = [side for side in sides if side != came]
            tables = {"g": Relation()}
            for change in (others, [came], [(row, -1)], [(side, -1) for side, _ in sides if side != row]):
                engine.tick({"g": change})
                tables = applied(tables, {"g": change})
                assert engine.view("least") == evaluate(least, tables)


def test_a_cyclic_join_exchanges_once() -> None:
    engine = embedded({"g": G.table}, {"listed": JOIN}, 8)
    exchanges = [node for node in engine.circuit.nodes if isinstance(node.operator, Exchange)]
    assert len(engine.circuit.levels) == 2 and all(isinstance(node.operator, Replicate) for node in exchanges)
    assert len(exchanges) == 2, "one for each arrangement, all in one level"


def test_every_shard_has_its_part_of_the_work() -> None:
    engine = embedded({"g": G.table}, {"listed": JOIN}, 8)
    rng = Random(1)
    engine.tick({"g": [((rng.randrange(60), rng.randrange(60)), 1) for _ in range(1500)]})
    view = engine.circuit.views["listed"]
    rows = [sum(len(batch) for batch in spine.batches) for spine in engine.runtime.snapshot(view)]
    assert min(rows) > 0.3 * sum(rows) / 8, rows
