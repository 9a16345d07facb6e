"""What users' functions answer: one answer is one whatever it holds, and what does not fit is refused as ours, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.errors import EvaluationError, ImpureFunction
from deltic.purity import SHOWN, same, shown

WEST = timezone(timedelta(hours=-12))


def installed(build: Callable[[deltic.Stream], deltic.Stream]) -> list[tuple[Any, ...]]:
    circuit = deltic.Circuit()
    circuit.output("out", build(circuit.input("t", schema={"a": int, "b": int})))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"t": [{"a": 1, "b": 5, "_weight": 1}, {"a": 2, "b": 6, "_weight": 1}]})
        return [tuple(row.values()) for row in session.view("out").rows()]


def mapped(function: Callable[[Any], Any], made: Any) -> list[tuple[Any, ...]]:
    return installed(lambda t: t.map(function, schema={"x": made}))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (float("nan"), float("nan"), True),
        (pa.array([float("nan")]), pa.array([float("nan")]), True),
        ((pa.array([float("nan")]),), (pa.array([float("nan")]),), True),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (pa.array(range(10_000)), pa.array([*range(5_000), 0, *range(5_001, 10_000)]), False),
        (np.array([1, 2]), np.array([1, 3]), False),
        (pa.array([1]), pa.array([1], pa.int32()), False),
        ([1], (1,), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_results_are_compared_by_content(one: object, other: object, equal: bool) -> None:
    assert same(one, other) is equal


@pytest.mark.usefixtures("repeated_calls")
def test_a_function_of_batches_may_answer_nan() -> None:
    def unknown(batch: Any) -> Any:
        return pa.array([float("nan")] * batch.num_rows)

    rows = installed(lambda t: t.map(unknown, schema={"x": float}, on_batches=True))
    assert [repr(row) for row in rows] == ["(nan,)"] * 2


@pytest.mark.usefixtures("repeated_calls")
def test_an_error_shows_how_a_large_answer_begins() -> None:
    with pytest.raises(ImpureFunction) as caught:
        installed(
            lambda t: (
                t.map({"a": "a", "b": "explode(sequence(1, 1000))"})
                .index_with("a")
                .aggregate(lambda group: random.random(), schema={"x": float})
            )
        )
    assert len(str(caught.value)) < 3 * SHOWN and "Row(a=1, b=1)" in str(caught.value)
    assert len(shown("x" * 1000)) == SHOWN + 1


def test_a_group_may_be_answered_by_an_iterator_of_rows() -> None:
    def each(group: Any) -> Iterator[int]:
        return (row.b for row, _ in group)

    assert installed(lambda t: t.index_with("a").aggregate(each, schema={"x": int})) == [(1, 5), (2, 6)]


@pytest.mark.parametrize(
    ("answer", "made", "text"),
    [
        (lambda row: 10**400, float, "returned 1000000"),
        (lambda row: "half \ud800", str, r"returned 'half \\ud800'"),
        (lambda row: datetime(9999, 12, 31, 23, tzinfo=WEST), datetime, "returned datetime.datetime"),
        (lambda row: Decimal("1234567890123456789012345678.12345678901"), "DECIMAL(38,10)", "returned Decimal"),
        (lambda row: Decimal("1." + "0" * 110 + "1"), "DECIMAL(38,10)", "returned Decimal"),
        (lambda row: Decimal("1e999999"), "DECIMAL(38,10)", "returned Decimal"),
        (lambda row: np.array([1, 2]), int, r"returned \[1, 2\]"),
        (lambda row: np.datetime64("2020-01-01"), datetime, "returned "),
        (lambda row: True, "DECIMAL(5,2)", "returned True"),
        (lambda row: (part for part in (1, 2)), int, "returned <generator"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_name(answer: Callable[[Any], Any], made: Any, text: str) -> None:
    with pytest.raises(EvaluationError, match=f"<lambda> {text}") as caught:
        mapped(answer, made)
    assert "expected: " in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "made", "value"),
    [
        (lambda row: np.int64(7), int, 7),
        (lambda row: np.bool_(True), bool, True),
        (lambda row: np.float32(1.5), float, 1.5),
        (lambda row: np.str_("é"), str, "é"),
        (lambda row: 7, "DECIMAL(5,2)", Decimal("7.00")),
        (lambda row: Decimal("0E+40"), "DECIMAL(5,2)", Decimal("0.00")),
        (lambda row: Decimal("1.50000"), "DECIMAL(5,2)", Decimal("1.50")),
        (lambda row: Decimal("12345678901234567890123456789.1"), "DECIMAL(38,1)", Decimal("12345678901234567890123456789.1")),
        (lambda row: datetime(2020, 1, 1, 23, tzinfo=WEST), datetime, datetime(2020, 1, 2, 11, tzinfo=UTC)),
    ],
)
def test_an_answer_that_fits_is_its_value(answer: Callable[[Any], Any], made: Any, value: Any) -> None:
    assert mapped(answer, made) == [(value,)] * 2


@pytest.mark.parametrize(
    ("answer", "made", "text"),
    [
        (lambda n: pa.array([{"a": 1}] * n), int, "an array of struct"),
        (np.arange, int, r"ndarray \[0, 1\]"),
        (lambda n: pa.array([2**62] * n, pa.timestamp("us")), datetime, "outside the years 1 to 9999"),
        (lambda n: pa.array([2**30] * n, pa.date32()), "DATE", "outside the years 1 to 9999"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(answer: Callable[[int], Any], made: Any, text: str) -> None:
    with pytest.raises(EvaluationError, match=text):
        installed(lambda t: t.map(lambda batch: answer(batch.num_rows), schema={"x": made}, on_batches=True))
