"""Comparisons of an integer column with a constant, on words: what most filters are, without an array of Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from deltic.circuit.operators.selection_vector import Positions, SelectionVector
from deltic.expr.nodes import Call, Column, Expr, Literal
from deltic.schema import BIGINT, Field
from deltic.trace.encoding import MARKER, Words

_COMPARISONS: Final[dict[str, Callable[..., Any]]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def rows_where(predicate: Expr, rows: SelectionVector) -> Positions | None:
    """The positions of the rows on which the predicate is TRUE; None if it is no such comparison."""
    match predicate:
        case Call(arguments=(Column(index=index) as column, Literal(value=int(value)) as literal)):
            field = rows.schema[index]
            if predicate.function in _COMPARISONS and field.type.is_integer and field.type == column.type == literal.type:
                words = rows.words(index)
                true = _COMPARISONS[predicate.function](words[-1], np.int64(value))
                return np.flatnonzero(true & present(words, field) if field.nullable else true)
    return None


def present(words: Words, field: Field) -> np.ndarray:
    """bool[n]: where an integer of a nullable field is not NULL."""
    return np.asarray(words[0] != (0 if field.type == BIGINT else MARKER))
