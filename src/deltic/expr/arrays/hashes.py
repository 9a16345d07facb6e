"""Hashes of columns: the row form, once per distinct value and hash of the columns before it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays.datum import Datum, Kernel
from deltic.expr.arrays.distinct import apply_distinct
from deltic.expr.nodes import Call, Value
from deltic.expr.rows.hashes import SEED
from deltic.schema import Type


def folded(run: Callable[[Value, Type, int], int]) -> Kernel:
    """run(value, type, hash of the columns before) of each column in turn; NULL leaves the hash as it is."""

    def kernel(call: Call, length: int, *columns: Datum) -> Datum:
        seed: Datum = pa.scalar(SEED, call.type.arrow)
        for argument, column in zip(call.arguments, columns, strict=True):

            def step(value: Value, seed: int, type: Type = argument.type) -> int:
                return run(value, type, seed)

            if argument.nullable or not isinstance(column, pa.Scalar) or column.is_valid:
                seed = pc.coalesce(apply_distinct(step, (column, seed), length, call.type), seed)
        return seed

    return kernel
