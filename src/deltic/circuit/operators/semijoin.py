"""semijoin and antijoin: left rows with, or without, a match on the right.

With R(k) the weight of key k on the right and H(x) = 1 if x > 0 else 0, the semijoin is L ⋈ H(R), and its change is
ΔL ⋈ H(R′) + L ⋈ (H(R′) − H(R)): the left arrangement is read only under keys whose presence flips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.keys import Keys, key_words
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.weights import add_checked
from deltic.types import OMITTED


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Left rows whose first `key` words are (or are not, if `anti`) the first words of a row of the right arrangement.

    output: the left words to pass on. left_width, right_width: the number of words of a row of each arrangement. keys: as in JoinOperator.
    """

    left: str
    right: str
    key: int
    left_width: int
    right_width: int
    output: tuple[int, ...]
    anti: bool
    keys: Keys = field(default=(), metadata={OMITTED: True})

    @property
    def right_key(self) -> int:
        """The number of words of the right arrangement's key."""
        return len(self.keys[0]) if self.keys else self.key

    @property
    def name(self) -> str:
        return "antijoin" if self.anti else "semijoin"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        left, right = inputs
        present = context.old(self.right, self.right_width, 1)
        parts = []
        if len(left):
            parts.append(self._new_rows(left, right, present, context))
        if len(right):
            parts.append(self._flipped(right, present, context))
        return Rows.concat(parts) if parts else Rows.empty(len(self.output), 1)

    def _new_rows(self, left: Delta, right: Delta, present: Spine, context: Context) -> Rows:
        keys = key_words(left, self.keys[0]) if self.keys else left.columns[: self.key]
        (count,) = lookup(present.with_batch(as_batch(right)), keys, context.counters)
        keep = np.flatnonzero((count > 0) != self.anti)
        return Rows(tuple(left.columns[i][keep] for i in self.output), (left.weights[0][keep],))

    def _flipped(self, right: Delta, present: Spine, context: Context) -> Rows:
        if self.right_width > self.right_key:
            right = consolidate(Rows(right.columns[: self.right_key], right.weights))
            if not len(right):
                return Rows.empty(len(self.output), 1)
        (before,) = lookup(present, right.columns, context.counters)
        after = add_checked(before, right.weights[0])
        flip = (after > 0).astype(np.int64) - (before > 0)
        flipped = np.flatnonzero(flip)
        sign = -flip[flipped] if self.anti else flip[flipped]
        old = context.old(self.left, self.left_width, 1)
        keys = key_words(right, self.keys[1]) if self.keys else right.columns
        source, columns, weights = probe(old, tuple(c[flipped] for c in keys), self.output, context.counters)
        return Rows(tuple(columns), (weights[0] * sign[source],))
