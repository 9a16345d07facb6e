"""Test support: recursive programs by name, as plans over the table edges(src, dst), which may hold an edge more than once."""

from __future__ import annotations

from collections.abc import Mapping

from deltic.expr.functions import resolve
from deltic.expr.nodes import Column, Expr, Literal
from deltic.plan.columns import reference, shift
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    JoinKind,
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
)
from deltic.schema import BIGINT, Field, Schema, TableSchema

PAIR = Schema((Field("src", BIGINT, False), Field("dst", BIGINT, False)))
ONE = Schema((Field("n", BIGINT, False),))
EDGES = TableSchema("edges", PAIR)
TABLES = {"edges": EDGES}
NODES = 7


def columns(plan: Plan, *which: int) -> Plan:
    return Project(plan, tuple((f"c{i}", reference(plan.schema, w)) for i, w in enumerate(which)))


def join(left: Plan, right: Plan, ours: int, theirs: int, kind: JoinKind = "inner") -> Plan:
    return Join(left, right, kind, ((reference(left.schema, ours), reference(right.schema, theirs)),))


def path(left: Plan, right: Plan) -> Plan:
    """(a, c) where left has (a, b) and right has (b, c)."""
    return columns(join(left, right, 1, 0), 0, 3)


def loops(left: Plan, right: Plan) -> Plan:
    """(a, c) where left has (a, b) and right has (b, c) with c = b: a key that has one word of left twice."""
    keys = [(reference(left.schema, 1), reference(right.schema, column)) for column in (0, 1)]
    return columns(Join(left, right, "inner", tuple(keys)), 0, 3)


def within(left: Plan, right: Plan) -> Plan:
    """(a, d) where left has an interval (a, b) and right has (c, d) with c in it: a join by ranges alone."""
    low, high = reference(left.schema, 0), reference(left.schema, 1)
    point = shift(reference(right.schema, 0), len(left.schema))
    inside = resolve("and", [resolve("<=", [low, point], None), resolve("<=", [point, high], None)], None)
    return columns(Join(left, right, "inner", (), inside), 0, 3)


def above(left: Plan, right: Plan) -> Plan:
    """(a, d) where left has (a, b) and right has (c, d) with b < c."""
    less = resolve("<", [reference(left.schema, 1), shift(reference(right.schema, 0), len(left.schema))], None)
    return columns(Join(left, right, "inner", (), less), 0, 3)


def before(left: Plan, right: Plan) -> Plan:
    """The rows (a, b) of left for which right has (c, d) with b < c or b = d: a semi-join by a condition."""
    own, start, end = reference(left.schema, 1), *(shift(reference(right.schema, i), len(left.schema)) for i in range(2))
    either = resolve("or", [resolve("<", [own, start], None), resolve("=", [own, end], None)], None)
    return Join(left, right, "semi", (), either)


def union(*parts: Plan) -> Plan:
    return Distinct(Union(parts))


def number(value: int) -> Expr:
    return Literal(value, BIGINT)


def extreme(plan: Plan, function: str, key: int, value: int) -> Plan:
    """The least or greatest value under each key."""
    call = AggregateCall(function, (reference(plan.schema, value),), BIGINT, False)  # type: ignore[arg-type]
    return Aggregate(plan, (("k", reference(plan.schema, key)),), (("v", call),))


