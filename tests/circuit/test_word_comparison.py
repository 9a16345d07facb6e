"""A comparison of integers on words selects the rows on which the expression is TRUE."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.circuit.operators.word_comparison import rows_where
from deltic.expr import Column, Literal, resolve
from deltic.schema import BIGINT, INT, Field, Schema, Type
from deltic.trace.encoding import Layout, encode
from deltic.trace.identity import Identity
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize(
    ("type", "nullable", "values"),
    [
        (INT, True, [None, -(2**31), -1, 0, None, 7, 2**31 - 1]),
        (INT, False, [-(2**31), 7, 0]),
        (BIGINT, True, [None, LEAST, 0, 7, None, MOST, -1]),
        (BIGINT, False, [LEAST, 7, MOST]),
    ],
)
def test_a_comparison_on_words_is_that_of_the_expression(comparison: str, type: Type, nullable: bool, values: list[Any]) -> None:
    strings, schema = StringTable(Identity.drawn()), Schema((Field("x", type, nullable),))
    columns = encode(pa.array(values, type.arrow), schema[0], strings)
    rows = SelectionVector.of(Rows(columns, (np.ones(len(values), np.int64),)), schema, Layout.of(schema))
    for value in {value for value in values if value is not None}:
        predicate = resolve(comparison, (Column(0, type, nullable, "x"), Literal(value, type)))
        positions = rows_where(predicate, rows)
        assert positions is not None
        assert positions.tolist() == np.flatnonzero(rows.array(predicate, strings).fill_null(False)).tolist()


def test_other_predicates_are_left_to_arrays() -> None:
    schema = Schema((Field("x", INT, True),))
    rows = SelectionVector.of(Rows((np.zeros(1, np.int64),), (np.ones(1, np.int64),)), schema, Layout.of(schema))
    x = Column(0, INT, True, "x")
    assert rows_where(resolve("less", (x, x)), rows) is None
    assert rows_where(resolve("is_null", (x,)), rows) is None
