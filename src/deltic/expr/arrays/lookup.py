"""The positions of a column's values among constants."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays.distinct import encoded
from deltic.expr.nodes import Constants, lookup_key
from deltic.schema import BOOLEAN
from deltic.types import frozen_list

_FEW: Final = 16


def positions(constants: Constants, array: pa.Array) -> np.ndarray:
    """int64[n]: the position of each value among the constants, -1 where it is NULL or not among them.

    Cost: one probe per row. If there are many more constants than rows, it probes the constants' own hash table in Python; otherwise
    Arrow builds a hash table for this call.
    """
    if _is_probed(constants, array):
        return _probed(constants, array)
    indices = pc.index_in(array, value_set=pa.array(constants.values, constants.type.arrow), skip_nulls=True)
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def membership(constants: Constants, array: pa.Array) -> pa.Array:
    """BOOLEAN: whether each value is among the constants; FALSE where it is NULL. Cost: as `positions`."""
    if _is_probed(constants, array):
        return pa.array(_probed(constants, array) >= 0)
    return pc.is_in(array, value_set=pa.array(constants.values, constants.type.arrow), skip_nulls=True)


def _is_probed(constants: Constants, array: pa.Array) -> bool:
    return constants.type.is_float or constants.type.is_nested or constants.type == BOOLEAN or len(array) * _FEW < len(constants.values)


def _probed(constants: Constants, array: pa.Array) -> np.ndarray:
    """The positions, with one probe in Python per distinct value."""
    table = constants.positions
    distinct, codes = encoded(array)
    probed = np.array([table.get(lookup_key(value), -1) for value in frozen_list(distinct)] + [-1], np.int64)
    return probed[np.where(array.is_null().to_numpy(zero_copy_only=False), len(distinct), codes)]
