"""Long chains of +, - and * as one call: `a - b + c …` of 10,000 operands is no deeper than one operator.

A call of `chain` has the arguments (operators, first operand, second operand, …), where the i-th character of the STRING literal
`operators` stands before operand i + 1. It is evaluated from the left, and each step is exactly the call of two operands that it
replaces: the same types, the same rounding, the same errors on the same rows.

Division is not part of a chain: it evaluates its divisor first, so it is not a step from the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from deltic.errors import Span
from deltic.expr.arrays.datum import Datum, nulls_of
from deltic.expr.columns import Frame, on_arrays, value_after, value_of
from deltic.expr.functions.signature import any_nullable
from deltic.expr.interpreter import Row, evaluate
from deltic.expr.nodes import CHAIN, Call, Column, Expr, Literal, Value
from deltic.expr.registry import Function, Nulls, Typed, function_of
from deltic.schema import STRING

NESTED: Final = 100
"""A chain of at most this many operators stays nested; so do those of states that were created before there were chains."""
_OPERATORS: Final = {"+": "add", "-": "subtract", "*": "multiply"}
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


def _rows(call: Call, row: Row) -> Value:
    value = evaluate(call.arguments[1], row)
    for i, argument in enumerate(call.arguments[2:], 2):
        if value is None or (right := evaluate(argument, row)) is None:
            return None
        step = _step(call, i)
        value = function_of(step).rows(step, value, right)
    return value


def _arrays(call: Call, frame: Frame) -> Datum:
    value = value_of(call.arguments[1], frame)
    for i, argument in enumerate(call.arguments[2:], 2):
        right = value_after(nulls_of(value), argument, frame)
        if right is None:
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
