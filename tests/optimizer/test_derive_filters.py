"""Filters that follow from an OR over both sides of a join: where they move, for which joins, and that they are derived once."""

from __future__ import annotations

import pytest

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.optimizer import optimize
from deltic.optimizer.derive_filters import derive_filters
from deltic.plan.columns import conjunction, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Filter, Join, JoinKind, OverTicks, Plan, Table
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.schema import BIGINT, Field, Schema, TableSchema


def table(name: str, *, nullable: bool = True) -> Table:
    return Table(TableSchema(name, Schema((Field("k", BIGINT, nullable), Field("v", BIGINT, nullable)))))


T, U = table("t"), table("u")
ROWS = {name: Relation(((k, v), 1) for k in (1, 2, None) for v in (1, 2, 3, None)) for name in "tu"}


def is_(plan: Plan, column: int, value: int) -> Expr:
    return resolve("equal", [reference(plan.schema, column), Literal(value, BIGINT)])


def crossed(plan: Plan) -> Expr:
    """The values of both sides are 1 and 2, or 2 and 1."""
    return resolve("or", [conjunction([is_(plan, 1, a), is_(plan, 3, b)]) for a, b in ((1, 2), (2, 1))])


def joined(kind: JoinKind, residual: Expr | None = None, *, nullable: bool = True) -> Join:
    left, right = table("t", nullable=nullable), table("u", nullable=nullable)
    return Join(left, right, kind, ((reference(left.schema, 0), reference(right.schema, 0)),), residual)


@pytest.mark.parametrize("nullable", [True, False])
def test_both_sides_are_filtered_once(nullable: bool) -> None:
    join = joined("inner", nullable=nullable)
    plan = Filter(join, crossed(join))
    after = optimize(plan)
    assert show(after).splitlines() == [
        "Filter (((v#1 = 1) and (v#3 = 2)) or ((v#1 = 2) and (v#3 = 1)))",
        "  Join inner on k#0 = k#0",
        "    Filter ((v#1 = 1) or (v#1 = 2))",
        "      Table t (k, v)",
        "    Filter ((v#1 = 2) or (v#1 = 1))",
        "      Table u (k, v)",
    ]
    assert fingerprint(optimize(after)) == fingerprint(after)


@pytest.mark.parametrize(("kind", "filtered"), [("left", "u"), ("right", "t"), ("full", ""), ("semi", "tu"), ("anti", "u")])
def test_a_condition_of_on_filters_the_sides_that_may_be(kind: JoinKind, filtered: str) -> None:
    plan = joined(kind, crossed(joined("inner")))
    after = derive_filters(plan)
    assert isinstance(after, Join)
    assert [isinstance(side, Filter) for side in (after.left, after.right)] == ["t" in filtered, "u" in filtered]
    assert evaluate(after, ROWS) == evaluate(plan, ROWS) == evaluate(optimize(plan), ROWS)


def test_a_branch_without_a_condition_on_a_side_derives_nothing_for_it() -> None:
    join = joined("inner")
    plan = Filter(join, resolve("or", [conjunction([is_(join, 1, 1), is_(join, 3, 2)]), is_(join, 3, 1)]))
    after = derive_filters(plan)
    assert isinstance(after, Filter) and isinstance(after.input, Join)
    assert after.input.left == join.left and after.input.right != join.right
    assert evaluate(after, ROWS) == evaluate(plan, ROWS)


def test_a_condition_that_can_fail_is_not_derived() -> None:
    join = joined("inner")
    failing = resolve("is_not_null", [resolve("divide", [Literal(1, BIGINT), reference(join.schema, 1)])])
    plan = Filter(join, resolve("or", [conjunction([failing, is_(join, 3, 2)]), conjunction([failing, is_(join, 3, 1)])]))
    after = derive_filters(plan)
    assert isinstance(after, Filter) and isinstance(after.input, Join) and after.input.left == join.left


def test_state_of_past_ticks_keeps_its_plan() -> None:
    join = joined("inner")
    kept = OverTicks(Filter(join, crossed(join)), "delay")
    assert derive_filters(kept) is kept
