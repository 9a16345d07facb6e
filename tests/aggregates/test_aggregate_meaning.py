"""The semantics of the aggregates, case by case; finish functions round once, for any order of additions."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deltic
from deltic.aggregates import Signature, aggregate_function
from deltic.aggregates.definition import UNIT, Linear, Totals
from deltic.aggregates.exact import decimal_root, nearest_ratio, nearest_root
from deltic.expr.nodes import Value
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TINYINT, Type

D = Signature((DOUBLE,), DOUBLE)
PAIRS = Signature((DOUBLE, DOUBLE), DOUBLE)
INTS = Signature((INT,), INT)
TRUTH = Signature((BOOLEAN,), BOOLEAN)


def value(name: str, signature: Signature, *rows: tuple[Value, ...]) -> Value:
    return aggregate_function(name).reference([(row, 1) for row in rows], signature)


def bits(name: str, type: Type, *values: int) -> Value:
    return value(name, Signature((type,), type), *((each,) for each in values))


def binned(limit: int, *values: int) -> Value:
    return value("histogram_numeric", INTS, *((each, limit) for each in values))


def by(name: str, *rows: tuple[Value, ...]) -> Value:
    return value(name, Signature((INT, STRING), INT), *rows)


CASES = [
    ("the variance of one row", value("var_pop", D, (5.0,)), 0.0),
    ("the sample variance of one row", value("var_samp", D, (5.0,)), None),
    ("the deviation of one row", value("stddev_samp", D, (5.0,)), None),
    ("a variance", value("var_samp", D, (1.0,), (2.0,), (4.0,)), 7 / 3),
    ("a deviation of a population", value("stddev_pop", D, (1.0,), (3.0,)), 1.0),
    ("a variance beyond DOUBLE", value("var_pop", D, (1e308,), (-1e308,)), math.inf),
    ("a deviation within DOUBLE", value("stddev_pop", D, (1e308,), (-1e308,)), 1e308),
    ("a small difference of large numbers", value("var_pop", D, (1e15,), (1e15 + 1,)), 0.25),
    ("a covariance", value("covar_pop", PAIRS, (1.0, 2.0), (3.0, -2.0)), -2.0),
    ("a sample covariance of one row", value("covar_samp", PAIRS, (1.0, 2.0)), None),
    ("a correlation", value("corr", PAIRS, (0.1, -0.3), (0.2, -0.6), (0.4, -1.2)), -1.0),
    ("a correlation of one row", value("corr", PAIRS, (1.0, 2.0)), None),
    ("a correlation with a constant", value("corr", PAIRS, (1.0, 2.0), (1.0, 3.0)), None),
    ("all of some", value("bool_and", TRUTH, (True,), (False,)), False),
    ("any of some", value("bool_or", TRUTH, (True,), (False,)), True),
    ("bits in common", bits("bit_and", TINYINT, -1, 3, -128 + 1), 1),
    ("bits of any", bits("bit_or", TINYINT, 1, -128), -127),
    ("odd bits", bits("bit_xor", TINYINT, -1, 3, -128), 124),
    ("odd bits of equal values", bits("bit_xor", BIGINT, 7, 7), 0),
    ("the value at the least", by("min_by", (1, "b"), (2, "a"), (None, "c")), 2),
    ("the value at the greatest", by("max_by", (1, "b"), (2, "a"), (None, "c")), None),
    ("the least of tied values", by("min_by", (None, "a"), (3, "a"), (2, "a")), 2),
    ("the greatest of tied values", by("max_by", (None, "a"), (3, "a"), (2, "a")), 3),
    ("one bin for each value", binned(3, 3, 3, 1), ((1, 1.0), (3, 2.0))),
    ("the nearest neighbours become one bin", binned(2, 0, 10, 11, 20, 22), ((7, 3.0), (21, 2.0))),
    ("the first of the nearest neighbours", binned(2, 20, 10, 0), ((5, 2.0), (20, 1.0))),
    (
        "the most frequent, then the least",
        value("approx_top_k", INTS, *((x,) for x in (3, 1, 2, 3, 2, None))),
        ((2, 2), (3, 2), (1, 1), (None, 1)),
    ),
    ("NULL at all of the tied", by("max_by", (None, "b"), (3, "a")), None),
]


@pytest.mark.parametrize(("actual", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_values(actual: Value, expected: Value) -> None:
    assert actual == expected
    assert actual.__class__ is expected.__class__


@pytest.mark.parametrize("name", ["var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr"])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_give_nan(name: str, odd: float) -> None:
    width = aggregate_function(name).parameters[0]
    actual = value(name, PAIRS if width == 2 else D, (1.0,) * width, (odd, 2.0)[:width])
    assert isinstance(actual, float) and math.isnan(actual)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1.0, 1.0)], (0.0, 0.0, 0.0, None, None, None)),
        ([(1.0, NAN), (3.0, 2.0)], (NAN, 2.0, NAN, NAN, NAN, NAN)),
        ([(NAN, 1.0), (2.0, 3.0)], (2.0, NAN, NAN, NAN, NAN, NAN)),
        ([(NAN, 1.0), (2.0, 1.0)], (0.0, NAN, NAN, None, None, None)),
        ([(1.0, INF), (1.0, 2.0)], (NAN, 0.0, NAN, NAN, NAN, 1.0)),
        ([(-INF, 1.0), (3.0, 2.0)], (0.5, NAN, NAN, NAN, NAN, NAN)),
        ([(1.0, NAN)], (NAN, 0.0, NAN, NAN, NAN, 1.0)),
        ([(NAN, NAN), (1.0, 2.0)], (NAN, NAN, NAN, NAN, NAN, NAN)),
    ],
)
def test_regressions_read_the_arguments_that_they_need(rows: list[tuple[float, float]], expected: tuple[float | None, ...]) -> None:
    """As in Spark; the row (5, 7), inserted and deleted, leaves no trace."""
    names = [f"regr_{name}" for name in ("sxx", "syy", "sxy", "slope", "intercept", "r2")]
    assert repr([value(name, PAIRS, *rows) for name in names]) == repr([*expected])
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, y DOUBLE, x DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT "
            + ", ".join(f"{name}(y, x) AS {name}" for name in names)
            + " FROM t; INSERT INTO t VALUES (-1, 5, 7), (-2, NULL, 8)"
        )
        with session.transaction() as tx:
            tx.insert("t", [{"id": i, "y": y, "x": x} for i, (y, x) in enumerate(rows)])
        session.sql("DELETE FROM t WHERE id = -1")
        assert repr([*session.view("v").rows()[0].values()]) == repr([*expected])


def test_regressions_of_one_argument_read_its_distinct_values() -> None:
    """As in Spark: those of the pairs without NULL; the others read distinct pairs."""
    calls = [f"regr_{name}(DISTINCT y, x)" for name in ("sxx", "syy", "avgx", "avgy", "sxy", "count")]
    with deltic.Session() as session:
        session.sql(
            f"CREATE TABLE t (id INT PRIMARY KEY, y DECIMAL(5, 1), x INT); CREATE MATERIALIZED VIEW v AS SELECT {', '.join(calls)} FROM t; "
            "INSERT INTO t VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 5), (5, 4, 5), (6, NULL, 77), (7, 88, NULL)"
        )
        assert [*map(str, session.view("v").rows()[0].values())] == ["8.0", "5.0", "3.0", "2.50000", "6.0", "4"]
        session.sql("DELETE FROM t WHERE id IN (1, 4)")
        assert [*map(str, session.view("v").rows()[0].values())] == ["8.0", "2.0", "3.0", "3.00000", "4.0", "3"]


def test_a_correlation_never_leaves_its_range() -> None:
    rows = [(0.1 * i, 0.3 * i) for i in range(1, 50)]
    assert value("corr", PAIRS, *rows) == pytest.approx(1.0) and value("corr", PAIRS, *rows) <= 1.0  # type: ignore[operator]


def totals(rows: list[tuple[float, ...]]) -> Totals:
    """The five sums of CORR, as an engine keeps them, in digits without carries."""

    def digits(number: Fraction, degree: int) -> dict[int, int]:
        return {-34 * degree: int(number * 2 ** (degree * UNIT))}

    sums = [sum((Fraction(row[i]) for row in rows), Fraction(0)) for i in (0, 1)]
    products = [sum((Fraction(row[i]) * Fraction(row[j]) for row in rows), Fraction(0)) for i, j in ((0, 1), (0, 0), (1, 1))]
    return Totals(len(rows), (*(digits(each, 1) for each in sums), *(digits(each, 2) for each in products)))


@given(st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2), min_size=1, max_size=8))
def test_finish_equals_the_reference(rows: list[tuple[float, ...]]) -> None:
    known = totals(rows)
    for name, sums in {
        "var_pop": (0, 3), "var_samp": (0, 3), "stddev_pop": (0, 3), "stddev_samp": (0, 3), "covar_pop": (0, 1, 2),
        "covar_samp": (0, 1, 2), "corr": (0, 1, 2, 3, 4),
    }.items():  # fmt: skip
        function = aggregate_function(name)
        assert isinstance(function.state, Linear) and callable(function.state.finish)
        signature = D if len(sums) == 2 else PAIRS
        arguments = [row[: function.parameters[0]] for row in rows]
        finished = function.state.finish(Totals(known.count, tuple(known.digits[i] for i in sums)), signature)
        assert repr(finished) == repr(value(name, signature, *arguments)), name


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20))
def test_deviations_equal_the_statistics_module(values: list[int]) -> None:
    rows = [(float(each),) for each in values]
    assert value("stddev_samp", D, *rows) == pytest.approx(statistics.stdev(values))
    assert value("var_pop", D, *rows) == pytest.approx(statistics.pvariance(values))


@given(st.integers(0, 2**4000), st.integers(1, 2**4000))
def test_roots_are_rounded_once(numerator: int, denominator: int) -> None:
    """Both algorithms for the root agree, and no double is nearer."""
    root = nearest_root(numerator, denominator)
    assert root == decimal_root(Fraction(numerator, denominator))
    if 0.0 < root < math.inf:
        square = Fraction(numerator, denominator)
        for other in (math.nextafter(root, 0.0), math.nextafter(root, math.inf)):
            if other < math.inf:
                middle = (Fraction(root) + Fraction(other)) / 2
                assert (middle**2 <= square) if other < root else (square <= middle**2)


def test_ratios_beyond_the_greatest_double_are_infinite() -> None:
    assert nearest_ratio(10**400, 1) == math.inf
    assert nearest_ratio(-(10**400), 1) == -math.inf
    assert nearest_ratio(10**400, -1) == -math.inf
    assert nearest_ratio(1, 10**400) == 0.0


def test_sums_do_not_drift() -> None:
    """Deleted large values leave no residue."""
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE t (id INT PRIMARY KEY, x DOUBLE, y DOUBLE);
            CREATE MATERIALIZED VIEW v AS SELECT stddev(x) AS s, corr(x, y) AS r, covar_samp(x, y) AS c FROM t;
        """)
        rows = [{"id": i, "x": 0.1 * i, "y": 0.3 * i * i} for i in range(5)]
        with session.transaction() as tx:
            tx.insert("t", rows)
        before = session.view("v").rows()
        for round in range(20):
            with session.transaction() as tx:
                tx.insert("t", [{"id": 100 + i, "x": 1e300 * (i + round), "y": -3.7e-200 / (i + 1)} for i in range(10)])
            with session.transaction() as tx:
                tx.delete("t", list(range(100, 110)))
        assert session.view("v").rows() == before
        assert before[0]["s"] == statistics.stdev(row["x"] for row in rows)
