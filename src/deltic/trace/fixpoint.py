"""A linear recursion over spines, run to its fixed point in one kernel call: distinct over what joins with other relations yield."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from deltic.kernels import fixpoint as kernel
from deltic.kernels import seen
from deltic.kernels.memory import Words
from deltic.kernels.room import fresh
from deltic.trace import interrupts
from deltic.trace.batch import Batch
from deltic.trace.consolidate import overflow
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.workers import ALONE, Workers

DIVIDED_ROWS: Final = 1 << 13
"""So many rows of a tick are derived before it is divided among threads, which begin again: fewer take less time than threads take to
start. After a large tick a quarter of them."""
SHARES: Final = 3
"""Of a divided tick for each thread: the tables of smaller ones are nearer, and their memory is used again."""
_MOST: Final = 2**63 - 1
_NO_ROOM: Final = (np.empty(0, np.int64),) * 2

HASH_KEY: Final = secrets.randbits(63)
"""Of the kernel's hash table, which decides no result."""


class LinearJoin(NamedTuple):
    """X ⋈ another relation, by the first `key` words of both as arranged; one weight each.

    arranged: for each word of X as arranged before its iteration, which word of a row of X it is. derived: for each word of a derived row
    (0 for X or 1 for the other, the word there as arranged).
    """

    key: int
    arranged: tuple[int, ...]
    derived: tuple[tuple[int, int], ...]

    def passes_on(self, word: int) -> bool:
        """Whether what is derived from a row of X has the same word."""
        side, place = self.derived[word]
        return side == 0 and self.arranged[place] == word


class LinearRecursion:
    """X(n+1) = distinct(base ⊎ what the joins derive from X(n)), of rows of `width` words."""

    __slots__ = ("_epoch", "joins", "moves", "passed", "places", "rows", "width")

    moves: Words
    """The words that joins arrange and derive, those of each after `places`."""
    passed: int | None
    """A word that all joins pass on, by which large ticks are divided."""
    rows: int
    """How many rows the largest share of the last tick had: for so many the next large one has room from the start."""

    def __init__(self, width: int, joins: Sequence[LinearJoin]) -> None:
        self.width, self.joins, self.rows, self._epoch = width, tuple(joins), 0, 0
        moves: list[int] = []
        places: list[int] = []
        for join in joins:
            places.append(len(moves))
            moves += [*join.arranged, *(word for pair in join.derived for word in pair)]
        self.moves, self.places = np.array(moves, np.int64), tuple(places)
        # The last of them: a flag of a NULL and the high word of a decimal come before words that tell rows apart.
        self.passed = max((word for word in range(width) if all(join.passes_on(word) for join in joins)), default=None)

    def begin(self, epoch: int) -> None:
        """A tick begins. Those between that are not run here had few rows."""
        if epoch != self._epoch + 1:
            self.rows = 0
        self._epoch = epoch

    def room(self) -> tuple[Words, Words]:
        """Memory for the scratch and the results of a large tick, such as the last one; none after a small one."""
        if self.rows < DIVIDED_ROWS:
            return _NO_ROOM
        rows = 1 << self.rows.bit_length()
        return fresh(rows * kernel.scratch_words(self.width)), fresh(rows * kernel.result_words(self.width))


class Joined(NamedTuple):
    """The relations of a join in a tick.

    recursive: X as it was before, arranged: words, then the iteration. other: the other relation as it is now, `change` included.
    """

    recursive: Spine
    other: Spine
    change: Batch


