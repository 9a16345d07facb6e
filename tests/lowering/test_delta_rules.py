"""The delta rules of multiway joins: the order of variables, the arrangements and how they are shared, and the AGM bound."""

from __future__ import annotations

import doctest
import importlib
from itertools import combinations, product
from random import Random
from time import process_time

import pytest

import deltic
from deltic.lowering.agm import agm_bound
from deltic.lowering.delta_rules import Bind, Index, Take, delta_rules
from deltic.plan.nodes import MultiwayJoin, Plan, Table, Values
from deltic.schema import BIGINT, Field, Schema, TableSchema


def graph(*more: str, key: tuple[int, ...] = ()) -> Table:
    fields = tuple(Field(name, BIGINT, False) for name in ("s", "d", *more))
    return Table(TableSchema(f"g{len(more)}", Schema(fields), key))


def join(*atoms: str, output: tuple[int, ...] = (), tables: dict[int, Plan] | None = None) -> MultiwayJoin:
    """Atoms as letters, one for each column; numbered in order of appearance."""
    numbers = {letter: i for i, letter in enumerate(dict.fromkeys("".join(atoms)))}
    inputs = tuple((tables or {}).get(i, graph()) for i in range(len(atoms)))
    return MultiwayJoin(inputs, tuple(tuple(numbers[letter] for letter in atom) for atom in atoms), output)


def indexes(plan: MultiwayJoin) -> set[Index]:
    return {index for rule in delta_rules(plan) for index in rule.indexes}


TRIANGLE = ("xy", "xz", "yz")
CLIQUE = ("ab", "ac", "ad", "bc", "bd", "cd")
BOW_TIE = ("ab", "bx", "xa", "xc", "cd", "dx")


def test_the_example_of_the_bound() -> None:
    result = doctest.testmod(importlib.import_module("deltic.lowering.agm"))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize(
    ("atoms", "bound"),
    [
        (TRIANGLE, 1.5),
        (CLIQUE, 2.0),
        (("ab", "bc", "cd", "da"), 2.0),
        (BOW_TIE, 2.5),
        (("ab", "bc", "cd", "de", "ea"), 2.5),
        (("ab", "bc"), 2.0),
    ],
    ids=["triangle", "clique", "square", "bow-tie", "pentagon", "path"],
)
def test_known_bounds(atoms: tuple[str, ...], bound: float) -> None:
    edges = tuple((frozenset(map(ord, atom)), 1.0) for atom in atoms)
    assert agm_bound(frozenset().union(*(edge for edge, _ in edges)), edges) == pytest.approx(bound)


def test_the_bound_of_binary_relations_is_that_of_the_best_half_integral_cover() -> None:
    """The vertices of the linear program are half-integral (Balinski 1965), so all can be enumerated."""
    rng = Random(0)
    for _ in range(80):
        count = rng.randint(2, 5)
        edges = [(frozenset(rng.sample(range(count), 2)), rng.choice((1.0, 2.0, 3.5, 7.0))) for _ in range(rng.randint(1, 6))]
        variables = frozenset().union(*(edge for edge, _ in edges))
        covers = [
            c
            for c in product((0, 0.5, 1), repeat=len(edges))
            if all(sum(x for x, e in zip(c, edges, strict=True) if v in e[0]) >= 1 for v in variables)
        ]
        best = min(sum(x * size for x, (_, size) in zip(c, edges, strict=True)) for c in covers)
        assert agm_bound(variables, tuple(edges)) == pytest.approx(best), edges


def test_known_bounds_of_wider_relations() -> None:
    for n in (4, 5, 6, 7):  # Loomis and Whitney: each relation leaves one variable out
        edges = tuple((frozenset(range(n)) - {i}, 1.0) for i in range(n))
        assert agm_bound(frozenset(range(n)), edges) == pytest.approx(n / (n - 1))
    fano = tuple((frozenset((i, (i + 1) % 7, (i + 3) % 7)), 1.0) for i in range(7))
    assert agm_bound(frozenset(range(7)), fano) == pytest.approx(7 / 3)


def cycle(n: int) -> MultiwayJoin:
    return _of_pairs(tuple((i, (i + 1) % n) for i in range(n)))


def clique(n: int) -> MultiwayJoin:
    return _of_pairs(tuple(combinations(range(n), 2)))


def _of_pairs(pairs: tuple[tuple[int, int], ...]) -> MultiwayJoin:
    numbers = {vertex: i for i, vertex in enumerate(dict.fromkeys(vertex for pair in pairs for vertex in pair))}
    return MultiwayJoin((graph(),) * len(pairs), tuple((numbers[a], numbers[b]) for a, b in pairs), ())


