"""The replay as a pipeline in a folder: the feed's changes as parquet files, and a script that reads them and writes every view.

`write` creates in the folder flights.sql, and in/<table>/<number>.parquet, one file for each tick and table that changes in it.
The number is the tick's, so the files of one tick have the same name in all tables. `deltic run` adds out/<view>/ and flights.state/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from deltic.errors import SinkError
from deltic.examples.flights.feed import FlightFeed
from deltic.examples.flights.script import NAME, QUERIES, TABLES, TEXT

SNAPSHOTS: Final = ("busiest_routes",)
"""Small views that are read as a whole: their sinks keep one file up to date."""


def pipeline_text() -> str:
    """flights.sql with a folder for each table and a sink for each view; paths are relative to the script."""
    tables = re.sub(r"CREATE TABLE (\w+) \((.*?)\n\);", _with_source, TEXT, flags=re.DOTALL)
    return tables + "\n" + "\n".join(_sink(view) for view in QUERIES)


def _with_source(table: re.Match[str]) -> str:
    name, columns = table.groups()
    return f"CREATE TABLE {name} ({columns}\n) USING parquet OPTIONS (path 'in/{name}', op_column '_op');"


def _sink(view: str) -> str:
    mode = "snapshot" if view in SNAPSHOTS else "changes"
    return f"CREATE SINK {view}_out FROM {view} USING parquet OPTIONS (path 'out/{view}', mode '{mode}');\n"


def write(feed: FlightFeed, folder: Path, *, limit: int | None = None, every_s: int = 12 * 3_600) -> int:
    """Writes script and files, up to the tick that reaches `limit` changes. Returns the number of changes.

    Raises SinkError if the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SinkError(f"the folder {folder} is not empty", expected="a new or an empty folder")
    for table in TABLES:
        (folder / "in" / table).mkdir(parents=True)
    written = 0
    for number, tick in enumerate(feed.ticks(every_s)):
        _write_tick(folder / "in", number, tick.changes)
        written += tick.size
        if limit is not None and written >= limit:
            break
    (folder / NAME).write_text(pipeline_text(), encoding="utf-8")
    return written


def _write_tick(folder: Path, number: int, changes: Mapping[str, pa.Table]) -> None:
    for table, frame in changes.items():
        pq.write_table(frame, folder / table / f"{number:06d}.parquet")
