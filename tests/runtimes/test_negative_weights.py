"""Negative weights: linear operators add them, tests of existence require a weight above 0, and all others raise an error with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_embedded_differential import check_case, check_durable

import deltic
from checked import Checked
from deltic.aggregates import aggregate_function
from deltic.errors import NegativeWeight
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.optimizer import optimize
from deltic.plan.columns import reference
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Distinct, Filter, Join, JoinKind, Table, Union, Weighted
from deltic.plan.relation import Relation
from deltic.plan.signs import accepting
from deltic.schema import BIGINT, Field, Schema, TableSchema
from engines import embedded
from parts import slow
from programs import applied, empty, expected
from seeds import rotating
from signed_programs import repeated, signed

BELOW_ZERO = (40_014, 40_017)
"""Programs with a view that has a row of negative weight."""


def test_random_programs_with_negative_weights() -> None:
    below = 0
    for seed in (*range(40_000, 40_012), *BELOW_ZERO):
        _, outcomes = check_case(signed(seed), shards=1 + 2 * (seed % 2), row_by_row=seed % 4 < 2)
        below += any(row[-1] < 0 for outcome in outcomes if isinstance(outcome, dict) for view in outcome.values() for row in view)
    assert below >= len(BELOW_ZERO)


def test_random_programs_with_negative_weights_and_restarts(tmp_path: Path) -> None:
    for seed in range(41_000, 41_003):
        check_durable(signed(seed), tmp_path)


@pytest.mark.parametrize("seeds", [range(42_000, 42_012), *slow(rotating(300))], ids=len)
def test_optimized_programs_with_negative_weights_mean_the_same(seeds: range) -> None:
    for seed in seeds:
        program = signed(seed)
        tables = empty(program.tables)
        for tick, outcome in zip(program.ticks, expected(program), strict=True):
            tables = applied(tables, tick)
            assert isinstance(outcome, dict), seed
            assert {name: evaluate(optimize(plan), tables) for name, plan in program.views.items()} == outcome, seed


@pytest.mark.slow
def test_many_random_programs_with_negative_weights(tmp_path: Path) -> None:
    for seed in rotating(600):
        check_case(signed(seed), shards=1 + 2 * (seed % 2), row_by_row=seed % 3 == 0)
        if seed % 5 == 0:
            check_durable(signed(seed), tmp_path)


G = Table(TableSchema("g", Schema((Field("a", BIGINT, False), Field("b", BIGINT, False)))))
BELOW = Union((G, repeated(Filter(G, resolve("less", [reference(G.schema, 1), Literal(3, BIGINT)])), -2)))
KEYS = ((reference(G.schema, 0), reference(G.schema, 0)),)
LATER = resolve("less", [reference(Join(G, G, "inner").schema, i) for i in (1, 3)])


@pytest.mark.parametrize("kind", ["semi", "anti", "left", "right", "full"])
@pytest.mark.parametrize("residual", [None, LATER], ids=["keys", "conditions"])
def test_whether_a_row_has_a_match_does_not_depend_on_its_own_weight(kind: JoinKind, residual: Expr | None) -> None:
    plan = Weighted(Join(BELOW, Distinct(BELOW) if kind == "semi" else BELOW, kind, KEYS, residual), "w")
    engine, content = embedded({"g": G.table}, {"view": plan}, 3), Relation()
    for changes in (
        [((1, 1), 1), ((1, 4), 2), ((2, 1), 1), ((3, 5), 1)],
        [((2, 7), 1), ((3, 2), 3), ((1, 4), -2)],
        [((3, 5), -1), ((2, 0), 5)],
    ):
        engine.tick({"g": changes})
        content += Relation(changes)
        meant = evaluate(plan, {"g": content})
        assert engine.view("view") == meant == evaluate(optimize(plan), {"g": content})
    assert any(row[-1] < 0 for row in meant)


SQL = """
CREATE TABLE t (name STRING, x BIGINT, y DECIMAL(5, 1), z DOUBLE, times BIGINT);
CREATE MATERIALIZED VIEW direct AS
    SELECT name, count(*) AS n, count(x) AS xs, sum(x) AS x, avg(x) AS mean, avg(y) AS y, sum(z) AS z FROM t LATERAL VIEW repeat_row(times)
    GROUP BY name;
CREATE MATERIALIZED VIEW around AS
    SELECT name, count(*) AS n, count(x) AS xs, sum(x) AS x, avg(x) AS mean, avg(y) AS y, sum(z) AS z
    FROM (SELECT name, x, y, z FROM t LATERAL VIEW repeat_row(times)) s GROUP BY name;
