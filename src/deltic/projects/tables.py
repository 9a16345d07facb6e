"""The tables of a catalog that a project's datasets are, as any reader queries them.

A materialized view in a file format has a folder for each version of its files. A new version is written beside the old one, and the
table's location is then set to it in one statement: a reader sees the old files or the new ones. In Delta it is one commit. If the view has
other columns than its table, the table stays as it is until the rows are there, and is then exchanged.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from deltic.errors import QueryError
from deltic.projects.declared import declared_notes
from deltic.projects.definitions import LIVE_FORMAT, Dataset
from deltic.projects.direct import FEED, DirectTable, local
from deltic.projects.feeds import direct_table, identity
from deltic.projects.layout import TableAnnotations, TableLayout, pairs, partitions_of, text
from deltic.projects.net import DELETES, NetChange
from deltic.projects.notes import ProjectNotes
from deltic.projects.partitions import link_others
from deltic.projects.server import Server, together
from deltic.schema import Field, Schema
from deltic.types import backquoted

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame

Creation: TypeAlias = Literal["kept", "extended", "new", "again", "pending"]
"""pending: the table has other columns, until `replace` exchanges it."""
TRANSACTIONAL: Final = ("delta", "iceberg")
"""Formats with commits of their own."""
MANAGED: Final = "MANAGED"
"""The type of tables that Spark truncates; one that was created with a location is EXTERNAL."""
TRANSACTION: Final = "spark.databricks.delta.write"
DEFAULT_FORMAT: Final = "spark.sql.sources.default"
CREATING: Final = {
    "spark.sql.hive.manageFilesourcePartitions": "false",  # otherwise a version of the files would be set partition by partition
    "spark.sql.legacy.notReserveProperties": "true",  # Declarative Pipelines accept the property `owner`
}


class CatalogTables:
    """storage: the folder or URL under which the versions of files are. state: that of Deltic's state, which live tables read.

    notes: the ids of tables of Delta, as Spark has said them, and what tables say are kept in them.
    """

    def __init__(self, server: Server, storage: str, state: str, notes: ProjectNotes) -> None:
        self._server, self._storage, self._state = server, storage.rstrip("/"), state
        self._notes = notes
        self._layouts: dict[str, TableLayout | None] = {}
        self._default: str | None = None
        self._pending: dict[str, tuple[Schema, str]] = {}
        """Of datasets whose tables have other columns: theirs, and the format of the table."""

    def look_up(self, datasets: Iterable[Dataset]) -> None:
        """Looks up formats and columns of the tables that there are, before `create` and before any flow runs."""
        self._default_format()
        stored = list(datasets)
        absent = self._list(stored)
        existing = together(partial(self._look_up, dataset) for dataset in stored if dataset.identifier not in absent)
        looked_up = [dataset.key for dataset in stored if dataset.identifier not in absent]
        self._layouts = dict(zip(looked_up, existing, strict=True))

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

    def _look_up(self, dataset: Dataset) -> TableLayout | None:
        """The layout of a table: from the log of one in Delta, otherwise from Spark. None if there is no such table."""
        if not self._server.is_listed(dataset.identifier) and not self._server.exists(dataset.identifier):
            return None
        table = None if dataset.live else self.direct(dataset)
        if table is not None and (columns := table.columns()) is not None:
            return TableLayout("delta", columns, table.partitions)
        listed = self._server.is_listed(dataset.identifier) and not dataset.live
        partitions = partitions_of(self._server.located(dataset.identifier)) if listed else None
        return TableLayout(self._provider(dataset), self._columns(dataset), partitions)

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

    def is_absent(self, dataset: Dataset) -> bool:
        """Whether a dataset has no table. After look_up, before `create`."""
        return self._layouts.get(dataset.key) is None

    def differs(self, dataset: Dataset, schema: Schema) -> bool:
        """Whether a dataset has no table, or one of other columns, another format or other partitions. After look_up, before `create`."""
        existing = self._layouts.get(dataset.key)
        return existing is None or not existing.is_of(dataset, self.format(dataset), schema)

    def create(self, dataset: Dataset, schema: Schema, *, from_nothing: bool = False) -> Creation:
        """Creates the table unless it exists with these columns and this format. After look_up.

        One with others stays until `replace` exchanges it. That of a streaming table, whose rows would be lost, gets the columns that it
        lacks, unless it starts from nothing. Raises QueryError if it has other types, or another format.
        """
        creation: Creation = "new"
        if (existing := self._layouts.pop(dataset.key, None)) is not None:
            if existing.is_of(dataset, self.format(dataset), schema):
                self._remark(dataset)
                return "kept"
            is_view = dataset.kind == "materialized view" or bool(dataset.changes)
            if not is_view and not from_nothing:
                return self._extend(dataset, schema, existing)
            if is_view and not dataset.live and existing.format not in ("", LIVE_FORMAT):
                self._pending[dataset.key] = schema, existing.format
                return "pending"
            self._server.forget(dataset.identifier)
            self._server.sql(f"DROP TABLE {dataset.identifier}")
            creation = "again"
        with self._server.under(self._server.names, CREATING):
            self._server.sql(self._creation(dataset, schema))
        self._notes.remarks[dataset.key] = self._remarks(dataset).json()
        return creation

    def restore(self, dataset: Dataset, schema: Schema, location: str | None) -> None:
        """Creates a table that the catalog lacks over the files that it has, by one statement. location: None of a format with commits."""
        with self._server.under(self._server.names, CREATING):
            self._server.sql(self._creation(dataset, schema, location))
        self._notes.remarks[dataset.key] = self._remarks(dataset).json()

    def _remarks(self, dataset: Dataset) -> TableAnnotations:
        fixed = () if self.format(dataset) in TRANSACTIONAL else dataset.partitions
        return TableAnnotations.of(dataset, self._properties(dataset), fixed)

    def _remark(self, dataset: Dataset) -> None:
        """Gives a table that stays the comments and properties of the dataset, if they are others than those that are noted."""
        now, noted = self._remarks(dataset), self._notes.remarks.get(dataset.key)
        before = now if noted is None else TableAnnotations(noted["comment"], noted["properties"], noted["columns"])
        if statements := list(now.changing(before, dataset.identifier)):
            with self._server.under(self._server.names, CREATING):
                for statement in statements:
                    self._server.sql(statement)
            self._server.forget(dataset.identifier)
        self._notes.remarks[dataset.key] = now.json()

    def _creation(self, dataset: Dataset, schema: Schema, location: str | None = None) -> str:
        """The statement that creates a table. location: of its files, if it has them already."""
        columns = "" if dataset.live else f" ({_columns(dataset, schema)})"
        clauses = [f"CREATE TABLE {dataset.identifier}{columns}", *self._clauses(dataset)]
        return " ".join(clauses if location is None else [*clauses, f"LOCATION {text(location)}"])

    def _clauses(self, dataset: Dataset) -> list[str]:
        clauses = [f"USING {self.format(dataset)}"]
        if dataset.live:
            clauses.append(f"OPTIONS (view {text(dataset.key)}, path {text(self._state)})")
        if dataset.partitions:
            clauses.append(f"PARTITIONED BY ({', '.join(backquoted(name) for name in dataset.partitions)})")
        if dataset.clusters:
            clauses.append(f"CLUSTER BY ({', '.join(backquoted(name) for name in dataset.clusters)})")
        if dataset.comment is not None:
            clauses.append(f"COMMENT {text(dataset.comment)}")
        if properties := self._properties(dataset):
            clauses.append(f"TBLPROPERTIES ({pairs(properties)})")
        return clauses

    def _extend(self, dataset: Dataset, schema: Schema, existing: TableLayout) -> Creation:
        """Adds the columns that a streaming table lacks. Columns that its flows no longer have stay, and are NULL in new rows."""
        where, remedy = f"{dataset.place}: the table {dataset.key}", f"--full-refresh {dataset.key}, which reads its streams again"
        if existing.format != self.format(dataset):
            raise QueryError(f"{where} has the format {existing.format or 'of a view'}, not {self.format(dataset)}", remedy=remedy)
        if not existing.has_partitions(dataset):
            raise QueryError(f"{where} is {existing.shown}", remedy=remedy)
        for field in schema:
            own = field.type.read.sql
            if (type := existing.columns.get(field.name.lower(), own)) != own:
                raise QueryError(f"{where} has the column {field.name} {type}, its flows return {own}", remedy=remedy)
        added = [field for field in schema if field.name.lower() not in existing.columns]
        if added:
            self._server.sql(f"ALTER TABLE {dataset.identifier} ADD COLUMNS ({_columns(dataset, added)})")
            self._server.forget(dataset.identifier)
        self._remark(dataset)
        return "extended" if added else "kept"

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
        format, pending = self.format(dataset), self._pending.pop(dataset.key, None)
        if format in TRANSACTIONAL:
            with self._server.under(self._server.names, {}):  # not with the transaction of another view's MERGE
                if pending is None:
                    frame.write.format(format).mode("overwrite").saveAsTable(dataset.identifier)
                else:
                    self._recreate(dataset, frame, same_format=pending[1] == format)
            return None
        location = self._written(dataset, frame)
        if pending is None:
            self._locate_version(dataset, location, before)
        else:
            self._exchange(dataset, pending[0], location, before)
            self._notes.remarks[dataset.key] = self._remarks(dataset).json()
        return location

    def _recreate(self, dataset: Dataset, frame: DataFrame, *, same_format: bool) -> None:
        """Exchanges a table that has commits for one of a frame, in one commit if it has the same format.

        A column that is declared NOT NULL can then have NULLs: CREATE TABLE AS does not take conditions.
        """
        self._server.forget(dataset.identifier)
        if not same_format:
            self._server.sql(f"DROP TABLE {dataset.identifier}")
        clauses = " ".join(self._clauses(dataset))
        self._server.sql(f"CREATE OR REPLACE TABLE {dataset.identifier} {clauses} AS SELECT * FROM {{rows}}", rows=frame)
        remarks = self._remarks(dataset)
        for statement in remarks.changing(replace(remarks, columns={}), dataset.identifier):
            self._server.sql(statement)
        self._notes.remarks[dataset.key] = remarks.json()

    def _exchange(self, dataset: Dataset, schema: Schema, location: str, before: str | None) -> None:
        """Exchanges a table of files for one of other columns, by one script of statements that write nothing.

        The catalog would remove the files of the old one, which queries may be reading: it gets links to them, in a folder of this machine.
        """
        old = None if before is None else local(before)
        if before is not None and old is not None and old.is_dir():
            links = f"{before}-dropped"
            shutil.copytree(old, f"{old}-dropped", copy_function=os.link, dirs_exist_ok=True)
            self.locate(dataset, links)
        with self._server.under(self._server.names, CREATING):
            self._server.sql(f"BEGIN DROP TABLE {dataset.identifier}; {self._creation(dataset, schema, location)}; END")
        self._server.session.catalog.refreshTable(dataset.identifier)
        self._server.forget(dataset.identifier)
        if before is not None:
            self._forget(dataset, keep={location, before, self.events(dataset)})

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
        names = [backquoted(name) for name in change.rows.column_names if name != DELETES]
        on = " AND ".join(f"t.{backquoted(name)} <=> s.{backquoted(name)}" for name in change.key)
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
        """The table, if it is one of Delta whose log is on this machine, and stays: the same table, by its id, as Spark has."""
        if dataset.key in self._pending:
            return None
        table = direct_table(self._server, dataset.identifier)
        if table is None or table.identity == self._notes.identities.get(dataset.key):
            return table
        if table.identity != identity(self._server, dataset.identifier):
            return None
        self._notes.identities[dataset.key] = table.identity
        return table

    def locate(self, dataset: Dataset, location: str) -> None:
        """Sets the location of a table's files."""
        self._server.sql(f"ALTER TABLE {dataset.identifier} SET LOCATION {text(location)}")
        self._server.session.catalog.refreshTable(dataset.identifier)
        self._server.forget(dataset.identifier)

    def location(self, dataset: Dataset) -> str:
        """The location of a streaming table's files, which stays until it starts from nothing."""
        return f"{self._folder(dataset)}/rows{_suffix(self._notes.rows.get(dataset.key, 0))}"

    def empty(self, dataset: Dataset) -> None:
        """Empties a streaming table. Of one of files, the log of Spark's file sink goes with them, or stays where they were."""
        format = self.format(dataset)
        if format in TRANSACTIONAL or self._server.described(dataset.identifier).get("Type") == MANAGED:
            self._server.sql(f"TRUNCATE TABLE {dataset.identifier}")
        if format not in TRANSACTIONAL:
            self.remove_rows(dataset)
            self.locate(dataset, self.location(dataset))

    def remove_rows(self, dataset: Dataset) -> None:
        """Removes a streaming table's files, if they are on this machine."""
        if (rows := local(self.location(dataset))) is not None:
            shutil.rmtree(rows, ignore_errors=True)

    def events(self, dataset: Dataset) -> str:
        """Where the events are kept of which a dataset is made."""
        return f"{self._folder(dataset)}/events{self._generation(dataset)}"

    def checkpoint(self, dataset: Dataset, flow: str) -> str:
        """Where Spark notes how far a flow has read."""
        return f"{self.checkpoints(dataset)}/{flow.replace('`', '')}"

    def checkpoints(self, dataset: Dataset) -> str:
        """Where Spark notes how far the flows of a dataset have read."""
        return f"{self._storage}/_deltic_checkpoints{self._generation(dataset)}/{dataset.key.replace('`', '')}"

    def begin_again(self, dataset: Dataset) -> None:
        """Gives a dataset new checkpoints, and a new place for rows or events, if the old ones cannot be removed, as in an object store.

        To be noted before a flow runs: half of a run that reads from the beginning must not be resumed by the next one.
        """
        if local(self._storage) is None:
            self._notes.generations[dataset.key] = self._notes.generations.get(dataset.key, 0) + 1
            self._notes.rows[dataset.key] = self._notes.generations[dataset.key]

    def _generation(self, dataset: Dataset) -> str:
        return _suffix(self._notes.generations.get(dataset.key, 0))

    def _folder(self, dataset: Dataset) -> str:
        return f"{self._storage}/_deltic_tables/{dataset.key.replace('`', '')}"

    def _forget(self, dataset: Dataset, keep: set[str]) -> None:
        """Removes the files of versions before the last, which readers that began then may still have open. Of folders of this machine."""
        folder = local(self._folder(dataset))
        if folder is not None and folder.is_dir():
            for version in folder.iterdir():
                if f"{self._folder(dataset)}/{version.name}" not in keep:
                    shutil.rmtree(version)


def _suffix(generation: int) -> str:
    return f"@{generation}" if generation else ""


def _same(path: str, url: str) -> bool:
    """Whether two locations are one."""
    return path == url or (local(url) is not None and local(path) == local(url))


def _columns(dataset: Dataset, fields: Iterable[Field]) -> str:
    """Columns in SQL, with what the dataset's schema says of them. CHAR and VARCHAR are STRING: Deltic neither pads nor limits values."""
    notes = declared_notes(dataset)
    shown = []
    for field in fields:
        required, comment = notes.get(field.name.lower(), (False, None))
        shown.append(f"{backquoted(field.name)} {field.type.read.sql}{' NOT NULL' * required}")
        if comment is not None:
            shown[-1] += f" COMMENT {text(comment)}"
    return ", ".join(shown)
