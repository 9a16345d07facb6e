"""Changes of tables of integers: what the fast intake takes is what the general one makes of it, and it leaves the rest to that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.errors import ConstraintViolation, FrameError
from deltic.kernels.build import CHECKED
from deltic.schema import TableSchema
from deltic.session import transaction
from deltic.session.transaction import PendingChanges, plain_changes

DEFINITION = "CREATE TABLE t (a BIGINT NOT NULL, b BIGINT, c INT NOT NULL, d SMALLINT, e TINYINT, PRIMARY KEY (a))"
TYPES = {"a": pa.int64(), "b": pa.int64(), "c": pa.int32(), "d": pa.int16(), "e": pa.int8(), "_weight": pa.int64()}
VALUES = {"a": 2**62, "b": -5, "c": -(2**31), "d": -(2**15), "e": -(2**7), "_weight": -3}


@pytest.fixture
def session() -> deltic.Session:
    session = deltic.Session()
    session.sql(DEFINITION)
    return session


def frame(rows: int, **changed: Any) -> pa.Table:
    columns = {name: [value if i % 2 else i + 1 for i in range(rows)] for name, value in VALUES.items()}
    return pa.table({name: pa.array(values, TYPES[name]) for name, values in {**columns, **changed}.items()})


def words(session: deltic.Session, changes: Any, monkeypatch: pytest.MonkeyPatch, *, plain: bool) -> list[list[int]]:
    """The pending rows of the changes given twice in one tick."""
    pending, table = PendingChanges(session._runtime.strings), session.table("t")
    with monkeypatch.context() as patched:
        if not plain:
            patched.setattr(transaction, "plain_changes", lambda *_: None)
        pending.add_frame(table, changes, None)
        pending.add_frame(table, changes, None)
    rows = pending.rows()["t"].rows
    return [column.tolist() for column in (*rows.columns, *rows.weights)]


def is_taken(changes: Any, table: TableSchema) -> bool:
    return plain_changes(changes, table, 0) is not None


ROW = {"a": 1, "b": None, "c": 3, "d": None, "e": 5}
TAKEN = [
    frame(1),
    frame(7).slice(2, 4),
    [{**ROW, "_weight": 1}, {**ROW, "a": -(2**63), "b": 7, "_weight": -2}],
    [{**ROW, "_op": "upsert"}, {**ROW, "a": 2, "b": 1, "d": 2, "_op": "d"}, {**ROW, "_op": "u"}, {**ROW, "_op": "insert"}],
]


@pytest.mark.parametrize("changes", TAKEN, ids=["a row", "a slice", "weights", "operations"])
def test_both_intakes_make_the_same_rows(changes: Any, session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_taken(changes, session.table("t")) or (CHECKED and isinstance(changes, pa.Table))
    assert words(session, changes, monkeypatch, plain=True) == words(session, changes, monkeypatch, plain=False)


LEFT = [
    frame(2, b=[None, 1]),
    frame(2, _weight=[0, 1]),
    [{**ROW, "_op": "delete"}],
    [{"a": 1, "_op": "delete"}],
    [{**ROW, "A": 1, "_weight": 1}],
    [{**ROW, "_weight": np.int64(2)}],
    [{**ROW, "_weight": 1}] * 100,
]


@pytest.mark.parametrize("changes", LEFT, ids=["a NULL", "no weight", "delete by NULLs", "delete by key", "other case", "NumPy", "many"])
def test_the_rest_is_left_to_the_general_intake(changes: Any, session: deltic.Session) -> None:
    assert not is_taken(changes, session.table("t"))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([{**ROW, "c": 2**31, "_weight": 1}], ConstraintViolation),
        ([{**ROW, "a": True, "_weight": 1}], FrameError),
        ([{**ROW, "a": None, "_weight": 1}], ConstraintViolation),
        ([{**ROW, "_op": "merge"}], FrameError),
    ],
)
def test_errors_are_those_of_the_general_intake(changes: Any, error: type[Exception], session: deltic.Session) -> None:
    epoch = session.epoch
    with pytest.raises(error, match="table t, row 0"):
        session.apply({"t": changes})
    assert session.epoch == epoch
