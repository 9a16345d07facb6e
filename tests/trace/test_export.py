"""Small changes that a kernel writes as Arrow tables: equal to those that Arrow makes, and released with the last of their arrays."""

from __future__ import annotations

import gc
import random
import resource
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.errors import CorruptState
from deltic.kernels import export
from deltic.kernels.build import CHECKED
from deltic.schema import BIGINT, BINARY, BOOLEAN, DATE, INT, STRING, Field, Schema, TableSchema, Type, decimal
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import MARKER, encode_table, words_of
from deltic.trace.export import SMALL, FrameExport
from deltic.trace.reading import Reader
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable
from deltic.types import array_type
from tests.support.file_data import OWN, random_rows
from tests.support.strings import string_table

pytestmark = pytest.mark.skipif(CHECKED, reason="Arrow's memory has no handles in the checked build")
LETTERS = Schema((Field("id", BIGINT, nullable=False), Field("word", STRING)))


def change(table: pa.Table, schema: Schema, weights: np.ndarray, strings: StringTable) -> Batch:
    return consolidate(Rows([np.ascontiguousarray(words) for words in encode_table(table, schema, strings)], [weights]))


def both(schema: Schema, rows: Batch, strings: StringTable) -> tuple[pa.Table, pa.Table]:
    """What the kernel writes, and what Arrow makes."""
    reader, other = Reader(schema, range(len(schema))), Reader(schema, range(len(schema)))
    assert reader._export is not None and reader._export.table(rows, strings) is not None
    other._export = None
    return reader.changes(rows, strings), other.changes(rows, strings)


@pytest.mark.parametrize("seed", range(40))
def test_tables_are_those_of_arrow(seed: int) -> None:
    chance = random.Random(seed)
    fields = [Field(f"c{i}", field.type, chance.random() < 0.7) for i, field in enumerate(chance.choices(OWN.schema.fields, k=7))]
    schema = Schema(tuple(field for field in fields if field.type.arrow != pa.float32()))
    strings, n = string_table(), chance.choice([1, 2, 7, 8, 9, 64, 300])
    table = random_rows(chance, TableSchema("t", schema), n)
    written, made = both(schema, change(table, schema, np.array(chance.choices([-2, 1, 5], k=n)), strings), strings)
    written.validate(full=True)
    assert written.schema == made.schema
    assert written.num_rows == made.num_rows
    for one, other in zip(written.columns, made.columns, strict=True):
        assert one.combine_chunks().to_pylist().__repr__() == other.combine_chunks().to_pylist().__repr__()
        assert one.null_count == other.null_count


def test_columns_that_the_kernel_does_not_write_are_left_to_arrow() -> None:
    weight = Field("_weight", BIGINT, nullable=False)
    for type_ in (array_type(INT), *(field.type for field in OWN.schema if field.type.arrow == pa.float32())):
        assert FrameExport.of([(Field("c", type_), 0), (weight, 1)], pa.schema([])) is None


def test_many_rows_are_left_to_arrow() -> None:
    strings, schema = string_table(), Schema((Field("id", BIGINT, nullable=False),))
    reader = Reader(schema, (0,))
    for n in (SMALL, SMALL + 1):
        rows = consolidate(Rows([np.arange(n)], [np.ones(n, np.int64)]))
        assert reader._export is not None
        assert (reader._export.table(rows, strings) is None) == (n > SMALL)
        assert reader.changes(rows, strings).column("id").to_pylist() == list(range(n))


@pytest.mark.parametrize(
    ("type_", "word"),
    [(DATE, 2_932_897), (DATE, -719_163), (STRING, 12345)],
    ids=["after the last day", "before the first day", "an id that no string has"],
)
def test_damaged_words_are_errors(type_: Type, word: int) -> None:
    schema = Schema((Field("c", type_, nullable=False),))
    rows = consolidate(Rows([np.array([word])], [np.ones(1, np.int64)]))
    with pytest.raises(CorruptState):
        Reader(schema, (0,)).changes(rows, string_table())


@pytest.mark.parametrize("type_", [STRING, BINARY, decimal(5, 2), decimal(38, 3)], ids=lambda type_: type_.sql)
def test_nulls_that_the_column_cannot_have_are_left_to_arrow(type_: Type) -> None:
    words = [np.array([MARKER])] * words_of(type_, False)
    reader, rows = Reader(Schema((Field("c", type_, nullable=False),)), (0,)), consolidate(Rows(words, [np.ones(1, np.int64)]))
    assert reader._export is not None
    assert reader._export.table(rows, string_table()) is None


