"""INTERVAL literals beyond Spark's bounds, 32 bits of months and 64 bits of microseconds, are refused where they stand, as in Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

import deltic
from deltic.errors import ArithmeticOverflow, TypeMismatch

WITHIN = (
    "INTERVAL '178956970' YEAR",
    "INTERVAL '-178956970' YEAR",
    "INTERVAL 178956970 YEARS",
    "INTERVAL '2147483647' MONTH",
    "INTERVAL '15250284' WEEK",
    "INTERVAL '106751991' DAY",
    "INTERVAL '2562047788' HOUR",
    "INTERVAL '153722867280' MINUTE",
    "INTERVAL '9223372036854.775807' SECOND",
)
BEYOND = (
    "INTERVAL '999999999' YEAR",
    "INTERVAL '99999999999999999999' YEAR",
    "INTERVAL '178956971' YEAR",
    "INTERVAL '-178956971' YEAR",
    "INTERVAL 999999999 YEARS",
    "INTERVAL '2147483648' MONTH",
    "INTERVAL '15250285' WEEK",
    "INTERVAL '106751992' DAY",
    "INTERVAL '2562047789' HOUR",
    "INTERVAL '153722867281' MINUTE",
    "INTERVAL '9223372036854.775808' SECOND",
    "INTERVAL '99999999999999999999' SECOND",
)


@pytest.mark.parametrize("literal", BEYOND)
@pytest.mark.parametrize("column", ["ts", "d"])
def test_an_interval_beyond_the_bounds_is_refused_at_its_place(column: str, literal: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (ts TIMESTAMP, d DATE)")
        with pytest.raises(TypeMismatch, match="the INTERVAL does not fit INTERVAL") as caught:
            session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {column} + {literal} AS x FROM t")
        span = caught.value.span
        assert span is not None and span.text[span.start : span.end] == literal
        assert (caught.value.expected or "").startswith("an interval within")
        assert session.views == ()


@pytest.mark.parametrize("literal", WITHIN)
def test_a_tick_with_an_interval_within_the_bounds_has_an_error_of_deltic_or_none(literal: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (ts TIMESTAMP, d DATE)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT ts + {literal} AS x FROM t WHERE d IS NOT NULL")
        session.apply({"t": [{"ts": None, "d": date(2024, 1, 1), "_weight": 1}]})
        assert session.view("v").rows() == [{"x": None}]
        with pytest.raises(ArithmeticOverflow, match="outside the years 1 to 9999"):
            session.apply({"t": [{"ts": datetime(2024, 1, 1, tzinfo=UTC), "d": date(2024, 1, 1), "_weight": 1}]})


@pytest.mark.slow
@pytest.mark.spark
def test_spark_has_the_same_bounds(spark: Any) -> None:
    accepted = []
    for literal in (*WITHIN, *BEYOND):
        try:
            spark.sql(f"SELECT {literal} AS x")
        except Exception:  # of its parser, of several classes
            continue
        accepted.append(literal)
    assert accepted == list(WITHIN)
