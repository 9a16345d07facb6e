"""Lookup keys of which a part is constant: the flag word of a nullable column, where the rows of a change have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from deltic.circuit.operator import Delta

ONE: Final = -1
"""In place of a word's position: the constant 1, which is the flag of every value that is not NULL."""

Keys = tuple[tuple[int, ...], ...]
"""For each side of a join the positions in its change of the words by which the other side is looked up; or (), if they are its first."""


def key_words(change: Delta, positions: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """The words at these positions, each of which may be ONE."""
    return [np.ones(len(change), np.int64) if position == ONE else change.columns[position] for position in positions]
