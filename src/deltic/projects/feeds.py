"""What sources have become since they were last taken: the change feed of a Delta table, or all rows, to be compared with those held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from deltic.connectors.frames import WEIGHT
from deltic.errors import QueryError
from deltic.projects.messages import SourceRead
from deltic.projects.server import Server

FEED: Final = "delta.enableChangeDataFeed"
_GAPS: Final = (
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
)
"""Spark's names of errors of a feed that does not reach back: it was off for a while, or its files were removed."""
_WEIGHT: Final = f"CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1L ELSE -1L END AS {WEIGHT}"


@dataclass(frozen=True, slots=True)
class FeedVersion:
    """A version of a Delta table, whose id a table of the same name that is created later does not have."""

    table: str
    number: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of a table. whole: all of them, not changes. version: of a Delta table with a change feed. gap: why its feed was not read."""

    rows: pa.Table
    whole: bool
    version: FeedVersion | None = None
    gap: str | None = None


def with_feeds(server: Server, sources: Mapping[str, SourceRead]) -> set[str]:
    """The sources that are tables of Delta with a change feed."""
    named = {key: read.message.read.named_table.unparsed_identifier for key, read in sources.items() if read.named}
    return {key for key, identifier in named.items() if _has_feed(described(server, identifier))}


def described(server: Server, identifier: str) -> Mapping[str, str]:
    """What the catalog says about a table."""
    return {row[0]: row[1] or "" for row in server.sql(f"DESCRIBE EXTENDED {identifier}")}


def _has_feed(described: Mapping[str, str]) -> bool:
    properties = [one.strip() for one in described.get("Table Properties", "").strip("[]").split(",")]
    return described.get("Provider", "").lower() == "delta" and f"{FEED}=true" in properties


def delta_version(server: Server, identifier: str) -> FeedVersion | None:
    """The version of a table of Delta that has a change feed; None of anything else."""
    if not _has_feed(described(server, identifier)):
        return None
    detail = server.sql(f"DESCRIBE DETAIL {identifier}")[0]
    return FeedVersion(detail["id"], server.sql(f"DESCRIBE HISTORY {identifier} LIMIT 1")[0]["version"])


def take(server: Server, identifier: str, before: FeedVersion | None) -> Taken:
    """What a table of the catalog has become. before: the version of which Deltic holds the rows. Raises QueryError."""
    version = delta_version(server, identifier)
    reader: Any = server.session.read
    if version is None:
        return Taken(server.rows(server.message(reader.table(identifier))), True)
    gap = None
    if before is not None and before.table == version.table and before.number <= version.number:
        columns = [f"`{name}`" for name in server.table(identifier).columns]
        if before.number == version.number:
            none = reader.table(identifier).limit(0).selectExpr(*columns, f"0L AS {WEIGHT}")
            return Taken(server.rows(server.message(none)), False, version)
        feed = reader.option("readChangeFeed", "true").option("startingVersion", before.number + 1).option("endingVersion", version.number)
        try:
            return Taken(server.rows(server.message(feed.table(identifier).selectExpr(*columns, _WEIGHT))), False, version)
        except QueryError as error:
            if not any(name in error.message for name in _GAPS):
                raise
            gap = error.message
    whole = server.session.read.option("versionAsOf", version.number).table(identifier)
    return Taken(server.rows(server.message(whole)), True, version, gap)
