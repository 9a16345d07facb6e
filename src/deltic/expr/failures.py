"""The errors of evaluation. The interpreter and the column evaluator share these texts.

An error's `row` is the index of the failed row in the batch that was being evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import ArithmeticOverflow, CastFailure, Divergence, DivisionByZero, EvaluationError, NegativeWeight, Span
from deltic.expr.nodes import Call, Value, is_fixed
from deltic.schema import Type

TRY_CAST = "use try_cast to get NULL instead"
IN_PYTHON: Final = "distinct() keeps the rows with a positive weight; weighted() turns the weights into a column"
IN_SQL: Final = "UNION ALL the rows that repeat_row subtracts from; DISTINCT keeps the rows with a positive weight"
"""Remedies for a negative weight, by front end."""
GROWTH: Final = 3
"""How many of the last iterations the error of a divergent recursion reports."""
LONGEST_NAMED: Final = 60
"""Characters of an operand that an error shows."""
SAMPLES: Final = 3
"""How many of the rows that still change the error shows."""


def overflow(what: str, span: Span | None) -> ArithmeticOverflow:
    """An arithmetic overflow. what: a type and an operation, such as "INT addition"."""
    return ArithmeticOverflow(f"arithmetic overflow: {what}", span=span, remedy="cast an operand to a wider type first")


def out_of_calendar(what: str, span: Span | None) -> ArithmeticOverflow:
    """A date or timestamp outside the supported years, 1 to 9999."""
    return ArithmeticOverflow(f"{what} is outside the years 1 to 9999", span=span)


def outside_the_day(what: str, span: Span | None) -> ArithmeticOverflow:
    """A TIME before 00:00:00 or after 23:59:59.999999."""
    return ArithmeticOverflow(f"{what} is outside the day", span=span, expected="a TIME from 00:00:00 to 23:59:59.999999")


def division_by_zero(call: Call) -> DivisionByZero:
    """A call of (dividend, divisor) whose divisor is 0."""
    if is_fixed(call.arguments[1]):
        return DivisionByZero("division by zero", span=call.span, remedy="the divisor is 0 on every row: divide by another value")
    place = call.arguments[1].span
    divisor = "divisor" if place is None else place.text[place.start : place.end]
    if len(divisor) > LONGEST_NAMED or "\n" in divisor:
        divisor = "divisor"
    return DivisionByZero("division by zero", span=call.span, remedy=f"use nullif({divisor}, 0) to get NULL instead")


def malformed(text: str, source: Type, target: Type, span: Span | None) -> CastFailure:
    message = f"the value {text} of type {source.sql} cannot be cast to {target.sql} because it is malformed"
    return CastFailure(message, span=span, remedy=TRY_CAST)


def malformed_by(text: str, pattern: str, span: Span | None, instead: str = "try_to_timestamp") -> CastFailure:
    """Text that a pattern for dates and times does not read. instead: the function that gives NULL."""
    return CastFailure(f"the text {text!r} does not fit the pattern {pattern!r}", span=span, remedy=f"{instead} gives NULL instead")


def cast_overflow(text: str, source: Type, target: Type, span: Span | None) -> CastFailure:
    message = f"the value {text} of type {source.sql} cannot be cast to {target.sql} due to an overflow"
    return CastFailure(message, span=span, remedy=TRY_CAST)


def invalid(message: str, span: Span | None) -> EvaluationError:
    """An invalid argument of a function, on a row."""
    return EvaluationError(message, span=span)


def several_rows(rows: int, span: Span | None) -> EvaluationError:
    """A scalar subquery with more than one row."""
    message = f"the subquery is a value, and has {rows:,} rows"
    remedy = "aggregate its rows, or compare them by their keys; IN and EXISTS take several rows"
    return EvaluationError(message, span=span, expected="at most one row", remedy=remedy)


def too_long(function: str, length: int, most: int, span: Span | None) -> EvaluationError:
    """A result string of `length` characters, more than `most`."""
    message = f"{function} would make a string of {length:,} characters"
    return EvaluationError(message, span=span, expected=f"at most {most:,} characters")


def illegal_sequence(start: object, stop: object, step: int, span: Span | None) -> EvaluationError:
    message = f"a sequence from {start} to {stop} by {step} never ends"
    return EvaluationError(message, span=span, expected="a step towards the end", remedy="generate_series gives no rows there")


def no_step(span: Span | None) -> EvaluationError:
    return EvaluationError("the step of generate_series is 0", span=span, expected="a step other than 0")


def too_many_elements(start: object, stop: object, step: int, most: int, span: Span | None) -> EvaluationError:
    return EvaluationError(f"from {start} to {stop} by {step} there are more than {most:,} elements", span=span, remedy="a larger step")


def negative_weight(row: Sequence[Value], weight: int, place: str, span: Span | None, reason: str = "") -> NegativeWeight:
    """`row` would have the weight `weight` in `place`. span: of the repeat_row; None if the weight comes from Python.

    reason: why weights must not be negative there.
    """
    return NegativeWeight(
        f"the row {shown(row)} would have the weight {weight} in {place}",
        span=span,
        expected="a weight of at least 0 for every row, after all weights are added up" + (reason and f": {reason}"),
        remedy=IN_PYTHON if span is None else IN_SQL,
    )


def no_clock(moments: Sequence[int]) -> EvaluationError:
    """A row counts only from or until one of these moments, in microseconds since 1970 UTC, and the session has no clock."""
    return EvaluationError(
        f"a row has the time {moments[0]} µs, and the session has no clock",
        expected="None as the time of every row, or a session with a clock",
        remedy="session.advance_to(datetime.now(UTC)) first, Session(clock='wall'), or a deltic.Watermark as clock",
    )


def shown(row: Sequence[Value]) -> str:
    """(1, NULL, abc)."""
    return f"({', '.join('NULL' if value is None else str(value) for value in row)})"


def diverged(
    relation: str, limit: int, growth: Sequence[int], samples: Sequence[tuple[Value, ...]], span: Span | None, *, is_set: bool
) -> Divergence:
    """`relation` still changes after `limit` iterations.

    growth: how many distinct rows changed in each of the last GROWTH iterations. samples: at most SAMPLES rows that changed last.
    span: a reference to the relation in the program. is_set: it keeps each row once, so a cycle alone does not go on for ever.
    """
    rows = ", ".join(map(shown, samples))
    return Divergence(
        f"the recursive relation {relation} has not converged after {limit:,} iterations: "
        f"the last ones changed {', '.join(f'{count:,}' for count in growth)} rows, such as {rows}",
        span=span,
        remedy="add a condition that ends it, such as n < 100, or raise the limit"
        + ("" if is_set else "; on cycles, UNION, not UNION ALL, or distinct() in a circuit ends"),
    )


def at_row(error: EvaluationError, row: int) -> EvaluationError:
    """The error with `row` set."""
    error.__dict__["row"] = row
    return error


def row_of(error: EvaluationError) -> int:
    """The error's row."""
    row = error.__dict__["row"]
    assert isinstance(row, int)
    return row
