"""What rewrites must preserve: guards of expressions that can fail, the sign of zero, the row of a global aggregate, ties."""

from __future__ import annotations

import pytest

from deltic.errors import DivisionByZero
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.expr.typing import cast
from deltic.optimizer import optimize
from deltic.optimizer.drop_distinct import drop_distinct
from deltic.optimizer.drop_limits import drop_limits
from deltic.optimizer.push_filters_down import push_filters_down
from deltic.optimizer.simplify import simplify
from deltic.plan.columns import conjunction, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Order,
    OverTicks,
    Plan,
    Project,
    Table,
    TopK,
    Union,
    Values,
    Window,
    WindowCall,
)
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Field, Schema, TableSchema, Type


def table(name: str, *types: Type, key: tuple[int, ...] = ()) -> Table:
    fields = tuple(Field(f"{name}{i}", type, i not in key) for i, type in enumerate(types))
    return Table(TableSchema(name, Schema(fields), key))


def column(plan: Plan, index: int) -> Expr:
    return reference(plan.schema, index)


def number(value: int) -> Literal:
    return Literal(value, INT)


def quotient_is_set(plan: Plan, index: int) -> Expr:
    """1 / column IS NOT NULL: fails where the column is 0."""
    return resolve("is_not_null", [resolve("divide", [number(1), column(plan, index)])])


T, U = table("t", INT, INT), table("u", INT, INT)
TABLES = {"t": Relation([((0, 1), 1), ((2, 2), 1), ((None, 0), 1)]), "u": Relation([((2, 0), 1)])}
NOT_ZERO = resolve("not_equal", [column(T, 0), number(0)])


def test_an_expression_that_can_fail_stays_above_the_join_that_guards_it() -> None:
    join = Join(T, U, "inner", ((column(T, 0), column(U, 0)),))
    plan = Filter(join, quotient_is_set(join, 0))
    assert push_filters_down(plan) == plan
    assert evaluate(optimize(plan), TABLES) == {(2, 2, 2, 0): 1}


def test_an_equality_that_can_fail_does_not_become_a_key() -> None:
    join = Join(T, U, "inner", ((column(T, 0), column(U, 0)),))
    quotient = resolve("divide", [number(2), column(join, 0)])
    plan = Filter(join, resolve("equal", [quotient, cast(column(join, 2), DOUBLE)]))
    assert push_filters_down(plan) == plan
    assert evaluate(optimize(plan), TABLES) == {}


def test_a_part_of_an_and_that_can_fail_does_not_move_ahead_of_its_guard() -> None:
    join = Join(T, U, "left", ((column(T, 1), column(U, 0)),))
    guard = resolve("not_equal", [column(join, 0), number(0)])
    plan = Filter(join, conjunction([guard, quotient_is_set(join, 0)]))
    assert show(optimize(plan)).splitlines()[:3] == [
        "Filter is_not_null((1.0 / cast(t0#0 as DOUBLE)))",
        "  Join left on t1#1 = u0#0",
        "    Filter (t0#0 <> 0)",
    ]
    assert evaluate(optimize(plan), TABLES) == evaluate(plan, TABLES)


def test_filters_are_not_merged_if_the_first_can_be_null_and_the_second_can_fail() -> None:
    """NULL AND x evaluates x: the row with NULL, 0 passes no filter, but under AND it would be divided by."""
    first = resolve("greater", [column(T, 0), number(1)])
    plan = Filter(Filter(T, first), quotient_is_set(T, 1))
    assert evaluate(plan, TABLES) == {(2, 2): 1}
    assert evaluate(optimize(plan), TABLES) == {(2, 2): 1}
    with pytest.raises(DivisionByZero):
        evaluate(Filter(T, conjunction([first, quotient_is_set(T, 1)])), TABLES)


def test_a_projection_that_fails_is_not_computed_before_a_filter_that_stood_before_it() -> None:
    inner = Project(Filter(T, NOT_ZERO), (("q", resolve("divide", [number(1), column(T, 0)])),))
    plan = Filter(inner, resolve("greater", [column(inner, 0), Literal(0.0, DOUBLE)]))
    assert evaluate(optimize(plan), TABLES) == {(0.5,): 1}


