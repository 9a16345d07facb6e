"""Operations on keyed rows, resolved by the kernel and one by one on a dictionary."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from deltic.schema import Op
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.resolve import NONE, resolve
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Row = tuple[int, ...]
KEYED = (Op.INSERT, Op.DELETE_ROW, Op.UPSERT, Op.DELETE_KEY, Op.UPDATE)


def spine_of(versions: list[dict[Row, Row]], width: int) -> Spine:
    """A spine of one batch for each version of a table."""
    spine, before = Spine(width, 1), Counter[Row]()
    for version in versions:
        now = Counter(key + rest for key, rest in version.items())
        change = {row: now[row] - before[row] for row in now | before if now[row] != before[row]}
        columns = np.array(list(change), np.int64).reshape(-1, width).T
        spine = spine.appended(consolidate(Rows([c.copy() for c in columns], (np.array(list(change.values()), np.int64),))))
        before = now
    return spine


def one_by_one(table: dict[Row, Row], operations: list[tuple[Op, Row, Row]]) -> tuple[dict[Row, Row], int, int]:
    """The table afterwards, and the first operations that meet no row, and that meet one, wrongly."""
    table, absent, duplicate = dict(table), NONE, NONE
    for i, (op, key, rest) in enumerate(operations):
        old = table.get(key)
        if op is Op.INSERT and old is not None and duplicate == NONE:
            duplicate = i
        missing = old is None if op in (Op.UPDATE, Op.DELETE_KEY) else old != rest
        if op in (Op.UPDATE, Op.DELETE_KEY, Op.DELETE_ROW) and missing and absent == NONE:
            absent = i
        if op in (Op.DELETE_KEY, Op.DELETE_ROW):
            table.pop(key, None)
        else:
            table[key] = rest
    return table, absent, duplicate


@pytest.mark.parametrize("seed", range(200))
def test_operations_change_what_they_change_one_by_one(seed: int) -> None:
    rng = Random(seed)
    keys = rng.choice((1, 2))

    def key() -> Row:
        return tuple(rng.randint(0, 2) for _ in range(keys))

    def rest() -> Row:
        return (rng.randint(0, 2), rng.randint(0, 1))

    versions = [{key(): rest() for _ in range(4)} for _ in range(rng.randint(1, 3))]
    operations = [(rng.choice(KEYED if seed % 2 else (Op.UPSERT,)), key(), rest()) for _ in range(rng.randint(1, 8))]
    columns = [np.array(column, np.int64) for column in zip(*(k + r for _, k, r in operations), strict=True)]
    ops = np.array([op for op, _, _ in operations], np.int64)
    resolved = resolve(columns, ops, np.arange(len(ops)), keys, spine_of(versions, keys + 2), Counters(0))
    table, absent, duplicate = one_by_one(versions[-1], operations)
    assert (resolved.absent, resolved.duplicate, resolved.tied) == (absent, duplicate, NONE)
    if absent == duplicate == NONE:
        expected = Counter(k + r for k, r in table.items())
        expected.subtract(k + r for k, r in versions[-1].items())
        change = resolved.change
        rows = list(zip(*(c.tolist() for c in change.columns), strict=True))
        assert dict(zip(rows, change.weights[0].tolist(), strict=True)) == {row: n for row, n in expected.items() if n}
        assert rows == sorted(set(rows))


@pytest.mark.parametrize("ops", [(Op.INSERT,), (Op.UPSERT,), (Op.INSERT, Op.UPSERT)])
@pytest.mark.parametrize("repeated", [None, "stored", "given"])
def test_rows_of_new_keys_are_added_as_they_are(ops: tuple[Op, ...], repeated: str | None) -> None:
    rng = Random(len(ops))
    new = [(key, key % 3, rng.randint(0, 9)) for key in rng.sample(range(-500, 500), 300)]
    stored: dict[Row, Row] = {(key, 7): (0,) for key in range(-5, 5)}
    if repeated is not None:
        new.insert(150, (3, 7, 1) if repeated == "stored" else (*new[0][:2], 10))
    given = [rng.choice(ops) for _ in new]
    columns = [np.array(column, np.int64) for column in zip(*new, strict=True)]
    resolved = resolve(columns, np.array(given, np.int64), np.arange(len(new)), 2, spine_of([stored], 3), Counters(0))
    assert (resolved.absent, resolved.duplicate == NONE) == (NONE, repeated is None or given[150] is Op.UPSERT)
    if resolved.duplicate == NONE:
        expected = {row[:2]: row for row in new}
        rows = list(zip(*(c.tolist() for c in resolved.change.columns), resolved.change.weights[0].tolist(), strict=True))
        removed = [(3, 7, 0, -1)] if repeated == "stored" else []
        assert rows == sorted([*((*row, 1) for row in expected.values()), *removed])


def test_operations_of_one_age_on_one_key_are_named() -> None:
    columns = [np.array(column, np.int64) for column in ((1, 2, 2), (5, 6, 7))]
    ops = np.full(3, Op.UPSERT, np.int64)
    resolved = resolve(columns, ops, np.array([0, 1, 1]), 1, spine_of([{}, {(1,): (0,)}], 2), Counters(0))
    assert resolved.tied in (1, 2) and resolved.absent == resolved.duplicate == NONE
