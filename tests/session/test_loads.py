"""Loads: in chunks, each a tick; equal to one tick of all rows, wherever they stop, and with bounded memory."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import deltic
from deltic import errors
from deltic.session.progress_bar import bar

SCRIPT = """
    CREATE TABLE orders (id BIGINT, customer STRING, amount INT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer;
    CREATE MATERIALIZED VIEW pairs AS
        SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer AND a.amount = b.amount AND a.id < b.id
"""
ROWS = 1_000


def orders(start: int = 0, end: int = ROWS) -> pa.Table:
    ids = range(start, end)
    names = [None if i % 17 == 0 else f"c{i * 7 % 23}" for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "customer": names, "amount": pa.array([i % 11 for i in ids], pa.int32())})


def opened(**options: Any) -> deltic.Session:
    session = deltic.Session(**options)
    session.sql(SCRIPT)
    return session


def content(session: deltic.Session) -> dict[str, list[tuple[Any, ...]]]:
    return {view: sorted((tuple(row.values()) for row in session.view(view).rows()), key=repr) for view in ("spend", "pairs")}


def whole(rows: int) -> dict[str, list[tuple[Any, ...]]]:
    """After one tick."""
    with opened() as session:
        session.apply({"orders": orders(0, rows).append_column("_weight", pa.array([1] * rows))})
        return content(session)


def of_parquet(folder: Path) -> str:
    for start in range(0, ROWS, 250):
        pq.write_table(orders(start, start + 250), folder / f"{start:05}.parquet", row_group_size=90)
    return str(folder / "*.parquet")


def of_csv(folder: Path) -> Path:
    pa.csv.write_csv(orders(), folder / "orders.csv", pa.csv.WriteOptions(include_header=False))
    return folder / "orders.csv"


def of_json(folder: Path) -> Path:
    (folder / "a.json").write_text(orders(0, 600).to_pandas().to_json(orient="records", lines=True))
    (folder / "b.json").write_text(orders(600).to_pandas().to_json(orient="records", lines=True))
    return folder


def of_arrow(folder: Path) -> list[Path]:
    with pa.OSFile(str(folder / "a.arrow"), "wb") as out, pa.ipc.new_file(out, orders().schema) as writer:
        writer.write_table(orders(0, 300), max_chunksize=70)
    with pa.OSFile(str(folder / "b.arrow"), "wb") as out, pa.ipc.new_stream(out, orders().schema) as stream:
        stream.write_table(orders(300))
    return [folder / "a.arrow", folder / "b.arrow"]


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": of_parquet,
    "csv": of_csv,
    "json": of_json,
    "arrow": of_arrow,
    "table": lambda _: orders(),
    "dicts": lambda _: orders().to_pylist(),
    "pandas": lambda _: orders().to_pandas(),
    "polars": lambda _: pl.from_arrow(orders()),
    "batch": lambda _: orders().combine_chunks().to_batches()[0],
    "reader": lambda _: orders().to_reader(max_chunksize=130),
    "frames": lambda _: (orders(start, min(start + 170, ROWS)) for start in range(0, ROWS, 170)),
    "frames of several kinds": lambda _: iter([orders(0, 5), orders(5, 220).to_pandas(), orders(220, 300).to_pylist(), orders(300)]),
    "a list of frames": lambda _: [orders(0, 400), orders(400)],
    "an iterator of dicts": lambda _: iter(orders().to_pylist()),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_load_is_equal_to_one_tick(kind: str, tmp_path: Path) -> None:
    seen: list[deltic.LoadProgress] = []
    with opened(shards=3, threads=2) as session:
        before = session.epoch
        last = session.load("orders", SOURCES[kind](tmp_path), rows_per_tick=300, progress=seen.append)
        assert content(session) == whole(ROWS)
        assert session.epoch == before + 4
    assert [(one.what, one.rows) for one in seen] == [("orders", rows) for rows in (300, 600, 900, 1_000)]
    assert (last.rows, last.total) == (ROWS, seen[0].total)
    assert (seen[0].total is not None) == (kind in ("parquet", "table", "dicts", "pandas", "polars", "batch"))
    assert [one.total for one in seen] == [seen[0].total or None] * 4
    assert sorted(one.seconds for one in seen) == [one.seconds for one in seen]


@pytest.mark.parametrize("size", [1, 7, 100, 999, 1_000, 1_001])
def test_any_size_of_chunks(size: int) -> None:
    with opened() as session:
        before = session.epoch
        session.load("orders", orders().to_reader(max_chunksize=64), rows_per_tick=size)
        assert content(session) == whole(ROWS)
        assert session.epoch - before == -(-ROWS // size)


def test_nothing_to_load() -> None:
    with opened() as session:
        before = session.epoch
        for source in ([], orders(0, 0), iter([]), iter([orders(0, 0)])):
            assert session.load("orders", source).rows == 0
        assert session.epoch == before


class Stop(Exception):
    pass


@pytest.mark.parametrize("kind", [Stop, KeyboardInterrupt])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_listener_that_raises_ends_the_load_after_a_chunk(kind: type[BaseException], after: int, tmp_path: Path) -> None:
    calls = []

    def stops(progress: deltic.LoadProgress) -> None:
        calls.append(progress)
        if len(calls) == after:
            raise kind

    with opened(state=tmp_path, shards=2) as session:
        with pytest.raises(kind) as raised:
            session.load("orders", orders(), rows_per_tick=300, resume="first load", progress=stops)
        assert raised.value.__notes__ == [
            f"load of orders: the first {300 * after:,} rows are committed; the same load with resume='first load' continues after them"
        ]
        assert content(session) == whole(300 * after)
    with opened(state=tmp_path) as session:
        assert session.notes["first load"] == 300 * after
        rest: list[deltic.LoadProgress] = []
        session.load("orders", orders(), rows_per_tick=300, resume="first load", progress=rest.append)
        assert rest[0].rows == 300 * after + min(300, ROWS - 300 * after)
        assert content(session) == whole(ROWS)
        again = session.load("orders", orders(), resume="first load", progress=rest.append)
        assert again.rows == ROWS and rest[-1].rows == ROWS


def test_an_interrupt_within_a_tick_leaves_the_chunks_before(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as session:
        ticks = 0
        tick = session._runtime.tick

        def interrupted(*arguments: Any, **options: Any) -> Any:
            nonlocal ticks
            ticks += 1
            if ticks == 3:
                raise KeyboardInterrupt
            return tick(*arguments, **options)

        monkeypatch.setattr(session._runtime, "tick", interrupted)
        with pytest.raises(KeyboardInterrupt) as raised:
            session.load("orders", orders(), rows_per_tick=300)
        assert raised.value.__notes__ == ["load of orders: the first 600 rows are committed"]
        assert content(session) == whole(600)


def test_a_failed_chunk_is_not_counted_though_another_thread_commits_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as session:
        session.sql("CREATE TABLE others (id BIGINT)")
        session.insert("orders", orders(650, 651))
        commit = session._commit_pending

        def after_another(*arguments: Any) -> None:
            session.sql("INSERT INTO others VALUES (1)")
            commit(*arguments)

        monkeypatch.setattr(session, "_commit_pending", after_another)
        with pytest.raises(errors.DuplicateKey) as raised:
            session.load("orders", orders(), rows_per_tick=300)
        assert raised.value.__notes__ == ["load of orders: the first 600 rows are committed"]


def with_null(row: int) -> Iterator[pa.Table]:
    for start in range(0, ROWS, 125):
        part = orders(start, start + 125)
        if start <= row < start + 125:
            amounts = part["amount"].to_pylist()
            amounts[row - start] = None
            part = part.set_column(2, "amount", pa.array(amounts, pa.int32()))
        yield part


def test_an_error_of_a_later_chunk_names_its_row() -> None:
    with opened() as session:
        with pytest.raises(errors.ConstraintViolation, match=r"^.DELTIC-2002. table orders, row 777, column amount: NULL") as raised:
            session.load("orders", with_null(777), rows_per_tick=300)
        assert raised.value.__notes__ == ["load of orders: the first 600 rows are committed"]
        assert content(session) == whole(600)


def test_a_key_that_exists_is_an_error_at_its_row(tmp_path: Path) -> None:
    def source() -> Iterator[dict[str, Any]]:
        for row in orders(300).to_pylist():
            yield row if row["id"] != 800 else {**row, "id": 5}

    with opened() as session:
        session.load("orders", orders(0, 300))
        with pytest.raises(errors.DuplicateKey, match="row 500: table orders already has a row with primary key id=5"):
            session.load("orders", source(), rows_per_tick=120)
        assert content(session) == whole(300 + 480)
        pq.write_table(orders(290, 400), tmp_path / "twice.parquet")
        with pytest.raises(errors.DuplicateKey, match=r"file .*twice\.parquet, row 1: table orders already"):
            session.load("orders", tmp_path)
        assert session.load("orders", tmp_path, upsert=True).rows == 110
        assert content(session) == whole(780)


def test_an_error_in_a_file_names_file_and_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;customer;amount\n" + "".join(f"{i};c;1\n" for i in range(10)))
    (tmp_path / "b.csv").write_text("id;customer;amount\n" + "".join(f"{i};c;{'x' if i == 17 else 1}\n" for i in range(10, 20)))
    with opened() as session:
        with pytest.raises(errors.FrameError, match=r"table orders, file .*b\.csv, row 8, column amount: 'x'") as raised:
            session.load("orders", f"{tmp_path}/*.csv", header=True, sep=";", rows_per_tick=4)
        assert raised.value.remedy == "fix the file"
        assert raised.value.__notes__ == ["load of orders: the first 8 rows are committed"]
        with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as out, pa.ipc.new_stream(out, orders().schema) as stream:
            stream.write_table(pa.concat_tables(with_null(7)), max_chunksize=5)
        with pytest.raises(errors.ConstraintViolation, match=r"table orders, file .*c\.arrow, row 8, column amount: NULL"):
            session.load("orders", tmp_path / "c.arrow", upsert=True)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("absent/*.parquet", {}, "there is no file absent"),
        ("absent.txt", {}, "there is no file absent.txt"),
        (7, {}, "found builtins.int, which is not a frame"),
        ({"id": 1}, {}, "found builtins.dict, which is not a frame"),
        (iter([orders(0, 1), 7]), {}, "found builtins.int, which is not a frame"),
        (iter([{"id": 1, "customer": "a", "amount": 1}, orders(0, 1)]), {}, "the iterator mixes dicts and frames"),
        (orders(), {"rows_per_tick": 0}, "invalid option rows_per_tick=0"),
        (orders(), {"progress": 3}, "invalid option progress=3"),
        (orders(), {"resume": "text"}, "the note 'text' is 'other', which is not that of a load"),
        ("orders.parquet", {"format": "parqet"}, "invalid format 'parqet'"),
        (pa.table({"id": [1]}), {}, "the frame has no column customer"),
    ],
)
def test_bad_loads(source: Any, options: dict[str, Any], message: str) -> None:
    with opened() as session:
        session.apply({}, notes={"text": "other"})
        epoch = session.epoch
        with pytest.raises(errors.DelticError, match=message):
            session.load("orders", source, **options)
        assert session.epoch == epoch


def test_the_format_of_a_file(tmp_path: Path) -> None:
    pq.write_table(orders(), tmp_path / "orders.data")
    with opened() as session:
        with pytest.raises(errors.SourceError, match="does not say its format"):
            session.load("orders", tmp_path)
        session.load("orders", tmp_path, format="parquet")
        assert content(session) == whole(ROWS)
        (tmp_path / "cut.arrow").write_bytes(b"ARROW1 and no more")
        with pytest.raises(errors.SourceError, match=r"the file .*cut\.arrow cannot be read"):
            session.load("orders", tmp_path / "cut.arrow")


def test_the_progress_of_a_session() -> None:
    seen: list[deltic.LoadProgress] = []
    with opened(progress=seen.append) as session:
        session.load("orders", orders(), rows_per_tick=600)
        assert [one.rows for one in seen] == [600, 1_000]
        session.load("orders", orders(1_000, 1_100), progress=False)
        assert len(seen) == 2
    with pytest.raises(errors.SetupError, match="invalid option progress='yes'"):
        deltic.Session(progress="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    with bar("orders", 1_000, console) as draw:
        draw(deltic.LoadProgress("orders", 500, 1_000, 0.5))
    assert (("orders" in out.getvalue()) and ("500 of 1,000 rows, 1,000/s" in out.getvalue())) == terminal
    assert terminal or not out.getvalue()


def test_nothing_is_drawn_on_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    with opened(progress=True) as session:
        session.load("orders", orders(), rows_per_tick=100)
    assert capfd.readouterr() == ("", "")


PEAK = """
import resource, sys
import deltic
session = deltic.Session()
session.sql("CREATE STREAM s (id BIGINT, a BIGINT, b BIGINT); CREATE MATERIALIZED VIEW v AS SELECT id FROM s WHERE a = b")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
session.load("s", sys.argv[1], rows_per_tick=1 << 15)
before = peak()
assert session.load("s", [sys.argv[1]] * 20, rows_per_tick=1 << 15).rows == 20 << 18
print(peak() - before)
"""


def test_memory_holds_a_chunk_and_not_the_source(tmp_path: Path) -> None:
    """A stream keeps nothing, so whatever grows would be the source: 126 MB of words."""
    ids = pa.array(range(1 << 18), pa.int64())
    pq.write_table(pa.table({"id": ids, "a": ids, "b": pa.array([1] * len(ids), pa.int64())}), tmp_path / "t.parquet")
    run = subprocess.run([sys.executable, "-c", PEAK, tmp_path / "t.parquet"], capture_output=True, text=True, env=os.environ, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 30, "megabytes"


def test_pandas_of_integers_with_missing_values() -> None:
    """The kinds of columns of a frame are those of `Transaction.insert`."""
    frame = pd.DataFrame({"id": [1, 2], "customer": ["a", None], "amount": [1.0, 2.0]})
    with opened() as session:
        session.load("orders", frame, rows_per_tick=1)
        assert len(session.view("spend").rows()) == 2
