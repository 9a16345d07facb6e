"""Changes that users give: what the fast intake takes is what the general one makes of it, and it leaves the rest to that."""

from __future__ import annotations

import datetime
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import deltic
from benchmarks import nested
from benchmarks.queries import tables
from deltic.connectors.frames import WEIGHT, keys_or_rows, rows_frame
from deltic.errors import ConstraintViolation, DelticError, FrameError
from deltic.kernels.build import CHECKED
from deltic.schema import STRING, Field, Op, Schema, TableSchema, Type
from deltic.session.transaction import PendingChanges, plain_changes, plain_keys
from deltic.trace import intake
from deltic.trace.encoding import decode_table, encode_table
from deltic.trace.identity import Identity
from deltic.trace.intake import FrameColumns, encode_changes, intake_of
from deltic.trace.strings import HashedStrings, SoughtStrings, StringTable
from deltic.trace.workers import ALONE, DIVIDED_ROWS, Workers

DEFINITION = "CREATE TABLE t (a BIGINT NOT NULL, b BIGINT, c INT NOT NULL, d SMALLINT, e TINYINT, PRIMARY KEY (a))"
IDENTITY = Identity(b"k" * 16)
NAN = float("nan")


@pytest.fixture
def session() -> deltic.Session:
    session = deltic.Session()
    session.sql(DEFINITION)
    return session


def moments(first: str, last: str) -> list[Any]:
    return [np.datetime64(moment, "us").item() for moment in (first, last, "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00")]


def ends(type_: str) -> list[Any]:
    number = Type.parse(type_)
    most = Decimal(10**number.precision - 1).scaleb(-number.scale, Context(prec=60))
    return [most, most.copy_negate(), Decimal(0), Decimal(1).scaleb(-number.scale), Decimal(-1).scaleb(-number.scale)]


DECIMALS = ("DECIMAL(5,2)", "DECIMAL(18,0)", "DECIMAL(18,18)", "DECIMAL(19,3)", "DECIMAL(38,0)", "DECIMAL(38,10)")
FLOATS = [0.0, -0.0, NAN, float("inf"), float("-inf"), 1.5, -1.5]
PLAIN: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127, 0, -1],
    "SMALLINT": [-(2**15), 2**15 - 1, 0, -1, 255, 256],
    "INT": [-(2**31), 2**31 - 1, 0, -1],
    "BIGINT": [-(2**63), 2**63 - 1, 0, -1],
    "FLOAT": [*FLOATS, 1e-45, -1e-45, 1.17549435e-38, 1e-40, 3.4028234663852886e38],
    "DOUBLE": [*FLOATS, 5e-324, -5e-324, 1.7976931348623157e308],
    **{name: ends(name) for name in DECIMALS},
    "DATE": [datetime.date.min, datetime.date.max, datetime.date(1969, 12, 31)],
    "TIMESTAMP": [moment.replace(tzinfo=datetime.UTC) for moment in moments("0001-01-01", "9999-12-31T23:59:59.999999")],
    "TIMESTAMP_NTZ": moments("0001-01-01", "9999-12-31T23:59:59.999999"),
    "TIME(6)": [datetime.time.min, datetime.time.max, datetime.time(12)],
    "STRING": ["", "a", "ä\0", "x" * 30],
    "STRING COLLATE UTF8_LCASE": ["", "a", "A"],
    "BINARY": [b"", b"\0\xff", b"a" * 9],
    "ARRAY<INT>": [[], [1, None], [3]],
    "STRUCT<a: DOUBLE, b: STRING>": [{"a": -0.0, "b": "x"}, {"a": 0.0, "b": None}, {"a": NAN, "b": ""}],
}
"""Values of each type whose columns need no other check than the kernel's."""
OTHERS: dict[str, list[Any]] = {
    "VARCHAR(3)": ["a", "abc"],
    "CHAR(2)": ["ab", "cd"],
    "INTERVAL DAY TO SECOND": [datetime.timedelta(days=-1), datetime.timedelta(microseconds=3)],
    "INTERVAL YEAR": [12, -24],
    "ARRAY<DATE>": [[datetime.date.max], []],
    "MAP<STRING, INT>": [[("a", 1)], []],
}


