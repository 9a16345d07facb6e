"""What a tick reads from outside: by the change feed of a Delta table, by new files, or all rows, to be compared with those held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from deltic.connectors.frames import WEIGHT
from deltic.projects.feeds import FeedVersion, read_source
from deltic.projects.messages import SourceRead
from deltic.projects.notes import ProjectNotes
from deltic.projects.planning import ProjectPlan
from deltic.projects.server import Server
from deltic.projects.tables import TRANSACTIONAL, CatalogTables


@dataclass(slots=True)
class SourceReads:
    """contents: all rows of tables. changes: change frames of others. files: new files by table. Notes how far each table has been read."""

    plan: ProjectPlan
    server: Server
    tables: CatalogTables
    notes: ProjectNotes
    say: Callable[[str], None]
    contents: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.contents or self.changes)

    def source(self, key: str, read: SourceRead) -> None:
        """Reads a source from outside of the project."""
        if read.named:
            self._table(key, read.message.read.named_table.unparsed_identifier)
        else:
            self.contents[key] = self.server.rows(read.message)

    def dataset(self, key: str) -> None:
        """Reads the rows of a dataset that Spark has written, or those of events: of a table that grows in files, those of new files."""
        events = self.plan.events.get(key)
        if events is not None:
            place = self.tables.events(events.dataset)
            self._files(key, self.server.files("parquet", place), "parquet", place)
            return
        one = self.plan.datasets[key]
        format = self.tables.format(one.dataset)
        if one.refresh != "appended" or format in TRANSACTIONAL:
            self._table(key, one.dataset.identifier)
        else:
            self._files(key, self.server.table(one.dataset.identifier), format, self.tables.location(one.dataset))

    def _table(self, key: str, identifier: str) -> None:
        noted = self.notes.versions.pop(key, None)
        before = None if noted is None else FeedVersion(noted[0], noted[1])
        read = read_source(self.server, identifier, before, self.plan.tables[key].schema)
        if read.version is not None:
            self.notes.versions[key] = [read.version.table, read.version.number]
        if read.gap is not None:
            self.say(f"{key}: compared with the rows that Deltic holds, since its change feed has a gap: {read.gap}")
        if read.whole:
            self.contents[key] = self._own(key, read.rows)
        elif read.rows.num_rows:
            self.changes[key] = self._own(key, read.rows)

    def _own(self, key: str, rows: pa.Table) -> pa.Table:
        """Without columns of a streaming table that its flows no longer have."""
        if key not in self.plan.datasets:
            return rows
        kept = {*(field.name.lower() for field in self.plan.tables[key].schema), WEIGHT}
        return rows.select([name for name in rows.column_names if name.lower() in kept])

    def _files(self, key: str, table: Any, format: str, place: str) -> None:
        files, seen = table.inputFiles(), self.notes.files.get(key)
        self.notes.files[key] = sorted(files)
        if seen is None or not set(seen) <= set(files):
            self.contents[key] = self._own(key, self.server.rows(self.server.message(table)))
            self.files |= {key: tuple(sorted(files))} if files else {}
            return
        if new := sorted(set(files) - set(seen)):
            reader = self.server.session.read.format(format).schema(table.schema).option("basePath", place)
            rows = self.server.rows(self.server.message(reader.load(new).select(*table.columns)))
            self.files[key] = tuple(new)
            self.changes[key] = self._own(key, rows.append_column(WEIGHT, pa.array([1] * rows.num_rows, pa.int64())))
