"""Where the values of a column are among constants."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.nodes import Constants, lookup_key
from deltic.schema import BOOLEAN

_FEW: Final = 16


def positions(constants: Constants, array: pa.Array) -> np.ndarray:
    """int64[n]: the position of each value among the constants, -1 where it is NULL or not among them.

    Cost: a probe for each row. Where the constants are many times the rows, it is of their own table in Python; else Arrow makes one of
    them for this column.
    """
    if _is_probed(constants, array):
        return _probed(constants, array)
    indices = pc.index_in(array, value_set=pa.array(constants.values, constants.type.arrow), skip_nulls=True)
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def membership(constants: Constants, array: pa.Array) -> pa.Array:
    """BOOLEAN: whether each value is among the constants; FALSE where it is NULL. At the cost of `positions`."""
    if _is_probed(constants, array):
        return pa.array(_probed(constants, array) >= 0)
    return pc.is_in(array, value_set=pa.array(constants.values, constants.type.arrow), skip_nulls=True)


def _is_probed(constants: Constants, array: pa.Array) -> bool:
    return constants.type.is_float or constants.type == BOOLEAN or len(array) * _FEW < len(constants.values)


def _probed(constants: Constants, array: pa.Array) -> np.ndarray:
    """By value, each distinct one once."""
    encoded = array.dictionary_encode()
    table = constants.positions
    probed = np.array([table.get(lookup_key(value), -1) for value in encoded.dictionary.to_pylist()] + [-1], np.int64)
    nowhere = len(probed) - 1
    return probed[np.asarray(encoded.indices.fill_null(nowhere).to_numpy(zero_copy_only=False), np.int64)]