def column(rng: np.random.Generator, field: Field, n: int) -> pa.ChunkedArray[Any]:
    """Random values in random chunks, each a slice of a longer array."""
    sql = field.type.sql
    pool = ends(sql) if field.type.is_decimal else {**PLAIN, **OTHERS}[sql]
    cuts = sorted({0, n, *rng.integers(0, n + 1, int(rng.integers(0, 3))).tolist()})
    missing = rng.choice([0.0, 0.3, 1.0]) if field.nullable else 0.0
    chunks = []
    for first, last in pairwise(cuts):
        before, after = rng.integers(0, 12, 2).tolist()
        length = before + last - first + after
        values = [None if rng.random() < missing else pool[rng.integers(len(pool))] for _ in range(length)]
        array = pa.array(values, field.type.arrow)
        if not field.type.has_bytes and rng.random() < 0.5:  # whatever is under NULL counts for nothing
            full = pa.array([pool[rng.integers(len(pool))] for _ in range(length)], field.type.arrow)
            array = pa.Array.from_buffers(field.type.arrow, length, [array.buffers()[0], full.buffers()[1]])
        chunks.append(array.slice(before, last - first))
    return pa.chunked_array(chunks, field.type.arrow)


def table_of(rng: np.random.Generator, names: list[str]) -> TableSchema:
    """A table with columns of random ones of these types, and a key or none."""
    chosen = [names[i] for i in rng.integers(0, len(names), int(rng.integers(1, 9)))]
    fields = [Field(f"c{i}", Type.parse(name), bool(rng.random() < 0.6)) for i, name in enumerate(chosen)]
    keyed = tuple(i for i, field in enumerate(fields) if field.type.is_ordered and rng.random() < 0.4)
    fields = [Field(f.name, f.type, f.nullable and i not in keyed) for i, f in enumerate(fields)]
    return TableSchema("t", Schema(tuple(fields)), keyed)


def rows_of(rng: np.random.Generator, table: TableSchema, n: int) -> pa.Table:
    return pa.table([column(rng, field, n) for field in table.schema], list(table.schema.names))


def listed(words: Any) -> list[list[int]]:
    return [word.tolist() for word in words]


@pytest.mark.skipif(CHECKED, reason="the checked build has the general path alone")
@pytest.mark.parametrize("seed", range(60))
def test_columns_of_all_types_have_the_words_of_the_general_path(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(intake, "SMALL", 0 if seed % 2 else intake.SMALL)
    table = table_of(rng, [*PLAIN, *OTHERS])
    rows = rows_of(rng, table, int(rng.integers(1, 40)))
    strings, others = StringTable(IDENTITY), StringTable(IDENTITY)
    columns = intake_of(table).frames
    assert columns is not None
    words = columns.words_of(rows, strings)
    assert words is not None
    assert listed(words) == listed(intake._encoded(rows, table, others))
    assert listed(encode_changes(rows, table, strings)) == listed(words)
    assert len(strings) == len(others)


FORMS = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary(), pa.dictionary(pa.int8(), pa.string()))


def texts(rng: np.random.Generator, n: int, form: pa.DataType, *, nullable: bool) -> pa.ChunkedArray[Any]:
    """A column of strings: few or many different ones, short, of up to 16 bytes, with equal ends, or longer than all the room there is."""
    kinds = [f"{i}" for i in range(3)], ["MAIL", "", "AIR", "FOB"], [f"clerk#{i:010}" for i in range(5)]
    ends = [f"first bytes {i} last bytes" for i in range(100)]
    many = [f"{rng.integers(1 << 40)}" for _ in range(n)]
    values = (*kinds, ends, many, [*many, "x" * 50_000])[rng.integers(6)]
    chosen = [None if nullable and rng.random() < 0.1 else values[rng.integers(len(values))] for _ in range(n)]
    if pa.types.is_dictionary(form):
        chosen = [None if value is None else value[:9] for value in chosen][:n]
        known = sorted({value for value in chosen if value is not None})[:100]
        indices = [known.index(value) if value in known else None if nullable else 0 for value in chosen]
        return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), known or [""])])
    return pa.chunked_array([pa.array(chosen, pa.string()).cast(form)])


