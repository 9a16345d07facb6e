"""A linear recursion over spines, run to its fixed point in one kernel call: distinct over what joins with other relations yield."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.kernels import fixpoint as kernel
from deltic.kernels import seen
from deltic.kernels.memory import Words
from deltic.trace import interrupts
from deltic.trace.batch import Batch
from deltic.trace.consolidate import overflow
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

_HASH_KEY: Final = secrets.randbits(63)
"""Of the kernel's hash table, which decides no result."""


@dataclass(frozen=True, slots=True)
class LinearJoin:
    """X ⋈ other, by the first `key` words of both as arranged; one weight each.

    recursive: X as it was before the tick, arranged: words, then the iteration. arranged: for each of these words, which word of a row of X
    it is. other: the other relation as it is now, `change` included. derived: for each word of a derived row (0 for X or 1 for the other,
    the word there as arranged).
    """

    key: int
    recursive: Spine
    arranged: tuple[int, ...]
    other: Spine
    change: Batch
    derived: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The results of a tick, in any order: what was derived, (row, iteration); the changes of X, (row, iteration at which joins see them),
    and their sums by row. growth: how many rows of X changed in each iteration that was run. diverged: only `changes` is valid, with those
    of the first iteration beyond the limit.
    """

    derivations: Rows
    changes: Rows
    sums: Rows
    growth: tuple[int, ...]
    diverged: bool


def fixpoint(base: Rows, past: Spine, chains: Sequence[LinearJoin], limit: int, rows: Counters, joins: Counters) -> Fixpoint:
    """Iterates X(n+1) = distinct(base ⊎ what the chains derive from X(n)) over the changes of one tick.

    base: the change of what is derived at iteration 0. past: derivations of past ticks, words then iteration. limit: how many iterations
    may change rows. O(rows derived + the histories of these rows). Raises WeightOverflow.
    """
    width = past.columns - 1
    spines = [past.view[1]]
    end = len(past.view[1])
    table: list[tuple[int, ...]] = []
    moves: list[int] = []
    for chain in chains:
        entries = []
        for directory in (chain.other.view[1], chain.recursive.view[1], chain.change.entry):
            entries.append(end)
            spines.append(directory)
            end += len(directory)
        other = entries[0], len(chain.other.batches), chain.other.columns
        recursive = entries[1], len(chain.recursive.batches), chain.recursive.columns
        table.append((chain.key, *other, *recursive, entries[2], len(chain.change), len(moves)))
        moves += [*chain.arranged, *(word for pair in chain.derived for word in pair)]
    report = np.zeros(seen.REPORT, np.int64)
    outcome, derivations, changes, sums, growth = interrupts.run(
        kernel.fixpoint,
        np.concatenate(spines),
        np.array(table, np.int64).reshape(-1, kernel.CHAIN),
        np.array(moves, np.int64),
        base.table,
        len(base),
        0,
        len(past.batches),
        width,
        limit,
        _HASH_KEY,
        report,
    )
    if outcome == kernel.OVERFLOW:
        raise overflow("a derivation")
    _count(rows, report, seen.TOUCHED_ROWS, [past])
    _count(joins, report, seen.TOUCHED_JOINS, [spine for chain in chains for spine in (chain.other, chain.recursive)])
    diverged = outcome == kernel.DIVERGED
    changed = int(growth[-1] if diverged else report[seen.CHANGES])
    rows.rows_in, rows.rows_out, joins.rows_out = int(report[seen.DERIVATIONS]), changed, int(report[seen.DERIVED])
    past.count_sought(int(report[seen.SOUGHT_ROWS]))
    for chain in chains:
        chain.other.count_sought(int(report[seen.SOUGHT_JOINS]))
    return Fixpoint(_rows(derivations, rows.rows_in), _rows(changes, changed), _rows(sums, sums.shape[1]), tuple(growth.tolist()), diverged)


def _count(counters: Counters, report: Words, touched: int, spines: Sequence[Spine]) -> None:
    counters.touched += int(report[touched])
    for spine in spines:
        counters.batches += len(spine.batches)


def _rows(columns: Words, count: int) -> Rows:
    *words, weights = columns[:, :count]
    return Rows(words, (weights,))
