"""When the columns of joined rows determine them, so that DISTINCT goes; and when they do not, and it stays."""

from __future__ import annotations

import pytest

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.optimizer.drop_distinct import drop_distinct
from deltic.plan.columns import reference
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Distinct, Filter, Join, JoinKind, Plan, Project, Table
from deltic.plan.relation import Relation
from deltic.schema import BIGINT, DOUBLE, Field, Schema, TableSchema, Type


def table(name: str, *, keyed: bool = True, value: Type = BIGINT) -> Table:
    """(k, v), of which k is the key."""
    return Table(TableSchema(name, Schema((Field("k", BIGINT, False), Field("v", value, False))), (0,) if keyed else ()))


A, B = table("a"), table("b")
BAG = table("bag", keyed=False)
PAIRS = Relation([((1, 2), 1), ((2, 2), 1), ((3, 1), 1)])
TABLES = {"a": PAIRS, "b": PAIRS, "bag": Relation([((2, 2), 2), ((1, 3), 1)])}


def column(plan: Plan, index: int) -> Expr:
    return reference(plan.schema, index)


def joined(left: Plan, right: Plan, *keys: tuple[int, int], kind: JoinKind = "inner") -> Join:
    return Join(left, right, kind, tuple((column(left, one), column(right, other)) for one, other in keys))


def projected(plan: Plan, *columns: int) -> Project:
    return Project(plan, tuple((f"c{i}", column(plan, i)) for i in columns))


def is_one(plan: Plan, index: int) -> Filter:
    return Filter(plan, resolve("equal", [column(plan, index), Literal(1, BIGINT)]))


def sum_of(plan: Plan, one: int, other: int) -> Project:
    return Project(plan, (("s", resolve("add", [column(plan, one), column(plan, other)])),))


REFERENCE, BY_VALUES = joined(A, B, (1, 0)), joined(A, B, (1, 1))
DETERMINED = {
    "the row that a reference refers to": projected(REFERENCE, 0),
    "the key of both": projected(REFERENCE, 0, 2),
    "through two references": projected(joined(REFERENCE, table("c"), (3, 0)), 0),
    "the key is a constant": projected(is_one(A, 0), 1),
    "a constant on the way": projected(joined(is_one(A, 0), B, (0, 1)), 2),
    "both keys of a join of values": projected(BY_VALUES, 0, 2),
    "the left of a semi-join with a bag": projected(joined(REFERENCE, BAG, (0, 1), kind="semi"), 0),
    "equal columns": projected(Filter(joined(A, B), resolve("equal", [column(joined(A, B), 0), column(joined(A, B), 2)])), 2),
}
OPEN = {
    "a value that is no key": projected(REFERENCE, 1),
    "one key of a join of values": projected(BY_VALUES, 0),
    "a bag": projected(joined(A, BAG, (1, 0)), 0, 2, 3),
    "a computed column": sum_of(REFERENCE, 0, 3),
    "a left join": projected(joined(A, BAG, (1, 0), kind="left"), 0),
    "a value is a constant": projected(is_one(A, 1), 1),
    "a DOUBLE, of which two forms are equal": projected(
        joined(A, joined(table("d", value=DOUBLE), table("e", value=DOUBLE), (1, 1)), (0, 0)), 0
    ),
}


@pytest.mark.parametrize("case", DETERMINED)
def test_distinct_goes_from_rows_that_are_determined(case: str) -> None:
    plan = Distinct(DETERMINED[case])
    assert drop_distinct(plan) == plan.input
    tables = TABLES | {"c": PAIRS}
    assert evaluate(plan.input, tables) == evaluate(plan, tables)


@pytest.mark.parametrize("case", OPEN)
def test_distinct_stays_over_other_rows(case: str) -> None:
    plan = Distinct(OPEN[case])
    assert drop_distinct(plan) == plan
