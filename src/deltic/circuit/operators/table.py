"""source: a stream, or a base table, which turns pending rows (circuit/pending.py) into an exact change, or rejects them all.

The output is the table's change, sorted with the primary key first. All checks happen here: deletes of absent rows, and primary keys that
are already present.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.arrange import check_sums
from deltic.circuit.pending import DELETE_KEY, DELETE_ROW, INSERT, UNORDERED, UPDATE, WEIGHT, PendingRows
from deltic.errors import AbsentRow, DataError, DuplicateKey, shortened
from deltic.schema import Forms, TableSchema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode
from deltic.trace.probe import lookup
from deltic.trace.resolve import NONE, refused, resolve
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = Sequence[np.ndarray]
_REMEDIES: Final = {
    UPDATE: "use upsert if a row may be new",
    DELETE_KEY: "check the key, or leave out the delete",
    DELETE_ROW: "check the row, or delete by key if only the key is known",
}
"""By operation on a row that a table with a primary key lacks."""
CHECKED_AT_ONCE: Final = 1 << 18
"""About so many rows of a change are checked against the table at once."""


@dataclass(frozen=True, slots=True)
class TableInput:
    """The source node of a table.

    order: the word columns of the user's schema in stored order, primary key first. key: the number of words of the key (0: a multiset,
    whose rows are their own key). forms: of a table that was altered; () of others.
    """

    table: TableSchema
    arrangement: str
    order: tuple[int, ...]
    key: int
    forms: Forms = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        return "source"

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        stored = context.state[self.arrangement]
        if context.backfill:
            whole = stored.scan(context.counters)
            context.append(self.arrangement, whole)
            return whole
        pending = PendingRows(inputs[0])
        if not len(pending):
            return Rows.empty(len(self.order), 1)
        words, ops = pending.words, pending.ops
        columns = tuple(words[i] for i in self.order)
        if self._commute(ops):
            delta = consolidate(Rows(columns, (pending.weights,)))
            self._check_weights(delta, stored, pending, context)
        else:
            delta = self._resolve(columns, pending, stored, context)
        if not self.key:
            check_sums(delta, self.arrangement, context)
        context.append(self.arrangement, delta)
        return delta

    def _commute(self, ops: np.ndarray) -> bool:
        """Whether the order of the changes does not matter, and their weights are those of the rows: also if a table without key is only
        inserted into, whose rows may then be there already."""
        return bool(ops[0] == WEIGHT or (ops[0] == INSERT and not self.key)) and bool((ops == ops[0]).all())

    def _check_weights(self, delta: Batch, stored: Spine, pending: PendingRows, context: Context) -> None:
        """Checks that after the tick no row has a negative weight, and no key has two rows.

        Weights have no order, so no one row is refused: the error lists none.
        """
        (weights,) = delta.weights
        removed = (weights < 0).nonzero()[0]
        if len(removed):
            (old,) = lookup(stored, [c[removed] for c in delta.columns], context.counters)
            if (short := old + weights[removed] < 0).any():
                raise self._absent([c[removed[short][:1]] for c in delta.columns], context, pending)
        if not self.key:
            return
        for part in _whole_keys(delta, self.key):
            key = part.columns[: self.key]
            first = firsts(key)
            net = np.add.reduceat(part.weights[0], first)
            new = (net > 0).nonzero()[0]
            if len(new):
                keys = [c[first[new]] for c in key]
                (old,) = lookup(stored, keys, context.counters)
                if (twice := old + net[new] > 1).any():
                    raise self._duplicate([c[twice][:1] for c in keys], context, pending)

    def _resolve(self, columns: Words, pending: PendingRows, stored: Spine, context: Context) -> Batch:
        """The change made by a sequence of operations, each of which sees those before it."""
        if self.key:
            return self._resolve_keyed(columns, pending, stored, context)
        by_row = np.lexsort((pending.ordinals, *reversed(columns)))
        rows, ops, ordinals = [c[by_row] for c in columns], pending.ops[by_row], pending.ordinals[by_row]
        first = np.zeros(len(ops), bool)
        first[firsts(rows)] = True
        # Inserts of a row commute, and so do deletes: only the order of an insert and a delete matters.
        tied = ~first[1:] & (ordinals[1:] == ordinals[:-1]) & (ops[1:] != ops[:-1])
        if tied.any():
            row = int(np.flatnonzero(tied)[0])
            raise self._unordered([c[row : row + 1] for c in rows], int(ordinals[row]), context)
        return self._resolve_multiset(rows, ops, ordinals, first, stored, context)

    def _resolve_multiset(
        self, rows: Words, ops: np.ndarray, ordinals: np.ndarray, first: np.ndarray, stored: Spine, context: Context
    ) -> Batch:
        change = np.where(ops == INSERT, 1, -1)
        starts = np.flatnonzero(first)
        (old,) = lookup(stored, [c[starts] for c in rows], context.counters)
        group = np.cumsum(first) - 1
        running = np.cumsum(change)
        running = running - (running[starts] - change[starts])[group] + old[group]
        if (bad := np.flatnonzero(running < 0)).size:
            row = bad[np.argmin(ordinals[bad])]
            error = self._absent([c[row : row + 1] for c in rows], context, ordinal=int(ordinals[row]))
            raise self._with_refused(error, rows, ops, ordinals, stored, context)
        return consolidate(Rows(tuple(rows), (change.astype(np.int64),)))

    def _resolve_keyed(self, columns: Words, pending: PendingRows, stored: Spine, context: Context) -> Batch:
        resolved = resolve(columns, pending.ops, pending.ordinals, self.key, stored, context.counters)
        absent, duplicate, tied = resolved.absent, resolved.duplicate, resolved.tied
        if absent == duplicate == tied == NONE:
            return resolved.change
        ordinals = pending.ordinals
        if tied != NONE:
            raise self._unordered([c[tied : tied + 1] for c in columns[: self.key]], int(ordinals[tied]), context)
        if absent == NONE or (duplicate != NONE and ordinals[duplicate] < ordinals[absent]):
            error = self._refusal(duplicate, columns, pending.ops, ordinals, context)
        else:
            error = self._refusal(absent, columns, pending.ops, ordinals, context)
        raise self._with_refused(error, columns, pending.ops, ordinals, stored, context)

    def _with_refused(
        self, error: DataError, columns: Words, ops: np.ndarray, ordinals: np.ndarray, stored: Spine, context: Context
    ) -> DataError:
        """The error of the first operation that is refused, with the others that the tick is to list."""
        if most := context.tick.listed:
            listed = refused(columns, ops, ordinals, self.key, stored, context.counters, most)
            error.refused = tuple((int(ordinals[i]), shortened(self._refusal(i, columns, ops, ordinals, context).message)) for i in listed)
        return error

    def _refusal(self, i: int, columns: Words, ops: np.ndarray, ordinals: np.ndarray, context: Context) -> DataError:
        """The error of the i-th operation."""
        op, ordinal = int(ops[i]), int(ordinals[i])
        if op == INSERT:
            return self._duplicate([c[i : i + 1] for c in columns[: self.key]], context, ordinal=ordinal)
        width = len(columns) if op == DELETE_ROW or not self.key else self.key
        return self._absent([c[i : i + 1] for c in columns[:width]], context, ordinal=ordinal, op=op)

    def _show(self, words: Words, context: Context) -> str:
        """The row as 'id=3, customer=7'. words: its first words in stored order."""
        layout = Layout.of(self.table.schema)
        by_word = {word: words[i] for i, word in enumerate(self.order[: len(words)])}
        shown = []
        for i, column in enumerate(self.table.schema):
            cells = [by_word.get(w) for w in range(layout.slices[i].start, layout.slices[i].stop)]
            if all(cell is not None for cell in cells):
                value = decode([c for c in cells if c is not None], column, context.strings)[0].as_py()
                shown.append(f"{column.name}={'NULL' if value is None else repr(value) if isinstance(value, str) else value}")
        return ", ".join(shown)

    def _find(self, words: Words, pending: PendingRows, *, removed: bool) -> int:
        """The least ordinal of a pending row that begins with `words`, and removes (if `removed`) or adds rows."""
        mask = np.logical_and.reduce([pending.words[self.order[i]] == word[0] for i, word in enumerate(words)])
        mask &= pending.weights < 0 if removed else pending.weights > 0
        ordinals = pending.ordinals[mask]
        return int(ordinals.min()) if len(ordinals) else 0

    def _absent(
        self, words: Words, context: Context, pending: PendingRows | None = None, *, ordinal: int = 0, op: int = DELETE_ROW
    ) -> DataError:
        if pending is not None:
            ordinal = self._find(words, pending, removed=True)
        return located(
            AbsentRow(
                f"table {self.table.name} has no row {self._show(words, context)}",
                expected="deletes and updates of existing rows" if self.key else "no more deletes of a row than it has copies",
                remedy=_REMEDIES[op] if self.key else f"declare a PRIMARY KEY on {self.table.name} to use upsert and delete by key",
            ),
            self.table.name,
            ordinal,
        )

    def _duplicate(self, words: Words, context: Context, pending: PendingRows | None = None, *, ordinal: int = 0) -> DataError:
        if pending is not None:
            ordinal = self._find(words, pending, removed=False)
        return located(
            DuplicateKey(
                f"table {self.table.name} already has a row with primary key {self._show(words, context)}",
                expected="at most one row for each primary key",
                remedy="use upsert to replace a row, or delete the old one first",
            ),
            self.table.name,
            ordinal,
        )

    def _unordered(self, words: Words, ordinal: int, context: Context) -> DataError:
        twice = f"table {self.table.name} has two changes of {self._show(words, context)} in one tick"
        error = DataError(
            f"{twice}, in no known order",
            expected="one change of each key in a Spark DataFrame of changes",
            remedy="name the column that orders the changes: session.apply(…, sequence='column')",
        )
        if ordinal != UNORDERED:
            error = DataError(
                f"{twice}, with equal values of the sequence column",
                expected="different values of the sequence column for the changes of a key",
                remedy="use a sequence column that orders all changes of a key",
            )
        return located(error, self.table.name, 0)


@dataclass(frozen=True, slots=True)
class StreamInput(TableInput):
    """The source node of a stream: passes on the tick's rows and keeps nothing."""

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        pending = PendingRows(inputs[0])
        if (removed := ~pending.added).any():
            ordinal = int(pending.ordinals[removed].min())
            words = [pending.words[i][removed][:1] for i in self.order]
            raise located(
                DataError(
                    f"stream {self.table.name} cannot remove {self._show(words, context)}",
                    expected="inserts: a stream holds the rows of one tick, and there is nothing to remove in the next",
                    remedy=f"make {self.table.name} a table if its rows are deleted",
                ),
                self.table.name,
                ordinal,
            )
        return consolidate(Rows(tuple(pending.words[i] for i in self.order), (pending.weights,)))


def _whole_keys(rows: Batch, key: int) -> Iterator[Batch]:
    """The rows in parts of about CHECKED_AT_ONCE, none of which ends within the rows of a key: its first `key` columns."""
    start = 0
    while start < len(rows):
        end = min(start + CHECKED_AT_ONCE, len(rows))
        while end < len(rows) and all(column[end] == column[end - 1] for column in rows.columns[:key]):
            end += 1
        yield rows.part(start, end)
        start = end


def firsts(key: Words) -> np.ndarray:
    """Positions of the first row of each key. key: the key words of sorted rows."""
    if not len(key[0]):
        return np.zeros(0, np.int64)
    differs = np.ones(len(key[0]), bool)
    np.not_equal(key[0][1:], key[0][:-1], out=differs[1:])
    for column in key[1:]:
        differs[1:] |= column[1:] != column[:-1]
    return differs.nonzero()[0]


def located(error: DataError, table: str, ordinal: int) -> DataError:
    """The error with its position among the tick's changes, which selects the first of several errors."""
    error.table, error.ordinal = table, ordinal
    return error
