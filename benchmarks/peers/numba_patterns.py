"""numba: triangles from scratch over sorted adjacency (CSR), a program for this one query.

For every edge the shorter of its ends' lists is walked and searched for in what is left of the longer one, by galloping.
"""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.checks import Change, Words
from benchmarks.engine import Absent, Answer
from benchmarks.peers.edge_set import EdgeSet

View = tuple[Words, ...]


@numba.njit("int64(int64[::1], int64, int64, int64)")
def seek(target: Words, start: int, stop: int, value: int) -> int:
    """The first position from `start` to `stop` that has the value or a greater one; O(log distance)."""
    step = 1
    while start + step < stop and target[start + step] < value:
        start += step
        step *= 2
    stop = min(stop, start + step + 1)
    while start < stop:
        middle = (start + stop) // 2
        if target[middle] < value:
            start = middle + 1
        else:
            stop = middle
    return start


@numba.njit("int64(int64[::1], int64[::1], int64[::1], int64[:, ::1])")
def triangles(first: Words, source: Words, target: Words, out: Words) -> int:
    """How many t(x, y, z) := g(x, y), g(x, z), g(y, z) there are; as many as `out`, int64[k, 3], has room for are written to it."""
    count = 0
    for edge in range(len(source)):
        x, y = source[edge], target[edge]
        short, long = (x, y) if first[x + 1] - first[x] < first[y + 1] - first[y] else (y, x)
        at, stop = first[long], first[long + 1]
        for position in range(first[short], first[short + 1]):
            z = target[position]
            at = seek(target, at, stop, z)
            if at == stop:
                break
            if target[at] == z:
                if count < len(out):
                    out[count, 0], out[count, 1], out[count, 2] = x, y, z
                count += 1
    return count


class Recompute:
    def __init__(self, listed: bool) -> None:
        self.listed = listed
        self.edges = EdgeSet()
        self.out = np.zeros((0, 3), np.int64)

    def prepare(self, edges: Change) -> Change:
        return edges

    def tick(self, prepared: Change) -> View:
        self.edges.apply(prepared)
        source, target = self.edges.ends()
        first = np.searchsorted(source, np.arange(int(max(source.max(initial=0), target.max(initial=0))) + 2))
        count = triangles(first, source, target, self.out)
        if not self.listed:
            return (np.array([count], np.int64),)
        if count > len(self.out):
            self.out = np.zeros((2 * count, 3), np.int64)
            triangles(first, source, target, self.out)
        return tuple(self.out[:count].T)

    def answer(self, read: View) -> Answer:
        return Answer(read, None)


def engine(pattern: str) -> Recompute:
    if not pattern.startswith("triangles"):
        raise Absent("its program is for triangles")
    return Recompute(pattern == "triangles_listed")
