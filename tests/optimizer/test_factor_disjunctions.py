"""Conditions that all branches of an OR share: they become keys and filters, and no condition that can fail moves."""

from __future__ import annotations

from itertools import product

import pytest

from deltic.expr.functions import resolve
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Call, Column, Expr, Literal
from deltic.optimizer import optimize
from deltic.optimizer.factor_disjunctions import factor_disjunctions
from deltic.plan.columns import conjunction, conjuncts, reference
from deltic.plan.nodes import Filter, Join, OverTicks, Table
from deltic.plan.show import show, show_expr
from deltic.schema import BOOLEAN, INT, Field, Schema, TableSchema

T = Table(TableSchema("t", Schema(tuple(Field(name, BOOLEAN) for name in "abcd"))))
A, B, C, D = (Column(i, BOOLEAN, True, name) for i, name in enumerate("abcd"))


def both(*parts: Expr) -> Expr:
    return conjunction(parts)


def any_of(*branches: Expr) -> Expr:
    return resolve("or", list(branches))


def factored(predicate: Expr) -> Expr:
    plan = factor_disjunctions(Filter(T, predicate))
    assert isinstance(plan, Filter)
    return plan.predicate


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (any_of(both(A, B), both(A, C)), "(a#0 and (b#1 or c#2))"),
        (any_of(both(A, B), both(C, A), both(D, A, B)), "(a#0 and (b#1 or c#2 or (d#3 and b#1)))"),
        (any_of(both(A, B, C), both(C, D, B)), "(b#1 and c#2 and (a#0 or d#3))"),
        (any_of(both(A, B), A), "a#0"),
        (any_of(A, A), "a#0"),
        (both(D, any_of(both(A, B), both(A, C))), "(d#3 and a#0 and (b#1 or c#2))"),
        (any_of(both(A, any_of(B, C)), both(A, D)), "(a#0 and (b#1 or c#2 or d#3))"),
        (any_of(both(resolve("equal", [A, B]), C), both(resolve("equal", [B, A]), D)), "((a#0 = b#1) and (c#2 or d#3))"),
        (any_of(both(A, B), both(C, D)), "((a#0 and b#1) or (c#2 and d#3))"),
    ],
)
def test_shared_conditions_come_first_and_the_truth_is_the_same(written: Expr, expected: str) -> None:
    after = factored(written)
    assert show_expr(after) == expected and factored(after) == after
    for row in product((True, False, None), repeat=4):
        assert evaluate(after, row) is evaluate(written, row)


def test_a_condition_that_can_fail_stays_after_its_guard() -> None:
    n = Table(TableSchema("n", Schema((Field("x", INT), Field("y", INT)))))
    x, y = (reference(n.schema, i) for i in range(2))
    guard = resolve("not_equal", [x, Literal(0, INT)])
    divided = resolve("is_not_null", [resolve("divide", [y, x])])
    plan = Filter(n, any_of(both(guard, divided), both(resolve("equal", [y, Literal(1, INT)]), divided)))
    assert factor_disjunctions(plan) == plan


def test_a_shared_equality_is_a_key_and_a_shared_condition_a_filter() -> None:
    t, u = (Table(TableSchema(name, Schema((Field("k", INT), Field("v", INT))))) for name in "tu")
    k, v, key, w = (Column(i, INT, True, name) for i, name in enumerate(("k", "v", "k", "v")))
    one, other = (
        both(resolve("equal", [k, key]), resolve("equal", [w, Literal(7, INT)]), resolve("equal", [v, Literal(i, INT)])) for i in (1, 2)
    )
    assert show(optimize(Filter(Join(t, u, "inner"), any_of(one, other)))).splitlines() == [
        "Join inner on k#0 = k#0",
        "  Filter ((v#1 = 1) or (v#1 = 2))",
        "    Table t (k, v)",
        "  Filter (v#1 = 7)",
        "    Table u (k, v)",
    ]
    left = optimize(Join(t, u, "left", (), any_of(one, other)))
    assert show(left).splitlines()[0] == "Join left on k#0 = k#0 where ((v#1 = 1) or (v#1 = 2))"


def test_state_of_past_ticks_keeps_its_plan() -> None:
    filtered = Filter(T, any_of(both(A, B), both(A, C)))
    assert conjuncts(factored(filtered.predicate)) == (A, Call("or", (B, C), BOOLEAN, True))
    for kept in (OverTicks(filtered, "delay"), Filter(OverTicks(T, "delay"), filtered.predicate)):
        assert factor_disjunctions(kept) is kept
