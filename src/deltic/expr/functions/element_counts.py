"""sequence_count, generate_series_count, window_starts_count: how many elements a table function returns on a row.

A call fails where the table function does (FlatMap in plan/nodes.py), which is no expression itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.errors import EvaluationError, Span
from deltic.expr.arrays.datum import Datum, array_of, dense, strict_nulls
from deltic.expr.arrays.elements import elements_of
from deltic.expr.functions.signature import any_nullable
from deltic.expr.nodes import Call, Expr, Literal, Value
from deltic.expr.registry import Function, Typed
from deltic.expr.rows.elements import count_of
from deltic.schema import BIGINT

COUNTED: Final = ("sequence", "generate_series", "window_starts")
"""The table functions that can fail on values of their arguments."""


def count_name(function: str) -> str:
    """The function that counts the elements of one of COUNTED."""
    return f"{function}_count"


def _signature(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """The arguments of a FlatMap."""
    return Typed(tuple(arguments), BIGINT, any_nullable(arguments))


def _can_fail(function: str) -> Callable[[Call], bool]:
    def can_fail(call: Call) -> bool:
        values = [argument.value for argument in call.arguments if isinstance(argument, Literal)]
        if len(values) < len(call.arguments):
            return True
        try:
            return None not in values and count_of(function, values) < 0
        except EvaluationError:
            return True

    return can_fail


def _on_row(function: str) -> Callable[..., Value]:
    return lambda call, *values: count_of(function, values, call.span)


def _on_arrays(function: str) -> Callable[..., Any]:
    def counts(call: Call, length: int, *arguments: Datum) -> pa.Array:
        nulls = strict_nulls(*arguments)
        if nulls is True or not length:
            return pa.nulls(length, pa.int64())
        rows = np.flatnonzero(~nulls) if isinstance(nulls, np.ndarray) else np.arange(length)
        values = [dense(argument, length).take(pa.array(rows)) for argument in arguments]
        whole = np.zeros(length, np.int64)
        whole[rows], _ = elements_of(function, values, call.arguments[0].type, len(rows), call.span)
        return array_of(whole, nulls, BIGINT)

    return counts


FUNCTIONS: Final = tuple(
    Function(
        name=count_name(function),
        named=False,
        signature=_signature,
        can_fail=_can_fail(function),
        rows=_on_row(function),
        arrays=_on_arrays(function),
    )
    for function in COUNTED
)
