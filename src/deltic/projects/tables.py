"""The tables of a catalog that a project's datasets are, as any reader queries them.

A materialized view in a file format has a folder for each version of its files. A new version is written beside the old one, and the
table's location is then set to it in one statement: a reader sees the old files or the new ones. In Delta it is one commit.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from deltic.errors import QueryError
from deltic.projects.declared import declared_notes
from deltic.projects.definitions import LIVE_FORMAT, Dataset
from deltic.projects.direct import FEED, DirectTable, local
from deltic.projects.feeds import direct_table, identity
from deltic.projects.names import quoted
from deltic.projects.net import DELETES, NetChange
from deltic.projects.partitions import link_others
from deltic.projects.server import Server, together
from deltic.schema import Field, Schema

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame

Creation: TypeAlias = Literal["kept", "extended", "new", "again"]
TRANSACTIONAL: Final = ("delta", "iceberg")
"""Formats with commits of their own."""
TRANSACTION: Final = "spark.databricks.delta.write"
DEFAULT_FORMAT: Final = "spark.sql.sources.default"
CREATING: Final = {
    "spark.sql.hive.manageFilesourcePartitions": "false",  # otherwise a version of the files would be set partition by partition
    "spark.sql.legacy.notReserveProperties": "true",  # Declarative Pipelines accept the property `owner`
}


class CatalogTables:
    """storage: the folder or URL under which the versions of files are. state: that of Deltic's state, which live tables read.

    identities: by key, the ids that Spark has said that tables of Delta have. They are added to it.
    """

    def __init__(self, server: Server, storage: str, state: str, identities: dict[str, str]) -> None:
        self._server, self._storage, self._state = server, storage.rstrip("/"), state
        self._identities = identities
        self._found: dict[str, tuple[str, dict[str, str]] | None] = {}
        self._default: str | None = None

    def look_up(self, datasets: Iterable[Dataset]) -> None:
        """Looks up formats and columns of the tables that there are, before `create` and before any flow runs."""
        self._default_format()
        stored = list(datasets)
        absent = self._list(stored)
        found = together(partial(self._look_up, dataset) for dataset in stored if dataset.identifier not in absent)
        looked_up = [dataset.key for dataset in stored if dataset.identifier not in absent]
        self._found = dict(zip(looked_up, found, strict=True))

    def _list(self, datasets: Iterable[Dataset]) -> set[str]:
        """Asks for all tables of a schema at once. Returns the identifiers of those that are not there."""
        schemas: dict[tuple[str, str], dict[str, str]] = {}
        for dataset in datasets:
            catalog, schema, name = self._server.names.parts(dataset.identifier)
            if name.isidentifier():
                schemas.setdefault((catalog, schema), {})[name.lower()] = dataset.identifier
        absent: set[str] = set()
        for home, tables in schemas.items():
            try:
                absent |= set(tables.values()) - self._server.listed(home, tables).keys()
            except QueryError:  # not every catalog lists tables so
                continue
        return absent

    def _look_up(self, dataset: Dataset) -> tuple[str, dict[str, str]] | None:
        """The format and the columns of a table: from the log of one in Delta, otherwise from Spark. None if there is no such table."""
        if not self._server.is_listed(dataset.identifier) and not self._server.exists(dataset.identifier):
            return None
        table = None if dataset.live else self.direct(dataset)
        columns = None if table is None else table.columns()
        return ("delta", columns) if columns is not None else (self._provider(dataset), self._columns(dataset))

    def format(self, dataset: Dataset) -> str:
        """The format of a dataset."""
        if dataset.live:
            self._server.register()
            return LIVE_FORMAT
        return (dataset.format or self._default_format()).lower()

    def _default_format(self) -> str:
        """Spark's default, read once: a flow may have another setting while it runs."""
        if self._default is None:
            with self._server.under(self._server.names, {}):
                self._default = self._server.session.conf.get(DEFAULT_FORMAT) or "parquet"
        return self._default

    def create(self, dataset: Dataset, schema: Schema, *, from_nothing: bool = False) -> Creation:
        """Creates the table unless it exists with these columns and this format. After look_up.

        A table with others is dropped first. That of a streaming table, whose rows would be lost, gets the columns that it lacks instead,
        unless it starts from nothing. Raises QueryError if it has other types, or another format.
        """
        creation: Creation = "new"
        if (found := self._found.pop(dataset.key, None)) is not None:
            if found == (self.format(dataset), {field.name.lower(): field.type.read.sql for field in schema}):
                return "kept"
            if dataset.kind == "streaming table" and not dataset.changes and not from_nothing:
                return self._extend(dataset, schema, *found)
            self._server.forget(dataset.identifier)
            self._server.sql(f"DROP TABLE {dataset.identifier}")
            creation = "again"
        columns_ = "" if dataset.live else f" ({_columns(dataset, schema)})"
        clauses = [f"CREATE TABLE {dataset.identifier}{columns_} USING {self.format(dataset)}"]
        if dataset.live:
            clauses.append(f"OPTIONS (view {_text(dataset.key)}, path {_text(self._state)})")
        if dataset.partitions:
            clauses.append(f"PARTITIONED BY ({', '.join(quoted([name]) for name in dataset.partitions)})")
        if dataset.clusters:
            clauses.append(f"CLUSTER BY ({', '.join(quoted([name]) for name in dataset.clusters)})")
        if dataset.comment is not None:
            clauses.append(f"COMMENT {_text(dataset.comment)}")
        if properties := self._properties(dataset):
            clauses.append(f"TBLPROPERTIES ({_pairs(properties)})")
        with self._server.under(self._server.names, CREATING):
            self._server.sql(" ".join(clauses))
        return creation

    def _extend(self, dataset: Dataset, schema: Schema, format: str, columns: Mapping[str, str]) -> Creation:
        """Adds the columns that a streaming table lacks. Columns that its flows no longer have stay, and are NULL in new rows."""
        where, remedy = f"{dataset.place}: the table {dataset.key}", f"--full-refresh {dataset.key}, which reads its streams again"
        if format != self.format(dataset):
            raise QueryError(f"{where} has the format {format or 'of a view'}, not {self.format(dataset)}", remedy=remedy)
        for field in schema:
            own = field.type.read.sql
            if (type := columns.get(field.name.lower(), own)) != own:
                raise QueryError(f"{where} has the column {field.name} {type}, its flows return {own}", remedy=remedy)
        added = [field for field in schema if field.name.lower() not in columns]
        if not added:
            return "kept"
        self._server.sql(f"ALTER TABLE {dataset.identifier} ADD COLUMNS ({_columns(dataset, added)})")
        self._server.forget(dataset.identifier)
        return "extended"

    def _properties(self, dataset: Dataset) -> Mapping[str, Any]:
        """A streaming table in Delta has a change feed, by which views take what is new; it costs nothing where rows are only added."""
        feeds = dataset.kind == "streaming table" and not dataset.changes and self.format(dataset) == "delta"
        return {FEED: "true", **dataset.properties} if feeds else dataset.properties

    def _provider(self, dataset: Dataset) -> str:
        """The format of the table that the catalog has; "" for one that is live over another state, or a live one that should not be."""
        if not dataset.live:
            return self._server.described(dataset.identifier).get("Provider", "").lower()
        columns = self._server.table(dataset.identifier).schema.fields
        carried = columns[0].metadata.get(LIVE_FORMAT, {}) if columns else {}
        same = carried.get("view") == dataset.key and _same(carried.get("path", ""), self._state)
        return LIVE_FORMAT if same else ""

    def _columns(self, dataset: Dataset) -> dict[str, str]:
        message = self._server.message(self._server.table(dataset.identifier))
        return {field.name.lower(): field.type.sql for field in self._server.schema(message, self._server.names, {})}

    def replace(self, dataset: Dataset, frame: DataFrame, before: str | None) -> str | None:
        """Makes the rows of a frame the table's, at once. before: the location of the version that it has. Returns the new one."""
        format = self.format(dataset)
        if format in TRANSACTIONAL:
            frame.write.format(format).mode("overwrite").saveAsTable(dataset.identifier)
            return None
        location = self._written(dataset, frame)
        self._locate_version(dataset, location, before)
        return location

    def replace_partitions(self, dataset: Dataset, frame: DataFrame, before: str, changed: Collection[tuple[str, ...]]) -> str:
        """As replace, of the partitions `changed` alone, whose rows the frame has: as `partitions.shown` names them."""
        location = self._written(dataset, frame)
        old, new = local(before), local(location)
        assert old is not None and new is not None
        link_others(old, new, len(dataset.partitions), changed)
        self._locate_version(dataset, location, before)
        return location

    def _written(self, dataset: Dataset, frame: DataFrame) -> str:
        """The location of a new version of the files."""
        location = f"{self._folder(dataset)}/{uuid.uuid4().hex[:16]}"
        writer = frame.write.format(self.format(dataset)).mode("overwrite")
        if dataset.partitions:
            writer = writer.partitionBy(*dataset.partitions)
        writer.save(location)
        return location

    def _locate_version(self, dataset: Dataset, location: str, before: str | None) -> None:
        self.locate(dataset, location)
        if before is not None:
            self._forget(dataset, keep={location, before, self.events(dataset)})

    def merge(self, dataset: Dataset, change: NetChange, frame: DataFrame, transaction: tuple[str, int]) -> None:
        """Applies a net change in one commit. frame: its rows. transaction: an application and a number, which Delta takes once."""
        application, number = transaction
        names = [quoted([name]) for name in change.rows.column_names if name != DELETES]
        on = " AND ".join(f"t.{quoted([name])} <=> s.{quoted([name])}" for name in change.key)
        if change.unique:
            update = ", ".join(f"t.{name} = s.{name}" for name in names)
            matched = f"WHEN MATCHED AND s.{DELETES} THEN DELETE WHEN MATCHED THEN UPDATE SET {update}"
        else:
            on, matched = f"s.{DELETES} AND {on}", "WHEN MATCHED THEN DELETE"
        inserted = f"INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        merged = f"MERGE INTO {dataset.identifier} t USING {{changes}} s ON {on}"
        settings = {f"{TRANSACTION}.txnAppId": application, f"{TRANSACTION}.txnVersion": str(number)}
        with self._server.under(self._server.names, settings):
            self._server.sql(f"{merged} {matched} WHEN NOT MATCHED AND NOT s.{DELETES} THEN {inserted}", changes=frame)

    def direct(self, dataset: Dataset) -> DirectTable | None:
        """The table, if it is one of Delta whose log is on this machine: the same table, by its id, as Spark has."""
        table = direct_table(self._server, dataset.identifier)
        if table is None or table.identity == self._identities.get(dataset.key):
            return table
        if table.identity != identity(self._server, dataset.identifier):
            return None
        self._identities[dataset.key] = table.identity
        return table

    def locate(self, dataset: Dataset, location: str) -> None:
        """Sets the location of a table's files."""
        self._server.sql(f"ALTER TABLE {dataset.identifier} SET LOCATION {_text(location)}")
        self._server.session.catalog.refreshTable(dataset.identifier)
        self._server.forget(dataset.identifier)

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


def _same(path: str, url: str) -> bool:
    """Whether two locations are one."""
    return path == url or (local(url) is not None and local(path) == local(url))


def _text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _columns(dataset: Dataset, fields: Iterable[Field]) -> str:
    """Columns in SQL, with what the dataset's schema says of them. CHAR and VARCHAR are STRING: Deltic neither pads nor limits values."""
    notes = declared_notes(dataset)
    shown = []
    for field in fields:
        required, comment = notes.get(field.name.lower(), (False, None))
        shown.append(f"{quoted([field.name])} {field.type.read.sql}{' NOT NULL' * required}")
        if comment is not None:
            shown[-1] += f" COMMENT {_text(comment)}"
    return ", ".join(shown)


def _pairs(properties: Mapping[str, Any]) -> str:
    return ", ".join(f"{_text(str(key))} = {_text(str(value))}" for key, value in properties.items())
