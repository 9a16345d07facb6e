"""The multiway join of the oracle against binary joins, and the node in every traversal of plans."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from deltic.expr.functions import resolve
from deltic.optimizer.prune_columns import prune_columns
from deltic.optimizer.simplify import simplify
from deltic.plan.columns import agrees, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Filter, Join, MultiwayJoin, Plan, Project, Table, Values, inputs
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import map_inputs, nodes
from deltic.schema import BIGINT, STRING, Field, Schema, TableSchema

EDGES = Table(TableSchema("g", Schema((Field("src", BIGINT), Field("dst", BIGINT)))))
NAMED = Table(TableSchema("n", Schema((Field("id", BIGINT, False), Field("name", STRING)))))


def triangle(*output: int) -> MultiwayJoin:
    """x → y, x → z, y → z, and the name of z."""
    return MultiwayJoin((EDGES, EDGES, EDGES, NAMED), ((0, 1), (0, 2), (1, 2), (2, 3)), output)


def by_twos(plan: MultiwayJoin) -> Plan:
    """The same by binary joins."""
    joined = plan.inputs[0]
    seen = list(plan.variables[0])
    for part, variables in zip(plan.inputs[1:], plan.variables[1:], strict=True):
        pairs = tuple((reference(joined.schema, seen.index(v)), reference(part.schema, i)) for i, v in enumerate(variables) if v in seen)
        joined = Join(joined, part, "inner", pairs)
        seen += variables
    joined = joined if plan.condition is None else Filter(joined, plan.condition)
    return Project(joined, tuple((joined.schema[i].name, reference(joined.schema, i)) for i in plan.output))


def contents(seed: int) -> dict[str, Relation]:
    rng = Random(seed)
    values = [None, *range(4)]
    edges = [((x, y), rng.randint(1, 3)) for x, y in product(values, values) if rng.random() < 0.6]
    names = [((x, rng.choice([None, "a", "b"])), 1 + x % 2) for x in range(3)]
    return {"g": Relation(edges), "n": Relation(names)}


def test_it_equals_binary_joins() -> None:
    shown = 0
    for seed in range(40):
        for output in ((0, 1, 3, 7), (), (2, 5), (1, 6)):
            plan = triangle(*output)
            if seed % 2:
                condition = resolve("less", [reference(plan.columns, 0), reference(plan.columns, 3)])
                plan = MultiwayJoin(plan.inputs, plan.variables, output, condition)
            tables = contents(seed)
            actual = evaluate(plan, tables)
            assert actual == evaluate(by_twos(plan), tables)
            shown += len(actual)
    assert shown > 500


def test_a_null_in_a_shared_variable_matches_nothing_and_elsewhere_it_stays() -> None:
    plan = MultiwayJoin((EDGES, EDGES), ((0, 1), (1, 2)), (0, 1, 3))
    tables = {"g": Relation([((1, None), 1), ((None, 2), 3), ((2, None), 5)])}
    assert evaluate(plan, tables) == Relation([((None, 2, None), 15)])


def test_its_text_names_variables_condition_and_output() -> None:
    plan = triangle(0, 1, 7)
    condition = resolve("less", [reference(plan.columns, 0), reference(plan.columns, 1)])
    whole = MultiwayJoin(plan.inputs, plan.variables, plan.output, condition)
    assert show(whole).splitlines()[0] == (
        "MultiwayJoin on src#0 = src#2, dst#1 = src#4, dst#3 = dst#5 = id#6 where (src#0 < dst#1): src#0, dst#1, name#7"
    )


def test_pruning_keeps_shared_columns_and_those_of_the_condition() -> None:
    wide = Table(TableSchema("w", Schema(tuple(Field(c, BIGINT) for c in "abcd"))))
    plan = MultiwayJoin((wide, EDGES, EDGES), ((0, 1, 2, 3), (0, 4), (3, 4)), (0, 1, 2, 7))
    condition = resolve("less", [reference(plan.columns, 1), reference(plan.columns, 7)])
    plan = MultiwayJoin(plan.inputs, plan.variables, plan.output, condition)
    pruned = prune_columns(Project(plan, (("x", reference(plan.schema, 3)),)))
    (join,) = (node for node in nodes(pruned) if isinstance(node, MultiwayJoin))
    assert [len(part.schema) for part in join.inputs] == [3, 2, 2]
    assert join.variables == ((0, 1, 2), (0, 3), (2, 3)) and join.output == (6,)
    assert agrees(pruned)
    rng = Random(0)
    rows = Relation((tuple(rng.randint(0, 2) for _ in range(4)), 1) for _ in range(30))
    tables = {**contents(3), "w": rows}
    assert evaluate(pruned, tables) == evaluate(Project(plan, (("x", reference(plan.schema, 3)),)), tables) != Relation()


def test_an_empty_input_empties_it() -> None:
    plan = map_inputs(triangle(0, 1), lambda part: Values((), part.schema) if part is NAMED else part)
    assert simplify(plan) == Values((), plan.schema)


def test_equal_joins_have_equal_fingerprints_and_others_have_others() -> None:
    renamed = Project(EDGES, (("a", reference(EDGES.schema, 0)), ("b", reference(EDGES.schema, 1))))
    again = Project(EDGES, tuple((f.name, reference(EDGES.schema, i)) for i, f in enumerate(EDGES.schema)))
    marks = [fingerprint(map_inputs(triangle(0, 1), lambda part, by=by: by if part is EDGES else part)) for by in (renamed, again)]
    assert marks[0] == marks[1]
    others = [triangle(0, 1), triangle(0), MultiwayJoin((EDGES, EDGES, EDGES, NAMED), ((0, 1), (2, 0), (1, 2), (2, 3)), (0, 1))]
    assert len({fingerprint(plan) for plan in others}) == 3


def test_variables_are_numbered_as_they_appear_and_fit_their_columns() -> None:
    assert inputs(triangle()) == (EDGES, EDGES, EDGES, NAMED) and triangle().shared == (0, 1, 2)
    for variables in (((1, 0), (0, 2)), ((0, 0), (0, 1)), ((0,), (0, 1))):
        with pytest.raises(AssertionError):
            MultiwayJoin((EDGES, EDGES), variables, ())
    with pytest.raises(AssertionError):
        MultiwayJoin((EDGES, NAMED), ((0, 1), (2, 1)), ())
