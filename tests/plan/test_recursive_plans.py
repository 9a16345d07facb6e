"""Recursion in plans: its denotation, against DuckDB on random graphs; equality of recursions, and stratification."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import duckdb
import pytest

from deltic.errors import Divergence, Unsupported
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr
from deltic.optimizer import optimize
from deltic.plan.columns import agrees, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Order,
    Plan,
    Project,
    Recursion,
    Reference,
    SetOperation,
    Table,
    TopK,
    Union,
    Values,
    references,
)
from deltic.plan.recursion import bound_to, closed, components, finished, has_base
from deltic.plan.relation import Relation, Row
from deltic.plan.show import show
from deltic.plan.walk import tables, transform
from deltic.schema import BIGINT, Field, Schema
from recursive_plans import EDGES, columns, extreme, join, number, path, plans, union

GRAPH: Plan = columns(Table(EDGES), 0, 1)
BOTH = GRAPH.schema
X, Y = Reference("x", BOTH), Reference("y", BOTH)


def closure(name: str = "x", limit: int = 100) -> Recursion:
    return Recursion(((name, union(GRAPH, path(Reference(name, BOTH), GRAPH))),), name, limit)


def at(plan: Plan, index: int) -> Expr:
    return reference(plan.schema, index)


QUERIES: Mapping[str, tuple[str, Plan]] = {
    "closure": ("SELECT src, dst FROM edges UNION SELECT r.src, e.dst FROM r JOIN edges e ON r.dst = e.src", closure()),
    "the other way": (
        "SELECT src, dst FROM edges UNION SELECT e.src, r.dst FROM r JOIN edges e ON r.src = e.dst",
        Recursion((("x", union(GRAPH, path(GRAPH, X))),), "x"),
    ),
    "non-linear": (
        "SELECT src, dst FROM edges UNION SELECT r.src, e.dst FROM r JOIN edges e ON r.dst = e.src",
        Recursion((("x", union(GRAPH, path(X, X))),), "x"),
    ),
    "derivations along ascending edges": (
        "SELECT src, dst FROM edges WHERE src < dst UNION ALL SELECT r.src, e.dst FROM r JOIN edges e ON r.dst = e.src WHERE e.src < e.dst",
        Recursion(
            (
                (
                    "x",
                    Union(
                        (
                            Filter(GRAPH, resolve("less", [at(GRAPH, 0), at(GRAPH, 1)])),
                            path(X, Filter(GRAPH, resolve("less", [at(GRAPH, 0), at(GRAPH, 1)]))),
                        )
                    ),
                ),
            ),
            "x",
        ),
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_duckdb_agrees_on_random_graphs(name: str) -> None:
    sql, plan = QUERIES[name]
    rng = Random(name)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE edges (src BIGINT, dst BIGINT)")
        for _ in range(25):
            nodes = rng.randint(2, 8)
            rows = [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(rng.randint(1, 14))]
            database.execute("DELETE FROM edges")
            database.executemany("INSERT INTO edges VALUES (?, ?)", rows)
            actual = database.execute(f"WITH RECURSIVE r(src, dst) AS ({sql}) SELECT src, dst FROM r").fetchall()
            assert evaluate(plan, {"edges": Relation((row, 1) for row in rows)}) == Relation((row, 1) for row in actual), rows


def over(*rows: Row) -> dict[str, Relation]:
    return {"edges": Relation((row, 1) for row in rows)}


def test_an_empty_recursion_is_empty() -> None:
    assert not evaluate(Recursion((("x", union(path(X, GRAPH), X)),), "x"), over((0, 1)))


def test_mutual_recursion_iterates_together() -> None:
    """Paths of even and of odd length."""
    both = (("x", union(path(GRAPH, Y))), ("y", union(GRAPH, path(GRAPH, X))))
    line = over((0, 1), (1, 2), (2, 3))
    assert evaluate(Recursion(both, "x"), line) == Relation([((0, 2), 1), ((1, 3), 1)])
    assert evaluate(Recursion(both, "y"), line) == Relation([((0, 1), 1), ((1, 2), 1), ((2, 3), 1), ((0, 3), 1)])


def test_an_inner_recursion_runs_to_its_fixed_point_in_each_iteration() -> None:
    """Each iteration computes the closure and then adds a reversed edge: from a path, all pairs."""
    inside = Recursion((("y", union(X, path(Y, X))),), "y")
    plan = Recursion((("x", union(GRAPH, columns(inside, 1, 0))),), "x")
    assert len(evaluate(plan, over((0, 1), (1, 2)))) == 9


def test_the_innermost_relation_of_a_name_counts() -> None:
    inside = closure("x")
    plan = Recursion((("x", union(GRAPH, join(inside, X, 0, 0, "semi"))),), "x")
    assert evaluate(plan, over((0, 1), (1, 2))) == evaluate(closure(), over((0, 1), (1, 2)))
    assert not references(plan) and references(plan.body("x")) == {("x", BOTH)}


def test_a_limit_counts_the_iterations_that_change_something() -> None:
    line = over((0, 1), (1, 2), (2, 3), (3, 4))
    assert len(evaluate(closure(limit=4), line)) == 10
    message = (
        "[DELTIC-3007] the recursive relation x has not converged after 3 iterations: "
        "the last ones changed 3, 2, 1 rows, such as (0, 4)\n"
        "help: add a condition that ends it, such as n < 100, or raise the limit"
    )
    with pytest.raises(Divergence) as caught:
        evaluate(closure(limit=3), line)
    assert str(caught.value) == message


def test_names_do_not_matter_to_a_fingerprint_and_places_do() -> None:
    assert fingerprint(closure("a")) == fingerprint(closure("b", limit=7))
    mutual = [(("x", union(path(GRAPH, Y))), ("y", union(GRAPH, path(GRAPH, X))))]
    one, other = Recursion(mutual[0], "x"), Recursion(mutual[0], "y")
    assert len({fingerprint(plan) for plan in (closure(), one, other, Recursion(mutual[0][::-1], "x"))}) == 4
    outer, inner = (Recursion((("x", union(GRAPH, Recursion((("y", union(X, path(Y, read))),), "y"))),), "x") for read in (X, Y))
    assert fingerprint(outer) != fingerprint(inner)
    different = ("closure", "left_closure", "non_linear_closure", "even_and_odd", "nested_closure", "alternating", "thrice", "shortest")
    assert len({fingerprint(plans()[name]) for name in different}) == len(different)


@pytest.mark.parametrize("name", plans())
def test_walking_a_recursion_changes_nothing(name: str) -> None:
    plan = plans()[name]
    assert transform(plan, lambda node: node) is plan
    assert tables(plan) == {"edges"} and agrees(plan) and agrees(optimize(plan))
    assert optimize(optimize(plan)) == optimize(plan)


def test_a_reference_must_have_the_schema_of_its_body() -> None:
    wrong = Reference("x", Schema((Field("c0", BIGINT, False), Field("c1", BIGINT, True))))
    with pytest.raises(AssertionError):
        Recursion((("x", union(GRAPH, path(wrong, GRAPH))),), "x")


def test_show() -> None:
    assert show(closure(limit=9)).splitlines()[:4] == ["Recursion x at most 9 iterations", "  x :=", "    Distinct", "      Union"]


def test_the_optimizer_keeps_columns_that_end_a_recursion() -> None:
    """No filter moves in, no column is dropped, and the DISTINCT stays."""
    read = Project(Filter(closure(), resolve("equal", [at(X, 0), number(0)])), (("dst", at(X, 1)),))
    optimized = optimize(read)
    assert isinstance(optimized, Project) and isinstance(optimized.input, Filter)
    recursion = optimized.input.input
    assert isinstance(recursion, Recursion) and isinstance(recursion.body("x"), Distinct) and len(recursion.schema) == 2


def test_unread_relations_are_dropped() -> None:
    spare = Recursion((("x", union(GRAPH, path(X, GRAPH))), ("y", union(X, Y))), "x")
    assert optimize(spare) == optimize(closure(limit=spare.limit))
    assert not isinstance(optimize(Recursion((("x", union(GRAPH)), ("y", union(X, Y))), "x")), Recursion)


def test_components_come_after_their_dependencies() -> None:
    bodies = {"a": union(X, Reference("b", BOTH)), "b": union(Reference("c", BOTH)), "c": union(Reference("b", BOTH)), "x": GRAPH}
    assert components(bodies) == [("x",), ("b", "c"), ("a",)]


def test_the_denotation_of_names() -> None:
    bodies = {"x": union(GRAPH, path(X, GRAPH)), "y": union(X, path(Y, X)), "z": columns(Y, 1, 0)}
    meanings = finished(bodies, {"x": 5, "y": 6, "z": 7})
    assert [type(plan).__name__ for plan in meanings.values()] == ["Recursion", "Recursion", "Project"]
    assert not any(references(plan) for plan in meanings.values())
    line = over((0, 1), (1, 2))
    assert len(evaluate(closed(Reference("z", BOTH), bodies, {"x": 5, "y": 6, "z": 7}), line)) == 3
    assert bound_to(closure("x"), {"x": GRAPH}) == closure("x")


def test_mutually_dependent_relations_share_a_recursion_if_possible() -> None:
    """At the fixed point y and z are one step from the others; w reads itself."""
    w, z = Reference("w", BOTH), Reference("z", BOTH)
    bodies = {"x": union(path(Y, GRAPH)), "y": union(GRAPH, path(X, GRAPH), w), "z": columns(X, 1, 0), "w": union(w, path(z, Y))}
    meanings = finished(bodies, dict.fromkeys(bodies, 100))
    assert {name for name, plan in meanings.items() if isinstance(plan, Recursion)} == {"x", "w"}
    tables = over((0, 1), (1, 2), (2, 0), (3, 1))
    for name, plan in meanings.items():
        assert not references(plan)
        assert evaluate(plan, tables) == evaluate(Recursion(tuple(bodies.items()), name, 100), tables)


def test_a_base_is_detected_through_joins_and_recursions() -> None:
    nothing = Values((), BOTH)
    inside = Recursion((("y", union(X, path(Y, GRAPH))),), "y")
    bases = {True: (union(GRAPH, X), join(GRAPH, X, 0, 0, "left"), join(GRAPH, X, 0, 0, "anti"), Union((inside, GRAPH)))}
    bases[False] = (X, path(X, GRAPH), union(nothing, X), inside, SetOperation(X, GRAPH, "except"), join(X, GRAPH, 0, 0, "left"))
    for expected, bodies in bases.items():
        assert [has_base({"x": body}, "x") for body in bodies] == [expected] * len(bodies)


def least(plan: Plan) -> Plan:
    return extreme(plan, "min", 0, 1)


def moved(expr: Expr) -> Plan:
    """(node, value) along an edge, with another value."""
    both = join(X, GRAPH, 0, 0)
    return Project(both, (("c0", at(both, 3)), ("c1", expr)))


VALUE = at(X, 1)
DIFFERENT = AggregateCall("count", (at(X, 0),), BIGINT, False, True)
TOTAL = Aggregate(Distinct(columns(X, 1)), (), (("n", AggregateCall("count", (), BIGINT, False)),))


def counted(plan: Plan) -> Plan:
    """How many rows there are with each first column."""
    return Aggregate(plan, (("c0", at(plan, 0)),), (("c1", AggregateCall("count", (), BIGINT, False)),))


def marked(plan: Plan) -> Plan:
    """The edges, each with its first column again if a row of the plan has it."""
    return join(GRAPH, Distinct(columns(plan, 0)), 0, 0, "left")


MONOTONE: Mapping[str, Plan] = {
    "sum": least(Union((GRAPH, moved(resolve("add", [VALUE, at(join(X, GRAPH, 0, 0), 3)]))))),
    "least": least(Union((GRAPH, moved(resolve("least", [VALUE, number(3)]))))),
    "greatest": least(Union((GRAPH, moved(resolve("greatest", [VALUE, number(3)]))))),
    "twice": least(Union((GRAPH, moved(resolve("multiply", [VALUE, number(2)]))))),
    "bounded": least(Union((GRAPH, Filter(X, resolve("less", [VALUE, number(9)]))))),
    "bounded twice": least(
        Union((GRAPH, Filter(X, resolve("and", [resolve("less", [VALUE, number(9)]), resolve("greater", [number(7), VALUE])]))))
    ),
    "dropped": least(Union((GRAPH, Project(X, (("c0", at(X, 0)), ("c1", number(1))))))),
    "beside others": union(GRAPH, columns(join(X, X, 0, 1), 0, 3)),
    "against what is fixed": union(GRAPH, SetOperation(X, columns(GRAPH, 1, 0), "except"), join(X, GRAPH, 0, 0, "anti")),
    "kept rows": union(GRAPH, columns(join(X, GRAPH, 0, 0, "left"), 0, 1), SetOperation(X, GRAPH, "intersect_all")),
    "inside": union(GRAPH, Recursion((("y", union(X, path(Y, X))),), "y")),
    "counted": union(GRAPH, columns(Filter(counted(X), resolve("greater", [at(counted(X), 1), number(1)])), 0, 0)),
    "groups counted": Aggregate(Union((GRAPH, X)), (("c0", at(X, 0)),), (("c1", AggregateCall("count", (), BIGINT, False)),)),
    "groups counted as a set": least(Union((GRAPH, columns(counted(Distinct(least(X))), 0, 0)))),
    "different keys counted": least(Union((GRAPH, columns(Aggregate(X, (("c0", at(X, 0)),), (("c1", DIFFERENT),)), 0, 0)))),
    "one match": union(GRAPH, columns(Filter(marked(X), resolve("is_not_null", [at(marked(X), 2)])), 0, 1)),
    "one match or not": union(GRAPH, columns(Filter(marked(X), resolve("not", [resolve("is_null", [at(marked(X), 2)])])), 0, 1)),
}
NOT_MONOTONE: Mapping[str, tuple[str, Plan]] = {
    "difference": ("may rise and fall", least(Union((GRAPH, moved(resolve("subtract", [number(9), VALUE])))))),
    "negative multiple": ("may rise and fall", least(Union((GRAPH, moved(resolve("multiply", [VALUE, number(-1)])))))),
    "product of two": ("may rise and fall", least(Union((GRAPH, moved(resolve("multiply", [VALUE, VALUE])))))),
    "MAX of MIN": (
        "may rise and fall",
        Aggregate(least(Union((GRAPH, X))), (("c0", at(X, 0)),), (("c1", AggregateCall("max", (VALUE,), BIGINT, False)),)),
    ),
    "lower bound": ("but not by its value in a later", least(Union((GRAPH, Filter(X, resolve("greater", [VALUE, number(9)])))))),
    "equality": ("but not by its value in a later", least(Union((GRAPH, Filter(X, resolve("equal", [VALUE, number(9)])))))),
    "joined": ("a join compares", least(Union((GRAPH, columns(join(X, GRAPH, 1, 0), 2, 3))))),
    "grouped": ("GROUP BY compares", least(Union((GRAPH, columns(X, 1, 0))))),
    "set difference": ("EXCEPT compares", least(Union((GRAPH, SetOperation(X, GRAPH, "except"))))),
    "count of merged rows": ("read by a count, of PIVOT", union(GRAPH, Project(TOTAL, (("c0", number(0)), ("c1", at(TOTAL, 0)))))),
    "few": ("but not by its value", union(GRAPH, columns(Filter(counted(X), resolve("less", [at(counted(X), 1), number(2)])), 0, 0))),
    "no match": ("but not by its value", union(GRAPH, columns(Filter(marked(X), resolve("is_null", [at(marked(X), 2)])), 0, 1))),
    "first rows": ("under ORDER BY", union(GRAPH, TopK(X, (Order(VALUE),), 3))),
    "except": ("on the right of EXCEPT", SetOperation(GRAPH, X, "except")),
    "anti": ("under NOT EXISTS", join(GRAPH, X, 0, 0, "anti")),
    "left": ("on the right of a LEFT JOIN", columns(join(GRAPH, columns(X, 0), 0, 0, "left"), 0, 1)),
    "inside": ("under NOT EXISTS", union(GRAPH, Recursion((("y", union(GRAPH, join(Y, X, 0, 0, "anti"))),), "y"))),
}


@pytest.mark.parametrize("name", MONOTONE)
def test_monotone_recursions_are_accepted(name: str) -> None:
    check_monotone({"x": MONOTONE[name]})


@pytest.mark.parametrize("name", NOT_MONOTONE)
def test_other_recursions_are_rejected_with_the_reason(name: str) -> None:
    message, body = NOT_MONOTONE[name]
    with pytest.raises(Unsupported, match=message) as caught:
        check_monotone({"x": body})
    assert caught.value.remedy


def test_null_is_the_worst_value_and_greatest_ignores_it() -> None:
    """greatest(NULL, 3) is 3 and becomes 5 when NULL becomes 5: worse, for MIN."""
    nullable = Schema((Field("c0", BIGINT, False), Field("c1", BIGINT, True)))
    base = Values(((0, None),), nullable)
    x = Reference("x", nullable)

    def body(function: str) -> Plan:
        step = Project(x, (("c0", at(x, 0)), ("c1", resolve(function, [at(x, 1), number(3)]))))
        return Aggregate(Union((base, step)), (("c0", at(x, 0)),), (("c1", AggregateCall("min", (at(x, 1),), BIGINT, True)),))

    check_monotone({"x": body("least")})
    with pytest.raises(Unsupported, match="may rise and fall"):
        check_monotone({"x": body("greatest")})


def test_an_enclosing_relation_is_checked_with_its_own_recursion() -> None:
    """The inner recursion subtracts from the relation of the outer one: monotone for the inner, not for the outer."""
    inside = union(GRAPH, join(Y, X, 0, 0, "anti"))
    check_monotone({"y": inside})
    with pytest.raises(Unsupported):
        check_monotone({"x": union(GRAPH, Recursion((("y", inside),), "y"))})
