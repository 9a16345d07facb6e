"""The tables of a catalog that a project's datasets are, as any reader queries them.

A materialized view in a file format has a folder for each version of its files. A new version is written beside the old one, and the
table's location is then set to it in one statement: a reader sees the old files or the new ones. In Delta it is one commit.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from deltic.projects.definitions import Dataset
from deltic.projects.server import Server
from deltic.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame

TRANSACTIONAL: Final = ("delta", "iceberg")
"""Formats with commits of their own."""
DEFAULT_FORMAT: Final = "spark.sql.sources.default"
CREATING: Final = {
    "spark.sql.hive.manageFilesourcePartitions": "false",  # otherwise a version of the files would be set partition by partition
    "spark.sql.legacy.notReserveProperties": "true",  # Declarative Pipelines accept the property `owner`
}


class CatalogTables:
    """storage: the folder or URL under which the versions of files are."""

    def __init__(self, server: Server, storage: str) -> None:
        self._server, self._storage = server, storage.rstrip("/")

    def format(self, dataset: Dataset) -> str:
        """The format of a dataset."""
        return (dataset.format or self._server.session.conf.get(DEFAULT_FORMAT) or "parquet").lower()

    def create(self, dataset: Dataset, schema: Schema) -> bool:
        """Creates the table unless it exists with these columns; returns whether it did. One with other columns is dropped first."""
        if self._server.exists(dataset.identifier):
            if self._columns(dataset) == {field.name.lower(): field.type.sql for field in schema}:
                return False
            self._server.sql(f"DROP TABLE {dataset.identifier}")
        columns = ", ".join(f"`{field.name}` {field.type.sql}" for field in schema)
        clauses = [f"CREATE TABLE {dataset.identifier} ({columns}) USING {self.format(dataset)}"]
        if dataset.partitions:
            clauses.append(f"PARTITIONED BY ({', '.join(f'`{name}`' for name in dataset.partitions)})")
        if dataset.clusters:
            clauses.append(f"CLUSTER BY ({', '.join(f'`{name}`' for name in dataset.clusters)})")
        if dataset.comment is not None:
            clauses.append(f"COMMENT {_text(dataset.comment)}")
        if dataset.properties:
            clauses.append(f"TBLPROPERTIES ({_pairs(dataset.properties)})")
        with self._server.under(self._server.names, CREATING):
            self._server.sql(" ".join(clauses))
        return True

    def _columns(self, dataset: Dataset) -> dict[str, str]:
        message = self._server.message(self._server.table(dataset.identifier))
        return {field.name.lower(): field.type.sql for field in self._server.schema(message, self._server.names, {})}

    def replace(self, dataset: Dataset, frame: DataFrame, before: str | None) -> str | None:
        """Makes the rows of a frame the table's, at once. before: the location of the version that it has. Returns the new one."""
        format = self.format(dataset)
        writer = frame.write.format(format).mode("overwrite")
        if format in TRANSACTIONAL:
            writer.saveAsTable(dataset.identifier)
            return None
        location = f"{self._folder(dataset)}/{uuid.uuid4().hex[:16]}"
        if dataset.partitions:
            writer = writer.partitionBy(*dataset.partitions)
        writer.save(location)
        self.locate(dataset, location)
        if before is not None:
            self._forget(dataset, keep={location, before})
        return location

    def locate(self, dataset: Dataset, location: str) -> None:
        """Sets the location of a table's files."""
        self._server.sql(f"ALTER TABLE {dataset.identifier} SET LOCATION {_text(location)}")
        self._server.session.catalog.refreshTable(dataset.identifier)

    def location(self, dataset: Dataset) -> str:
        """The location of a streaming table's files, which stays."""
        return f"{self._folder(dataset)}/rows"

    def events(self, dataset: Dataset) -> str:
        """Where the events are kept of which a dataset is made."""
        return f"{self._folder(dataset)}/events"

    def checkpoint(self, dataset: Dataset, flow: str) -> str:
        """Where Spark notes how far a flow has read."""
        return f"{self._storage}/_deltic_checkpoints/{dataset.key.replace('`', '')}/{flow.replace('`', '')}"

    def _folder(self, dataset: Dataset) -> str:
        return f"{self._storage}/_deltic_tables/{dataset.key.replace('`', '')}"

    def _forget(self, dataset: Dataset, keep: set[str]) -> None:
        """Removes the files of versions before the last, which readers that began then may still have open. Of folders of this machine."""
        folder = local(self._folder(dataset))
        if folder is not None and folder.is_dir():
            for version in folder.iterdir():
                if f"{self._folder(dataset)}/{version.name}" not in keep:
                    shutil.rmtree(version)


def local(url: str) -> Path | None:
    """The path of a folder of this machine; None for one in an object store."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(url)


def _text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _pairs(properties: Mapping[str, Any]) -> str:
    return ", ".join(f"{_text(str(key))} = {_text(str(value))}" for key, value in properties.items())
