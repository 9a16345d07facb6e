"""A linear recursion over spines, run to its fixed point in one kernel call: distinct over what joins with other relations yield."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

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
from deltic.trace.workers import ALONE, Workers

DIVIDED_ROWS: Final = 1 << 13
"""So many rows of a tick are derived before it is divided among threads, which begin again: fewer take less time than threads take to
start."""
_MOST: Final = 2**63 - 1

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

    def passes_on(self, word: int) -> bool:
        """Whether what is derived from a row of X has the same word."""
        side, place = self.derived[word]
        return side == 0 and self.arranged[place] == word


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The results of a tick, in any order, in a part for each share: what was derived, (row, iteration); the changes of X, (row, iteration
    at which joins see them), and their sums by row. diverged: only `changes` is valid, with those of the first iteration beyond the limit,
    and `growth`: how many rows of X changed in each iteration that was run. A tick that diverges is one share.
    """

    derivations: tuple[Rows, ...]
    changes: tuple[Rows, ...]
    sums: tuple[Rows, ...]
    growth: tuple[int, ...]
    diverged: bool


class _Share(NamedTuple):
    """What the kernel says of a share of a tick."""

    outcome: int
    derivations: Rows
    changes: Rows
    sums: Rows
    growth: Words
    report: Words


def fixpoint(
    base: Rows, past: Spine, chains: Sequence[LinearJoin], limit: int, rows: Counters, joins: Counters, workers: Workers = ALONE
) -> Fixpoint:
    """Iterates X(n+1) = distinct(base ⊎ what the chains derive from X(n)) over the changes of one tick.

    base: the change of what is derived at iteration 0. past: derivations of past ticks, words then iteration. limit: how many iterations
    may change rows. workers: divide large ticks, if the chains pass a word on. O(rows derived + the histories of these rows). Raises
    WeightOverflow.
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
    directories, tables = np.concatenate(spines), np.array(table, np.int64).reshape(-1, kernel.CHAIN)
    words = np.array(moves, np.int64)

    # The last of them: a flag of a NULL and the high word of a decimal come before words that tell rows apart.
    passed = max((word for word in range(width) if all(chain.passes_on(word) for chain in chains)), default=None)
    threads = 1 if passed is None else workers.threads

    def run(share: int, shares: int, most: int) -> _Share:
        report, division = np.zeros(seen.REPORT, np.int64), np.array((share, shares, passed or 0, most), np.int64)
        given = directories, tables, words, base.table, len(base), 0, len(past.batches), width, limit, division, _HASH_KEY, report
        outcome, derivations, changes, sums, growth = interrupts.run(kernel.fixpoint, *given)
        changed = int(growth[-1] if outcome == kernel.DIVERGED else report[seen.CHANGES])
        derived = _rows(derivations, int(report[seen.DERIVATIONS]))
        return _Share(outcome, derived, _rows(changes, changed), _rows(sums, sums.shape[1]), growth, report)

    shares = [run(0, 1, DIVIDED_ROWS if threads > 1 else _MOST)]
    if shares[0].outcome == kernel.LARGE_TICK:
        shares = workers.map(lambda share, _: run(share, threads, _MOST), range(threads))
        if any(share.outcome != kernel.DONE for share in shares):  # the error is that of all rows
            shares = [run(0, 1, _MOST)]
    if shares[0].outcome == kernel.OVERFLOW:
        raise overflow("a derivation")
    report = np.sum([share.report for share in shares], axis=0)
    _count(rows, report, seen.TOUCHED_ROWS, [past])
    _count(joins, report, seen.TOUCHED_JOINS, [spine for chain in chains for spine in (chain.other, chain.recursive)])
    rows.rows_in, rows.rows_out = int(report[seen.DERIVATIONS]), sum(len(share.changes) for share in shares)
    joins.rows_out = int(report[seen.DERIVED])
    past.count_sought(int(report[seen.SOUGHT_ROWS]))
    for chain in chains:
        chain.other.count_sought(int(report[seen.SOUGHT_JOINS]))
    return Fixpoint(
        tuple(share.derivations for share in shares),
        tuple(share.changes for share in shares),
        tuple(share.sums for share in shares),
        tuple(shares[0].growth.tolist()),
        shares[0].outcome == kernel.DIVERGED,
    )


def _count(counters: Counters, report: Words, touched: int, spines: Sequence[Spine]) -> None:
    counters.touched += int(report[touched])
    for spine in spines:
        counters.batches += len(spine.batches)


def _rows(columns: Words, count: int) -> Rows:
    *words, weights = columns[:, :count]
    return Rows(words, (weights,))