@pytest.mark.parametrize("plan", [cycle(30), cycle(100), clique(8), clique(12), clique(16)], ids=["30", "100", "K8", "K12", "K16"])
def test_orders_of_many_variables_are_found_quickly(plan: MultiwayJoin) -> None:
    before = process_time()
    rules = delta_rules(plan)
    assert process_time() - before < 20, "a search without bounds has no end"
    for rule in rules:
        bound = set(plan.variables[rule.input])
        for variable in rule.order:
            reached = any(variable in members and bound & set(members) for members in plan.variables)
            assert reached, "each variable is next to one that is bound"
            bound.add(variable)
        assert bound == set(plan.flat)


def test_a_triangle_of_one_relation_has_three_rules_over_two_arrangements() -> None:
    plan = join(*TRIANGLE)
    rules = delta_rules(plan)
    assert [rule.order for rule in rules] == [(2,), (1,), (0,)]
    assert [rule.steps for rule in rules] == [(Bind(2, (1, 2)),), (Bind(1, (0, 2)),), (Bind(0, (0, 1)),)]
    assert {index.order for index in indexes(plan)} == {(0, 1), (1, 0)}


def test_a_clique_of_one_relation_needs_two_arrangements() -> None:
    assert len(indexes(join(*CLIQUE))) == 2


def test_a_variable_connected_to_bound_ones_comes_first() -> None:
    rules = delta_rules(join(*BOW_TIE))
    assert rules[0].order[0] == 2, "x is bound from both sides, c and d from none"
    assert all(len(step.inputs) >= 2 for rule in rules for step in rule.steps if isinstance(step, Bind))


def test_a_small_relation_is_bound_first() -> None:
    few = Values(((1, 2),), Schema((Field("s", BIGINT, False), Field("d", BIGINT, False))))
    square = ("ab", "bc", "cd", "da")
    assert delta_rules(join(*square, tables={2: few}))[0].order in ((2, 3), (3, 2))
    pentagon = ("ab", "bc", "cd", "de", "ea")
    assert delta_rules(join(*pentagon, tables={2: few}))[0].order[0] in (2, 3)


def test_the_last_variable_is_one_that_is_not_in_the_result() -> None:
    plan = join("ab", "bc", "cd", "da", output=(3,))
    assert delta_rules(plan)[0].order == (2, 3)
    assert delta_rules(join("ab", "bc", "cd", "da", output=(6,)))[0].order == (3, 2)
    assert delta_rules(join("ab", "bc", "cd", "da", output=(4,)))[0].order == (2, 3)


def test_bound_relations_are_looked_up_at_once_and_payload_last() -> None:
    plan = join("xy", "xy", "xzp", "yz", tables={2: graph("p")})
    first = delta_rules(plan)[0]
    assert first.steps == (Take(1, ()), Bind(2, (2, 3)), Take(2, (3,)))


def test_payload_of_a_key_is_fetched_as_soon_as_its_key_is_bound() -> None:
    named = Table(TableSchema("n", Schema((Field("id", BIGINT, False), Field("name", BIGINT, False))), (0,)))
    plan = join("xy", "xz", "yz", "xn", tables={3: named})
    steps = delta_rules(plan)[0].steps
    assert steps == (Take(3, (3,)), Bind(2, (1, 2)))


def test_every_rule_binds_every_variable_once() -> None:
    for atoms in (TRIANGLE, CLIQUE, BOW_TIE, ("abc", "abd", "acd", "bcd"), ("ab", "bc", "ca", "cp")):
        tables = {i: graph(*"abcdef"[: len(atom) - 2]) for i, atom in enumerate(atoms)}
        plan = join(*atoms, tables=tables)
        for rule in delta_rules(plan):
            bound = list(plan.variables[rule.input])
            for step in rule.steps:
                bound += [step.variable] if isinstance(step, Bind) else step.variables
            assert sorted(bound) == sorted(set(plan.flat))


def test_a_cyclic_join_of_many_tables_is_defined_quickly() -> None:
    def query(pairs: list[tuple[int, int]]) -> str:
        first: dict[int, str] = {}
        conditions = []
        for i, pair in enumerate(pairs):
            for vertex, column in zip(pair, "sd", strict=True):
                if vertex in first:
                    conditions.append(f"{first[vertex]} = t{i}.{column}")
                first.setdefault(vertex, f"t{i}.{column}")
        return f"SELECT t0.s, t0.d FROM {', '.join(f'e t{i}' for i in range(len(pairs)))} WHERE {' AND '.join(conditions)}"

    circle = [(i, (i + 1) % 30) for i in range(30)]
    for shards in (1, 3):
        with deltic.Session(shards=shards) as session:
            session.sql("CREATE TABLE e (s BIGINT, d BIGINT)")
            before = process_time()
            session.sql(f"CREATE MATERIALIZED VIEW circle AS {query(circle)}")
            session.sql(f"CREATE MATERIALIZED VIEW clique AS {query(list(combinations(range(8), 2)))}")
            session.apply({"e": [{"s": s, "d": d, "_op": "insert"} for s, d in circle]})
            assert process_time() - before < 20
            assert len(session.view("circle").rows()) == 30 and not session.view("clique").rows()
            assert len(session.explain("circle").joins) == 1 and session.explain("circle").joins[0].exponent == 15
