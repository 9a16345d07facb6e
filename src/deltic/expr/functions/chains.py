"""Long chains of operators as one call: `a - b / c …` of 10,000 operands is no deeper than one operator.

A call of `chain` has the arguments (operators, first operand, second operand, …), where the i-th character of the STRING literal
`operators` stands before operand i + 1. Each step is exactly the call of two operands that it replaces: the same types, the same
rounding, the same errors on the same rows.

Operands are evaluated in the order of the nested calls. A division evaluates its divisor before its dividend, which is the rest of the
chain: so first the divisors, from the right; then the first operand; then the other operands and the steps, from the left. After a NULL
nothing is evaluated. Memory: a column for each computed divisor, as in the nested calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.errors import EvaluationError, Span
from deltic.expr.arrays.datum import Datum, Mask, dense, nulls_of
from deltic.expr.columns import Frame, on_arrays, scattered, value_after, value_of
from deltic.expr.failures import at_row, row_of
from deltic.expr.functions.signature import any_nullable
from deltic.expr.interpreter import Row, evaluate
from deltic.expr.nodes import CHAIN, Call, Column, Expr, Literal, Value
from deltic.expr.registry import Function, Nulls, Typed, function_of
from deltic.schema import STRING

NESTED: Final = 100
"""A chain of at most this many operators stays nested; so do those of states that were created before there were chains."""
_OPERATORS: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "÷": "integral_divide", "%": "remainder"}
_SYMBOLS: Final = {function: symbol for symbol, function in _OPERATORS.items()}


def chained(expr: Expr) -> Expr:
    """The expression; if it is a chain of more than NESTED operators that all give its type, as one call. Cost: linear.

    >>> from deltic.expr.registry import resolve
    >>> from deltic.schema import BIGINT
    >>> expr = Column(0, BIGINT, True)
    >>> for _ in range(NESTED + 1):
    ...     expr = resolve("-", [expr, Literal(1, BIGINT)])
    >>> call = chained(expr)
    >>> call.function, len(call.arguments), call.arguments[0].value == "-" * 101
    ('chain', 103, True)
    """
    steps: list[tuple[str, Expr]] = []
    first = expr
    while isinstance(first, Call) and first.function in _SYMBOLS and first.arguments[0].type == first.type:
        steps.extend((_SYMBOLS[first.function], operand) for operand in reversed(first.arguments[1:]))
        first = first.arguments[0]
    if len(steps) <= NESTED:
        return expr
    steps.reverse()
    operands = (first, *(operand for _, operand in steps))
    operators = Literal("".join(symbol for symbol, _ in steps), STRING)
    return Call(CHAIN, (operators, *operands), expr.type, any_nullable(operands), expr.span)


def _signature(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    return Typed(tuple(arguments), arguments[1].type, any_nullable(arguments[1:]))


def _step(call: Call, i: int) -> Call:
    """The call of two operands that argument i completes; its left operand stands for the result of those before."""
    operators, first, last = call.arguments[0], call.arguments[1].span, call.arguments[i].span
    assert isinstance(operators, Literal) and isinstance(operators.value, str)
    left = call.arguments[1] if i == 2 else Column(0, call.type, True)
    span = Span(first.text, first.start, last.end, first.name) if first and last else call.span
    return Call(_OPERATORS[operators.value[i - 2]], (left, call.arguments[i]), call.type, True, span)


def _divisors(call: Call) -> Iterator[int]:
    """The arguments that are evaluated before the first operand, in that order."""
    for i in reversed(range(2, len(call.arguments))):
        if function_of(_step(call, i)).nulls is Nulls.STRICT_BACKWARDS:
            yield i


def _rows(call: Call, row: Row) -> Value:
    divisors: dict[int, Value] = {}
    for i in _divisors(call):
        if (divisor := evaluate(call.arguments[i], row)) is None:
            return None
        divisors[i] = divisor
    value = evaluate(call.arguments[1], row)
    for i, argument in enumerate(call.arguments[2:], 2):
        if value is None or (right := divisors[i] if i in divisors else evaluate(argument, row)) is None:
            return None
        step = _step(call, i)
        value = function_of(step).rows(step, value, right)
    return value


def _arrays(call: Call, frame: Frame) -> Datum:
    divisors: dict[int, Datum] = {}
    nulls: Mask | bool = False
    for i in _divisors(call):
        divisor = value_after(nulls, call.arguments[i], frame)
        if divisor is None:
            return pa.scalar(None, call.type.arrow)
        nulls = nulls | nulls_of(divisor)
        divisors[i] = divisor
    if nulls is False:
        return _steps(call, frame, divisors)
    reached = ~np.asarray(nulls)
    rows = np.flatnonzero(reached)
    selected = {i: divisor.take(pa.array(rows)) if isinstance(divisor, pa.Array) else divisor for i, divisor in divisors.items()}
    try:
        value = dense(_steps(call, frame.narrow(rows), selected), len(rows))
    except EvaluationError as error:
        raise at_row(error, int(rows[row_of(error)])) from None
    return scattered(value, reached)


def _steps(call: Call, frame: Frame, divisors: Mapping[int, Datum]) -> Datum:
    """The chain on rows of which no divisor is NULL."""
    value = value_of(call.arguments[1], frame)
    for i, argument in enumerate(call.arguments[2:], 2):
        right = divisors[i] if i in divisors else value_after(nulls_of(value), argument, frame)
        if right is None or nulls_of(value) is True:
            return pa.scalar(None, call.type.arrow)
        step = _step(call, i)
        value = on_arrays(partial(function_of(step).arrays, step), frame.length, call.type, value, right)
    return value


def _can_fail(call: Call) -> bool:
    steps = (_step(call, i) for i in range(2, len(call.arguments)))
    return any(function_of(step).call_can_fail(step) for step in steps)


FUNCTIONS: Final = (
    Function(name=CHAIN, named=False, signature=_signature, nulls=Nulls.LAZY, can_fail=_can_fail, rows=_rows, arrays=_arrays),
)
