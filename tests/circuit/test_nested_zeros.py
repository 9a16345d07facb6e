"""Nested values with -0.0: equal to those with 0.0 as keys and in orders, and shown with their signs by every operator."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import pytest

import deltic
from deltic.expr import Expr, Literal, resolve
from deltic.expr.nodes import Column
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.asof import Nearest, asof_join
from deltic.plan.columns import shift
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Aggregate, Distinct, Filter, Join, JoinKind, Order, Plan, SetOperation, Table, TopK
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.window_nodes import UNBOUNDED, Edge, Window, WindowCall, WindowFrame, WindowFunction
from deltic.schema import BIGINT, DOUBLE, INT, Field, Schema, TableSchema
from deltic.types import array_type, struct
from engines import embedded
from parts import slow
from seeds import rotating

LIST, PAIR = array_type(DOUBLE), struct((Field("x", DOUBLE), Field("y", INT)))
COLUMNS = Schema((Field("g", INT), Field("a", LIST), Field("p", PAIR), Field("x", DOUBLE), Field("n", BIGINT, False)))
TABLES = {name: TableSchema(name, COLUMNS) for name in "tu"}
T, U = (Table(table) for table in TABLES.values())
G, A, P, X, N = (Column(i, field.type, field.nullable, field.name) for i, field in enumerate(COLUMNS))
WIDTH = len(COLUMNS)
LONG = (1.0, 2.0, 3.0)
VALUES = (
    (None, 1),
    (None, (0.0,), (-0.0,), (0.0, -0.0), (0.0, 0.0), (*LONG, 0.0), (*LONG, -0.0)),
    (None, (0.0, 1), (-0.0, 1), (-0.0, None)),
    (None, 0.0, -0.0, 1.0),
    (1, 2),
)
PEERS, ROW = Edge("peers"), Edge("rows")
EDGES = (
    *((UNBOUNDED, PEERS), (PEERS, UNBOUNDED), (PEERS, PEERS), (UNBOUNDED, ROW), (ROW, UNBOUNDED), (UNBOUNDED, UNBOUNDED)),
    *((Edge("rows", -2), ROW), (Edge("rows", -1), Edge("rows", 1)), (Edge("rows", 1), Edge("rows", 2))),
    *((UNBOUNDED, Edge("rows", -1)), (Edge("rows", 1), UNBOUNDED)),
)
FRAMES = tuple(WindowFrame(*edges) for edges in EDGES)
POSITIONS: Final[tuple[WindowFunction, ...]] = ("row_number", "rank", "dense_rank")
OFFSETS: Final[tuple[WindowFunction, ...]] = ("lag", "lead")
PICKS: Final[tuple[WindowFunction, ...]] = ("first_value", "last_value", "nth_value")
NEAREST: Final[tuple[JoinKind, ...]] = ("inner", "left", "right", "full")
KINDS: Final[tuple[JoinKind, ...]] = (*NEAREST, "semi", "anti")


def aggregate(rng: Random) -> AggregateCall:
    nested, condition = rng.choice([A, P]), resolve(">", [N, Literal(1, BIGINT)]) if rng.random() < 0.3 else None
    calls = [
        AggregateCall("count", (nested,), BIGINT, False, filter=condition),
        AggregateCall("count", (nested,), BIGINT, False, distinct=True, filter=condition),
        AggregateCall("sum", (N,), BIGINT, True, filter=condition),
        AggregateCall("max", (nested,), nested.type, True, filter=condition),
        AggregateCall("min", (nested,), nested.type, True, filter=condition),
        AggregateCall("min_by", (nested, N), nested.type, True, filter=condition),
        AggregateCall("max_by", (N, nested), BIGINT, True, filter=condition),
        AggregateCall("mode", (nested,), nested.type, True, filter=condition),
    ]
    return rng.choice(calls)


def orders(rng: Random, terms: int = 2) -> tuple[Order, ...]:
    chosen = rng.sample([A, P, X, N], rng.randint(1, terms))
    return tuple(Order(term, rng.random() < 0.5, rng.random() < 0.5) for term in chosen)


def keys_of(rng: Random) -> tuple[Expr, ...]:
    return tuple(rng.sample([G, A, P, X], rng.choice([0, 1, 1, 2])))


def call(rng: Random) -> WindowCall:
    value = rng.choice([A, P, X, N])
    match rng.randrange(5):
        case 0:
            return WindowCall(rng.choice(POSITIONS), INT, False)
        case 1:
            return WindowCall(rng.choice(OFFSETS), value.type, True, (value,), rng.randint(0, 2), rng.random() < 0.5)
        case 2:
            function = rng.choice(PICKS)
            return WindowCall(function, value.type, True, (value,), rng.randint(1, 2), rng.random() < 0.5, rng.choice(FRAMES))
        case _:
            own = aggregate(rng)
            return WindowCall("aggregate", own.type, own.nullable, frame=rng.choice(FRAMES), aggregate=own)


def window(rng: Random) -> Plan:
    return Window(T, keys_of(rng), orders(rng), tuple((f"c{i}", call(rng)) for i in range(rng.choice([1, 1, 2]))))


def first_positions(rng: Random) -> Plan:
    plan = Window(T, keys_of(rng), orders(rng), (("c", WindowCall(rng.choice(POSITIONS), INT, False)),))
    return Filter(plan, resolve("<=", [Column(WIDTH, INT, False, "c"), Literal(rng.randint(1, 3), INT)]))


def top(rng: Random) -> Plan:
    return TopK(T, orders(rng), rng.randint(1, 3), keys_of(rng), *([] if (offset := rng.randint(0, 1)) == 0 else [offset]))


def joined(rng: Random) -> Plan:
    keys = tuple((key, key) for key in keys_of(rng))
    kind = rng.choice(KINDS)
    conditions = [None, resolve("<=", [X, shift(X, WIDTH)]), resolve("<", [N, shift(N, WIDTH)]), resolve("<=", [A, shift(A, WIDTH)])]
    low, high = resolve(">=", [X, shift(X, WIDTH)]), resolve("<=", [X, resolve("+", [shift(X, WIDTH), Literal(1.0, DOUBLE)])])
    return Join(T, U, kind, keys, rng.choice([*conditions, resolve("and", [low, high])]))


def nearest(rng: Random) -> Plan:
    keys = tuple((key, key) for key in rng.sample([A, P], rng.choice([1, 1, 2])))
    comparison, time = rng.choice(["greater_equal", "less_equal"]), rng.choice([X, N])
    return asof_join(T, U, rng.choice(NEAREST), Nearest(time, comparison, time, keys))


def others(rng: Random) -> Plan:
    operations: list[Plan] = [SetOperation(T, U, kind) for kind in ("except", "except_all", "intersect", "intersect_all")]
    grouped = Aggregate(T, tuple((f"k{i}", key) for i, key in enumerate(keys_of(rng))), (("v", aggregate(rng)), ("w", aggregate(rng))))
    return rng.choice([*operations, Distinct(T), grouped])


FORMS = {form.__name__: form for form in (window, first_positions, top, joined, nearest, others)}


def changed(rng: Random, content: Relation) -> Relation:
    """A random change that leaves no negative weight."""
    change = Relation()
    for _ in range(rng.choice([1, 3, 6])):
        present = [row for row, copies in (content + change).pairs() if copies > 0]
        if present and rng.random() < 0.35:
            change += Relation([(rng.choice(present), -1)])
        else:
            change += Relation([(tuple(rng.choice(values) for values in VALUES), rng.choice([1, 1, 2]))])
    return change


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("seeds", [range(3), *slow(rotating(600))], ids=len)
def test_signs_of_zeros_in_nested_values_are_those_of_the_rows(seeds: range, form: Callable[[Random], Plan]) -> None:
    for seed in seeds:
        rng = Random(f"{form.__name__} {seed}")
        views = {"v": form(rng), "w": form(rng)}
        engine = embedded(TABLES, views, 1 + 2 * (seed % 2))
        contents = {"t": Relation(), "u": Relation()}
        for number in range(4):
            changes = {name: changed(rng, content) for name, content in contents.items()}
            contents = {name: content + changes[name] for name, content in contents.items()}
            engine.tick({name: change.pairs() for name, change in changes.items()})
            for name, plan in views.items():
                assert engine.view(name) == evaluate(plan, contents), f"seed {seed}, tick {number}:\n{show(plan)}"


QUERIES = {
    "count(k) OVER (PARTITION BY k ORDER BY a, id ROWS 3 PRECEDING)": [1, 2, 3],
    "count(k) OVER (PARTITION BY a ORDER BY id ROWS UNBOUNDED PRECEDING)": [1, 2, 3],
    "mode(k) OVER (ORDER BY a, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)": [7, 7, 7],
    "count(*) OVER (ORDER BY a)": [3, 3, 3],
    "last_value(a) OVER (PARTITION BY k)": [[-0.0, 0.0], [-0.0, 0.0], [-0.0, 0.0]],
}


def test_rows_of_windows_are_shown_with_their_own_zeros() -> None:
    lists = [[0.0, 0.0], [-0.0, 0.0], [-0.0, -0.0]]
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (k INT, a ARRAY<DOUBLE>, id INT)")
        for i, call in enumerate(QUERIES):
            session.sql(f"CREATE MATERIALIZED VIEW v{i} AS SELECT a, {call} AS r, id FROM t")
        with session.transaction() as tx:
            tx.insert("t", [{"k": 7, "a": a, "id": i} for i, a in enumerate(lists)])
        for i, values in enumerate(QUERIES.values()):
            rows = sorted(session.view(f"v{i}").rows(), key=lambda row: row["id"])
            assert repr([(row["a"], row["r"]) for row in rows]) == repr(list(zip(lists, values, strict=True)))
