"""Which joins become multiway joins: cyclic hypergraphs and hints, and no others."""

from __future__ import annotations

import doctest
import importlib

import pytest
from test_goldens import PLANS

from deltic.errors import Unsupported
from deltic.expr.functions import resolve
from deltic.optimizer import optimize
from deltic.optimizer.hypergraph import cyclic_core, is_connected
from deltic.plan.columns import agrees, conjunction, reference
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Distinct, Filter, Hint, HintKind, Join, MultiwayJoin, Plan, Project, Recursion, Reference, Table, Union
from deltic.plan.show import show
from deltic.plan.walk import map_inputs, nodes
from deltic.schema import BIGINT, DOUBLE, INT, Field, Schema, TableSchema, Type


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


def test_what_shares_no_vertex_is_not_connected() -> None:
    assert is_connected([frozenset("ab"), frozenset("cd"), frozenset("bc")])  # type: ignore[list-item]
    assert is_connected([frozenset("ab"), frozenset("bc"), frozenset("cd"), frozenset("de")])  # type: ignore[list-item]
    assert not is_connected([frozenset("ab"), frozenset("cd")])  # type: ignore[list-item]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
def test_no_golden_plan_has_one(plan: object) -> None:
    assert callable(plan)
    assert not formed(plan())


@pytest.mark.parametrize("atoms", [["ab", "bc", "cd"], ["xa", "xb", "xc"], ["ab", "ab"], ["ab", "bc", "bd", "de"]], ids="-".join)
def test_acyclic_joins_stay_as_they_are(atoms: list[str]) -> None:
    assert not formed(joined(*atoms))


def test_a_cyclic_join_is_one_with_what_hangs_on_it() -> None:
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


def test_what_can_fail_stays_behind_the_join() -> None:
    plan = joined("xy", "xz", "yz")
    divided = resolve("div", [reference(plan.schema, 0), reference(plan.schema, 5)])
    after = optimize(Filter(plan, resolve("is_not_null", [divided])))
    assert isinstance(after, Filter | Project) and len(formed(Filter(plan, resolve("is_not_null", [divided])))) == 1
    assert any(isinstance(node, Filter) and "div" in show(node) for node in nodes(after))


def test_keys_of_floats_stay_binary() -> None:
    floats = graph("f", BIGINT, DOUBLE)
    assert not formed(joined("yx", "zx", "yz", tables={0: floats, 1: floats}))


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
        (joined("ax", "bx", tables={0: graph("f", INT, DOUBLE), 1: graph("f", INT, DOUBLE)}, kind="multiway"), "values of type DOUBLE"),
    ],
    ids=["cross", "floats"],
)
def test_a_hint_that_cannot_be_followed_is_an_error(plan: Plan, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        optimize(plan)


def test_relations_of_a_recursion_are_joined_so_too() -> None:
    plan = joined("xy", "xz", "yz")
    r = Reference("r", graph().schema)
    step = map_inputs(plan, lambda part: r if isinstance(part, Table) else part)
    step = Project(step, tuple((f.name, reference(step.schema, i)) for i, f in enumerate(step.schema.fields[:2])))
    (join,) = formed(Recursion((("r", Distinct(Union((graph(), step)))),), "r"))
    assert r in (node for part in join.inputs for node in nodes(part))
