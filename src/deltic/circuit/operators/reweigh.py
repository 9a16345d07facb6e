"""distinct_incremental and the set operations: operators that only change the weight of each row.

out = f(old + Δ) − f(old) for every row of Δ, where old are the row's weights in the arrangement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.trace.probe import lookup
from deltic.trace.rows import Rows
from deltic.trace.weights import sums

Rule = OneOf["distinct", "except", "except_all", "intersect", "intersect_all"]


@dataclass(frozen=True, slots=True)
class Reweigh:
    """f is `rule`, of the weight of a row, or of its (left, right) weights for the set operations."""

    arrangement: str
    width: int
    rule: Rule

    @property
    def name(self) -> str:
        return "distinct_incremental" if self.rule == "distinct" else self.rule

    @property
    def eager(self) -> bool:
        return False

    @property
    def weights(self) -> int:
        return 1 if self.rule == "distinct" else 2

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = inputs[0]
        old = lookup(context.old(self.arrangement, self.width, self.weights), delta.columns, context.counters)
        new = sums(old, delta.weights)
        change = weigh(self.rule, new) - weigh(self.rule, old)
        changed = np.flatnonzero(change)
        return Rows(tuple(c[changed] for c in delta.columns), (change[changed],))


def weigh(rule: Rule, weights: Sequence[np.ndarray]) -> np.ndarray:
    """f of the weights, int64[n]."""
    left = weights[0]
    match rule:
        case "distinct":
            return (left > 0).astype(np.int64)
        case "except":
            return ((left > 0) & (weights[1] <= 0)).astype(np.int64)
        case "intersect":
            return ((left > 0) & (weights[1] > 0)).astype(np.int64)
        case "except_all":
            return np.asarray(np.maximum(np.maximum(left, 0) - np.maximum(weights[1], 0), 0))
        case "intersect_all":
            return np.asarray(np.maximum(np.minimum(left, weights[1]), 0))