class Fixpoint(NamedTuple):
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
    recursion: LinearRecursion,
    base: Rows,
    past: Spine,
    joined: Sequence[Joined],
    limit: int,
    rows: Counters,
    joins: Counters,
    workers: Workers = ALONE,
) -> Fixpoint:
    """Iterates a recursion over the changes of one tick.

    base: the change of what is derived at iteration 0. past: derivations of past ticks, words then iteration. joined: the relations of each
    join. limit: how many iterations may change rows. workers: divide large ticks, if the joins pass a word on.
    O(rows derived + the histories of these rows). Raises WeightOverflow.
    """
    batches, directory = past.view
    spines, table, end = [directory], [], len(directory)
    for join, place, (recursive, other, change) in zip(recursion.joins, recursion.places, joined, strict=True):
        (others, of_other), (own, of_own), of_change = other.view, recursive.view, change.entry
        first, second = end + len(of_other), end + len(of_other) + len(of_own)
        table.append((join.key, end, len(others), other.columns, first, len(own), recursive.columns, second, change.length, place))
        spines += (of_other, of_own, of_change)
        end = second + len(of_change)
    directories, tables = np.concatenate(spines), np.array(table, np.int64)
    threads = 1 if recursion.passed is None else workers.threads

    def run(share: int, shares: int, most: int) -> _Share:
        report, division = np.zeros(seen.REPORT, np.int64), np.array((share, shares, recursion.passed or 0, most, _MOST), np.int64)
        scratch, results = recursion.room() if most == _MOST else _NO_ROOM
        given = directories, tables, recursion.moves, base.table, len(base), 0, len(batches), recursion.width, limit
        outcome, derivations, changes, sums, growth = interrupts.run(kernel.fixpoint, *given, division, HASH_KEY, scratch, results, report)
        changed = int(growth[-1] if outcome == kernel.DIVERGED else report[seen.CHANGES])
        derived = _rows(derivations, int(report[seen.DERIVATIONS]))
        return _Share(outcome, derived, _rows(changes, changed), _rows(sums, sums.shape[1]), growth, report)

    shares = [run(0, 1, DIVIDED_ROWS if recursion.rows < DIVIDED_ROWS else DIVIDED_ROWS // 4)]
    if shares[0].outcome == kernel.LARGE_TICK:
        count = SHARES * threads if threads > 1 else 1
        shares = workers.map(lambda share, _: run(share, count, _MOST), range(count))
        if count > 1 and any(share.outcome != kernel.DONE for share in shares):  # the error is that of all rows
            shares = [run(0, 1, _MOST)]
    recursion.rows = max([int(share.report[seen.ROWS]) for share in shares])
    if shares[0].outcome == kernel.OVERFLOW:
        raise overflow("a derivation")
    report = (shares[0].report if len(shares) == 1 else np.sum([share.report for share in shares], axis=0)).tolist()
    rows.touched += report[seen.TOUCHED_ROWS]
    rows.batches += len(batches)
    joins.touched += report[seen.TOUCHED_JOINS]
    joins.batches += sum([len(recursive.batches) + len(other.batches) for recursive, other, _ in joined])
    rows.rows_in, rows.rows_out = report[seen.DERIVATIONS], sum([len(share.changes) for share in shares])
    joins.rows_out = report[seen.DERIVED]
    Spine.count_all_sought([(past, report[seen.SOUGHT_ROWS]), *((other, report[seen.SOUGHT_JOINS]) for _, other, _ in joined)])
    outcome, derivations, changes, sums, growth, _ = shares[0]
    grown, diverged = tuple(growth.tolist()), outcome == kernel.DIVERGED
    if len(shares) == 1:
        return Fixpoint((derivations,), (changes,), (sums,), grown, diverged)
    return Fixpoint(
        _parts([share.derivations for share in shares]),
        _parts([share.changes for share in shares]),
        _parts([share.sums for share in shares]),
        grown,
        diverged,
    )


def _rows(columns: Words, count: int) -> Rows:
    if not count:
        return Rows.empty(len(columns) - 1, 1)
    *words, weights = columns[:, :count]
    return Rows(words, (weights,))


def _parts(shares: list[Rows]) -> tuple[Rows, ...]:
    """The rows of several shares; copied if one has them all, since a batch that shared its arrays would keep all that was lent."""
    full = [rows for rows in shares if rows.length]
    return (full[0].copied(),) if len(full) == 1 else tuple(shares)