CREATE MATERIALIZED VIEW whole AS SELECT count(*) AS n, sum(x) AS x FROM t LATERAL VIEW repeat_row(times);
CREATE MATERIALIZED VIEW present AS SELECT DISTINCT name FROM t LATERAL VIEW repeat_row(times);
CREATE MATERIALIZED VIEW values_of AS SELECT name, count(DISTINCT x) AS n FROM t LATERAL VIEW repeat_row(times) GROUP BY name;
"""


def test_counts_and_sums_add_negative_weights_with_and_without_a_subquery() -> None:
    inf = float("inf")
    checked = Checked(SQL, shards=3)
    views = checked.tick(
        {
            "t": {
                ("a", 5, 1, 0.5, 2): 1,
                ("a", 3, 2, inf, -1): 1,
                ("b", 7, 1, 1.0, -3): 1,
                ("c", 1, 1, 0.0, 1): 1,
                ("c", 2, 1, 0.0, -1): 1,
                ("d", None, None, None, -1): 1,
            }
        }
    )
    assert dict(views["around"]) == dict(views["direct"]) and len(views["direct"]) == 3, "the weights of c add up to 0"
    rows = {row[0]: row[1:] for row in views["direct"]}
    assert (
        rows["a"] == (1, 1, 7, 7.0, 0, -inf) and rows["b"] == (-3, -3, -21, 7.0, 1, -3.0) and rows["d"] == (-1, 0, None, None, None, None)
    )
    assert list(views["whole"]) == [(-3, -15)] and list(views["present"]) == [("a",)]
    assert dict(views["values_of"]) == {("a", 1): 1, ("b", 0): 1, ("d", 0): 1}
    assert len(checked.tick({"t": {("c", 2, 1, 0.0, -1): -1, ("b", 7, 1, 1.0, -3): -1}})["direct"]) == 3


PAIR = {"src": int, "dst": int}


def blocked_paths() -> deltic.Circuit:
    circuit = deltic.Circuit()
    edges, blocked = circuit.input("edges", schema=PAIR), circuit.input("blocked", schema=PAIR)

    @circuit.recursive("paths", schema=PAIR)
    def paths(paths: deltic.Stream) -> deltic.Stream:
        step = paths.index_with("dst").join(edges.index_with("src"), lambda key, path, edge: (path.src, edge.dst))
        return edges.plus(step).minus(blocked).distinct()

    circuit.output("paths", paths)
    return circuit


@pytest.mark.parametrize("shards", [1, 3])
def test_a_recursion_removes_blocked_rows(shards: int) -> None:
    circuit = blocked_paths()
    tables: dict[str, dict[tuple[int, int], int]] = {"edges": {}, "blocked": {}}
    sizes = []
    with deltic.Session(shards=shards) as session:
        session.install(circuit)
        for name, row, weight in (
            *(("edges", (i, i + 1), 1) for i in range(5)),
            ("blocked", (0, 2), 1),
            ("edges", (0, 2), 1),
            ("blocked", (0, 2), 1),
            ("blocked", (1, 3), 1),
            ("blocked", (9, 9), 1),
            ("edges", (4, 0), 1),
            ("blocked", (0, 2), -2),
            ("edges", (2, 3), -1),
        ):
            session.apply({name: [{"src": row[0], "dst": row[1], "_weight": weight}]})
            tables[name][row] = tables[name].get(row, 0) + weight
            content = {table: {r: w for r, w in rows.items() if w} for table, rows in tables.items()}
            meant = evaluate(circuit.outputs["paths"], content)
            assert {(row["src"], row["dst"]) for row in session.view("paths").rows()} == set(meant)
            sizes.append(len(meant))
    assert len(set(sizes)) > 5


def test_a_recursion_is_not_joined_with_negative_weights() -> None:
    circuit = deltic.Circuit()
    edges, blocked = circuit.input("edges", schema=PAIR), circuit.input("blocked", schema=PAIR)

    @circuit.recursive("paths", schema=PAIR)
    def paths(paths: deltic.Stream) -> deltic.Stream:
        open_ = edges.minus(blocked)
        return edges.plus(paths.index_with("dst").join(open_.index_with("src"), lambda key, path, edge: (path.src, edge.dst))).distinct()

    circuit.output("paths", paths)
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"edges": [{"src": 1, "dst": 2, "_op": "insert"}], "blocked": [{"src": 1, "dst": 2, "_op": "insert"}]})
        with pytest.raises(
            NegativeWeight, match=r"\(5, 5\) would have the weight -1 in the relations that a recursion joins[\s\S]*help: distinct\(\)"
        ):
            session.apply({"blocked": [{"src": 5, "dst": 5, "_op": "insert"}]})


def test_min_in_a_recursion_rejects_negative_weights_in_each_iteration() -> None:
    """MIN reads rows of a scope, which are checked in each of its iterations."""
    circuit = deltic.Circuit()
    edges, credit = circuit.input("edges", schema=PAIR), circuit.input("credit", schema={"node": int, "cost": int})

    @circuit.recursive("costs", schema={"node": int, "cost": int | None})
    def costs(costs: deltic.Stream) -> deltic.Stream:
        starts = edges.filter("src = 0").map({"node": "dst", "cost": "1L"})
        step = costs.index_with("node").join(edges.index_with("src"), lambda key, one, edge: (edge.dst, one.cost))
        both = starts.plus(step.map({"node": "dst", "cost": "cost"}))
        return both.minus(credit).index_with("node").aggregate(cost="min(cost)")

    circuit.output("costs", costs)
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"edges": [{"src": s, "dst": d, "_op": "insert"} for s, d in ((0, 1), (1, 2), (0, 2))]})
        session.apply({"credit": [{"node": 2, "cost": 1, "_op": "insert"}]})
        before = session.view("costs").rows()
        assert before == [{"node": 1, "cost": 1}, {"node": 2, "cost": 1}]
        with pytest.raises(NegativeWeight, match=r"\(2, 1\) would have the weight -1 in the rows that MIN reads"):
            session.apply({"edges": [{"src": 0, "dst": 2, "_op": "delete"}]})
        assert session.view("costs").rows() == before


@pytest.mark.parametrize("call", ["var_pop(x)", "stddev(x)", "corr(a, x)", "bool_and(x > 0)", "bool_or(x > 0)", "bit_xor(x)", "bit_and(x)"])
def test_aggregates_whose_state_is_a_sum_say_which_accept_negative_weights(call: str) -> None:
    with deltic.Session() as session, pytest.raises(NegativeWeight) as caught:
        session.sql("CREATE TABLE t (a BIGINT, x BIGINT)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {call} AS y FROM t LATERAL VIEW repeat_row(-1)")
        session.apply({"t": [{"a": 1, "x": 2, "_op": "insert"}]})
    name = call.partition("(")[0].upper()
    assert f"in the rows that {aggregate_function(name.lower()).name.upper()} reads" in str(caught.value)
    assert (caught.value.expected or "").endswith(f": of the aggregates only {accepting()} accept others")
    assert {"COUNT", "COUNT_IF", "SUM", "AVG"} <= {*accepting().replace(" and ", ", ").split(", ")}
    assert name not in accepting()


@pytest.mark.parametrize("call", ["count(x)", "count_if(x > 0)", "sum(x)", "avg(x)"])
def test_sums_accept_negative_weights(call: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (x BIGINT)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {call} AS y FROM t LATERAL VIEW repeat_row(-1)")
        session.apply({"t": [{"x": 2, "_op": "insert"}]})
        assert session.view("v").rows() == [{"y": {"count": -1, "count_if": -1, "sum": -2, "avg": 2.0}[call.partition("(")[0]]}]


def test_errors_have_a_place_and_a_remedy_for_the_front_end() -> None:
    with deltic.Session() as session, pytest.raises(NegativeWeight) as in_sql:
        session.sql("CREATE TABLE t (a BIGINT, x BIGINT)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT a, max(x) AS x FROM t LATERAL VIEW repeat_row(-1) GROUP BY a")
        session.apply({"t": [{"a": 1, "x": 2, "_op": "insert"}]})
    assert "(1, 2) would have the weight -1 in the rows that MAX reads" in str(in_sql.value)
    assert in_sql.value.span is not None and "repeat_row" in (in_sql.value.remedy or "")
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)
    circuit.output("missing", edges.minus(edges).minus(edges))
    with deltic.Session() as session, pytest.raises(NegativeWeight) as in_python:
        session.install(circuit)
        session.apply({"edges": [{"src": 1, "dst": 2, "_op": "insert"}]})
    assert "(1, 2) would have the weight -1 in output missing" in str(in_python.value)
    assert "distinct()" in (in_python.value.remedy or "") and "repeat_row" not in str(in_python.value)