def plans() -> Mapping[str, Plan]:
    """Every program has an end on every graph."""
    edges: Plan = Table(EDGES)
    x, y, z = (Reference(name, Schema((Field("c0", BIGINT, False), Field("c1", BIGINT, False)))) for name in "xyz")
    base = columns(edges, 0, 1)
    start: Plan = Values(((0,),), ONE)
    nodes = Reference("n", ONE)
    plus_one = resolve("+", [Column(1, BIGINT, False), number(1)], None)
    return {
        "closure": Recursion((("x", union(base, path(x, base))),), "x"),
        "left_closure": Recursion((("x", union(base, path(base, x))),), "x"),
        "non_linear_closure": Recursion((("x", union(base, path(x, x))),), "x"),
        "reachable": Recursion((("n", union(start, columns(join(nodes, base, 0, 0), 2))),), "n"),
        "both_ends": Recursion((("x", union(base, path(x, base), path(base, x))),), "x"),
        "connected": Recursion((("n", union(start, columns(join(nodes, base, 0, 0), 2), columns(join(nodes, base, 0, 1), 1))),), "n"),
        "few_steps": Recursion((("x", union(base, path(x, base))),), "x", 2),
        "paths_and_loops": Recursion((("x", union(base, path(x, base), loops(x, base))),), "x"),
        "same_generation": Recursion((("x", union(path(columns(base, 1, 0), base), path(columns(base, 1, 0), path(x, base)))),), "x"),
        "even_and_odd": Recursion((("x", union(path(base, y))), ("y", union(base, path(base, x)))), "x"),
        "unreachable": columns(join(base, Recursion((("n", union(start, columns(join(nodes, base, 0, 0), 2))),), "n"), 0, 0, "anti"), 0, 1),
        "complement": SetOperation(path(base, base), Recursion((("x", union(base, path(x, x))),), "x"), "except"),
        "shortest": Recursion((("x", extreme(_steps(start, x, base, plus_one), "min", 0, 1)),), "x"),
        "labels": Recursion((("x", extreme(Union((columns(base, 0, 0), columns(base, 1, 1), _moved(x, base))), "min", 0, 1)),), "x"),
        "derivations": Recursion((("x", Union((base, _upwards(x, base)))),), "x"),
        "count_inside": Recursion((("x", union(base, _counted(x, base))),), "x", 40),
        "first_rows": Recursion((("x", union(base, TopK(path(x, base), (Order(Column(0, BIGINT, False)),), 3))),), "x", 40),
        "semi_and_anti": Recursion((("x", union(base, join(path(x, base), x, 0, 1, "semi"))),), "x"),
        "semi_by_condition": Recursion((("x", union(base, path(before(x, base), base))),), "x"),
        "reachable_from_all": Recursion((("x", union(base, join(path(x, base), _reachable(x), 1, 0, "semi"))),), "x"),
        "nested_closure": Recursion((("x", union(base, Recursion((("y", union(x, path(y, x))),), "y"))),), "x"),
        "intervals": Recursion((("x", union(base, within(x, base), above(base, x))),), "x"),
        "intervals_of_both": Recursion((("x", union(within(y, x), base)), ("y", union(columns(base, 1, 0), above(x, y)))), "x"),
        "nested_intervals": Recursion((("x", union(base, Recursion((("y", union(columns(x, 1, 0), within(y, x))),), "y"))),), "x"),
        "nested_thresholds": Recursion((("x", union(base, Recursion((("y", union(x, within(x, y), above(base, y))),), "y"))),), "x"),
        "alternating": Recursion((("x", union(base, Recursion((("y", union(columns(x, 1, 0), path(y, path(x, y)))),), "y"))),), "x"),
        "thrice": Recursion(
            (("x", union(base, Recursion((("y", union(x, Recursion((("z", union(y, path(z, base), columns(x, 0, 0))),), "z"))),), "y"))),),
            "x",
        ),
        "game": Recursion((("n", Distinct(columns(_won(base, nodes), 0))),), "n", 40),
    }


def _steps(start: Plan, x: Plan, base: Plan, plus_one: Expr) -> Plan:
    """(node, distance): 0 for the start, one more along an edge, up to as many as there are nodes."""
    first = Project(start, (("c0", Column(0, BIGINT, False)), ("c1", number(0))))
    near = Filter(x, resolve("<", [Column(1, BIGINT, False), number(NODES)], None))
    walked = Project(columns(join(near, base, 0, 0), 3, 1), (("c0", Column(0, BIGINT, False)), ("c1", plus_one)))
    return Union((first, walked))


def _moved(x: Plan, base: Plan) -> Plan:
    """Labels along edges."""
    return columns(join(x, base, 0, 0), 3, 1)


def _upwards(x: Plan, base: Plan) -> Plan:
    """Derivations along ascending edges: an acyclic graph, so that there are finitely many."""
    ascending = Filter(base, resolve("<", [Column(0, BIGINT, False), Column(1, BIGINT, False)], None))
    return path(x, ascending)


def _counted(x: Plan, base: Plan) -> Plan:
    """(node, its number of successors so far) where that is a node."""
    call = AggregateCall("count", (), BIGINT, False)
    counted = Aggregate(x, (("k", Column(0, BIGINT, False)),), (("v", call),))
    return join(columns(counted, 0, 1), base, 1, 0, "semi")


def _reachable(x: Plan) -> Plan:
    """The nodes that x reaches from anywhere, by a recursion that reads x."""
    n = Reference("m", Schema((Field("c0", BIGINT, False),)))
    return Recursion((("m", union(columns(x, 1), columns(join(n, x, 0, 0), 2))),), "m")


def _won(base: Plan, won: Plan) -> Plan:
    """Positions with a move to one that is not won so far: a node wins if it moves to a node from which nothing wins."""
    return join(base, won, 1, 0, "anti")