@pytest.mark.parametrize("bits", [64, 12, 4])
@pytest.mark.parametrize("seed", range(10))
def test_strings_of_all_columns_are_interned_together(seed: int, bits: int) -> None:
    rng = np.random.default_rng(seed)
    forms = [FORMS[i] for i in rng.integers(0, len(FORMS), rng.integers(1, 6))]
    is_text = [pa.types.is_dictionary(form) or "string" in str(form) for form in forms]
    fields = [Field(f"c{i}", Type("STRING" if text else "BINARY"), bool(rng.integers(2))) for i, text in enumerate(is_text)]
    table = TableSchema("t", Schema(tuple(fields)))
    fast, general = (StringTable(Identity(b"k" * 16, bits)) for _ in range(2))
    for n in (1, 3, 700, 20 if bits == 4 else 2000):
        if bits == 4 and n == 700:
            continue
        columns = {field.name: texts(rng, n + 2, form, nullable=field.nullable) for field, form in zip(fields, forms, strict=True)}
        rows = pa.table(columns).slice(int(rng.integers(3)), n)
        columns_of = intake_of(table).frames
        assert columns_of is not None
        words = columns_of.words_of(rows, fast)
        expected = encode_table(rows, table.schema, general)
        assert words is not None and listed(words) == listed(encode_table(rows, table.schema, fast))
        assert general.identity.overrides or listed(words) == listed(expected)  # which of two colliding strings comes first may differ
        assert decode_table(words, table.schema, fast) == rows.cast(table.schema.arrow)
    assert len(fast) == len(general) and len(fast.identity.overrides) == len(general.identity.overrides)


