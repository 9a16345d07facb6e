"""The current edges, distinct and sorted, for peers that compute from scratch."""

from __future__ import annotations

import numpy as np

from benchmarks.checks import Change, Words


class EdgeSet:
    """Edges as `keys`, int64[n], sorted: the source in the upper 32 bits, the target in the lower."""

    def __init__(self) -> None:
        self.keys: Words = np.zeros(0, np.int64)

    def apply(self, edges: Change) -> None:
        """Removes the deleted edges and adds the new ones. Cost: O(n + m log n) for m changes."""
        weight, source, target = edges
        changed = source << 32 | target
        deleted, new = np.sort(changed[weight < 0]), np.sort(changed[weight > 0])
        kept = np.delete(self.keys, np.searchsorted(self.keys, deleted))
        self.keys = np.insert(kept, np.searchsorted(kept, new), new)

    def ends(self) -> tuple[Words, Words]:
        """The sources and the targets."""
        return self.keys >> 32, self.keys & 0xFFFFFFFF
