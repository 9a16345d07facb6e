"""The multiway join against brute force and its naive form, and its work."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from deltic.circuit.operator import Context, Tick
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.rules import Extend, Fetch, PrefixFilter, Product, Rule, RuleAtom
from deltic.errors import WeightOverflow
from deltic.expr import Column, resolve
from deltic.schema import BIGINT, Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.guard import Guard
from deltic.trace.rows import Rows
from deltic.trace.share import Share
from deltic.trace.spine import Spine
from deltic.trace.sums import split64
from multiway_queries import SHAPES, Running, brute_force, difference, random_change, random_query
from seeds import rotating
from tests.support.strings import string_table

TICKS = 6


def check(seed: int, shape: str | None = None) -> None:
    """A random query over random changes, whose first ticks load: the operator and its naive form equal brute force."""
    rng = random.Random(seed)
    query = random_query(rng, shape)
    running = Running(query, rng)
    few = len(query.atoms) > 4
    domain, rows = (3, 4) if few else (rng.choice((2, 4, 8)), rng.choice((1, 5, 12)))
    before = brute_force(query, running.content)
    for number in range(TICKS):
        changes = {
            relation: random_change(rng, content, running.arity[relation], domain, rows)
            for relation, content in running.content.items()
            if rng.random() < 0.8
        }
        expected = running.said(replace(running.operator, naive=True), changes)
        actual = running.tick(changes)
        after = brute_force(query, running.content)
        assert actual == difference(after, before), f"seed {seed}, {shape}: tick {number}"
        assert expected == actual
        before = after


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_equals_brute_force(shape: str) -> None:
    for seed in range(8):
        check(seed, shape)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_equals_brute_force_many_times(shape: str) -> None:
    for seed in rotating(200):
        check(seed, shape)


def test_intermediate_prefixes_are_processed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.circuit.prefixes.PIECE", 3)
    for seed in range(10):
        check(seed, "square")


def edges(*rows: tuple[int, int], weight: int = 1) -> Batch:
    """Edges, sorted by the first node."""
    columns = np.array(rows, np.int64).reshape(-1, 2).T
    return consolidate(Rows([*np.ascontiguousarray(columns)], (np.full(len(rows), weight, np.int64),)))


def turned(batch: Batch) -> Batch:
    return consolidate(Rows(batch.columns[::-1], batch.weights))


def edge_atom(arrangement: str, key: int, new: bool) -> RuleAtom:
    return RuleAtom(int(arrangement == "in"), arrangement, 2, (key,), new, True)


def triangle_rules(
    output: tuple[str, ...] = (), weights: Callable[[dict[str, int]], tuple[Product, ...]] = lambda _: (Product(),)
) -> tuple[Rule, ...]:
    """g(x, y), g(x, z), g(y, z) over the arrangements "out" and "in". weights: of the output, from the positions of the variables."""
    steps = {
        "xyz": (edge_atom("out", 0, False), edge_atom("out", 1, False)),
        "xzy": (edge_atom("out", 0, True), edge_atom("in", 1, False)),
        "yzx": (edge_atom("in", 0, True), edge_atom("in", 1, True)),
    }
    rules = []
    for order, atoms in steps.items():
        place = {variable: order.index(variable) for variable in order}
        rules.append(Rule(0, (0, 1), (Extend(atoms),), tuple(place[v] for v in output), weights(place)))
    return tuple(rules)


def stepped(operator: MultiwayJoinOperator, state: dict[str, Spine], change: Batch) -> tuple[Rows, Counters]:
    context = Context(0, 1, Tick(1), state, string_table(1))
    return operator.step((change, turned(change)), context), context.counters  # type: ignore[return-value]


def star(degree: int) -> dict[str, Spine]:
    """Node 0 with so many edges in and out, in several batches, and one edge between the ends of two."""
    state = {"out": Spine(2, 1), "in": Spine(2, 1)}
    nodes = np.arange(1, degree + 1)
    none, ones = np.zeros(degree, np.int64), np.ones(degree, np.int64)
    batches = [Rows((none, nodes), (ones,)), Rows((nodes + degree, none), (ones,)), edges((degree + 1, 1), (degree + 1, 2))]
    for batch in map(consolidate, batches):
        state["out"] = state["out"].appended(batch)
        state["in"] = state["in"].appended(turned(batch))
    return state


@pytest.mark.parametrize("change", [(7, 0), (0, -7), (5, 6)])
def test_the_work_of_an_edge_does_not_grow_with_the_degree_of_the_hub(change: tuple[int, int]) -> None:
    operator = MultiwayJoinOperator(triangle_rules())
    binary = JoinOperator("in", "out", 1, ((2, 1), (2, 1)), ((0, 1), (0, 0), (1, 1)))
    work, pairs = [], []
    for degree in (1_000, 10_000, 100_000):
        state, batch = star(degree), edges(change)
        work.append(stepped(operator, state, batch)[1].touched)
        context = Context(0, 1, Tick(1), state, string_table(1))
        binary.step((turned(batch), batch), context)
        pairs.append(context.counters.touched)
    assert 0 < work[2] <= 1.7 * work[0] <= 700
    if 0 in change:
        assert pairs[2] > 20 * pairs[0] and pairs[2] > 50_000


def test_listing_is_not_more_work_than_counting() -> None:
    state = star(100_000)
    state["out"] = state["out"].appended(edges((3, 100_002)))
    state["in"] = state["in"].appended(turned(edges((3, 100_002))))
    counted, few = stepped(MultiwayJoinOperator(triangle_rules()), state, edges((3, 0)))
    listed, many = stepped(MultiwayJoinOperator(triangle_rules(tuple("xyz"))), state, edges((3, 0)))
    assert sum(counted.weights[0].tolist()) == len(listed) == 1
    assert many.touched <= 3 * few.touched <= 3_000


def one_triangle(weight: int, third: int = 3) -> tuple[dict[str, Spine], Batch]:
    """All but one edge of a triangle, of this weight each, and that edge."""
    state = {"out": Spine(2, 1), "in": Spine(2, 1)}
    for batch in (edges((1, third), weight=weight), edges((2, third), weight=weight)):
        state["out"] = state["out"].appended(batch)
        state["in"] = state["in"].appended(turned(batch))
    return state, edges((1, 2))


@pytest.mark.parametrize("output", ["", "xyz"])
def test_a_product_of_weights_beyond_64_bits_is_an_error(output: str) -> None:
    operator = MultiwayJoinOperator(triangle_rules(tuple(output)))
    state, change = one_triangle(-(1 << 31))
    assert stepped(operator, state, change)[0].weights[0].tolist() == [1 << 62]
    state, change = one_triangle(1 << 32)
    with pytest.raises(WeightOverflow, match="weights of a join"):
        stepped(operator, state, change)


def test_only_a_final_sum_beyond_64_bits_is_an_error() -> None:
    operator = MultiwayJoinOperator(triangle_rules())
    for weights, good in (((1, 1), False), ((1, 1, -1), True)):
        state = {"out": Spine(2, 1), "in": Spine(2, 1)}
        for third, sign in enumerate(weights, 3):
            for batch in (edges((1, third), weight=sign << 31), edges((2, third), weight=1 << 31)):
                state["out"] = state["out"].appended(batch)
                state["in"] = state["in"].appended(turned(batch))
        if good:
            assert sum(stepped(operator, state, edges((1, 2)))[0].weights[0].tolist()) == 1 << 62
        else:
            with pytest.raises(WeightOverflow):
                stepped(operator, state, edges((1, 2)))


@pytest.mark.parametrize("word", [-(1 << 63) + 1, -1, 0, (1 << 32) - 1, (1 << 63) - 1])
@pytest.mark.parametrize("weight", [-3, 1, 1 << 14])
@pytest.mark.parametrize("variable", ["x", "y", "z"])
def test_a_sum_of_large_words_is_exact(word: int, weight: int, variable: str) -> None:
    def weights(place: dict[str, int]) -> tuple[Product, ...]:
        return Product((), place[variable], "low"), Product((), place[variable], "high")

    operator = MultiwayJoinOperator(triangle_rules((), weights))
    names = {"x": 1, "y": 2, "z": 3, variable: word}
    rows = [edges((names[a], names[b]), weight=weight if b == "z" else 1) for a, b in ("xy", "xz", "yz")]
    for last in range(3):
        state = {"out": Spine(2, 1), "in": Spine(2, 1)}
        for batch in rows[:last] + rows[last + 1 :]:
            state["out"] = state["out"].appended(batch)
            state["in"] = state["in"].appended(turned(batch))
        low, high = stepped(operator, state, rows[last])[0].weights
        assert (sum(high.tolist()) << 32) + sum(low.tolist()) == word * weight * weight


def test_a_predicate_drops_prefixes_within_the_step() -> None:
    schema = Schema((Field("y", BIGINT, False), Field("z", BIGINT, False)))
    y, z = Column(0, BIGINT, False, "y"), Column(1, BIGINT, False, "z")
    less = Map(schema, schema, (y, z), resolve("<", [y, z], None))
    rule = Rule(0, (0, 1), (Extend((edge_atom("out", 0, False),), PrefixFilter(less, (1, 2))),), (0, 1, 2))
    state = {"out": Spine(2, 1)}
    state["out"] = state["out"].appended(edges((1, 3), (1, 5), (1, 9), (2, 9)))
    rows = MultiwayJoinOperator((rule,)).step((edges((1, 4), (2, 9)),), Context(0, 1, Tick(1), state, string_table(1)))
    assert [c.tolist() for c in rows.columns] == [[1, 1], [4, 4], [5, 9]]


def test_sums_of_a_relation_multiply_with_the_counts_of_others() -> None:
    """ "paid" has (node, n) with weights (count, sum in two limbs); the result has the same weights over its pairs with edges."""
    paid = Spine(2, 3)
    limbs = split64(np.array([7, -(1 << 62)]))
    paid = paid.appended(consolidate(Rows((np.array([1, 1]), np.array([0, 5])), (np.array([1, 1]), *limbs))))
    atom = RuleAtom(1, "paid", 2, (0,), False, True, 3)
    weights = (Product((0, 0)), Product((0, 1)), Product((0, 2)))
    operator = MultiwayJoinOperator((Rule(0, (0, 1), (Fetch(atom),), (1,), weights, ((1, 2),)),))
    change = edges((1, 8), weight=1 << 33)
    context = Context(0, 1, Tick(1), {"paid": paid}, string_table(1))
    rows = operator.step((change, Rows.empty(2, 3)), context)
    count, high, low = (sum(weight.tolist()) for weight in rows.weights)
    assert (count, (high << 32) + low) == (2 << 33, (7 - (1 << 62)) << 33)


@pytest.mark.parametrize("seed", range(30))
def test_rows_of_other_shards_are_not_found(seed: int) -> None:
    """After resharding a trace may hold rows of other shards; any words may determine the shard."""
    rng = random.Random(seed)
    query = random_query(rng, rng.choice(("triangle", "payloads", "wide", "square", "star")))
    running = Running(query, rng)
    for _ in range(3):
        running.tick({r: random_change(rng, content, running.arity[r], 4, 8) for r, content in running.content.items()})
    keys = {relation: rng.sample(range(arity), rng.randrange(1, arity + 1)) for relation, arity in running.arity.items()}
    shared, own = {}, {}
    for relation, order in running.compiling.ports:
        name = f"{relation}:{[*order]}"
        spine = running.state[name]
        share = running.shares[name] = Share(0, 2, tuple(order.index(column) for column in keys[relation]))
        shared[name] = Spine.over(spine.columns, 1, spine.batches, share)
        own[name] = Spine.over(spine.columns, 1, map(share.of_batch, spine.batches))
    changes = {r: random_change(rng, content, running.arity[r], 4, 8) for r, content in running.content.items()}
    running.state = own
    expected = running.said(running.operator, changes)
    running.state = shared
    assert running.said(running.operator, changes) == expected


def test_only_the_read_pages_of_a_mapped_batch_are_verified() -> None:
    n = 100_000
    state = {"out": Spine(2, 1), "in": Spine(2, 1)}
    source = np.arange(n) // 4
    batch = consolidate(Rows((source, (source * 7 + np.arange(n) % 4) % n), (np.ones(n, np.int64),)))
    verified: list[int] = []
    for name, turned_batch in (("out", batch), ("in", turned(batch))):
        guard = Guard(turned_batch.columns, turned_batch.index, n, lambda pages: None, verified.extend)
        mapped = Batch.trusted(turned_batch.columns, turned_batch.weights, turned_batch.index, guard=guard)
        state[name] = Spine.over(2, 1, (mapped,))
    stepped(MultiwayJoinOperator(triangle_rules()), state, edges((17, 23)))
    assert 1 <= len(verified) <= 8
