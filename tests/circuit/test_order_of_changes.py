"""Changes of one key in unknown order are rejected, unless the order does not matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from deltic.circuit.pending import UNORDERED, PendingRows
from deltic.errors import DataError
from deltic.runtimes.embedded import Embedded
from deltic.schema import Op, TableSchema
from hand_circuit import CUSTOMERS, ORDERS, pending, spend_circuit


def changes(
    table: TableSchema, rows: Sequence[tuple[object, ...]], ops: Sequence[Op], ordinals: Sequence[int], runtime: Embedded
) -> PendingRows:
    inserts = pending(table, rows, runtime.strings)
    return PendingRows.of(inserts.words, np.array(ops, np.int64), np.array(ordinals, np.int64), inserts.weights)


@pytest.fixture
def runtime() -> Embedded:
    runtime = Embedded(1)
    runtime.install(spend_circuit())
    return runtime


@pytest.mark.parametrize(("ordinal", "words"), [(UNORDERED, "in no known order"), (5, "with equal values of the sequence column")])
def test_two_changes_of_a_key_at_one_position_are_rejected(runtime: Embedded, ordinal: int, words: str) -> None:
    rows = [(1, "a"), (2, "b"), (2, "c"), (3, "d")]
    epoch = runtime.epoch
    with pytest.raises(DataError, match=f"table customers has two changes of id=2 in one tick, {words}"):
        runtime.tick({"customers": changes(CUSTOMERS, rows, [Op.UPSERT] * 4, [9, ordinal, ordinal, 7], runtime)})
    assert runtime.epoch == epoch


def test_two_keys_may_change_at_one_position(runtime: Embedded) -> None:
    runtime.tick({"customers": changes(CUSTOMERS, [(1, "a"), (2, "b"), (2, "c")], [Op.UPSERT] * 3, [5, 5, 6], runtime)})


@pytest.mark.parametrize("ordinal", [UNORDERED, 5])
def test_a_row_may_be_inserted_twice_into_a_table_without_a_key(runtime: Embedded, ordinal: int) -> None:
    runtime.tick({"orders": changes(ORDERS, [(1, 1, 1)] * 3, [Op.INSERT] * 3, [ordinal] * 3, runtime)})
    runtime.tick({"orders": changes(ORDERS, [(1, 1, 1)] * 3, [Op.DELETE_ROW] * 3, [ordinal] * 3, runtime)})


@pytest.mark.parametrize("ordinal", [UNORDERED, 5])
def test_an_insert_and_a_delete_of_a_row_need_an_order(runtime: Embedded, ordinal: int) -> None:
    rows, ops = [(1, 1, 1)] * 2, [Op.INSERT, Op.DELETE_ROW]
    with pytest.raises(DataError, match="has two changes of customer=1, id=1, amount=1 in one tick"):
        runtime.tick({"orders": changes(ORDERS, rows, ops, [ordinal] * 2, runtime)})
    runtime.tick({"orders": changes(ORDERS, rows, ops, [5, 6], runtime)})


def test_weights_beside_operations_become_operations(runtime: Embedded) -> None:
    """As on Spark, where streams of both forms may feed one table: a row of a weight is as many rows as the weight counts."""
    words = tuple(np.array([value] * 4, np.int64) for value in (1, 1, 1))
    ops = np.array([Op.WEIGHT, Op.WEIGHT, Op.INSERT, Op.WEIGHT], np.int64)
    mixed = PendingRows.of(words, ops, np.arange(4), np.array([2, 0, 1, -2]))
    rows = mixed.as_operations()
    assert rows.ops.tolist() == [Op.INSERT, Op.INSERT, Op.INSERT, Op.DELETE_ROW, Op.DELETE_ROW]
    assert (rows.ordinals.tolist(), set(rows.weights.tolist())) == ([0, 0, 2, 3, 3], {1})
    assert rows.as_operations() is rows
    runtime.tick({"orders": rows})
    (spine,) = runtime.snapshot(runtime.committed.circuit.tables["orders"])
    assert sum(int(batch.weights[0].sum()) for batch in spine.batches) == 1


def test_a_row_of_a_key_with_weights_beside_operations_is_checked(runtime: Embedded) -> None:
    row = changes(CUSTOMERS, [(1, "a")], [Op.WEIGHT], [UNORDERED], runtime)
    runtime.tick({"customers": row.as_operations()})
    with pytest.raises(DataError, match="already has a row with primary key id=1"):
        runtime.tick({"customers": row.as_operations()})
