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


def drawn_bytes(random: np.random.Generator) -> bytes:
    """Bytes of characters of each length, and now and then of what is none: cut characters, surrogates, long forms of short ones."""
    parts = [
        b"a",
        b"fourteen bytes",
        "é".encode(),
        "\u07ff".encode(),
        "\u0800".encode(),
        "\ud7ff".encode(),
        "\uffff".encode(),
        "😀".encode(),
    ]
    wrong = [
        b"\x80",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf5",
        b"\xff",
    ]
    ends = [b"\xc3", b"\xe0\xa0", b"\xf0\x90\x80", b"\xf4\x8f\xbf\xbf", b""]
    chosen = [parts[i] for i in random.integers(0, len(parts), random.integers(0, 6))]
    if random.random() < 0.5:
        chosen.insert(int(random.integers(0, len(chosen) + 1)), wrong[random.integers(0, len(wrong))])
    return b"".join(chosen) + ends[random.integers(0, len(ends))]


def is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_a_text_is_refused_if_and_only_if_python_does_not_decode_it(session: deltic.Session) -> None:
    random = np.random.default_rng(0)
    values = [drawn_bytes(random) for _ in range(400)]
    assert 50 < sum(map(is_utf8, values)) < 300
    for value in values:
        frame = pa.table({"k": [1], "a": texts([value], pa.string()), "b": pa.array([value]), "_op": ["upsert"]})
        if is_utf8(value):
            session.apply({"t": frame})
            assert [(row["a"], row["n"]) for row in session.view("v").rows()] == [(value.decode(), 1)]
        else:  # also where the table has the bytes already, in column b
            session.apply({"t": pa.table({"k": [2], "a": ["x"], "b": pa.array([value]), "_op": ["upsert"]})})
            with pytest.raises(FrameError, match="row 0, column a: the text is not UTF-8"):
                session.apply({"t": frame})
            session.apply({"t": pa.table({"k": [2], "_op": ["delete"], "a": [None], "b": pa.array([None], pa.binary())})})


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
@pytest.mark.parametrize("offsets", [[0, 5, 2, 6], [0, 9, 9, 6], [0, -1, 2, 6]])
def test_columns_with_wrong_offsets_are_refused(session: deltic.Session, kind: pa.DataType, offsets: list[int]) -> None:
    damaged = pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(np.array(offsets, np.int32).tobytes()), pa.py_buffer(b"abcdef")])
    columns = {"a": pa.array(["x", "y", "z"]), "b": pa.array([b"x", b"y", b"z"]), "a" if kind == pa.string() else "b": damaged}
    with pytest.raises(FrameError, match="the column is damaged"), session.transaction() as tx:
        tx.insert("t", pa.table({"k": [1, 2, 3], **columns}))
    assert session.view("v").rows() == []