def test_folding_keeps_a_constant_that_fails_for_the_rows_that_reach_it() -> None:
    failing = resolve("divide", [number(1), number(0)])
    plan = Project(Filter(T, Literal(False, BOOLEAN)), (("q", failing),))
    assert simplify(Project(T, (("q", failing),))) == Project(T, (("q", failing),))
    assert evaluate(optimize(plan), TABLES) == {}
    with pytest.raises(DivisionByZero):
        evaluate(optimize(Project(T, (("q", failing),))), TABLES)


def test_and_false_does_not_hide_a_failure_before_it() -> None:
    plan = Filter(T, conjunction([quotient_is_set(T, 0), Literal(False, BOOLEAN)]))
    with pytest.raises(DivisionByZero):
        evaluate(optimize(plan), TABLES)


def test_a_filter_above_a_global_aggregate_stays_there() -> None:
    total = Aggregate(T, (), (("n", AggregateCall("count", (), BIGINT, False)),))
    for predicate in (Literal(None, BOOLEAN), resolve("greater", [column(total, 0), number(9)])):
        assert push_filters_down(Filter(total, predicate)) == Filter(total, predicate)
        assert evaluate(optimize(Filter(total, predicate)), TABLES) == {}


def test_a_filter_above_the_null_side_of_an_outer_join_stays_there() -> None:
    join = Join(T, U, "left", ((column(T, 0), column(U, 0)),))
    plan = Filter(join, resolve("is_null", [column(join, 2)]))
    assert push_filters_down(plan) == plan
    equal = Filter(join, resolve("equal", [column(join, 1), column(join, 3)]))
    assert push_filters_down(equal) == equal


def test_only_conditions_that_ignore_the_sign_of_zero_pass_distinct() -> None:
    d = table("d", DOUBLE)
    zero = Literal(0.0, DOUBLE)
    sees = resolve("equal", [cast(column(d, 0), STRING), Literal("0.0", STRING)])
    blind = resolve("less_equal", [column(d, 0), zero])
    assert push_filters_down(Filter(Distinct(d), sees)) == Filter(Distinct(d), sees)
    assert push_filters_down(Filter(Distinct(d), blind)) == Distinct(Filter(d, blind))
    tables = {"d": Relation([((-0.0,), 1)])}
    assert evaluate(optimize(Filter(Distinct(d), sees)), tables) == {(0.0,): 1}


def test_distinct_stays_if_it_can_change_a_zero() -> None:
    keyed = table("k", INT, DOUBLE, key=(0,))
    assert drop_distinct(Distinct(keyed)) == Distinct(keyed)
    assert drop_distinct(Distinct(Project(keyed, (("k", column(keyed, 0)),)))) == Project(keyed, (("k", column(keyed, 0)),))
    least = Aggregate(keyed, (("k", column(keyed, 0)),), (("m", AggregateCall("min", (column(keyed, 1),), DOUBLE, True)),))
    assert drop_distinct(Distinct(least)) == Distinct(least)


def test_unmatched_rows_of_a_full_join_can_be_equal() -> None:
    left, right = (Aggregate(side, (("k", column(side, 0)),), ()) for side in (T, U))
    join = Join(left, right, "full", ((column(left, 0), column(right, 0)),))
    assert drop_distinct(Distinct(join)) == Distinct(join)
    tables = {"t": Relation([((None, 1), 1)]), "u": Relation([((None, 2), 1)])}
    assert evaluate(join, tables) == {(None, None): 2}
    assert drop_distinct(Distinct(Join(left, right, "left", join.keys))) == Join(left, right, "left", join.keys)


def test_top_k_keeps_the_columns_that_break_its_ties() -> None:
    """Those before the last column that is read, unless they are keys or terms."""
    wide = table("w", INT, INT, INT, INT)
    first = TopK(wide, (Order(column(wide, 2)),), 1)
    reads = {0: "w0#0, w2#2", 1: "w0#0, w1#1, w2#2", 2: "w2#2", 3: "w0#0, w1#1, w2#2, w3#3"}
    for index, columns in reads.items():
        plan = optimize(Project(first, (("a", column(wide, index)),)))
        narrow = f"    Project {columns}\n      Table w (w0, w1, w2, w3)" if index != 3 else "    Table w (w0, w1, w2, w3)"
        assert show(plan).split("\n", 2)[2] == narrow, index