def test_many_bytes_are_left_to_arrow() -> None:
    """Since the kernel keeps the GIL."""
    strings = string_table()
    for size in (export.TEXT_BYTES // 2, export.TEXT_BYTES // 2 + 1):
        rows = change(pa.table({"id": [1, 2], "word": ["a" * size, "b" * size]}), LETTERS, np.ones(2, np.int64), strings)
        reader = Reader(LETTERS, (0, 1))
        assert reader._export is not None
        assert (reader._export.table(rows, strings) is None) == (2 * size > export.TEXT_BYTES)
        assert sorted(reader.changes(rows, strings).column("word").to_pylist()) == ["a" * size, "b" * size]


def test_an_interrupted_read_frees_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    strings, released = string_table(), []
    rows = change(pa.table({"id": [1], "word": ["a"]}), LETTERS, np.ones(1, np.int64), strings)

    class Interrupted:
        @staticmethod
        def _import_from_c(place: int, schema: pa.Schema) -> pa.RecordBatch:
            raise KeyboardInterrupt

    def released_frame(place: int) -> None:
        released.append(place)
        release_frame(place)

    release_frame = export.release_frame
    monkeypatch.setattr(export, "release_frame", released_frame)
    reader = Reader(LETTERS, (0, 1))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("deltic.trace.export.pa.RecordBatch", Interrupted)
        reader.changes(rows, strings)
    assert len(released) == 1
    assert reader.changes(rows, strings).num_rows == 1
    assert len(released) == 2


def test_bytes_that_are_not_utf8_are_no_string() -> None:
    strings = string_table()
    ids = strings.intern(pa.array([b"\xff\xfe"], pa.binary()))
    rows = consolidate(Rows([ids], [np.ones(1, np.int64)]))
    with pytest.raises(CorruptState, match="not UTF-8"):
        Reader(Schema((Field("c", STRING),)), (0,)).changes(rows, strings)
    written, _ = both(Schema((Field("c", BINARY),)), rows, strings)
    assert written.column("c").to_pylist() == [b"\xff\xfe"]


def test_parts_of_a_table_keep_its_memory() -> None:
    strings = string_table()
    table = pa.table({"id": pa.array(range(1000)), "word": [f"word {i}" for i in range(1000)]})
    rows = change(table, LETTERS, np.ones(1000, np.int64), strings)
    reader = Reader(LETTERS, (0, 1))
    parts = [reader.changes(rows, strings).slice(10 * i, 10).column("word").chunk(0) for i in range(50)]
    gc.collect()
    for _ in range(100):  # takes memory that was released
        reader.changes(rows, strings)
    assert [part[3].as_py() for part in parts] == [f"word {10 * i + 3}" for i in range(50)]


def test_memory_is_released_whoever_drops_the_table_last() -> None:
    strings = string_table()
    rows = change(pa.table({"id": [1, 2], "word": ["a", None]}), LETTERS, np.ones(2, np.int64), strings)
    reader = Reader(LETTERS, (0, 1))

    def read(_: int) -> int:
        return sum(len(pa.table(reader.changes(rows, strings).to_batches()[0].to_pydict())) for _ in range(500))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert sum(pool.map(read, range(40))) == 40 * 500 * 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000  # 20,000 frames of 1 kB are 20 MB


def test_no_memory_is_left_to_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "export_frame", lambda *_: export.NO_ROOM)
    rows = consolidate(Rows([np.array([1])], [np.ones(1, np.int64)]))
    schema = Schema((Field("id", BIGINT, nullable=False),))
    assert Reader(schema, (0,)).changes(rows, string_table()).to_pylist() == [{"id": 1, "_weight": 1}]


def test_strings_that_were_dropped_are_not_kept_by_those_who_read_them() -> None:
    strings = string_table()
    rows = change(pa.table({"id": [1], "word": ["a"]}), LETTERS, np.ones(1, np.int64), strings)
    strings.intern(pa.array([f"{i}" for i in range(1000)]))
    reader = Reader(LETTERS, (0, 1))
    before = reader.changes(rows, strings)
    dropped = weakref.ref(strings.entries.ids)
    strings.retain([rows.columns[words] for words in range(len(rows.columns))])
    assert dropped() is None
    assert reader.changes(rows, strings) == before


LEFT_TO_THE_END = """
import sys, deltic
session = deltic.Session()
session.sql("CREATE TABLE t (a BIGINT, b STRING); CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
session.insert("t", [{"a": 1, "b": "x"}])
class Last:
    def __del__(self):
        print(self.table.column("b").to_pylist())
last = sys.kept = Last()
last.table, last.itself = session.view("v").changes(), last
"""


def test_tables_live_until_the_process_ends() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_TO_THE_END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_views_of_every_type() -> None:
    """Through a session: the changes of a view, inserted and deleted again."""
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, flag BOOLEAN, amount DECIMAL(9, 2), wide DECIMAL(38, 3), word STRING, day DATE)"
        )
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT day, word, wide, amount, flag, id FROM t")
        session.sql("INSERT INTO t VALUES (1, true, 1.25, -3.125, 'ß', DATE'2024-02-29'), (2, NULL, NULL, NULL, NULL, NULL)")
        inserted = session.view("v").changes()
        session.sql("DELETE FROM t")
        deleted = session.view("v").changes()
    assert [field.type for field in inserted.schema][:5] == [
        pa.date32(),
        pa.string(),
        decimal(38, 3).arrow,
        decimal(9, 2).arrow,
        BOOLEAN.arrow,
    ]
    plain = [{**row, "_weight": -row["_weight"]} for row in deleted.to_pylist()]
    assert sorted(plain, key=lambda row: row["id"]) == sorted(inserted.to_pylist(), key=lambda row: row["id"])
