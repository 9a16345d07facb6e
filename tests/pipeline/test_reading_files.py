"""Which files are read when, and what the state notes of them."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from deltic.errors import CatalogError, SourceError
from deltic.pipeline import Pipeline, Progress
from deltic.pipeline.dry_run import dry_run
from deltic.session import Session
from shop import CUSTOMERS, EXPECTED, EXPECTED_LETTERS, FAILING, ORDERS, SCRIPT, SPEND, TOP, Shop, views


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def taken(pipeline: Pipeline) -> list[str]:
    return sorted(key.removeprefix("taken:") for key in pipeline.session.notes if key.startswith("taken:"))


def test_files_are_read_in_order_of_name_each_whole_before_the_next(shop: Shop) -> None:
    shop.fill()
    reports: list[Progress] = []
    with shop.pipeline() as pipeline:
        summary = pipeline.run_once(reports.append)
        assert views(pipeline) == EXPECTED
    assert [progress.files["orders"] for progress in reports] == [("a.csv",), ("a.csv",), ("b.csv",), ("b.csv", "c.csv"), ("c.csv",)]
    assert [progress.rows_in["orders"] for progress in reports] == [2, 2, 2, 2, 2]
    assert summary.rows_in == Counter(orders=10, customers=4) and summary.files == 6 and summary.letters == Counter(orders=2)
    assert shop.letters() == EXPECTED_LETTERS


@pytest.mark.parametrize("rows_per_tick", [1, 3, 4, 100])
def test_how_rows_fall_into_ticks_makes_no_difference(shop: Shop, rows_per_tick: int) -> None:
    shop.fill()
    assert shop.run(rows_per_tick=rows_per_tick) == EXPECTED
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"] and shop.letters() == EXPECTED_LETTERS


def test_a_tick_reads_a_bounded_number_of_rows_by_default(shop: Shop) -> None:
    shop.customers("large.parquet", [(1, "ann")] * 250_000)
    with shop.pipeline(rows_per_tick=None) as pipeline:
        reports: list[Progress] = []
        pipeline.run_once(reports.append)
    assert [progress.rows_in for progress in reports] == [{"customers": 100_000}, {"customers": 100_000}, {"customers": 50_000}]


def test_each_file_is_read_once(shop: Shop) -> None:
    shop.fill()
    shop.run()
    assert shop.run() == EXPECTED
    shop.customers("d.parquet", [(2, "bob")])
    with shop.pipeline() as pipeline:
        assert pipeline.run_once().rows_in == Counter(customers=1)


def test_a_late_file_with_a_smaller_name_is_read_next(shop: Shop) -> None:
    shop.fill()
    reports: list[Progress] = []

    def more(progress: Progress) -> None:
        reports.append(progress)
        if len(reports) == 1:
            shop.orders("0.csv", "insert,9,2,9")

    with shop.pipeline() as pipeline:
        pipeline.run_once(more)
    assert [progress.files["orders"] for progress in reports][:3] == [("a.csv",), ("a.csv",), ("0.csv", "b.csv")]


def test_a_split_file_resumes_where_it_left_off(shop: Shop) -> None:
    shop.fill()
    with shop.pipeline() as pipeline:
        pipeline.run_once(lambda _: pipeline.stop())
        assert pipeline.session.notes["cursor:orders"][:2] == ["a.csv", 2]
    with shop.pipeline(rows_per_tick=3) as pipeline:
        assert pipeline.tick().rows_in == {"orders": 3, "customers": 2}  # type: ignore[union-attr]
        assert pipeline.run_once().rows_in["orders"] == 5
        assert "cursor:orders" not in pipeline.session.notes
        assert views(pipeline) == EXPECTED


def test_removed_files_are_forgotten_with_the_next_file_that_is_read(shop: Shop) -> None:
    shop.fill()
    with shop.pipeline() as pipeline:
        pipeline.run_once()
        for path in (shop.folder / "in" / "orders").iterdir():
            path.unlink()
        pipeline.run_once()
        assert taken(pipeline) == [f"{table}:{name}" for table in ("customers", "orders") for name in _names(table)]
        shop.orders("d.csv", "insert,7,1,70")
        pipeline.run_once()
        assert taken(pipeline) == ["customers:a.parquet", "customers:b.parquet", "customers:c.parquet", "orders:d.csv"]


def _names(table: str) -> list[str]:
    return ["a.parquet", "b.parquet", "c.parquet"] if table == "customers" else ["a.csv", "b.csv", "c.csv"]


def test_a_file_with_another_time_and_the_same_bytes_is_the_same(shop: Shop) -> None:
    shop.fill()
    with shop.pipeline() as pipeline:
        pipeline.run_once()
        before = pipeline.session.notes["taken:orders:a.csv"]
        os.utime(shop.folder / "in" / "orders" / "a.csv", ns=(1, 1))
        assert pipeline.run_once().ticks == 0
        shop.orders("d.csv", "insert,7,1,70")
        pipeline.run_once()
        assert pipeline.session.notes["taken:orders:a.csv"] == [before[0], 1, *before[2:]]


def test_a_file_that_changed_after_it_was_read_is_refused_until_it_is_restored(shop: Shop) -> None:
    shop.fill()
    before = shop.run()
    path = shop.folder / "in" / "orders" / "b.csv"
    old = path.read_text()
    path.write_text(old.replace("25", "26"))
    shop.orders("d.csv", "insert,7,1,70")
    with shop.pipeline() as pipeline:
        with pytest.raises(SourceError) as error:
            pipeline.run_once()
        was, now = pipeline.session.notes["taken:orders:b.csv"], 0
        message = str(error.value).splitlines()
        assert message[0].startswith(
            f"[DELTIC-6000] table orders: the file {path} changed after it was read "
            f"(then {was[0]} bytes with checksum {was[2]:08x}, now {was[0]} with "
        )
        assert message[1:] == [
            "expected: files that stay as they are once they have been read",
            "help: restore the old file, or remove it; put changes into a new file",
        ]
        assert views(pipeline) == before and now == 0
        path.write_text(old)
        assert pipeline.run_once().rows_in == Counter(orders=1)


def test_a_split_file_may_change_after_the_part_that_was_read(shop: Shop) -> None:
    shop.customers("a.parquet", [(1, "ann")])
    path = shop.orders("a.csv", "insert,1,1,10", "insert,2,1,20", "insert,3,1,30", "insert,4,1,forty")
    with shop.pipeline(FAILING) as pipeline:
        with pytest.raises(Exception, match="'forty'"):
            pipeline.run_once()
        assert views(pipeline)["spend"] == Counter()
    shop.orders("a.csv", "insert,1,1,10", "insert,2,1,20", "insert,3,1,30", "insert,3,1,40")
    with shop.pipeline(FAILING) as pipeline:
        with pytest.raises(Exception, match=f"file {path}, row 4: table orders already has a row with primary key id=3"):
            pipeline.run_once()
        assert views(pipeline)["spend"] == Counter({("ann", 30, 2): 1})
        shop.orders("a.csv", "insert,1,1,10", "insert,2,1,20", "insert,3,1,30", "insert,4,1,40", "insert,5,1,50")
        pipeline.run_once()
        assert views(pipeline)["spend"] == Counter({("ann", 150, 5): 1})


def test_a_split_file_that_changed_in_the_part_that_was_read_is_refused(shop: Shop) -> None:
    path = shop.orders("a.csv", "insert,1,1,10", "insert,2,1,20", "insert,3,1,30")
    shop.customers("a.parquet", [(1, "ann")])
    with shop.pipeline() as pipeline:
        pipeline.run_once(lambda _: pipeline.stop())
    shop.orders("a.csv", "insert,1,1,10", "insert,2,1,21", "insert,3,1,30")
    with shop.pipeline() as pipeline:
        with pytest.raises(SourceError) as error:
            pipeline.run_once()
        assert str(error.value).splitlines() == [
            f"[DELTIC-6000] table orders: the file {path} changed in its first 2 rows, which had been read",
            "expected: a file that changes, if at all, after these rows",
            "help: restore these rows; put changes to them into a new file",
        ]
        path.unlink()
        with pytest.raises(SourceError) as error:
            pipeline.run_once()
        assert str(error.value).splitlines() == [
            f"[DELTIC-6000] table orders: the file {path} was removed when only its first 2 rows had been read",
            "help: restore it, so that the rest can be read too",
        ]
        shop.orders("a.csv", "insert,1,1,10", "insert,2,1,20", "insert,3,1,30")
        pipeline.run_once()
        assert views(pipeline)["spend"] == Counter({("ann", 60, 3): 1})


NESTED = {"a": [1], "m": {"x": 1.5}, "s": {"b": None}, "v": {"c": [True]}, "y": "/w=="}


def test_a_split_file_of_nested_values_and_bytes_resumes_and_may_change_after_the_part_that_was_read(tmp_path: Path) -> None:
    columns = "a ARRAY<INT>, m MAP<STRING, DOUBLE>, s STRUCT<b: INT>, v VARIANT, y BINARY"
    sql = f"CREATE TABLE t ({columns}) USING json OPTIONS (path 'in'); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t;"
    path, rows = tmp_path / "in/1.json", [NESTED, NESTED, {"a": None}, {**NESTED, "y": "QQ=="}, {"y": ""}]
    path.parent.mkdir()

    def write(*rows: object) -> None:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(rows_per_tick: int, *, whole: bool = True) -> int:
        with Pipeline(sql, state=tmp_path / "state", base=tmp_path, rows_per_tick=rows_per_tick) as pipeline:
            pipeline.run_once(None if whole else lambda _: pipeline.stop())
            return int(pipeline.session.view("n").rows()[0]["n"])

    write(*rows)
    assert run(1, whole=False) + run(3, whole=False) == 1 + 4
    for part in ({"a": [2]}, {"m": {"x": 2}}, {"s": {"b": 1}}, {"v": {"c": [False]}}, {"y": "/g=="}):
        write(rows[0], {**NESTED, **part}, *rows[2:])
        with pytest.raises(SourceError, match="changed in its first 4 rows"):
            run(3)
    write(*rows, NESTED)
    assert run(3) == 6


def test_the_checksum_of_plain_columns_is_that_of_states_of_earlier_versions(tmp_path: Path) -> None:
    sql = "CREATE TABLE t (a INT, b STRING, c BINARY) USING csv OPTIONS (path 'in');"
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.csv").write_text('1,"x""y",w6Q=\n,"",\n3,z,YQ==\n')
    with Pipeline(sql, state=tmp_path / "state", base=tmp_path, rows_per_tick=2) as pipeline:
        pipeline.run_once(lambda _: pipeline.stop())
        assert pipeline.session.notes["cursor:t"][-1] == 260146585


def test_files_of_a_dropped_table_are_read_again_if_it_is_created_again(shop: Shop) -> None:
    shop.fill()
    shop.run()
    orders_alone = SCRIPT.split("CREATE TABLE customers")[0]
    with shop.pipeline(orders_alone) as pipeline:
        assert not [key for key in pipeline.session.notes if key.startswith("taken:customers")]
        pipeline.run_once()
    shutil.rmtree(shop.made / "spend")
    assert shop.run() == EXPECTED
    assert shop.summed() == EXPECTED["spend"]


WITHOUT_SINKS = ORDERS.format(letters=", on_error 'dead_letter', dead_letter_path 'made/letters'") + CUSTOMERS + SPEND + TOP


@pytest.mark.parametrize("way", ["undeclared", "declared", "program"])
def test_files_of_a_table_that_a_session_drops_are_read_again(shop: Shop, way: str) -> None:
    shop.fill()
    assert shop.run(WITHOUT_SINKS) == EXPECTED
    with Session(state=str(shop.state)) as session:
        match way:
            case "undeclared":
                session.sql("DROP TABLE customers")
            case "declared":
                session.program(WITHOUT_SINKS)
                session.sql("DROP VIEW spend; DROP TABLE Customers")
            case _:
                session.program(ORDERS.format(letters=""))
        noted = [key for key in session.notes if key.startswith(("taken:", "cursor:"))]
        assert noted and all(key.startswith("taken:orders:") for key in noted)
    with shop.pipeline(WITHOUT_SINKS) as pipeline:
        assert pipeline.run_once().rows_in == Counter(customers=4)
        assert views(pipeline) == EXPECTED


def test_files_of_a_table_that_an_earlier_version_dropped_are_read_again(shop: Shop) -> None:
    """It left their offsets in the state."""
    shop.fill()
    shop.run(WITHOUT_SINKS)
    with Session(state=str(shop.state)) as session:
        offsets = {key: note for key, note in session.notes.items() if key.startswith("taken:customers:")}
        session.sql("DROP TABLE customers")
        session._note(offsets)
    planned = dry_run(WITHOUT_SINKS, state=str(shop.state), base=shop.folder)
    assert {source.table: len(source.files) for source in planned.sources} == {"orders": 0, "customers": 3}
    assert shop.run(WITHOUT_SINKS) == EXPECTED


def test_a_state_whose_tables_were_dropped_is_not_a_new_one(shop: Shop) -> None:
    shop.fill()
    shop.run(WITHOUT_SINKS)
    with Session(state=str(shop.state)) as session:
        session.program("")
        epoch = session.epoch
    assert epoch > 0
    assert (
        str(dry_run(WITHOUT_SINKS, state=str(shop.state), base=shop.folder).start)
        == f"resumes after epoch {epoch}; views filled: spend, top"
    )
    with shop.pipeline(WITHOUT_SINKS) as pipeline:  # to open a state is a commit
        assert str(pipeline.start) == f"resumes after epoch {epoch + 1}; views filled: spend, top"
    with Pipeline("CREATE TABLE t (a INT);", state=shop.made / "new") as pipeline:
        assert str(pipeline.start) == "a new state; tables without a source: t"


def test_rows_of_a_table_with_a_source_are_not_given_beside_its_files(shop: Shop) -> None:
    """They would stand in for those of the files, which would count as read."""
    shop.fill()
    script = f"{SCRIPT}; CREATE TABLE calls (id BIGINT, PRIMARY KEY (id))"
    with Pipeline(script, state=shop.state, base=shop.folder) as pipeline:
        for name in ("orders", "ORDERS"):
            with pytest.raises(CatalogError, match="table orders is read from its source"):
                pipeline.tick({"calls": [{"id": 1, "_op": "insert"}], name: [{"id": 99, "_op": "insert"}]}, {"offset": 1})
        assert not taken(pipeline) and "offset" not in pipeline.session.notes
        progress = pipeline.tick({"calls": [{"id": 1, "_op": "insert"}]}, {"offset": 1})
        assert progress is not None and progress.rows_in == {"orders": 10, "customers": 4} and pipeline.session.notes["offset"] == 1
        assert views(pipeline) == EXPECTED and pipeline.session.query("SELECT id FROM calls").rows() == [{"id": 1}]
