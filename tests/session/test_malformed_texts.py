"""Arrow frames with texts that are not UTF-8 are refused where they come in: a state never has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.errors import FrameError


def texts(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    """An array whose bytes have not been checked."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32 if kind == pa.string() else np.int64)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))])


@pytest.fixture
def session() -> deltic.Session:
    session = deltic.Session()
    session.sql("""
        CREATE TABLE t (k BIGINT PRIMARY KEY, a STRING, b BINARY);
        CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a;
        CREATE STREAM s (k BIGINT, a STRING);
        CREATE MATERIALIZED VIEW w AS SELECT a FROM s;
    """)
    return session


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("rows", [3, 5_000])
@pytest.mark.parametrize("row", [0, 2])
def test_the_row_is_named_and_nothing_is_kept(session: deltic.Session, kind: pa.DataType, rows: int, row: int) -> None:
    values = [b"fine"] * rows
    values[row] = b"ok\xff\xfe"
    columns = {"k": pa.array(range(rows)), "a": texts(values, kind), "b": pa.array(values)}
    message = f"row {row}, column a: the text is not UTF-8"
    with pytest.raises(FrameError, match=f"table t, {message}"), session.transaction() as tx:
        tx.insert("t", pa.table(columns))
    with pytest.raises(FrameError, match=f"table t, {message}"):
        session.apply({"t": pa.table({**columns, "_op": ["upsert"] * rows})})
    with pytest.raises(FrameError, match=f"table s, {message}"):
        session.apply({"s": pa.table({"k": columns["k"], "a": columns["a"], "_weight": [1] * rows})})
    assert session.view("v").rows() == []
    values[row] = "é".encode()
    session.apply({"t": pa.table({**columns, "a": texts(values, kind), "_op": ["insert"] * rows})})
    assert sorted((r["a"], r["n"]) for r in session.view("v").rows()) == [("fine", rows - 1), ("é", 1)]


def test_texts_in_a_dictionary(session: deltic.Session) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int32()), texts([b"\xff", b"a"], pa.string()))
    with pytest.raises(FrameError, match="column a: the text is not UTF-8"):
        session.apply({"t": pa.table({"k": [1, 2, 3], "a": column, "b": [b"", b"", b""], "_op": ["insert"] * 3})})
    assert session.view("v").rows() == []
