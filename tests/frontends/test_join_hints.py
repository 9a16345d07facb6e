"""Hints for joins, in SQL and Python: which joins they are for, and where they are refused."""

from __future__ import annotations

import pytest

import deltic
from deltic.errors import CircuitError, QueryError, SyntaxFailure, UnknownName, Unsupported
from deltic.optimizer import optimize
from deltic.plan.nodes import Join, MultiwayJoin, Plan
from deltic.plan.walk import nodes
from sql_data import bound

TRIANGLE = "t a JOIN t b ON a.id = b.k JOIN t c ON c.id = b.id AND c.k = a.k"


def hints(plan: Plan) -> list[str | None]:
    return [None if node.hint is None else node.hint.kind for node in nodes(plan) if isinstance(node, Join) and node.kind == "inner"]


def is_multiway(plan: Plan) -> bool:
    return any(isinstance(node, MultiwayJoin) for node in nodes(optimize(plan)))


@pytest.mark.parametrize(
    ("hint", "kind"),
    [("", None), ("/*+ multiway_join */", "multiway"), ("/*+ BROADCAST(a), Binary_Join */", "binary"), ("/*+ BROADCAST(a) */", None)],
)
def test_a_hint_is_for_the_inner_joins_of_its_from(hint: str, kind: str | None) -> None:
    inner = "SELECT x.id, y.k FROM t x JOIN t y USING (id)"
    assert hints(bound(f"SELECT {hint} p.id FROM {TRIANGLE}, ({inner}) p LEFT JOIN t q ON q.id = p.id")) == [kind, kind, None, kind]


def test_it_forces_either_plan() -> None:
    assert is_multiway(bound(f"SELECT a.id FROM {TRIANGLE}"))
    assert not is_multiway(bound(f"SELECT /*+ BINARY_JOIN */ a.id FROM {TRIANGLE}"))
    assert not is_multiway(bound("SELECT a.id FROM t a JOIN t b ON a.id = b.id"))
    assert is_multiway(bound("SELECT /*+ MULTIWAY_JOIN */ a.id FROM t a JOIN t b ON a.id = b.id"))


PAIR = "FROM t a JOIN t b ON a.id = b.id"


@pytest.mark.parametrize(
    ("query", "error", "why", "place"),
    [
        (f"SELECT /*+ MULTIWAY_JOIN, BINARY_JOIN */ a.id {PAIR}", SyntaxFailure, "contradict", "/*+ MULTIWAY_JOIN, BINARY_JOIN */"),
        (f"SELECT /*+ multiway_join(a) */ a.id {PAIR}", SyntaxFailure, "for all joins", "multiway_join"),
        ("SELECT /*+ MULTIWAY_JOIN */ id FROM t", Unsupported, "no inner join", "/*+ MULTIWAY_JOIN */"),
        ("SELECT /*+ MULTIWAY_JOIN */ 1 AS one", Unsupported, "no inner join", "/*+ MULTIWAY_JOIN */"),
        ("SELECT /*+ MULTIWAY_JOIN */ * FROM t a LEFT JOIN t b ON a.id = b.id", Unsupported, "no inner join", "/*+ MULTIWAY_JOIN */"),
        (f"SELECT /*+ */ a.id {PAIR}", SyntaxFailure, "hint is empty", "/*+ */"),
        (f"SELECT /*+*/ a.id {PAIR}", SyntaxFailure, "hint is empty", "/*+*/"),
        (f"SELECT /*+ , */ a.id {PAIR}", SyntaxFailure, "invalid hint", ", "),
        (f"SELECT /*+ BROADCAST(a), */ a.id {PAIR}", SyntaxFailure, "invalid hint", "BROADCAST(a),"),
        (f"SELECT /*+ BROADCAST(a */ a.id {PAIR}", SyntaxFailure, "invalid hint", "BROADCAST(a"),
        (f"SELECT /*+ BINARY_JOIN() */ a.id {PAIR}", SyntaxFailure, "invalid hint", "BINARY_JOIN()"),
        (f"SELECT /*+ BINARY_JOIN; */ a.id {PAIR}", SyntaxFailure, "invalid hint", "BINARY_JOIN;"),
        (f"SELECT /*+ BINARY_JOIN 'a' */ a.id {PAIR}", SyntaxFailure, "invalid hint", "'a'"),
        (f"SELECT /*+ MULTYWAY_JOIN */ a.id {PAIR}", UnknownName, "did you mean 'MULTIWAY_JOIN'", "MULTYWAY_JOIN"),
        (f"SELECT /*+ BROADCAST(a), FAST(b) */ a.id {PAIR}", UnknownName, "there is no hint FAST", "FAST"),
        (f"SELECT /*+ BROADCAST(a, c) */ a.id {PAIR}", UnknownName, "no relation c in this FROM\\n", "c) */"),
        ("SELECT /*+ BROADCAST(t) */ a.id FROM t a", UnknownName, "there is only a", "t) */"),
        (f"SELECT a.id {PAIR} WHERE a.k IN (SELECT /*+ FAST */ k FROM t)", UnknownName, "there is no hint FAST", "FAST"),
        (f"SELECT a.id {PAIR} UNION SELECT /*+ BROADCAST(a) */ id FROM t", UnknownName, "no relation a", "a) */"),
        (f"WITH c AS (SELECT /*+ */ id FROM t) SELECT a.id {PAIR}", SyntaxFailure, "hint is empty", "/*+ */"),
    ],
)
def test_where_it_is_refused_it_says_so_at_the_hint(query: str, error: type[QueryError], why: str, place: str) -> None:
    with pytest.raises(error, match=why) as caught:
        bound(query)
    assert f"test:1:{query.index(place) + 1}: " in str(caught.value) and "^" in str(caught.value)


