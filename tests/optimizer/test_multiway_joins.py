"""The joins that become multiway joins: those with cyclic hypergraphs or hints, and no others."""

from __future__ import annotations

import doctest
import importlib
from math import nan

import pytest
from test_goldens import PLANS

from deltic.errors import EvaluationError, Unsupported
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.expr.typing import cast
from deltic.optimizer import optimize
from deltic.optimizer.form_multiway_joins import binary_cycles
from deltic.optimizer.hypergraph import components, cyclic_core
from deltic.plan.columns import agrees, conjunction, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Distinct, Filter, Hint, HintKind, Join, MultiwayJoin, Plan, Project, Recursion, Reference, Table, Union
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import map_inputs, nodes
from deltic.schema import BIGINT, DOUBLE, INT, STRING, Field, Schema, TableSchema, Type, decimal
from engines import embedded


def graph(name: str = "g", source: Type = BIGINT, target: Type = BIGINT) -> Table:
    return Table(TableSchema(name, Schema((Field("s", source), Field("d", target)))))


def joined(*atoms: str, tables: dict[int, Table] | None = None, kind: HintKind | None = None) -> Plan:
    """The atoms, each two letters for the variables of an edge, as a left-deep tree of joins."""
    hint = None if kind is None else Hint(kind)
    tables = tables or {}
    plan: Plan = tables.get(0, graph())
    seen = list(atoms[0])
    for n, atom in enumerate(atoms[1:], 1):
        right = tables.get(n, graph())
        pairs = [(seen.index(v), i) for i, v in enumerate(atom) if v in seen]
        plan = Join(plan, right, "inner", tuple((reference(plan.schema, a), reference(right.schema, b)) for a, b in pairs), hint=hint)
        seen += atom
    return plan


def formed(plan: Plan) -> list[MultiwayJoin]:
    after = optimize(plan)
    assert agrees(after) and after.schema == plan.schema
    assert fingerprint(optimize(after)) == fingerprint(after), show(after)
    return [node for node in nodes(after) if isinstance(node, MultiwayJoin)]


@pytest.mark.parametrize("name", ["form_multiway_joins", "hypergraph"])
def test_the_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"deltic.optimizer.{name}"))
    assert result.attempted > 0 and result.failed == 0


CYCLIC = {
    "triangle": (["xy", "xz", "yz"], 3),
    "square": (["ab", "bc", "cd", "da"], 4),
    "clique": (["ab", "ac", "ad", "bc", "bd", "cd"], 6),
    "Loomis-Whitney": (["abc", "abd", "acd", "bcd"], 4),
    "bow-tie": (["ab", "bc", "ca", "cd", "de", "ec"], 6),
    "triangle with a tail": (["ab", "bc", "ca", "cd", "de"], 3),
    "triangle with a side twice": (["ab", "ab", "bc", "ca"], 3),
    "two triangles on one path": (["ab", "bc", "ca", "cx", "xd", "de", "ef", "fd"], 8),
}
ACYCLIC = {
    "edge": ["ab"],
    "path": ["ab", "bc", "cd"],
    "star": ["xa", "xb", "xc"],
    "covered triangle": ["ab", "bc", "ca", "abc"],
    "tree": ["ab", "ac", "bd", "be", "cf"],
    "snowflake": ["abc", "ad", "bef", "cg", "eh"],
    "twice the same": ["ab", "ab"],
}


@pytest.mark.parametrize("name", CYCLIC)
def test_a_cyclic_hypergraph_has_a_core(name: str) -> None:
    edges, left = CYCLIC[name]
    assert len(cyclic_core([frozenset(map(ord, edge)) for edge in edges])) == left


@pytest.mark.parametrize("name", ACYCLIC)
def test_an_acyclic_hypergraph_has_none(name: str) -> None:
    assert cyclic_core([frozenset(map(ord, edge)) for edge in ACYCLIC[name]]) == ()


def test_edges_without_a_shared_vertex_are_separate_components() -> None:
    edges = [frozenset(map(ord, edge)) for edge in ("ab", "cd", "de", "xy", "bc", "ef", "x")]
    assert components(edges) == [[0, 1, 2, 4, 5], [3, 6]]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
def test_no_golden_plan_has_one(plan: object) -> None:
    assert callable(plan)
    assert not formed(plan())


@pytest.mark.parametrize("atoms", [["ab", "bc", "cd"], ["xa", "xb", "xc"], ["ab", "ab"], ["ab", "bc", "bd", "de"]], ids="-".join)
def test_acyclic_joins_are_unchanged(atoms: list[str]) -> None:
    assert not formed(joined(*atoms))


def test_a_cyclic_join_includes_its_acyclic_parts() -> None:
    (join,) = formed(joined("xy", "xz", "yz", "zw"))
    assert join.variables == ((0, 1), (0, 2), (1, 2), (2, 3))


def test_equalities_of_a_filter_above_count() -> None:
    path = joined("xy", "zw", "uv")
    equal = [(1, 2), (3, 5), (0, 4)]
    plan = Filter(path, conjunction([resolve("equal", [reference(path.schema, a), reference(path.schema, b)]) for a, b in equal]))
    (join,) = formed(plan)
    assert sorted(join.shared) == [0, 1, 2] and len(join.inputs) == 3


