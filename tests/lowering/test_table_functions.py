"""Table functions and temporal filters on the embedded runtime: every view and its change equal the oracle's under random changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from deltic.circuit.operators.chain import temporal_filter
from deltic.errors import EvaluationError, NegativeWeight
from deltic.expr.nodes import Column, Expr, Literal
from deltic.optimizer import optimize
from deltic.plan.columns import agrees
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Aggregate, AggregateCall, Bound, Distinct, FlatMap, Join, Plan, Project, Table, TemporalFilter, Union
from deltic.plan.relation import Relation
from deltic.plan.signs import as_view
from deltic.schema import BIGINT, DATE, INT, STRING, TIMESTAMP, Field, Schema, TableSchema, Type
from engines import Engine, embedded
from seeds import rotating

FIELDS = {"a": BIGINT, "b": BIGINT, "d": DATE, "e": DATE, "s": STRING, "t": TIMESTAMP, "u": TIMESTAMP, "n": BIGINT}
SCHEMA = TableSchema("r", Schema((*(Field(name, type) for name, type in FIELDS.items()), Field("k", BIGINT, False))))
R = Table(SCHEMA)
START = datetime(2020, 1, 1, tzinfo=UTC)


def column(name: str) -> Column:
    index = SCHEMA.schema.names.index(name)
    return Column(index, SCHEMA.schema[index].type, SCHEMA.schema[index].nullable, name)


def number(value: int | None, type: Type = BIGINT) -> Literal:
    return Literal(value, type)


def made(function: Any, *arguments: Expr, outer: bool = False, position: bool = False) -> FlatMap:
    names = () if function == "repeat_row" else (*(("p",) if position else ()), "x")
    return FlatMap(R, function, arguments, names, position, outer)


def listed(plan: Plan, *positions: int) -> Project:
    schema = plan.schema
    return Project(plan, tuple((schema[i].name, Column(i, schema[i].type, schema[i].nullable, schema[i].name)) for i in positions))


A, B, D, E, S, T, U, N, K = map(column, SCHEMA.schema.names)
MICROS_OF_A_DAY = 86_400_000_000
PLANS: Mapping[str, Plan] = {
    "array": made("array", A, B, number(7)),
    "array of NOT NULL": made("array", K, K),
    "array of text, outer, with positions": listed(made("array", S, S, outer=True, position=True), 8, 9, 10),
    "sequence": made("sequence", A, B),
    "sequence with positions": made("sequence", A, B, position=True),
    "sequence outer": listed(made("sequence", A, B, outer=True, position=True), 0, 9, 10),
    "sequence by a column": made("sequence", A, B, N),
    "days": made("sequence", D, E),
    "days by a column": made("generate_series", D, E, number(-2, INT), outer=True),
    "series": made("generate_series", A, B),
    "series by a column": made("generate_series", A, B, N, outer=True),
    "split": made("split", S, Literal(",", STRING), number(-1, INT), position=True),
    "split twice at most": listed(made("split", S, Literal(", ", STRING), number(2, INT), outer=True), 9),
    "counts": Distinct(listed(made("repeat_row", N), 0)),
    "nothing read": Aggregate(made("generate_series", A, B), (), (("n", AggregateCall("count", (), BIGINT, False)),)),
    "negative and positive": Union((R, R, R, made("repeat_row", N))),
    "two after one another": FlatMap(made("generate_series", A, B), "array", (Column(9, BIGINT, False, "x"), B), ("y",)),
    "from": TemporalFilter(R, (Bound(T),)),
    "until": TemporalFilter(R, (), (Bound(T, 1),)),
    "from until": listed(TemporalFilter(R, (Bound(T),), (Bound(U),)), 0, 8),
    "for two days": TemporalFilter(
        R, (Bound(T), Bound(U, -MICROS_OF_A_DAY)), (Bound(T, 3 * MICROS_OF_A_DAY), Bound(U, 2 * MICROS_OF_A_DAY))
    ),
    "counted while": Aggregate(
        TemporalFilter(R, (Bound(T),), (Bound(U, 5),)), (("a", A),), (("n", AggregateCall("count", (), BIGINT, False)),)
    ),
    "joined while": listed(
        TemporalFilter(Join(R, R, "inner", ((A, A),)), (Bound(T), Bound(Column(14, TIMESTAMP, True, "t"))), (Bound(U, MICROS_OF_A_DAY),)),
        0,
        8,
        17,
    ),
    "left while": TemporalFilter(Join(R, R, "left", ((A, A),)), (Bound(T),), (Bound(Column(15, TIMESTAMP, True, "u"), MICROS_OF_A_DAY),)),
    "elements while": TemporalFilter(FlatMap(R, "array", (T, U), ("x",)), (Bound(Column(9, TIMESTAMP, True, "x"), -3),)),
    "elements of those there": FlatMap(TemporalFilter(R, (Bound(T),), (Bound(U),)), "array", (A, B), ("x",)),
}


def random_row(rng: random.Random) -> tuple[Any, ...]:
    def some(make: Callable[[], Any]) -> Any:
        return None if rng.random() < 0.15 else make()

    def moment() -> datetime:
        return START + rng.randint(-2, 6) * timedelta(days=1) + rng.choice((0, 0, 1, -1, 5)) * timedelta(microseconds=1)

    def day() -> date:
        return date(2020, 1, rng.randint(1, 5))

    values = [some(lambda: rng.randint(-2, 3)), some(lambda: rng.randint(-2, 3)), some(day), some(day)]
    values += [some(lambda: rng.choice(("", "a", "a,b", ",", "a, b, c", "é,,"))), some(moment), some(moment)]
    return (*values, some(lambda: rng.choice((-2, -1, -1, 1, 1, 2, 2, 0))), rng.randrange(3))


class Case:
    """A plan on the embedded runtime, and its table."""

    def __init__(self, plan: Plan, shards: int) -> None:
        self.plan = as_view(plan)
        assert agrees(self.plan) and agrees(optimize(self.plan))
        self.engine: Engine = embedded({"r": SCHEMA}, {"v": self.plan}, shards)
        self.table, self.now, self.failures, self.seen = Relation(), START, 0, 0
        self.content = self.evaluated(self.table, START)
        self.step({}, timedelta())

    def evaluated(self, table: Relation, now: datetime) -> Relation:
        actual = evaluate(self.plan, {"r": table}, now=now)
        assert evaluate(optimize(self.plan), {"r": table}, now=now) == actual
        return actual

    def step(self, changes: Mapping[tuple[Any, ...], int], later: timedelta) -> None:
        table, now = self.table + Relation(changes.items()), self.now + later
        notes = {"now_us": (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)}
        try:
            content = self.evaluated(table, now)
        except EvaluationError as error:
            self.failures += 1
            with pytest.raises(type(error)):
                self.engine.tick({"r": changes.items()}, notes)
            return
        result = self.engine.tick({"r": changes.items()}, notes)
        assert self.engine.view("v") == content
        assert self.engine.change("v", result) == content - self.content
        self.table, self.now, self.content = table, now, content
        self.seen += len(content)


def run(name: str, seed: int, shards: int = 1, ticks: int = 10) -> Case:
    rng, case = random.Random(f"{name} {seed}"), Case(PLANS[name], shards)
    for _ in range(ticks):
        changes: dict[tuple[Any, ...], int] = {random_row(rng): rng.choice((1, 1, 2)) for _ in range(rng.randrange(1, 8))}
        for row, weight in case.table.items():
            if rng.random() < 0.35:
                changes[row] = -rng.randint(1, weight)
        case.step(changes, rng.choice((0, 0, 1, 1, 2)) * timedelta(days=1) + rng.choice((0, 0, 1, 4)) * timedelta(microseconds=1))
    return case


@pytest.mark.parametrize("name", PLANS)
def test_views_equal_evaluation_from_scratch(name: str) -> None:
    cases = [run(name, seed, shards) for seed, shards in ((1, 1), (2, 1), (3, 3))]
    assert sum(case.seen for case in cases) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_views_equal_evaluation_from_scratch_at_length(name: str) -> None:
    for seed in rotating(40):
        run(name, seed, shards=1 + seed % 3, ticks=25)


def test_a_negative_weight_in_a_view_fails_the_tick() -> None:
    case = Case(Union((R, FlatMap(R, "repeat_row", (N,), ()))), 1)
    row = (*random_row(random.Random(1))[:7], -1, 0)
    case.step({row: 2}, timedelta())
    assert case.content == Relation() and not case.failures
    case.step({(*row[:7], -2, 0): 1}, timedelta())
    with pytest.raises(NegativeWeight, match="would have the weight -1"):
        case.engine.tick({"r": [((*row[:7], -2, 0), 1)]})
    assert case.failures == 1


def test_rows_due_later_wait_at_no_cost() -> None:
    case = Case(PLANS["from until"], 1)
    base = random_row(random.Random(1))
    many = {(*base[:5], START + timedelta(days=i), START + timedelta(days=i + 1), *base[7:8], i): 1 for i in range(1, 2000)}
    case.step(many, timedelta())
    result = case.engine.tick({}, {"now_us": (START + timedelta(days=7) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)})
    (name,) = (node.name for node in case.engine.circuit.nodes if temporal_filter(node.operator) is not None)
    assert result.counters[name].rows_out == 13 and result.counters[name].touched == 13