def test_the_line_is_reported() -> None:
    with pytest.raises(UnknownName) as caught:
        bound(f"SELECT /*+ BROADCAST(a),\n           FAST */ a.id\n{PAIR}")
    assert str(caught.value).startswith("[DELTIC-1002] test:2:12: there is no hint FAST\n             FAST */ a.id\n             ^^^^\n")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT /*+ broadcast(`B`) COALESCE(3), REPARTITION(2, id) */ a.id FROM t a LEFT SEMI JOIN t b ON a.id = b.id",
        "SELECT /*+ MERGE(a, b), SHUFFLE_HASH(x) */ a.id FROM (t a JOIN t b ON a.id = b.id) LATERAL VIEW explode(array(1)) x AS y",
        "WITH c AS (SELECT id FROM t) SELECT /*+ MAPJOIN(c, t) */ c.id FROM c, t",
    ],
)
def test_hints_of_spark_are_ignored(query: str) -> None:
    assert hints(bound(query)) in ([], [None])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT /*+ BINARY_JOIN */ a.id FROM t a JOIN t b ON a.id = b.id",
        "SELECT a.id /*+ binary_join */ FROM t a JOIN t b ON a.id = b.id",
        "SELECT /*+ BROADCAST(a) */ /*+ BINARY_JOIN */ a.id FROM t a JOIN t b ON a.id = b.id",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id /*+ BINARY_JOIN */",
        "/*+ BINARY_JOIN */ SELECT a.id FROM t a JOIN t b ON a.id = b.id",
    ],
)
def test_a_misplaced_hint_is_an_error(query: str) -> None:
    with pytest.raises(SyntaxFailure, match="must follow SELECT") as caught:
        bound(query)
    assert f"test:1:{query.upper().index('/*+ BINARY') + 1}" in str(caught.value)


def test_each_select_has_its_own() -> None:
    inner = f"SELECT /*+ BINARY_JOIN */ a.id {PAIR}"
    assert hints(bound(f"SELECT /*+ BROADCAST(c) */ 1 AS one FROM ({inner}) c JOIN t d ON c.id = d.id")) == ["binary", None]


def test_comments_that_are_no_hints_are_read_over() -> None:
    bound("SELECT a.id -- /*+ BINARY_JOIN */\nFROM t a /* BINARY_JOIN */ JOIN t b ON a.s > '/*+ BINARY_JOIN */' AND a.id = b.id")


def test_an_unknown_hint_in_python_is_an_error() -> None:
    edges = deltic.Circuit().input("edges", schema={"src": int, "dst": int})
    with pytest.raises(CircuitError, match="unknown hint 'multi'\nexpected: 'multiway' or 'binary'"):
        edges.index_with("dst").join(edges.index_with("src"), hint="multi")  # type: ignore[arg-type]


def test_a_hint_in_python() -> None:
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema={"src": int, "dst": int})
    paths = edges.index_with("dst").join(edges.index_with("src"), hint="multiway")
    circuit.output("paths", paths)
    sides = edges.index_with("dst").join(edges.index_with("src"), lambda key, one, other: (one.src, other.dst))
    triangles = sides.index_with("src", "dst").join(edges.index_with("src", "dst"))
    circuit.output("triangles", triangles)
    circuit.output("by_twos", sides.index_with("src", "dst").join(edges.index_with("src", "dst"), hint="binary"))
    assert {name: is_multiway(plan) for name, plan in circuit.outputs.items()} == {"paths": True, "triangles": True, "by_twos": False}
