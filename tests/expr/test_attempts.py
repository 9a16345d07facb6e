"""attempt(x) is x, and NULL on the rows on which x fails: by rows and by columns."""

from __future__ import annotations

import pyarrow as pa

from deltic.expr.columns import evaluate_columns
from deltic.expr.failing import can_fail
from deltic.expr.functions.attempts import attempt
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Call, Column, Literal
from deltic.schema import BIGINT

MOST = 2**63 - 1


def test_rows_that_fail_are_null() -> None:
    added = Call("add", (Column(0, BIGINT, True, "x"), Literal(1, BIGINT)), BIGINT, True)
    tried = attempt(added)
    assert can_fail(added) and not can_fail(tried)
    for values in ([], [1, 2], [MOST], [MOST, 3, None, MOST, MOST - 1], [None, None]):
        expected = [None if value in (None, MOST) else value + 1 for value in values]
        assert [evaluate(tried, (value,)) for value in values] == expected
        assert evaluate_columns(tried, [pa.array(values, pa.int64())], len(values)).to_pylist() == expected
