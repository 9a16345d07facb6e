"""Optimized plans as text, in goldens.txt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.optimizer import optimize
from deltic.plan.columns import agrees, conjunction, reference
from deltic.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, Join, Order, Plan, Project, SetOperation, Table, TopK, Union
from deltic.plan.show import show
from deltic.schema import BIGINT, BOOLEAN, DATE, INT, STRING, Field, Schema, TableSchema, Type
from goldens import Goldens


def table(name: str, key: tuple[int, ...], /, **columns: Type) -> Table:
    fields = tuple(Field(column, type, i not in key) for i, (column, type) in enumerate(columns.items()))
    return Table(TableSchema(name, Schema(fields), key))


ORDERS = table("orders", (0,), id=BIGINT, customer=BIGINT, amount=BIGINT, note=STRING, ordered=DATE)
CUSTOMERS = table("customers", (0,), id=BIGINT, region=INT, name=STRING, blocked=BOOLEAN)


def at(plan: Plan, index: int) -> Expr:
    return reference(plan.schema, index)


def keep(plan: Plan, *indices: int) -> Project:
    return Project(plan, tuple((plan.schema[i].name, at(plan, i)) for i in indices))


def count() -> AggregateCall:
    return AggregateCall("count", (), BIGINT, False)


def total(argument: Expr) -> AggregateCall:
    return AggregateCall("sum", (argument,), BIGINT, True)


def spend_by_region() -> Plan:
    """WHERE over a cross join: keys, pushed filters, narrow sides, one unused aggregate."""
    join = Join(ORDERS, CUSTOMERS, "inner")
    where = conjunction(
        [
            resolve("equal", [at(join, 1), at(join, 5)]),
            resolve("not", [at(join, 8)]),
            resolve("like", [at(join, 3), Literal("gift%", STRING)]),
        ]
    )
    sums = Aggregate(Filter(join, where), (("region", at(join, 6)),), (("n", count()), ("spend", total(at(join, 2)))))
    return keep(sums, 0, 2)


def customers_without_orders() -> Plan:
    """An antijoin whose right side has a condition and an unnecessary DISTINCT."""
    right = Distinct(keep(ORDERS, 1, 4))
    big = resolve("is_not_null", [reference(Join(CUSTOMERS, right, "inner").schema, 5)])
    join = Join(CUSTOMERS, right, "anti", ((at(CUSTOMERS, 0), at(right, 0)),), residual=big)
    return keep(join, 0, 2)


def view_over_views() -> Plan:
    """Projections and filters stacked, over a union of unions."""
    half = keep(ORDERS, 0, 2, 1)
    stacked = Union((Union((half, half)), Filter(half, Literal(True, BOOLEAN))))
    filtered = Filter(keep(stacked, 2, 1), resolve("greater", [at(keep(stacked, 2, 1), 1), Literal(10, BIGINT)]))
    return Filter(filtered, resolve("is_not_null", [at(filtered, 0)]))


def busiest() -> Plan:
    """HAVING on a key moves below the aggregate, on a count it does not; top-k keeps all columns."""
    counts = Aggregate(ORDERS, (("customer", at(ORDERS, 1)),), (("n", count()),))
    having = conjunction(
        [resolve("greater", [at(counts, 1), Literal(1, BIGINT)]), resolve("not_equal", [at(counts, 0), Literal(0, BIGINT)])]
    )
    return keep(TopK(Distinct(Filter(counts, having)), (Order(at(counts, 1), True, False),), 3), 0)


def outer_join_conditions() -> Plan:
    """ON of a LEFT join: conditions on the right side move there, those on the left side stay; WHERE on the left moves."""
    both = Join(ORDERS, CUSTOMERS, "inner")
    condition = conjunction(
        [
            resolve("equal", [at(both, 1), at(both, 5)]),
            resolve("equal", [at(both, 6), Literal(7, INT)]),
            resolve("greater", [at(both, 2), Literal(100, BIGINT)]),
        ]
    )
    join = Join(ORDERS, CUSTOMERS, "left", residual=condition)
    where = conjunction([resolve("is_not_null", [at(join, 4)]), resolve("is_null", [at(join, 5)])])
    return keep(Filter(join, where), 0, 6)


def rejected_nulls() -> Plan:
    """LEFT joins whose padded rows a key and a condition above drop: a column that was NULL by its type stays so in the result."""
    first = Join(ORDERS, CUSTOMERS, "left", ((at(ORDERS, 1), at(CUSTOMERS, 0)),))
    second = Join(first, CUSTOMERS, "left", ((at(first, 6), at(CUSTOMERS, 1)),))
    return keep(Filter(second, resolve("greater", [at(second, 9), Literal(5, BIGINT)])), 0, 5, 9)


def casts_behind_a_guard() -> Plan:
    """A cast that can fail stays above EXCEPT, the other conditions pass."""
    both = SetOperation(keep(ORDERS, 1, 3), keep(ORDERS, 0, 3), "except")
    where = conjunction(
        [
            resolve("is_not_null", [resolve("int", [at(both, 1)])]),
            resolve("less", [at(both, 0), Literal(5, BIGINT)]),
        ]
    )
    return Filter(both, where)


PLANS: tuple[Callable[[], Plan], ...] = (
    spend_by_region,
    customers_without_orders,
    view_over_views,
    busiest,
    outer_join_conditions,
    rejected_nulls,
    casts_behind_a_guard,
)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
def test_goldens(plan: Callable[[], Plan], goldens: Goldens) -> None:
    goldens.check(plan.__name__, f"{show(plan())}\n-->\n{show(optimize(plan()))}")


def test_goldens_are_those_of_the_plans(goldens: Goldens) -> None:
    goldens.check_names([plan.__name__ for plan in PLANS])


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
def test_columns_of_the_examples_agree(plan: Callable[[], Plan]) -> None:
    assert agrees(plan()) and agrees(optimize(plan()))
    assert optimize(plan()).schema == plan().schema