def test_filters_on_one_relation_go_below_and_others_into_it() -> None:
    plan = joined("xy", "xz", "yz")
    parts = [resolve("less", [reference(plan.schema, 0), reference(plan.schema, 5)]), resolve("is_not_null", [reference(plan.schema, 1)])]
    (join,) = formed(Filter(plan, conjunction(parts)))
    assert join.condition == parts[0] or show(join).count("<") == 1
    assert sum(isinstance(part, Filter) for part in join.inputs) == 1


def test_conditions_that_can_fail_stay_after_the_join() -> None:
    plan = joined("xy", "xz", "yz")
    divided = resolve("div", [reference(plan.schema, 0), reference(plan.schema, 5)])
    after = optimize(Filter(plan, resolve("is_not_null", [divided])))
    assert isinstance(after, Filter | Project) and len(formed(Filter(plan, resolve("is_not_null", [divided])))) == 1
    assert any(isinstance(node, Filter) and "div" in show(node) for node in nodes(after))


def test_keys_of_floats_ignore_the_sign_of_zero_and_columns_keep_it() -> None:
    floats = graph("f", DOUBLE, DOUBLE)
    plan = joined("xy", "yz", "zx", tables={0: floats, 1: floats, 2: floats})
    (join,) = formed(plan)
    assert join.inputs[0] == join.inputs[1] == join.inputs[2], "one arrangement serves all of them"
    edges = [((-0.0, nan), 2), ((0.0, nan), 1), ((nan, 1.5), 1), ((1.5, 0.0), 3), ((1.5, None), 1), ((None, -0.0), 1)]
    tables = {"f": Relation(edges)}
    assert evaluate(optimize(plan), tables) == evaluate(plan, tables)
    for shards in (1, 3):
        engine = embedded({"f": floats.table}, {"view": plan}, shards)
        for row, weight in edges:
            engine.tick({"f": [(row, weight)]})
        assert engine.view("view") == evaluate(plan, tables)
        engine.tick({"f": [((1.5, 0.0), -3)]})
        assert not engine.view("view")


def plus_one(plan: Plan, column: int) -> Expr:
    return resolve("add", [reference(plan.schema, column), Literal(1, BIGINT)])


def climbing(guarded: bool) -> Plan:
    """x → y, y + 1 → z, z → x, or, guarded, x → y, y → z, z + 1 → x, where the key that can fail is computed on paths, not on all edges."""
    g = graph()
    y, x = (reference(g.schema, i) for i in (1, 0))
    path = Join(g, g, "inner", ((y if guarded else plus_one(g, 1), x),))
    z = plus_one(path, 3) if guarded else reference(path.schema, 3)
    return Join(path, g, "inner", ((z, x), (reference(path.schema, 0), y)))


def test_a_key_that_can_fail_is_computed_below_where_it_is_computed_on_every_row() -> None:
    plan = climbing(guarded=False)
    assert len(formed(plan)) == 1 and not list(binary_cycles(optimize(plan)))
    tables = {"g": Relation([((1, 2), 1), ((3, 4), 2), ((4, 1), 1), ((5, None), 1)])}
    assert evaluate(optimize(plan), tables) == evaluate(plan, tables) == Relation([((1, 2, 3, 4, 4, 1), 2)])
    last = ((0, 2**63 - 1), 1)
    for each in (plan, optimize(plan)):
        with pytest.raises(EvaluationError):
            evaluate(each, {"g": Relation([last])})
    for shards in (1, 3):
        engine = embedded({"g": graph().table}, {"view": plan}, shards)
        engine.tick({"g": tables["g"].pairs()})
        with pytest.raises(EvaluationError):
            engine.tick({"g": [last]})
        assert engine.view("view") == evaluate(plan, tables)


def test_a_key_that_can_fail_is_not_computed_where_another_join_guards_it() -> None:
    plan = climbing(guarded=True)
    assert not formed(plan)
    tables = {"g": Relation([((1, 2), 1), ((2, 3), 1), ((4, 1), 1), ((8, 2**63 - 1), 1)])}
    assert evaluate(optimize(plan), tables) == evaluate(plan, tables) == Relation([((1, 2, 2, 3, 4, 1), 1)])
    (why,) = binary_cycles(optimize(plan))
    assert "can fail" in why and "in a subquery" in why


def test_a_cycle_that_stays_binary_says_why() -> None:
    wide = graph("w", decimal(30, 2), decimal(30, 2))
    assert list(binary_cycles(optimize(joined("xy", "yz", "zx", tables=dict.fromkeys(range(3), wide))))) == [
        "values of type DECIMAL(30,2) are compared"
    ]
    path = joined("xy", "yz", "zu")
    ends = resolve("equal", [plus_one(path, 0), reference(path.schema, 5)])
    (why,) = binary_cycles(optimize(Project(Filter(path, ends), (("x", reference(path.schema, 0)),))))
    assert "can fail" in why
    edge = joined("xy", "yz")
    made = Project(edge, (("x", reference(edge.schema, 0)), ("z", resolve("upper", [cast(reference(edge.schema, 3), STRING)]))))
    named = graph("n", STRING)
    keys = ((reference(made.schema, 1), reference(named.schema, 0)), (reference(made.schema, 0), reference(named.schema, 1)))
    (why,) = binary_cycles(optimize(Join(made, named, "inner", keys)))
    assert "computed between" in why


