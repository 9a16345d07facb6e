"""The multiway join at nested times: at each time it emits exactly the products of changes whose times have that join."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from deltic.circuit.clock import Clock
from deltic.circuit.operator import Context, Tick
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.operators.nested_multiway import NestedMultiwayJoin
from deltic.circuit.scopes import ScopeContext
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.time import Time, join
from multiway_queries import SHAPES, Compiling, Order, Query, Row, ZSet, random_query, rules_of
from seeds import rotating
from tests.support.strings import string_table

EPOCHS, ITERATIONS = 3, 3
Update = tuple[Row, Time, int]


@dataclass
class Timed:
    """A join whose relations change at times in `depth` scopes. depths: those of the relations; in deeper ones each is at iteration 0."""

    query: Query
    depths: dict[str, int]
    depth: int
    operator: NestedMultiwayJoin
    ports: dict[tuple[str, Order], int]
    state: dict[str, Spine]
    updates: dict[str, list[Update]] = field(default_factory=dict)

    def at(self, scopes: ScopeContext, changes: dict[str, ZSet]) -> Counter[Row]:
        """The operator's output at the context's time for these changes."""
        inputs = []
        for relation, order in self.ports:
            batch = batch_of(changes.get(relation, {}), order)
            depth = self.depths[relation]
            if len(batch):
                trace = scopes.trace(f"{relation}:{[*order]}", len(order) + depth, 1, depth)
                trace.append(batch, scopes.time)
            inputs.append(batch)
        for relation, change in changes.items():
            self.updates[relation] += [(row, scopes.clock.time, weight) for row, weight in change.items()]
        rows = self.operator.step(inputs, scopes)
        out: Counter[Row] = Counter()
        for row, weight in zip(zip(*(c.tolist() for c in rows.columns), strict=True), rows.weights[0].tolist(), strict=True):
            out[row] += weight
        return Counter({row: weight for row, weight in out.items() if weight})

    def expected(self) -> dict[Time, Counter[Row]]:
        """The expected output at every time, from all updates."""
        partial: list[tuple[dict[str, int], Time, int]] = [({}, (0,) * (1 + self.depth), 1)]
        for relation, variables in self.query.atoms:
            partial = [
                ({**bound, **dict(zip(variables, row, strict=True))}, join(time, at), weight * w)
                for bound, time, weight in partial
                for row, at, w in self.updates[relation]
                if all(bound.get(v, x) == x for v, x in zip(variables, row, strict=True))
            ]
        out: dict[Time, Counter[Row]] = {}
        for bound, time, weight in partial:
            out.setdefault(time, Counter())[tuple(bound[v] for v in self.query.output)] += weight
        return {time: Counter({row: w for row, w in rows.items() if w}) for time, rows in out.items()}


def batch_of(change: ZSet, order: Order) -> Batch:
    columns = [np.array([row[c] for row in change], np.int64) for c in order]
    return consolidate(Rows(columns, (np.array([*change.values()], np.int64),)))


def random_join(rng: random.Random, depth: int) -> Timed:
    query = random_query(rng, rng.choice([name for name in SHAPES if len(SHAPES[name]) < 5]))
    query = Query(query.atoms, query.output or query.atoms[0][1][0])
    depths = {relation: rng.choice((depth, depth, rng.randrange(depth + 1))) for relation, _ in query.atoms}
    compiling = Compiling()
    flat = MultiwayJoinOperator(rules_of(query, rng, compiling))
    operator = NestedMultiwayJoin(flat, tuple(depths[name.split(":")[0]] for name in flat.sources))
    state = {f"{r}:{[*order]}": Spine(len(order) + depths[r], 1) for r, order in compiling.ports}
    return Timed(query, depths, depth, operator, compiling.ports, state, {relation: [] for relation in depths})


def random_changes(rng: random.Random, running: Timed, time: Time) -> dict[str, ZSet]:
    """Changes of the relations that may change now, some of them retractions of rows added at another time."""
    changes: dict[str, ZSet] = {}
    for relation, depth in running.depths.items():
        if any(time[depth:]) or rng.random() < 0.5:
            continue
        arity = len(next(variables for name, variables in running.query.atoms if name == relation))
        before = [row for row, _, _ in running.updates[relation]]
        rows = [tuple(rng.randrange(3) for _ in range(arity)) for _ in range(rng.randrange(3))]
        rows += rng.sample(before, min(len(before), rng.randrange(2)))
        changes[relation] = {row: rng.choice((-2, -1, 1, 1)) for row in rows}
    return changes


def check(seed: int, depth: int) -> None:
    """Every time of some epochs, in order."""
    rng = random.Random(seed)
    running = random_join(rng, depth)
    actual: dict[Time, Counter[Row]] = {}
    for epoch in range(EPOCHS):
        clock = Clock((epoch,))
        scopes = ScopeContext.of(Context(0, 1, Tick(epoch), running.state, string_table(1)), clock)
        scopes.path = (0,) * (depth + 1)
        for time in product(range(ITERATIONS), repeat=depth):
            clock.time = (epoch, *time)
            rows = running.at(scopes, random_changes(rng, running, time))
            if rows:
                actual[clock.time] = rows
        assert scopes.due.empty
        for name, trace in scopes.traces.items():
            running.state[name] = running.state[name].appended(trace.added.scan(Counters()))
    assert actual == {time: rows for time, rows in running.expected().items() if rows}, f"seed {seed}, depth {depth}"


@pytest.mark.parametrize("depth", [1, 2])
def test_products_are_due_at_the_join_of_their_times(depth: int) -> None:
    for seed in range(12):
        check(seed, depth)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_products_of_thousands_of_joins_are_due_at_the_join_of_their_times(depth: int) -> None:
    for seed in rotating(1_000):
        check(seed, depth)
