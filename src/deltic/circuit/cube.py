"""HyperCube: the shards that receive a row of a multiway join, so that each result is computed on exactly one, in a single exchange.

The shards are the cells of a grid with a dimension for each shared variable. A result belongs to the cell of its variables' hashes. A row
goes to every cell that agrees with the variables that it has, and meets there everything it joins with, however frequent a value is
(Afrati and Ullman, EDBT 2010). A shard may also hold rows that it received for another part of the join; it does not compute results of
other cells from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from deltic.circuit.operators.linear import Exchange
from deltic.trace.rows import Rows
from deltic.trace.share import Share

Words = npt.NDArray[np.int64]
Placement = tuple[int | None, ...]
"""For each dimension the word of a row that determines its coordinate; None if the row has all coordinates."""

_GOLDEN = 0x9E3779B97F4A7C15
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Cube:
    """The dimensions of a join's grid. relations: the dimensions and the size of each occurrence; all sizes are 1 if they are unknown."""

    dimensions: int
    relations: tuple[tuple[tuple[int, ...], float], ...]

    def shares(self, shards: int) -> tuple[int, ...]:
        """The number of coordinates of each dimension, in the grid of at most `shards` cells that minimizes the rows of the fullest cell.

        >>> edges = tuple((pair, 1.0) for pair in ((0, 1), (0, 2), (1, 2)))
        >>> Cube(3, edges).shares(8), Cube(3, edges).shares(4), Cube(3, edges).shares(1)
        ((2, 2, 2), (1, 2, 2), (1, 1, 1))
        """
        return _shares(self, shards)

    def cell(self, shard: int, shards: int, placed: Sequence[Sequence[Placement]] = ()) -> Cell:
        """The cell of a shard. placed: the placements of each arrangement, if results may be removed on another shard than added; or ()."""
        shares = self.shares(shards)
        whole = bool(placed) and all(any(is_everywhere(each, shares) for each in placements) for placements in placed)
        return Cell(shares, tuple(int(c) for c in np.unravel_index(shard % prod(shares), shares)), whole)


@lru_cache(maxsize=256)
def _shares(cube: Cube, shards: int) -> tuple[int, ...]:
    def load(shares: tuple[int, ...]) -> float:
        return round(sum(size / prod(shares[d] for d in dimensions) for dimensions, size in cube.relations), 9)

    return min(_grids(cube.dimensions, shards), key=lambda shares: (load(shares), shares))


def _grids(dimensions: int, cells: int) -> Iterator[tuple[int, ...]]:
    """All grids of at most `cells` cells."""
    if dimensions == 0:
        yield ()
        return
    for share in range(1, cells + 1):
        yield from ((share, *rest) for rest in _grids(dimensions - 1, cells // share))


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid, by its coordinates. shares: the number of coordinates of each dimension.

    whole: every cell has all rows, as for a self-join on a small grid. Then a result belongs to the cell of the changed row, and words
    bound later need no check. It may be removed by a row of another relation, and then belongs to another cell.
    """

    shares: tuple[int, ...]
    coordinates: tuple[int, ...]
    whole: bool = False

    def divides(self, dimension: int | None) -> bool:
        """Whether results are divided along the dimension."""
        return not self.whole and dimension is not None and self.shares[dimension] > 1

    def started(self, change: Sequence[Words], dimensions: Sequence[int | None]) -> Words:
        """Positions of the rows of a change that a rule starts from in this cell, sorted. dimensions: that of each word."""
        n = len(change[0])
        if self.whole:
            number = int(np.ravel_multi_index(self.coordinates, self.shares))
            return Share(number, prod(self.shares), tuple(range(len(change)))).places(change)
        own = np.ones(n, np.bool_)
        for words, dimension in zip(change, dimensions, strict=True):
            if dimension is not None and self.divides(dimension):
                own &= self._agrees(words, dimension)
        return np.flatnonzero(own)

    def own(self, words: Words, dimension: int) -> Words:
        """Positions of the words that have this cell's coordinate, ascending."""
        return np.flatnonzero(self._agrees(words, dimension))

    def _agrees(self, words: Words, dimension: int) -> npt.NDArray[np.bool_]:
        agrees: npt.NDArray[np.bool_] = coordinates(words, dimension, self.shares[dimension]) == self.coordinates[dimension]
        return agrees


def coordinates(words: Words, dimension: int, share: int) -> npt.NDArray[np.uint64]:
    """The coordinate of each word: uint64[n], each below `share`; the same in every process, and independent of other dimensions."""
    state: npt.NDArray[np.uint64] = words.astype(np.uint64) + np.full(1, (dimension + 1) * _GOLDEN % 2**64, np.uint64)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return (state ^ (state >> np.uint64(31))) % np.uint64(share)


def is_everywhere(placement: Placement, shares: Sequence[int]) -> bool:
    """Whether a row with this placement is in every cell."""
    return all(word is None or share == 1 for word, share in zip(placement, shares, strict=True))


@dataclass(frozen=True, slots=True)
class Replicate(Exchange):
    """Sends each row to every shard that one of its placements in the cube names."""

    cube: Cube
    placements: tuple[Placement, ...]

    @property
    def name(self) -> str:
        return "replicate"

    def route(self, rows: Rows, shards: int) -> list[Rows]:
        """The rows of each shard, in input order."""
        shares = self.cube.shares(shards)
        divided = [[(word, d) for d, word in enumerate(each) if word is not None and shares[d] > 1] for each in self.placements]
        of_rows = {(word, d): coordinates(rows.columns[word], d, shares[d]) for pairs in divided for word, d in pairs}
        routed = []
        for cell in np.ndindex(shares):
            chosen = np.zeros(len(rows), np.bool_)
            for pairs in divided:
                chosen |= np.logical_and.reduce([np.ones(len(rows), np.bool_), *(of_rows[word, d] == cell[d] for word, d in pairs)])
            routed.append(rows if chosen.all() else rows.take(np.flatnonzero(chosen)))
        return [*routed, *([rows.take(np.zeros(0, np.int64))] * (shards - len(routed)))]
