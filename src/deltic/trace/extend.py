"""extend: one more word for many prefixes at once, from several spines: the step of a worst-case optimal join.

A spine is read in one of two versions, as of the last commit or with this tick's change; both are in one directory, which is created once
for all the steps of a tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deltic.kernels import extend as kernel
from deltic.kernels import read
from deltic.kernels.extend import HIGH, LOW, PLAIN, WHOLE
from deltic.kernels.memory import Words
from deltic.kernels.table import addresses
from deltic.trace import interrupts
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate, overflow
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

__all__ = ["HIGH", "LOW", "PLAIN", "WHOLE", "Directories", "Extended", "Measured", "SpineVersion", "extend"]

Measured = tuple[int, ...]
"""A weight of the result: what the product is multiplied with (PLAIN, WHOLE, or HIGH followed by LOW), then for each atom which of its
weights is a factor, -1 for none."""


class SpineVersion(NamedTuple):
    """A spine in one version. entry: the position of its first batch in the directory."""

    spine: Spine
    entry: int


class Extended(NamedTuple):
    """source: the prefix of each row, ascending. words: those bound; meaningless if they were summed over. weights: those wanted."""

    source: Words
    words: Words
    weights: tuple[Words, ...]


class Directories:
    """Spines one after another, each (as of the last commit, with this tick's change)."""

    __slots__ = ("versions", "words")

    def __init__(self, spines: Sequence[tuple[Spine, Batch | None]]) -> None:
        parts: list[Words] = []
        end = 0
        self.versions: list[tuple[SpineVersion, SpineVersion]] = []
        for spine, change in spines:
            new = spine if change is None else spine.with_batch(change)
            self.versions.append((SpineVersion(spine, end), SpineVersion(new, end)))
            parts.append(new.view[1])
            end += len(new.view[1])
        self.words = np.concatenate(parts) if parts else np.empty(0, np.int64)


def extend(
    directories: Directories,
    versions: Sequence[SpineVersion],
    keys: Sequence[Sequence[Words]],
    n: int,
    measures: Sequence[Measured],
    summed: bool,
    counters: Counters,
) -> Extended:
    """The words that every version has in the next column after its key, for each of n prefixes.

    keys: for each version, int64[n] for each leading column that is bound. measures: the weights of the result; none if the word is no
    version's last column. summed: whether they are summed over the words, which are not listed; the word must be every version's last
    column. Rows whose weights are all 0 are omitted, except without measures; then a word whose rows cancel each other may be listed.
    O(n · log state + for each prefix the least of the versions' rows under it · log state). Raises WeightOverflow.
    """
    shared = [i for i, version in enumerate(versions) if version.spine.share is not None]
    if summed and any(_binds_share(versions[i].spine, len(keys[i])) for i in shared):
        return _summed(extend(directories, versions, keys, n, measures, False, counters))
    atoms: list[tuple[int, ...]] = []
    columns: list[Words] = []
    for version, key in zip(versions, keys, strict=True):
        spine = version.spine
        if spine.guards:
            spine.expect(key)
        spine.count_sought(n)
        counters.batches += len(spine.batches)
        atoms.append((version.entry, len(spine.batches), spine.columns, spine.weights, len(key), len(columns)))
        columns += key
    report = np.zeros(read.REPORT, np.int64)
    table = np.array(atoms, np.int64)
    measured = _table(tuple(measures), 1 + len(versions))
    count, out = interrupts.run(kernel.extend, directories.words, table, addresses(columns, n), n, measured, int(summed), report)
    if count < 0:
        raise overflow("the product of the weights of a join")
    counters.touched += int(report[read.TOUCHED])
    result = Extended(out[0, :count], out[1, :count], tuple(out[2:, :count]))
    for i in shared:
        result = _own(result, versions[i].spine, keys[i])
    return result


def among(result: Extended, rows: np.ndarray, *, summed: bool) -> Extended:
    """These rows of the result; summed: their weights are summed over the words."""
    selected = _selected(result, rows)
    return _summed(selected) if summed else selected


@lru_cache(maxsize=1024)
def _table(measures: tuple[Measured, ...], width: int) -> Words:
    return np.array(measures, np.int64).reshape(len(measures), width)


def _binds_share(spine: Spine, bound: int) -> bool:
    """Whether the word after `bound` words is part of the shard key."""
    return spine.share is not None and bound in spine.share.key


def _own(result: Extended, spine: Spine, key: Sequence[Words]) -> Extended:
    """The rows that derive from this shard's rows of the spine, if all words of the shard key are bound; else all."""
    share = spine.share
    assert share is not None
    if any(word > len(key) for word in share.key):
        return result
    words = [result.words if word == len(key) else key[word][result.source] for word in share.key]
    return _selected(result, share.places(words))


def _selected(result: Extended, rows: np.ndarray) -> Extended:
    return Extended(result.source[rows], result.words[rows], tuple(weight[rows] for weight in result.weights))


def _summed(result: Extended) -> Extended:
    """Sums the weights of each prefix."""
    rows = consolidate(Rows((result.source,), result.weights))
    return Extended(rows.columns[0], rows.columns[0], rows.weights)
