"""SEMI and ANTI joins come before inner joins, where fewer rows are then stored."""

from __future__ import annotations

from random import Random

import pytest

from deltic.expr.functions import resolve
from deltic.expr.nodes import Column, Expr, Literal
from deltic.optimizer import optimize
from deltic.optimizer.push_semijoins_down import push_semijoins_down
from deltic.optimizer.row_estimates import UNKNOWN, Sizes, TableSize
from deltic.plan.columns import agrees, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.join_nodes import JoinKind
from deltic.plan.nodes import Filter, Join, OverTicks, Plan, Project, Table, Union
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import nodes
from deltic.schema import BIGINT, Field, Schema, TableSchema

KEYED, PLAIN = (Schema((Field("k", BIGINT, nullable), Field("v", BIGINT))) for nullable in (False, True))
A, B, C = (Table(TableSchema(name, KEYED, (0,))) for name in "abc")
M, N = (Table(TableSchema(name, PLAIN)) for name in "mn")
SMALL = Sizes((("m", TableSize(10)), ("a", TableSize(1000))))
KINDS: tuple[JoinKind, ...] = ("semi", "anti")


def on(left: Plan, right: Plan, *pairs: tuple[int, int]) -> tuple[tuple[Expr, Expr], ...]:
    return tuple((reference(left.schema, one), reference(right.schema, other)) for one, other in pairs)


def joined(left: Plan, right: Plan, kind: JoinKind, *pairs: tuple[int, int]) -> Join:
    return Join(left, right, kind, on(left, right, *pairs))


def rows(seed: int) -> dict[str, Relation]:
    rng = Random(seed)
    values = (None, 0, 1, 2, 3)
    keyed = {name: Relation(((k, rng.choice(values)), 1) for k in range(5)) for name in "abc"}
    return {**keyed, **{name: Relation(((rng.choice(values), rng.choice(values)), 2) for _ in range(5)) for name in "mn"}}


def below(plan: Plan) -> list[Plan]:
    """The left sides of SEMI and ANTI joins."""
    return [node.left for node in nodes(plan) if isinstance(node, Join) and node.kind in KINDS]


def check(plan: Plan, *expected: Plan, sizes: Sizes = UNKNOWN) -> Plan:
    """expected: the left sides of SEMI and ANTI joins afterwards."""
    after, optimized = push_semijoins_down(plan, sizes), optimize(plan, sizes=sizes)
    assert below(after) == list(expected), show(after)
    assert agrees(after) and after.schema == plan.schema and push_semijoins_down(after, sizes) == after
    assert fingerprint(optimize(optimized, sizes=sizes)) == fingerprint(optimized), show(optimized)
    for seed in range(8):
        tables = rows(seed)
        assert evaluate(plan, tables) == evaluate(after, tables) == evaluate(optimized, tables), show(after)
    return after


@pytest.mark.parametrize("kind", KINDS)
def test_the_side_whose_columns_it_reads(kind: JoinKind) -> None:
    both = joined(M, A, "inner", (1, 0))
    check(joined(both, N, kind, (0, 1)), M)
    check(joined(both, N, kind, (3, 1)), A)
    check(joined(both, N, kind, (0, 1), (1, 0)), M)
    check(joined(joined(both, B, "inner", (3, 0)), N, kind, (2, 1)), A)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_both_sides_have_is_read_where_it_is_unique(kind: JoinKind) -> None:
    for column in (1, 2):
        check(joined(joined(M, A, "inner", (1, 0)), N, kind, (column, 1)), A)
    check(joined(joined(M, N, "inner", (1, 0)), C, kind, (1, 0), (3, 1)), N)


@pytest.mark.parametrize("kind", KINDS)
def test_through_filters_and_columns_in_other_places(kind: JoinKind) -> None:
    both = joined(M, N, "inner", (1, 0))
    compared = Filter(both, resolve("<>", [reference(both.schema, 0), reference(both.schema, 3)]))
    turned = Project(compared, tuple((f"c{i}", reference(both.schema, i)) for i in (3, 0, 2)))
    check(joined(turned, A, kind, (1, 0)), M)
    divided = Filter(both, resolve("<>", [resolve("div", [Literal(6, BIGINT), reference(both.schema, 0)]), Literal(9, BIGINT)]))
    after = push_semijoins_down(joined(divided, A, kind, (0, 0)))
    assert below(after) == [M] and isinstance(after, Filter), show(after)


@pytest.mark.parametrize("kind", KINDS)
def test_it_stays_where_no_side_has_its_columns_or_fewer_rows(kind: JoinKind) -> None:
    both = joined(M, A, "inner", (1, 0))
    for plan in (
        joined(both, N, kind, (0, 0), (3, 1)),  # of both sides
        joined(joined(A, Filter(B, resolve("=", [reference(B.schema, 1), Literal(2, BIGINT)])), "inner", (1, 0)), N, kind, (0, 1)),
        Join(both, N, kind, ((resolve("+", [reference(both.schema, 0), Literal(1, BIGINT)]), reference(N.schema, 0)),)),
        Join(both, N, kind, on(both, N, (0, 0)), resolve("less", [reference(both.schema, 0), Column(5, BIGINT, True, "v")])),
        joined(joined(M, A, "left", (1, 0)), N, kind, (0, 0)),
        joined(Union((both, both)), N, kind, (0, 0)),
        Join(both, N, kind),
    ):
        assert isinstance(plan, Join)
        check(plan, plan.left)


@pytest.mark.parametrize("kind", KINDS)
def test_a_join_that_others_read_is_computed_once(kind: JoinKind) -> None:
    both = joined(M, A, "inner", (1, 0))
    plan = Union((joined(both, N, kind, (0, 0)), both))
    assert push_semijoins_down(plan) == plan


def test_by_sizes_that_are_known() -> None:
    plan = joined(joined(M, A, "inner", (1, 0)), N, "semi", (0, 1))
    assert below(push_semijoins_down(plan, SMALL)) == [M]
    plan = joined(joined(A, M, "inner", (0, 1)), N, "semi", (0, 1))
    assert below(push_semijoins_down(plan, SMALL)) == [M]
    plan = joined(joined(A, M, "inner", (0, 1)), N, "semi", (1, 1))
    assert push_semijoins_down(plan, SMALL) == plan


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_can_fail_is_compared_with_joined_rows_alone(kind: JoinKind) -> None:
    inner = joined(M, A, "inner", (1, 0))
    more = resolve("+", [reference(N.schema, 0), Literal(1, BIGINT)])
    plan = Join(inner, N, kind, ((reference(inner.schema, 0), more),))
    assert push_semijoins_down(plan) == plan
    tables = {"m": Relation([((1, 1), 1)]), "a": Relation([]), "n": Relation([((2**63 - 1, 1), 1)])}
    assert not dict(evaluate(optimize(plan), tables).pairs())


def test_plans_that_read_streams_stay() -> None:
    both = joined(M, OverTicks(A, "delay"), "inner", (1, 0))
    plan = joined(both, N, "semi", (0, 0))
    assert push_semijoins_down(plan) == plan
