"""The oracle against cases computed by hand."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal

import pytest

from deltic.errors import ArithmeticOverflow
from deltic.expr.nodes import Column, Expr, Literal, Value
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Order,
    OverTicks,
    Plan,
    Project,
    SetKind,
    SetOperation,
    Table,
    TopK,
    Union,
    Values,
)
from deltic.plan.relation import Relation, Row
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, Field, Schema, TableSchema, Type, decimal

NAN, INF = math.nan, math.inf


def relation_of(*types: Type, name: str = "t") -> Table:
    return Table(TableSchema(name, Schema(tuple(Field(f"c{i}", type) for i, type in enumerate(types)))))


def column(plan: Plan, index: int) -> Column:
    field = plan.schema[index]
    return Column(index, field.type, field.nullable, field.name)


def run(plan: Plan, *relations: list[Row] | Mapping[Row, int]) -> Relation:
    """Tables are called t, u in the order given; a list has rows of weight 1."""
    given = [Relation((row, 1) for row in r) if isinstance(r, list) else Relation(r.items()) for r in relations]
    return evaluate(plan, dict(zip("tu", given, strict=False)))


def test_project_and_filter_keep_rows_where_the_predicate_is_true_alone() -> None:
    table = relation_of(BOOLEAN, INT)
    rows: dict[Row, int] = {(True, 1): 2, (False, 2): 1, (None, 3): 1}
    assert run(Filter(table, column(table, 0)), rows) == {(True, 1): 2}
    assert run(Project(table, (("x", Literal(7, INT)),)), rows) == {(7,): 4}


def test_values_and_union_add_weights() -> None:
    one = Values(((1,), (1,), (None,)), Schema((Field("a", BIGINT),)))
    assert run(Union((one, one))) == {(1,): 4, (None,): 2}
    assert run(Values(((),), Schema(()))) == {(): 1}


LEFT: list[Row] = [(1, True, "a"), (1, False, "b"), (2, True, "c"), (None, True, "n")]
RIGHT: list[Row] = [(1, True, "x"), (1, True, "y"), (3, True, "z"), (None, True, "m")]
INNER: list[Row] = [(*LEFT[0], *RIGHT[0]), (*LEFT[0], *RIGHT[1])]
NO_LEFT = [(None, None, None, *row) for row in RIGHT[2:]]
NO_RIGHT = [(*row, None, None, None) for row in LEFT[1:]]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", INNER),
        ("left", INNER + NO_RIGHT),
        ("right", INNER + NO_LEFT),
        ("full", INNER + NO_LEFT + NO_RIGHT),
        ("semi", LEFT[:1]),
        ("anti", LEFT[1:]),
    ],
)
def test_joins_with_a_residual(kind: JoinKind, expected: list[Row]) -> None:
    left, right = relation_of(INT, BOOLEAN, STRING), relation_of(INT, BOOLEAN, STRING, name="u")
    plan = Join(left, right, kind, ((column(left, 0), column(right, 0)),), residual=column(left, 1))
    assert run(plan, LEFT, RIGHT) == Relation((row, 1) for row in expected)


def test_join_weights_multiply_and_a_join_without_keys_is_cross() -> None:
    left, right = relation_of(INT), relation_of(INT, name="u")
    assert run(Join(left, right, "inner"), {(1,): 2}, {(7,): 3, (None,): 1}) == {(1, 7): 6, (1, None): 2}
    assert run(Join(left, right, "full"), {(1,): 2}, {}) == {(1, None): 2}
    assert run(Join(left, right, "semi"), {(1,): 2}, {(7,): 3}) == {(1,): 2}


def test_keys_of_a_join_ignore_the_sign_of_zero_and_nan_matches_nan_but_values_keep_theirs() -> None:
    left, right = relation_of(DOUBLE), relation_of(DOUBLE, name="u")
    plan = Join(left, right, "inner", ((column(left, 0), column(right, 0)),))
    actual = run(plan, [(-0.0,), (NAN,), (None,)], [(0.0,), (NAN,), (None,)])
    assert actual == {(-0.0, 0.0): 1, (NAN, NAN): 1}
    assert actual != {(0.0, 0.0): 1, (NAN, NAN): 1}


@pytest.mark.parametrize(
    ("right", "kept"),
    [
        ([], [(1, 5), (1, None), (2, 5), (None, 5)]),
        ([(1, 6)], [(1, 5), (2, 5), (None, 5)]),  # a NULL value is out where the right side has rows for the key
        ([(1, 5)], [(2, 5), (None, 5)]),
        ([(1, None)], [(2, 5), (None, 5)]),
        ([(1, 6), (2, None)], [(1, 5), (None, 5)]),
        ([(None, 5)], [(1, 5), (1, None), (2, 5), (None, 5)]),  # a NULL key correlates with nothing
    ],
)
def test_not_in(right: list[Row], kept: list[Row]) -> None:
    left, other = relation_of(INT, INT), relation_of(INT, INT, name="u")
    plan = Join(left, other, "not_in", ((column(left, 0), column(other, 0)),), value=(column(left, 1), column(other, 1)))
    assert run(plan, [(1, 5), (1, None), (2, 5), (None, 5)], right) == Relation((row, 1) for row in kept)


def test_not_in_looks_only_at_rows_that_satisfy_the_residual() -> None:
    left, other = relation_of(INT), relation_of(INT, BOOLEAN, name="u")
    plan = Join(left, other, "not_in", residual=Column(2, BOOLEAN, True), value=(column(left, 0), column(other, 0)))
    assert run(plan, [(1,), (2,), (None,)], [(1, True), (None, False), (2, None)]) == {(2,): 1}


def call(function: str, *arguments: Expr, type: Type = BIGINT, distinct: bool = False, where: Expr | None = None) -> AggregateCall:
    return AggregateCall(function, arguments, type, function != "count", distinct, where)


def one(type: Type, values: list[Value] | dict[Value, int], function: str, result: Type, *, distinct: bool = False) -> Value:
    """The value of a global aggregate over a column."""
    table = relation_of(type)
    plan = Aggregate(table, (), (("x", call(function, column(table, 0), type=result, distinct=distinct)),))
    weights = values.items() if isinstance(values, dict) else ((value, 1) for value in values)
    (row,) = evaluate(plan, {"t": Relation(((value,), weight) for value, weight in weights)})
    return row[0]


def test_over_no_rows_an_aggregate_has_a_row_only_without_keys() -> None:
    table = relation_of(INT)
    calls = (("n", call("count")), ("s", call("sum", column(table, 0))), ("m", call("min", column(table, 0), type=INT)))
    assert run(Aggregate(table, (), calls), []) == {(0, None, None): 1}
    assert run(Aggregate(table, (("k", column(table, 0)),), calls), []) == {}
    assert run(Aggregate(table, (), ()), []) == {(): 1}


def test_groups_hold_null_equal_to_null_nan_to_nan_and_zero_to_minus_zero() -> None:
    table = relation_of(DOUBLE, INT)
    plan = Aggregate(table, (("k", column(table, 0)),), (("n", call("count")), ("s", call("sum", column(table, 1)))))
    rows: list[Row] = [(-0.0, 1), (0.0, 2), (0.0, 2), (NAN, 3), (-NAN, 4), (None, None), (None, 5)]
    assert run(plan, rows) == {(0.0, 3, 5): 1, (NAN, 2, 7): 1, (None, 2, 5): 1}


def test_count_distinct_of_several_ignores_tuples_with_a_null() -> None:
    table = relation_of(INT, DOUBLE)
    plan = Aggregate(table, (), (("n", call("count", column(table, 0), column(table, 1), distinct=True)),))
    assert run(plan, [(1, 0.0), (1, 0.0), (1, -0.0), (1, NAN), (2, None), (None, 1.0)]) == {(2,): 1}


def test_filter_of_an_aggregate_counts_rows_on_which_it_is_true() -> None:
    table = relation_of(INT, BOOLEAN)
    where = column(table, 1)
    calls = (("n", call("count", where=where)), ("s", call("sum", column(table, 0), where=where)))
    assert run(Aggregate(table, (), calls), [(1, True), (2, None), (4, False), (None, True)]) == {(2, 1): 1}


def test_sums_of_floats_are_the_exact_sum_rounded_once() -> None:
    assert one(DOUBLE, [1e308, 1e308, -1e308], "sum", DOUBLE) == 1e308
    assert one(DOUBLE, [1e16, 1.0, -1e16], "sum", DOUBLE) == 1.0
    assert one(DOUBLE, [1e308, 1e308], "sum", DOUBLE) == INF
    assert one(DOUBLE, {0.1: 10}, "sum", DOUBLE) == 1.0
    assert one(DOUBLE, [-1e308, -1e308], "sum", DOUBLE) == -INF
    assert math.isnan(one(DOUBLE, [INF, -INF], "sum", DOUBLE))  # type: ignore[arg-type]
    assert math.isnan(one(DOUBLE, [NAN, INF], "sum", DOUBLE))  # type: ignore[arg-type]
    assert one(DOUBLE, [-INF, 1.0], "sum", DOUBLE) == -INF
    assert repr(one(DOUBLE, [-0.0], "sum", DOUBLE)) == "0.0"
    assert one(FLOAT, [0.5, None], "avg", DOUBLE) == 0.5


def test_average_of_integers_casts_each_to_double_first() -> None:
    assert one(BIGINT, [2**53 + 1, 1], "avg", DOUBLE) == 4503599627370496.0
    assert one(INT, [None], "avg", DOUBLE) is None


def test_average_of_decimals_equals_spark() -> None:
    assert one(decimal(10, 2), [Decimal("1.00"), Decimal("0.00"), Decimal("1.00")], "avg", decimal(14, 6)) == Decimal("0.666667")
    assert one(decimal(10, 2), [Decimal("-1.00"), Decimal("0.00"), Decimal("-1.00")], "avg", decimal(14, 6)) == Decimal("-0.666667")
    with pytest.raises(ArithmeticOverflow):
        one(decimal(38, 0), [Decimal(10) ** 37], "avg", decimal(38, 4))


def test_sums_that_leave_their_type_are_errors_and_only_at_the_end() -> None:
    top = 2**63 - 1
    assert one(BIGINT, {top: 3, -top: 2}, "sum", BIGINT) == top
    with pytest.raises(ArithmeticOverflow):
        one(BIGINT, {top: 1, 1: 1}, "sum", BIGINT)
    assert one(BIGINT, {-top: 1, -1: 1}, "sum", BIGINT) == -(2**63)
    nines = Decimal("9" * 38)
    assert one(decimal(38, 0), [nines], "sum", decimal(38, 0)) == nines
    with pytest.raises(ArithmeticOverflow):
        one(decimal(38, 0), [nines, Decimal(1)], "sum", decimal(38, 0))


def test_min_and_max_of_every_kind_of_value() -> None:
    assert one(STRING, ["é", "z", "", "😀"], "max", STRING) == "😀"
    assert one(STRING, ["\uffff", "😀"], "max", STRING) == "😀"  # by bytes: UTF-16 would say otherwise
    assert one(STRING, ["b", "", None], "min", STRING) == ""
    assert one(DOUBLE, [1.0, NAN, INF], "min", DOUBLE) == 1.0
    assert math.isnan(one(DOUBLE, [1.0, NAN, INF], "max", DOUBLE))  # type: ignore[arg-type]
    assert repr(one(DOUBLE, [0.0, -0.0], "min", DOUBLE)) == "-0.0"
    assert repr(one(DOUBLE, [-0.0, 0.0], "max", DOUBLE)) == "0.0"
    assert one(BOOLEAN, [True, False], "min", BOOLEAN) is False
    assert one(DATE, [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1)], "min", DATE) == datetime.date(1969, 12, 31)
    assert one(decimal(38, 2), [Decimal("-1.50"), Decimal("12345678901234567890123456789.25")], "max", decimal(38, 2)) == Decimal(
        "12345678901234567890123456789.25"
    )


def test_sum_and_average_of_distinct_values() -> None:
    assert one(INT, {5: 3, 1: 1}, "sum", BIGINT, distinct=True) == 6
    assert one(DOUBLE, {1.0: 3, 2.0: 1}, "avg", DOUBLE, distinct=True) == 1.5


def test_distinct_and_set_operations_normalise_zero() -> None:
    left, right = relation_of(DOUBLE), relation_of(DOUBLE, name="u")
    rows: list[Row] = [(-0.0,), (-0.0,), (0.0,), (None,), (None,), (NAN,), (1.0,)]
    others: list[Row] = [(0.0,), (-0.0,), (None,), (2.0,)]
    assert run(Distinct(left), rows) == {(0.0,): 1, (None,): 1, (NAN,): 1, (1.0,): 1}
    expected: dict[SetKind, dict[Row, int]] = {
        "except": {(NAN,): 1, (1.0,): 1},
        "except_all": {(0.0,): 1, (None,): 1, (NAN,): 1, (1.0,): 1},
        "intersect": {(0.0,): 1, (None,): 1},
        "intersect_all": {(0.0,): 2, (None,): 1},
    }
    for kind, result in expected.items():
        assert run(SetOperation(left, right, kind), rows, others) == result


def test_top_k_counts_weights_and_breaks_ties_by_the_whole_row() -> None:
    table = relation_of(INT, STRING)
    rows: dict[Row, int] = {(1, "b"): 2, (1, "a"): 2, (None, "z"): 1, (0, "q"): 5}
    ascending, descending = Order(column(table, 0)), Order(column(table, 0), descending=True, nulls_first=False)
    assert run(TopK(table, (ascending,), 3), rows) == {(None, "z"): 1, (0, "q"): 2}
    assert run(TopK(table, (descending,), 3), rows) == {(1, "a"): 2, (1, "b"): 1}
    assert run(TopK(table, (Order(column(table, 0), nulls_first=False),), 10), rows) == rows
    assert run(TopK(table, (Order(column(table, 0), True, True), Order(column(table, 1), True)), 2), rows) == {(None, "z"): 1, (1, "b"): 1}
    assert run(TopK(table, (ascending,), 0), rows) == {}
    assert run(TopK(table, (ascending,), 3, offset=2), rows) == {(0, "q"): 3}
    assert run(TopK(table, (descending,), 2, offset=1), rows) == {(1, "a"): 1, (1, "b"): 1}
    assert run(TopK(table, (ascending,), None, offset=7), rows) == {(1, "a"): 1, (1, "b"): 2}
    assert run(TopK(table, (ascending,), None, offset=11), rows) == {}
    assert run(TopK(table, (), 2), rows) == {(None, "z"): 1, (0, "q"): 1}


def test_top_k_orders_floats_as_spark_does() -> None:
    table = relation_of(DOUBLE, INT)
    rows: list[Row] = [(NAN, 1), (INF, 2), (-INF, 3), (0.0, 5), (-0.0, 4), (None, 6)]
    by_value = (Order(column(table, 0)), Order(column(table, 1), descending=True, nulls_first=False))
    assert run(TopK(table, by_value, 3), rows) == {(None, 6): 1, (-INF, 3): 1, (0.0, 5): 1}
    down = Order(column(table, 0), descending=True, nulls_first=False)
    assert run(TopK(table, (down,), 2), rows) == {(NAN, 1): 1, (INF, 2): 1}


def test_a_view_that_was_evaluated_before_is_not_again() -> None:
    view = Distinct(relation_of(INT))
    plan = Union((view, OverTicks(Distinct(relation_of(INT)), "delay")))
    past = [Moment({}, views={view: Relation([((3,), 1)])})]
    assert evaluate(plan, {}, past=past, views={view: Relation([((2,), 5)])}) == {(2,): 5, (3,): 1}
    assert evaluate(plan, {"t": {(1,): 2}}, past=past) == {(1,): 1, (3,): 1}