@pytest.mark.skipif(CHECKED, reason="Arrow's memory has no handles")
@pytest.mark.parametrize("bits", [64, 12])
def test_threads_share_the_columns_of_a_large_frame(bits: int) -> None:
    table = TableSchema("t", Schema((Field("n", Type("INT")), Field("a", STRING), Field("b", STRING), Field("c", Type("BINARY")))))
    n, rng = DIVIDED_ROWS + 5, np.random.default_rng(bits)
    columns_of = intake_of(table).frames
    assert columns_of is not None
    columns = {f.name: [None if i % 7 == 0 else str(i) for i in rng.integers(0, 300, n).tolist()] for f in table.schema.fields[1:]}
    whole = pa.table({"n": pa.array(range(n), pa.int32()), **columns}).cast(table.schema.arrow)
    frame = pa.concat_tables([whole.slice(start, n // 5 + 1) for start in range(0, n, n // 5 + 1)])
    words = {}
    for threads in (1, 3):
        strings = StringTable(Identity(b"k" * 16, bits))
        rows = columns_of.rows(frame, int(Op.INSERT), 9, strings, workers=Workers(threads))
        assert rows is not None
        words[threads] = rows.columns
        assert decode_table(rows.columns[: columns_of.words], table.schema, strings) == whole.combine_chunks()
        assert len(strings) == 257 and bool(strings.identity.overrides) is (bits == 12)
    same = all((one == other).all() for one, other in zip(words[1], words[3], strict=True))
    assert same or bits == 12  # which of two colliding strings comes first may differ
    invalid = frame.set_column(2, "b", pa.array([b"\xff"] * n, pa.binary()).view(pa.string()))
    assert columns_of.rows(invalid, int(Op.INSERT), 9, StringTable(IDENTITY), workers=Workers(3)) is None


def test_strings_of_frames_that_are_only_looked_up_are_not_kept() -> None:
    table = TableSchema("t", Schema((Field("a", STRING), Field("b", STRING))))
    rows, known = pa.table({"a": ["x", None, "y"], "b": ["z", "x", "y"]}), StringTable(IDENTITY)
    columns = intake_of(table).frames
    assert columns is not None
    known.intern(pa.array(["x", "y", "z"]))
    hashed, sought = HashedStrings(IDENTITY), SoughtStrings(known)
    assert (
        listed(columns.words_of(rows, hashed))
        == listed(columns.words_of(rows, sought))
        == listed(columns.words_of(rows, StringTable(IDENTITY)))
    )
    assert len(hashed) == len(sought) == 0 and len(known) == 3


def pending(table: TableSchema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch, *, plain: bool) -> list[list[int]]:
    """The pending rows of a tick with all ways to give a frame, by weights or by operations."""
    result = []
    with monkeypatch.context() as patched:
        if not plain:
            patched.setattr(FrameColumns, "rows", lambda *_, **__: None)
            patched.setattr(FrameColumns, "words_of", lambda *_, **__: None)
        weights = pa.array([i - 5 or 1 for i in range(rows.num_rows)], pa.int64())
        strings = StringTable(IDENTITY)
        weighted, marked = PendingChanges(strings), PendingChanges(strings)
        for _ in range(2):
            weighted.add_frame(table, rows.append_column(WEIGHT, weights), None)
        marked.add_rows(table, Op.INSERT, rows)
        marked.add_deletes(table, rows)
        if table.key:
            marked.add_rows(table, Op.UPSERT, rows)
            marked.add_rows(table, Op.UPDATE, rows.combine_chunks().to_batches()[0])
            marked.add_deletes(table, rows.select([table.schema[i].name for i in table.key]))
        names = ["Insert", "c", "d", "delete", *(["upsert", "u"] if table.key else [])]
        marked.add_frame(table, rows.append_column("_op", pa.array([names[i % len(names)] for i in range(rows.num_rows)])), None)
        marked.add_frame(table, rows.append_column("_op", pa.array(["i"] * rows.num_rows)).combine_chunks().to_batches()[0], None)
        for changes in (weighted, marked):
            given = changes.rows()["t"].rows
            result += listed((*given.columns, *given.weights))
    return result


@pytest.mark.parametrize("seed", range(60))
def test_frames_have_the_pending_rows_of_the_general_path(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1000 + seed)
    table = table_of(rng, list(PLAIN))
    rows = rows_of(rng, table, int(rng.integers(1, 40)))
    strings = StringTable(IDENTITY)
    assert CHECKED or all(plain_changes(rows, table, op, 0, strings) is not None for op in (Op.INSERT, Op.DELETE_ROW))
    if table.key:
        keys = rows.select([table.schema[i].name for i in table.key])
        assert CHECKED or plain_keys(keys, table, 0, strings, ALONE) is not None
    marked = rows.append_column("_op", pa.array(["Insert"] * rows.num_rows))
    assert CHECKED or plain_changes(marked, table, None, 0, strings) is not None
    assert pending(table, rows, monkeypatch, plain=True) == pending(table, rows, monkeypatch, plain=False)


def test_columns_of_other_types_are_shaped_first(session: deltic.Session) -> None:
    table, strings = session.table("t"), session._runtime.strings
    rows = pa.table({"a": [1, 2], "b": [None, 3], "c": [3, 4], "d": [5, None], "e": [1, 2]})
    taken = plain_changes(rows, table, Op.INSERT, 0, strings)
    assert CHECKED or (taken is not None and listed(taken.rows.words)[:3] == [[1, 2], [0, 1], [0, 3]])
    with pytest.raises(ConstraintViolation, match="table t, row 1, column c: 2147483648 does not fit"), session.transaction() as tx:
        tx.insert("t", rows.set_column(2, "c", pa.array([0, 2**31])))


@pytest.mark.skipif(CHECKED, reason="the checked build has the general path alone")
@pytest.mark.parametrize("seed", range(20))
def test_integers_of_fewer_bytes_are_copied_as_they_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(intake, "SMALL", 0 if seed % 2 else intake.SMALL)
    sizes = {"SMALLINT": 2, "INT": 4, "BIGINT": 8}
    names = [list(sizes)[i] for i in rng.integers(0, 3, 6)]
    table = TableSchema("t", Schema(tuple(Field(f"c{i}", Type(name), bool(rng.integers(2))) for i, name in enumerate(names))))
    n, columns = int(rng.integers(1, 30)), []
    for field in table.schema:
        bits = 8 * int(rng.choice([size for size in (1, 2, 4, 8) if size <= sizes[field.type.name]]))
        values = rng.choice([-(1 << bits - 1), (1 << bits - 1) - 1, 0, -1, 5], n + 3).tolist()
        columns.append([None if field.nullable and rng.random() < 0.2 else value for value in values])
        columns[-1] = pa.array(columns[-1], f"int{bits}")
    rows = pa.table(columns, list(table.schema.names)).slice(int(rng.integers(3)), n)
    rows = pa.concat_tables([rows, rows]) if rng.integers(2) else rows
    strings = StringTable(IDENTITY)
    expected = listed(encode_table(rows.cast(table.schema.arrow), table.schema, strings))
    weighted = rows.append_column(WEIGHT, pa.array([2] * len(rows), pa.int64()))
    marked = rows.append_column("_op", pa.array(["insert"] * len(rows)))
    taken = plain_changes(rows, table, Op.INSERT, 0, strings)
    for encoded in (taken, plain_changes(weighted, table, None, 0, strings), plain_changes(marked, table, None, 0, strings)):
        assert encoded is not None and listed(encoded.rows.words) == expected
    if n > 1 and not all(field.nullable for field in table.schema):
        place = next(i for i, field in enumerate(table.schema) if not field.nullable)
        missing = rows.set_column(place, table.schema[place].name, pa.array([None] * len(rows), rows.schema[place].type))
        assert plain_changes(missing, table, Op.INSERT, 0, strings) is None
        with pytest.raises(ConstraintViolation, match="NULL in a NOT NULL column"):
            PendingChanges(strings).add_rows(table, Op.INSERT, missing)


@pytest.mark.parametrize("suite", ["tpch", "tpcds", "nexmark", "nested"])
def test_tables_of_benchmarks_are_taken_at_once(suite: str) -> None:
    script = nested.SCRIPT.partition(";")[0] if suite == "nested" else tables(suite)
    session, rng = deltic.Session(), np.random.default_rng(5)
    session.sql(script)
    for name in session.tables:
        table = session.table(name)
        rows = nested.rows_of(np.arange(20), rng) if suite == "nested" else rows_of(rng, table, 20)
        assert CHECKED or plain_changes(rows, table, Op.INSERT, 0, session._runtime.strings) is not None, name


REFUSED: list[tuple[str, pa.Array[Any]]] = [
    ("DATE", pa.array([0, 2932897], pa.int32()).view(pa.date32())),
    ("DATE", pa.array([0, -719163], pa.int32()).view(pa.date32())),
    ("TIMESTAMP", pa.array([0, 253402300800000000], pa.int64()).view(pa.timestamp("us", "UTC"))),
    ("TIMESTAMP_NTZ", pa.array([0, -(2**63)], pa.int64()).view(pa.timestamp("us"))),
    ("TIME(6)", pa.array([0, 86400000000], pa.int64()).view(pa.time64("us"))),
    ("TIME(6)", pa.array([0, -1], pa.int64()).view(pa.time64("us"))),
    ("DECIMAL(5,2)", pa.array([Decimal("0.00"), Decimal("1000.00")], pa.decimal128(6, 2)).view(pa.decimal128(5, 2))),
    ("DECIMAL(5,2)", pa.array([Decimal("0.00"), Decimal(2**64) / 4], pa.decimal128(30, 2)).view(pa.decimal128(5, 2))),
    ("DECIMAL(38,0)", pa.Array.from_buffers(pa.decimal128(38, 0), 2, [None, pa.py_buffer(bytes(31) + b"\x7f")])),
    ("DECIMAL(38,0)", pa.Array.from_buffers(pa.decimal128(38, 0), 2, [None, pa.py_buffer(bytes(31) + b"\x80")])),
]


@pytest.mark.parametrize("first", ["0", "1"], ids=["", "after a string"])
@pytest.mark.parametrize("case", [*range(len(REFUSED)), *PLAIN])
def test_refused_values_have_the_errors_of_the_general_path(case: int | str, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(case, int):
        name, array = REFUSED[case]
    else:
        name, array = case, pa.array([PLAIN[case][0], None], Type.parse(case).arrow)
    fields = [Field("s", Type.parse("STRING"))] * int(first) + [Field("x", Type.parse(name), nullable=isinstance(case, int))]
    table = TableSchema("t", Schema(tuple(fields)))
    rows = pa.table([*[pa.array(["a", None])] * int(first), array], list(table.schema.names))
    errors = []
    for plain in (True, False):
        with monkeypatch.context() as patched:
            if not plain:
                patched.setattr(FrameColumns, "rows", lambda *_, **__: None)
                patched.setattr(FrameColumns, "words_of", lambda *_, **__: None)
            for give in ("add_rows", "add_deletes", "add_frame"):
                weighted = rows.append_column(WEIGHT, pa.array([1, 1], pa.int64()))
                arguments = {"add_rows": (Op.INSERT, rows), "add_deletes": (rows,), "add_frame": (weighted, None)}[give]
                with pytest.raises(DelticError, match=r"row 1, column x|column x, row 1") as caught:
                    getattr(PendingChanges(StringTable(IDENTITY)), give)(table, *arguments)
                errors.append((type(caught.value), str(caught.value)))
    assert errors[:3] == errors[3:]


def frame(rows: int, **changed: Any) -> pa.Table:
    types = {"a": pa.int64(), "b": pa.int64(), "c": pa.int32(), "d": pa.int16(), "e": pa.int8(), "_weight": pa.int64()}
    values = {"a": 2**62, "b": -5, "c": -(2**31), "d": -(2**15), "e": -(2**7), "_weight": -3}
    columns = {name: [value if i % 2 else i + 1 for i in range(rows)] for name, value in values.items()}
    return pa.table({name: pa.array(values, types[name]) for name, values in {**columns, **changed}.items()})


def words(session: deltic.Session, changes: Any, monkeypatch: pytest.MonkeyPatch, *, plain: bool) -> list[list[int]]:
    """The pending rows of the changes given twice in one tick."""
    changes_of_tick, table = PendingChanges(session._runtime.strings), session.table("t")
    with monkeypatch.context() as patched:
        if not plain:
            patched.setattr("deltic.session.transaction.plain_changes", lambda *_, **__: None)
        changes_of_tick.add_frame(table, changes, None)
        changes_of_tick.add_frame(table, changes, None)
    rows = changes_of_tick.rows()["t"].rows
    return listed((*rows.columns, *rows.weights))


def is_taken(changes: Any, table: TableSchema) -> bool:
    return plain_changes(changes, table, None, 0, StringTable(IDENTITY)) is not None


ROW = {"a": 1, "b": None, "c": 3, "d": None, "e": 5}
TAKEN = [
    frame(1),
    frame(7).slice(2, 4),
    frame(2, b=[None, 1]),
    pa.concat_tables([frame(3), frame(2, d=[None, None])]),
    frame(2).to_batches()[0],
    frame(3).drop_columns("_weight").append_column("_op", pa.array(["upsert", "d", "I"])),
    [{**ROW, "_weight": 1}, {**ROW, "a": -(2**63), "b": 7, "_weight": -2}],
    [{**ROW, "_op": "upsert"}, {**ROW, "a": 2, "b": 1, "d": 2, "_op": "d"}, {**ROW, "_op": "u"}, {**ROW, "_op": "insert"}],
]


@pytest.mark.parametrize("changes", TAKEN, ids=["a row", "a slice", "a NULL", "chunks", "a batch", "ops", "weights", "operations"])
def test_both_intakes_make_the_same_rows(changes: Any, session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_taken(changes, session.table("t")) or (CHECKED and not isinstance(changes, list))
    assert words(session, changes, monkeypatch, plain=True) == words(session, changes, monkeypatch, plain=False)


LEFT = [
    frame(0),
    frame(2, _weight=[0, 1]),
    frame(2, _weight=[None, 1]),
    frame(2, a=[None, 1]),
    frame(2, c=[None, 1]).drop_columns("_weight").append_column("_op", pa.array(["d", "upsert"])),
    [{**ROW, "_op": "delete"}],
    [{"a": 1, "_op": "delete"}],
    [{**ROW, "A": 1, "_weight": 1}],
    [{**ROW, "_weight": np.int64(2)}],
    [{**ROW, "_weight": 1}] * 100,
]
LEFT_NAMES = ["no rows", "weight 0", "no weight", "NULL key", "delete of NULL", "by NULLs", "by key", "other case", "NumPy", "many"]


@pytest.mark.parametrize("changes", LEFT, ids=LEFT_NAMES)
def test_the_rest_is_left_to_the_general_intake(changes: Any, session: deltic.Session) -> None:
    assert not is_taken(changes, session.table("t"))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([{**ROW, "c": 2**31, "_weight": 1}], ConstraintViolation),
        ([{**ROW, "a": True, "_weight": 1}], FrameError),
        ([{**ROW, "a": None, "_weight": 1}], ConstraintViolation),
        ([{**ROW, "_op": "merge"}], FrameError),
        (frame(1).drop_columns("_weight").append_column("_op", pa.array(["merge"])), FrameError),
        (frame(1).drop_columns("_weight").append_column("_op", pa.array([None], pa.string())), FrameError),
    ],
)
def test_errors_are_those_of_the_general_intake(changes: Any, error: type[Exception], session: deltic.Session) -> None:
    epoch = session.epoch
    with pytest.raises(error, match="table t, row 0"):
        session.apply({"t": changes})
    assert session.epoch == epoch


def test_rows_of_dicts_have_the_words_of_frames(session: deltic.Session) -> None:
    table, strings = session.table("t"), session._runtime.strings
    given = [ROW, {**ROW, "b": 2**63 - 1, "e": None}]
    taken = plain_changes(given, table, Op.UPSERT, 4, strings)
    assert taken is not None
    changes = PendingChanges(strings)
    changes._next = 4
    changes.add(table, Op.UPSERT, rows_frame(given, table))
    assert listed((*taken.rows.rows.columns, *taken.rows.rows.weights)) == listed(
        (*changes.rows()["t"].rows.columns, *changes.rows()["t"].rows.weights)
    )
    assert plain_changes([{**ROW, "_op": "insert"}], table, Op.INSERT, 0, strings) is None
    assert plain_changes([{**ROW, "c": None}], table, Op.INSERT, 0, strings) is None


ODD: dict[str, list[Any]] = {
    "BOOLEAN": [0, 1, np.bool_(True), "true"],
    "TINYINT": [128, -129, True, 1.0, np.int8(3), Decimal(2)],
    "BIGINT": [2**63, -(2**63) - 1, False, np.int64(7), "1"],
    "DOUBLE": [1, 0, -(2**53), 2**53 + 1, 2**54, 10**400, np.float64(0.5), np.float32(0.5), Decimal("0.5"), True],
    "DECIMAL(5,2)": [
        1,
        1000,
        -999,
        Decimal("1E2"),
        Decimal("1.000"),
        Decimal("0.001"),
        Decimal("NaN"),
        Decimal("-0.00"),
        Decimal("1E-7"),
        Decimal(1000),
        1.5,
    ],
    "DECIMAL(38,10)": [7, 10**28, 10**27, -(10**28) + 1, Decimal("1E27"), Decimal("1E28"), Decimal("-1E-10"), Decimal("0E-20")],
    "DATE": [datetime.datetime(2024, 1, 2), np.datetime64("2024-01-02"), "2024-01-02"],
    "TIMESTAMP": [
        datetime.datetime(2024, 1, 2),
        datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
        datetime.datetime(2024, 3, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.datetime(9999, 12, 31, 23, tzinfo=ZoneInfo("America/New_York")),
        datetime.datetime(1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")),
        datetime.datetime(2024, 1, 2, tzinfo=ZoneInfo("UTC")),
        datetime.date(2024, 1, 2),
    ],
    "TIMESTAMP_NTZ": [datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), datetime.date(2024, 1, 2), np.datetime64("2024-01-02")],
    "STRING": ["\ud800", "a\udfff", np.str_("b"), b"c", 1],
}
"""Values of each type that are not its usual ones, of which some are refused."""


@pytest.mark.parametrize("seed", range(60))
def test_rows_of_dicts_have_the_words_of_the_general_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = table_of(rng, list(ODD))
    dicts = intake_of(table).dicts
    assert dicts is not None
    taken = refused = 0
    for _ in range(20):
        odd = rng.random() < 0.3
        pools = {f.name: PLAIN[f.type.sql] + (ODD[f.type.sql] if odd else []) for f in table.schema}
        rows = [
            {f.name: None if f.nullable and rng.random() < 0.3 else pools[f.name][rng.integers(len(pools[f.name]))] for f in table.schema}
            for _ in range(int(rng.integers(1, 4)))
        ]
        strings = StringTable(IDENTITY)
        plain = plain_changes(rows, table, Op.INSERT, 3, strings)
        changes = PendingChanges(StringTable(IDENTITY))
        changes._next = 3
        try:
            changes.add(table, Op.INSERT, rows_frame(rows, table))
        except DelticError:
            refused += 1
            assert plain is None
            continue
        if plain is None:
            assert odd, "values of the usual types are taken"
            continue
        taken += 1
        general = changes.rows()["t"].rows
        assert listed((*plain.rows.rows.columns, *plain.rows.rows.weights)) == listed((*general.columns, *general.weights))
        assert len(strings) == len(changes._strings)
    assert taken and taken + refused <= 20


def test_columns_of_other_types_are_left_to_the_general_path() -> None:
    for name in sorted({*PLAIN, *OTHERS} - {*ODD, *DECIMALS, "SMALLINT", "INT"}):
        assert intake_of(TableSchema("t", Schema((Field("a", Type.parse(name)),)))).dicts is None, name


@pytest.mark.parametrize("seed", range(30))
def test_keys_in_a_list_have_the_words_of_the_general_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [*rng.choice(["BIGINT", "STRING", "DATE", "DOUBLE", "DECIMAL(5,2)"], int(rng.integers(1, 3)), replace=False).tolist(), "STRING"]
    fields = tuple(Field(f"c{i}", Type.parse(name), i == len(names) - 1) for i, name in enumerate(names))
    table = TableSchema("t", Schema(fields), tuple(rng.permutation(len(names) - 1).tolist()))
    for odd in (False, True):
        pools = [PLAIN[table.schema[i].type.sql] + (ODD[table.schema[i].type.sql] if odd else []) for i in table.key]
        keys = [tuple(pool[rng.integers(len(pool))] for pool in pools) for _ in range(3)]
        given = [key[0] for key in keys] if len(table.key) == 1 else keys
        plain = plain_keys(given, table, 2, StringTable(IDENTITY), ALONE)
        changes = PendingChanges(StringTable(IDENTITY))
        changes._next = 2
        try:
            kind, rows = keys_or_rows(given, table)
            changes.add(table, Op.DELETE_KEY, rows)
        except DelticError:
            assert plain is None
            continue
        assert kind == "keys"
        assert plain is not None or odd
        if plain is not None:
            general = changes.rows()["t"].rows
            assert listed((*plain.rows.columns, *plain.rows.weights)) == listed((*general.columns, *general.weights))


def test_deletes_by_a_list_of_keys(session: deltic.Session) -> None:
    session.sql("CREATE TABLE words (word STRING, n INT, note STRING, PRIMARY KEY (word, n))")
    session.sql("CREATE MATERIALIZED VIEW kept AS SELECT word, n FROM words")
    session.insert("words", [{"word": w, "n": n, "note": None} for w in "ab" for n in (1, 2)])
    session.delete("words", [("a", 1), ("b", 2)])
    left = [{"word": "a", "n": 2}, {"word": "b", "n": 1}]
    assert sorted(session.view("kept").rows(), key=str) == sorted(left, key=str)
    for keys in ([("a",)], [("a", 2, 3)], [("a", None)], ["a"], [("zz", 1)]):
        with pytest.raises(DelticError):
            session.delete("words", keys)
    assert sorted(session.view("kept").rows(), key=str) == sorted(left, key=str)


def damaged_lists(of: pa.DataType, offsets: list[int], values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(of, len(offsets) - 1, [None, pa.array(offsets, pa.int32()).buffers()[1]], children=[values])


@pytest.mark.parametrize("how", ["insert", "_op", "_weight"])
@pytest.mark.parametrize("damage", ["offsets", "digits"])
def test_damaged_nested_values_are_refused(damage: str, how: str) -> None:
    session = deltic.Session()
    session.sql("CREATE TABLE t (a BIGINT NOT NULL, c ARRAY<DECIMAL(4,2)>, PRIMARY KEY (a))")
    words = pa.array([10**10 if damage == "digits" else 1, 0, 3, 0]).buffers()[1]
    values = pa.Array.from_buffers(pa.decimal128(4, 2), 2, [None, words])
    offsets = [0, 1, 2] if damage == "digits" else [0, 2_000_000, 2]
    column = damaged_lists(session.table("t").schema[1].type.arrow, offsets, values)
    marks = {"_op": {"_op": ["insert"] * 2}, "_weight": {"_weight": [1, 1]}}.get(how, {})
    rows, epoch = pa.table({"a": [1, 2], "c": column, **marks}), session.epoch
    with pytest.raises(FrameError, match="table t, column c: the column is damaged"), session.transaction() as tx:
        (tx.apply if marks else tx.insert)("t", rows)
    assert session.epoch == epoch