def test_a_cycle_that_a_hint_keeps_binary_says_so() -> None:
    assert list(binary_cycles(optimize(joined("xy", "yz", "zx", kind="binary")))) == ["a hint asks for it"]


@pytest.mark.parametrize("plan", [joined("ab", "bc", "cd"), joined("xa", "xb", "xc")])
def test_acyclic_binary_joins_have_no_note(plan: Plan) -> None:
    assert not list(binary_cycles(optimize(plan)))


def test_an_equality_of_several_relations_is_a_condition() -> None:
    floats = graph("f", DOUBLE, DOUBLE)
    plan = joined("xy", "yz", tables={0: floats, 1: floats})
    total = resolve("add", [reference(plan.schema, 0), reference(plan.schema, 3)])
    sides = (reference(plan.schema, 3), reference(plan.schema, 0), total)
    closed = Join(plan, floats, "inner", tuple((side, reference(floats.schema, i)) for side, i in zip(sides, (0, 1, 0), strict=True)))
    (join,) = formed(closed)
    assert join.condition is not None
    tables = {"f": Relation([((0.0, 2.0), 1), ((2.0, 5.0), 1), ((5.0, 0.0), 1), ((5.0, -0.0), 1), ((1.0, 2.0), 1), ((5.0, 1.0), 1)])}
    assert len(evaluate(closed, tables)) == 2, "1 + 5 is not 5"
    assert evaluate(optimize(closed), tables) == evaluate(closed, tables)


def test_keys_that_are_widened_are_computed_below_it() -> None:
    (join,) = formed(cast_triangle())
    assert any(isinstance(part, Project) and "cast" in show(part) for part in join.inputs)


def cast_triangle() -> Plan:
    narrow, wide = graph("n", INT, INT), graph()
    path = Join(narrow, wide, "inner", ((resolve("bigint", [reference(narrow.schema, 1)]), reference(wide.schema, 0)),))
    keys = (
        (resolve("bigint", [reference(path.schema, 0)]), reference(wide.schema, 0)),
        (reference(path.schema, 3), reference(wide.schema, 1)),
    )
    return Join(path, wide, "inner", keys)


def test_two_columns_of_one_relation_in_one_variable_are_a_filter_on_it() -> None:
    loop = joined("xx", "xy", "yz", "zx")
    assert not [node for node in nodes(loop) if isinstance(node, Filter)]
    both = joined("ab", "ac", "bc")
    same = resolve("equal", [reference(both.schema, 0), reference(both.schema, 1)])
    for join in formed(Filter(both, same)):
        assert any(isinstance(node, Filter) for part in join.inputs for node in nodes(part))


def test_a_hint_forces_either_plan() -> None:
    (join,) = formed(joined("ab", "bc", kind="multiway"))
    assert len(join.inputs) == 2
    assert not formed(joined("xy", "xz", "yz", kind="binary"))


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (joined("ab", "cd", kind="multiway"), "not all of its relations are joined by equality"),
        (joined("ax", "bx", tables=dict.fromkeys((0, 1), graph("w", INT, decimal(30, 2))), kind="multiway"), "values of type DECIMAL"),
    ],
    ids=["cross", "wide decimals"],
)
def test_a_hint_that_cannot_be_followed_is_an_error(plan: Plan, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        optimize(plan)


def test_wide_values_beside_others_are_a_condition_of_a_join_with_a_hint() -> None:
    """In ON or above it, where the optimizer makes a key of the equality."""
    left, right = (graph(name, INT, decimal(30, 2)) for name in "gh")
    keys = tuple((reference(left.schema, i), reference(right.schema, i)) for i in range(2))
    (join,) = formed(Join(left, right, "inner", keys, hint=Hint("multiway")))
    assert len(join.inputs) == 2
    assert not formed(Join(left, right, "inner", keys))
    first = Join(left, right, "inner", keys[:1], hint=Hint("multiway"))
    assert formed(Filter(first, resolve("equal", [reference(first.schema, 1), reference(first.schema, 3)])))


def test_a_hint_is_not_for_a_join_around_those_that_have_it() -> None:
    (join,) = formed(Join(joined("ab", "bc", kind="multiway"), graph("h"), "inner"))
    assert join.inputs == (graph(), graph())


def test_recursive_relations_are_joined_likewise() -> None:
    plan = joined("xy", "xz", "yz")
    r = Reference("r", graph().schema)
    step = map_inputs(plan, lambda part: r if isinstance(part, Table) else part)
    step = Project(step, tuple((f.name, reference(step.schema, i)) for i, f in enumerate(step.schema.fields[:2])))
    (join,) = formed(Recursion((("r", Distinct(Union((graph(), step)))),), "r"))
    assert r in (node for part in join.inputs for node in nodes(part))
