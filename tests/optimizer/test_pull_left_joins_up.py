"""Inner joins by a unique key come before LEFT joins, where these do not matter to them."""

from __future__ import annotations

from random import Random

from deltic.expr.functions import resolve
from deltic.expr.nodes import Column, Literal
from deltic.optimizer import optimize
from deltic.optimizer.pull_left_joins_up import pull_left_joins_up
from deltic.plan.columns import agrees, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Filter, Hint, Join, OverTicks, Plan, Project, Table
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.schema import BIGINT, Field, Schema, TableSchema

SCHEMA = Schema((Field("k", BIGINT, False), Field("v", BIGINT)))
A, B, C, D = (Table(TableSchema(name, SCHEMA, (0,))) for name in "abcd")


def on(left: Plan, right: Plan, one: int, other: int = 0) -> tuple[tuple[Column, Column], ...]:
    return ((reference(left.schema, one), reference(right.schema, other)),)


def left_joined(left: Plan, right: Plan, one: int) -> Join:
    both = Join(left, right, "inner")
    width = len(left.schema)
    residual = resolve("less_equal", [reference(both.schema, one), reference(both.schema, width + 1)])
    return Join(left, right, "left", on(left, right, one, 1), residual)


def rows(seed: int) -> dict[str, Relation]:
    rng = Random(seed)
    return {name: Relation(((k, rng.choice((None, 0, 1, 2, 3))), 1) for k in range(5)) for name in "abcd"}


def check(plan: Plan, *, changes: bool) -> None:
    after, optimized = pull_left_joins_up(plan), optimize(plan)
    assert (after != plan) is changes and agrees(after) and after.schema == plan.schema, show(after)
    assert fingerprint(optimize(optimized)) == fingerprint(optimized), show(optimized)
    for seed in range(5):
        tables = rows(seed)
        assert evaluate(plan, tables) == evaluate(after, tables) == evaluate(optimized, tables), show(after)


def test_a_join_by_a_key_comes_before_left_joins() -> None:
    one = left_joined(A, B, 1)
    check(Join(one, C, "inner", on(one, C, 1)), changes=True)
    two = left_joined(one, D, 0)
    check(Join(two, C, "inner", on(two, C, 1)), changes=True)
    filtered = Filter(C, resolve("equal", [reference(C.schema, 1), Literal(2, BIGINT)]))
    plan = optimize(Join(two, filtered, "inner", on(two, C, 1)))
    assert show(plan).index("Join left") < show(plan).index("Join inner")


def test_left_joins_that_matter_to_the_join_stay_below_it() -> None:
    one = left_joined(A, B, 1)
    check(Join(one, C, "inner", on(one, C, 2)), changes=False)  # a key of the padded side
    check(Join(one, C, "inner", on(one, C, 1, 1)), changes=False)  # no unique key
    check(Join(one, C, "left", on(one, C, 1)), changes=False)
    check(Join(one, C, "inner", on(one, C, 1), hint=Hint("binary")), changes=False)
    kept = OverTicks(Join(one, C, "inner", on(one, C, 1)), "delay")
    assert pull_left_joins_up(kept) is kept


def test_padded_columns_above_keep_their_places() -> None:
    one = left_joined(A, B, 1)
    join = Join(one, C, "inner", on(one, C, 1))
    padded = Filter(join, resolve("is_null", [reference(join.schema, 2)]))
    check(Project(padded, (("k", reference(join.schema, 0)), ("v", reference(join.schema, 5)))), changes=True)
