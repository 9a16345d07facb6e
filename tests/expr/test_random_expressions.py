"""Random expressions over random rows: the column evaluator equals the interpreter, errors and the rows they arise on included."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltic.errors import QueryError
from deltic.expr.functions import resolve
from deltic.expr.nodes import Value
from deltic.intervals import UNITS, interval_of
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    INT,
    INTEGER_BITS,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_TO_MONTH,
    Type,
    decimal,
    interval,
    time_type,
)
from deltic.types import INTERVALS as INTERVAL_NAMES
from deltic.types import PLAIN
from expr_check import check
from expr_terms import COLUMN, COLUMNS, Term, call, casting, choose, infix, literal, prefix

INTERVALS = tuple(PLAIN[name] for name in INTERVAL_NAMES)
_SYMBOLS = ("+", "-", "*", "/", "%", "div", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "||", "&", "|", "^")
_CALLS = {
    "pmod": 2, "abs": 1, "ceil": 1, "floor": 1, "sign": 1, "sqrt": 1, "round": 1, "isnan": 1, "coalesce": 2, "nullif": 2, "nvl2": 3,
    "greatest": 2, "least": 2, "upper": 1, "lower": 1, "length": 1, "substring": 3, "left": 2, "right": 2, "concat_ws": 3,
    "trim": 1, "replace": 3, "lpad": 2, "instr": 2, "locate": 3, "startswith": 2, "contains": 2, "reverse": 1, "year": 1, "month": 1,
    "dayofweek": 1, "weekofyear": 1, "hour": 1, "second": 1,
    "make_time": 3, "time_trunc": 2, "time_diff": 3, "time_from_seconds": 1, "time_from_micros": 1, "time_to_millis": 1, "minute": 1,
    "make_timestamp_ntz": 2, "make_dt_interval": 4, "make_ym_interval": 2, "try_add": 2, "try_divide": 2, "typeof": 1, "hash": 2,
    "array": 2, "struct": 2, "size": 1, "try_element_at": 2, "sort_array": 1, "array_distinct": 1, "array_contains": 2, "concat": 2,
    "string": 1,
    "date_add": 2, "datediff": 2, "add_months": 2, "last_day": 1, "trunc": 2,
    "date_trunc": 2, "make_date": 3, "unix_timestamp": 1, "power": 2, "ln": 1, "bround": 1, "ascii": 1, "split_part": 3,
}  # fmt: skip
_TARGETS = (
    BOOLEAN,
    INT,
    BIGINT,
    DOUBLE,
    decimal(12, 3),
    decimal(38, 6),
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TIME,
    time_type(0),
    *INTERVALS,
)
_CONSTANTS = (
    literal(0, INT), literal(1, INT), literal(-3, INT), literal(2.5, DOUBLE), literal(float("nan"), DOUBLE), literal("a", STRING),
    literal("12", STRING), literal("month", STRING), literal(None, INT), literal(True, BOOLEAN), literal(Decimal("1.50"), decimal(3, 2)),
    literal(datetime.date(2020, 2, 29), DATE), literal(2**63 - 1, BIGINT), literal(datetime.timedelta(days=3), DAYS),
    literal(datetime.timedelta(seconds=-1.5), interval("SECOND", "SECOND")), literal(14, YEAR_TO_MONTH),
    literal(-2, interval("MONTH", "MONTH")), literal(datetime.time(23, 59, 59, 500_000), TIME), literal("hour", STRING),
)  # fmt: skip


@st.composite
def terms(draw: st.DrawFn, depth: int = 3) -> Term:
    """A tree of operators, functions, casts, CASE and IN; what has no type falls back to one of its parts."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([*COLUMN.values(), *_CONSTANTS]))
    parts = [draw(terms(depth - 1)) for _ in range(3)]
    kind = draw(st.sampled_from(("symbol", "symbol", "call", "call", "cast", "case", "in", "not", "null")))
    try:
        return _made(draw, kind, parts)
    except QueryError:
        return parts[0]


def _made(draw: st.DrawFn, kind: str, parts: list[Term]) -> Term:
    match kind:
        case "symbol":
            return infix(draw(st.sampled_from(_SYMBOLS)), parts[0], parts[1])
        case "call":
            name = draw(st.sampled_from(sorted(_CALLS)))
            return call(name, *parts[: _CALLS[name]])
        case "cast":
            return casting(parts[0], draw(st.sampled_from(_TARGETS)), lenient=draw(st.booleans()))
        case "case":
            return choose(casting(parts[0], BOOLEAN, lenient=True), parts[1], parts[2])
        case "in":
            return Term(f"({parts[0].sql} IN ({parts[1].sql}, {parts[2].sql}))", resolve("in", [part.expr for part in parts]))
        case "not":
            return prefix("NOT", "not", parts[0])
        case _:
            return Term(f"({parts[0].sql} IS NULL)", resolve("is_null", [parts[0].expr]))


def values(type: Type, edges: tuple[Value, ...]) -> st.SearchStrategy[Value]:
    """NULL, an edge value, or any value of the type."""
    if type.is_integer:
        half = 1 << (INTEGER_BITS[type.name] - 1)
        anything: st.SearchStrategy[Value] = st.integers(-half, half - 1)
    elif type.is_interval:
        unit = UNITS[type.fields[1]]
        half = ((1 << 63) - 1 if type.is_day_time else (1 << 31) - 1) // unit
        anything = st.integers(-half, half).map(lambda number: interval_of(number * unit, type))
    elif type.name == "ARRAY":
        anything = st.lists(values(type.parts[0].type, (1,)), max_size=4).map(tuple)
    elif type.name == "STRUCT":
        anything = st.tuples(*(values(part.type, (None,)) for part in type.parts))
    elif type.is_decimal:
        most = 10**type.precision - 1
        anything = st.integers(-most, most).map(lambda units: Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -type.scale)))
    else:
        anything = {
            "BOOLEAN": st.booleans(),
            "FLOAT": st.floats(width=32),
            "DOUBLE": st.floats(),
            "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
            "BINARY": st.binary(max_size=6),
            "TIMESTAMP_NTZ": st.datetimes(),
            "DATE": st.dates(),
            "TIME": st.times(),
            "TIMESTAMP": st.datetimes(timezones=st.just(datetime.UTC)),
        }[type.name]
    return st.one_of(st.none(), st.sampled_from(edges), st.sampled_from(edges), anything)


ROW = st.tuples(*(values(type, tuple(edges)) for _, type, edges in COLUMNS))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(terms(), st.lists(ROW, max_size=6))
def test_random_expressions(term: Term, rows: list[tuple[Value, ...]]) -> None:
    check(term, rows)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(terms(4), st.lists(ROW, max_size=12))
def test_many_random_expressions(term: Term, rows: list[tuple[Value, ...]]) -> None:
    check(term, rows)