def test_top_k_keeps_the_columns_before_a_zero() -> None:
    """Rows with 0.0 and -0.0 tie. The columns before the DOUBLE are compared before its sign, so they decide."""
    wide = table("w", INT, DOUBLE, INT)
    plan = Project(TopK(wide, (Order(column(wide, 1)),), 1), (("d", column(wide, 1)),))
    assert show(optimize(plan)).splitlines()[2] == "    Project w0#0, w1#1"
    rows = {"w": Relation([((2, -0.0, 1), 1), ((1, 0.0, 2), 1)])}
    assert [str(row[0]) for row in evaluate(optimize(plan), rows)] == [str(row[0]) for row in evaluate(plan, rows)] == ["0.0"]


def test_a_window_by_rows_keeps_the_columns_that_break_its_ties() -> None:
    wide = table("w", INT, INT, INT, INT)
    order = (Order(column(wide, 2)),)
    for function, read in (("row_number", "w0#0, w1#1, w2#2"), ("rank", "w1#1, w2#2")):
        window = Window(wide, (), order, (("n", WindowCall(function, INT, False)),))
        plan = Project(window, (("b", column(wide, 1)), ("n", reference(window.schema, 4))))
        assert show(optimize(plan)).splitlines()[2] == f"    Project {read}", function
        rows = {"w": Relation([((2, 5, 1, 7), 1), ((1, 6, 1, 8), 2), ((1, 4, 1, 9), 1), ((0, 0, 0, 0), 1)])}
        assert evaluate(optimize(plan), rows) == evaluate(plan, rows)


def test_an_expression_used_twice_is_not_computed_twice() -> None:
    inner = Project(T, (("s", resolve("add", [column(T, 0), column(T, 1)])),))
    twice = Project(inner, (("a", column(inner, 0)), ("b", resolve("negate", [column(inner, 0)]))))
    assert optimize(twice) == twice
    once = Project(inner, (("b", resolve("negate", [column(inner, 0)])),))
    assert show(optimize(once)) == "Project b := negate((t0#0 + t1#1))\n  Table t (t0, t1)"


def test_readers_of_empty_relations_are_empty() -> None:
    nothing = Filter(U, Literal(False, BOOLEAN))
    keys = ((column(T, 0), column(U, 0)),)
    for kind in ("inner", "semi", "right"):
        assert optimize(Join(T, nothing, kind, keys)) == Values((), Join(T, nothing, kind, keys).schema)
    assert optimize(Join(T, nothing, "anti", keys)) == T
    assert optimize(Union((T, nothing))) == optimize(Project(T, (("t0", column(T, 0)), ("t1", column(T, 1))))) == T
    count = Aggregate(nothing, (), (("n", AggregateCall("count", (), BIGINT, False)),))
    assert evaluate(optimize(count), TABLES) == {(0,): 1}


def test_an_unread_global_aggregate_is_one_row() -> None:
    total = Aggregate(T, (), (("s", AggregateCall("sum", (column(T, 0),), BIGINT, True)),))
    plan = Project(total, (("one", number(1)),))
    assert show(optimize(plan)) == "Project one := 1\n  Values (): 1 rows"
    assert evaluate(optimize(plan), {"t": Relation()}) == {(1,): 1}


def test_only_limits_that_cannot_cut_off_a_row_are_dropped() -> None:
    count = Aggregate(T, (), (("n", AggregateCall("count", (), BIGINT, False)),))
    groups = Aggregate(T, (("k", column(T, 0)),), count.aggregates)
    order = (Order(column(count, 0)),)
    assert optimize(TopK(count, order, 1)) == optimize(count)
    above = Filter(count, resolve("greater", [column(count, 0), number(9)]))
    assert optimize(TopK(above, order, 5)) == optimize(above)
    skipping = (TopK(count, order, 5, offset=1), TopK(count, order, None, offset=1))
    for kept in (TopK(count, order, 0), TopK(groups, order, 5), OverTicks(TopK(count, order, 5), "delay"), *skipping):
        assert drop_limits(kept) == kept
