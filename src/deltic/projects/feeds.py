"""What sources have become since they were last read: the change feed of a Delta table, or all rows, to be compared with those held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from deltic.connectors.frames import WEIGHT
from deltic.errors import QueryError
from deltic.projects.direct import FEED, DirectTable
from deltic.projects.messages import SourceRead
from deltic.projects.server import Server, together
from deltic.schema import Schema

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
class TableRead:
    """Rows of a table. whole: all of them, not changes. version: of a Delta table with a change feed. gap: why its feed was not read."""

    rows: pa.Table
    whole: bool
    version: FeedVersion | None = None
    gap: str | None = None


def with_feeds(server: Server, sources: Mapping[str, SourceRead]) -> set[str]:
    """The sources that are tables of Delta with a change feed."""
    named = {key: read.message.read.named_table.unparsed_identifier for key, read in sources.items() if read.named}
    descriptions = together(partial(server.described, identifier) for identifier in named.values())
    return {key for key, about in zip(named, descriptions, strict=True) if _has_feed(about)}


def _has_feed(described: Mapping[str, str]) -> bool:
    properties = [one.strip() for one in described.get("Table Properties", "").strip("[]").split(",")]
    return described.get("Provider", "").lower() == "delta" and f"{FEED}=true" in properties


def delta_version(server: Server, identifier: str) -> FeedVersion | None:
    """The version of a table of Delta that has a change feed; None of anything else."""
    if not _has_feed(server.described(identifier)):
        return None
    return FeedVersion(identity(server, identifier), server.sql(f"DESCRIBE HISTORY {identifier} LIMIT 1")[0]["version"])


def identity(server: Server, identifier: str) -> str:
    """The id of a Delta table."""
    return str(server.sql(f"DESCRIBE DETAIL {identifier}")[0]["id"])


def direct_table(server: Server, identifier: str) -> DirectTable | None:
    """A table of Delta that can be opened without Spark. It is the catalog's only if it has the same id."""
    about = server.located(identifier)
    return DirectTable.at(about.get("Location", "")) if about.get("Provider", "").lower() == "delta" else None


def read_source(server: Server, identifier: str, before: FeedVersion | None, schema: Schema) -> TableRead:
    """What a table of the catalog has become. before: the version of which Deltic holds the rows. Raises QueryError."""
    direct = direct_table(server, identifier)
    if direct is not None and (before is None or before.table != direct.identity):  # a table that has not been read yet
        rows = direct.content(schema) if direct.identity == identity(server, identifier) else None
        if rows is not None:
            server.read(rows.num_rows)
            return TableRead(rows, True, FeedVersion(direct.identity, direct.version) if direct.feed else None)
    elif direct is not None and before is not None:
        changes = direct.changes(before.number, schema)
        if changes is not None:
            server.read(changes.num_rows)
            return TableRead(changes, False, FeedVersion(before.table, direct.version))
    version = delta_version(server, identifier)
    reader: Any = server.session.read
    if version is None:
        return TableRead(server.rows(server.message(reader.table(identifier))), True)
    gap = None
    if before is not None and before.table == version.table and before.number <= version.number:
        columns = [f"`{name}`" for name in server.table(identifier).columns]
        if before.number == version.number:
            none = reader.table(identifier).limit(0).selectExpr(*columns, f"0L AS {WEIGHT}")
            return TableRead(server.rows(server.message(none)), False, version)
        feed = reader.option("readChangeFeed", "true").option("startingVersion", before.number + 1).option("endingVersion", version.number)
        try:
            return TableRead(server.rows(server.message(feed.table(identifier).selectExpr(*columns, _WEIGHT))), False, version)
        except QueryError as error:
            if not any(name in error.message for name in _GAPS):
                raise
            gap = error.message
    whole = server.session.read.option("versionAsOf", version.number).table(identifier)
    return TableRead(server.rows(server.message(whole)), True, version, gap)
