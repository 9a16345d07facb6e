"""Random tables of every type, written by others and by Deltic itself, are read back as they were."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltic.connectors.files import csv
from deltic.connectors.files.writing import encoded
from deltic.schema import STRING, Field, Schema, TableSchema
from file_data import EVERY, OWN, random_rows, random_type, read, rows, same

SEEDS = range(6)
STRICT = TableSchema("strict", Schema(tuple(Field(f.name, f.type, nullable=i % 2 == 0) for i, f in enumerate(EVERY.schema))))


def check_back(folder: Path, written: pa.Table, format: str, table: TableSchema = EVERY, **options: Any) -> None:
    assert same(rows(read(folder, table, format, **options)), written.to_pylist())
    half = written.num_rows // 2
    assert same(rows(read(folder, table, format, start=half, **options)), written.slice(half).to_pylist())


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("seed", SEEDS)
def test_written_files_are_read_back_exactly(tmp_path: Path, format: str, seed: int) -> None:
    table = random_rows(random.Random(seed), OWN, 200)
    header = format == "csv" and seed % 2 == 0
    (tmp_path / "a").write_bytes(b"".join(encoded(table, format, header=header, sep="\t" if seed % 3 == 0 else ",")))
    check_back(tmp_path, table, format, OWN, header=header, sep="\t" if seed % 3 == 0 else ",")


@pytest.mark.parametrize("format", ["parquet", "json"])
@pytest.mark.parametrize("seed", range(12))
def test_nested_values_of_every_type_are_read_back_exactly(tmp_path: Path, format: str, seed: int) -> None:
    chance = random.Random(seed)
    nested = TableSchema("nested", Schema(tuple(Field(f"c{i}", random_type(chance, 3)) for i in range(6))))
    table = random_rows(chance, nested, 60)
    (tmp_path / "a").write_bytes(b"".join(encoded(table, format)))
    check_back(tmp_path, table, format, nested)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("seed", SEEDS)
def test_files_written_by_duckdb_are_read_exactly(tmp_path: Path, format: str, seed: int) -> None:
    table = random_rows(random.Random(seed), EVERY, 200, plain=format == "json")  # DuckDB's JSON has no NaN
    options = {"parquet": "FORMAT parquet", "csv": "FORMAT csv, HEADER", "json": "FORMAT json"}[format]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", table)
        connection.execute(f"COPY (SELECT * FROM rows) TO '{tmp_path / 'a'}' ({options})")
    check_back(tmp_path, table, format, header=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_parquet_written_by_arrow_is_read_exactly(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    table = random_rows(chance, EVERY, 200)
    shuffled = table.select(chance.sample(table.column_names, table.num_columns))
    shuffled = shuffled.rename_columns([name.upper() for name in shuffled.column_names])
    pq.write_table(shuffled, tmp_path / "a", row_group_size=chance.choice([7, 50, 1000]), version=chance.choice(["1.0", "2.6"]))
    check_back(tmp_path, table, "parquet")


TEXTS = TableSchema("texts", Schema((Field("a", STRING), Field("b", STRING))))
TEXT = st.none() | st.text(st.sampled_from('ab,"\n\r\\ é\x00\t|😀'), max_size=6)


@settings(max_examples=200, deadline=None)
@given(pairs=st.lists(st.tuples(TEXT, TEXT), max_size=6), header=st.booleans(), format=st.sampled_from(["csv", "json"]))
@example(pairs=[(None, "\n")], header=False, format="csv")
def test_any_text_is_read_back(tmp_path_factory: pytest.TempPathFactory, pairs: list[Any], header: bool, format: str) -> None:
    folder = tmp_path_factory.mktemp("texts")
    table = pa.Table.from_pylist([{"a": a, "b": b} for a, b in pairs], TEXTS.schema.arrow)
    (folder / "a").write_bytes(b"".join(encoded(table, format, header=header)))
    assert rows(read(folder, TEXTS, format, header=header)) == table.to_pylist()


@pytest.mark.parametrize("bytes_at_once", [64, 300, 1000])
def test_csv_over_the_borders_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_at_once: int) -> None:
    """Records, torn ones among them, keep their numbers wherever a block ends."""
    chance = random.Random(bytes_at_once)
    lines = [chance.choice(['"a\nb",c', 'a,"x,""y"""', "é,é", "a,", "torn", "a,b,c"]) for _ in range(300)]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(csv, "_BYTES", bytes_at_once)
    for start in (0, 100):
        numbers, torn = [], []
        for portion in read(tmp_path, TEXTS, "csv", start=start, on_error="dead_letter"):
            numbers += portion.lines.tolist()
            torn += [letter.row for letter in portion.letters]
        bad = [i for i, line in enumerate(lines, 1) if line in ("torn", "a,b,c") and i > start]
        assert torn == bad
        assert numbers == [i for i in range(start + 1, 301) if i not in bad]
