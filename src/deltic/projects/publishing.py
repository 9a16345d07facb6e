"""Writes what has changed in views to the tables of a catalog, after the tick that changed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deltic.errors import StateError
from deltic.projects.definitions import Dataset
from deltic.projects.direct import Replacement, local
from deltic.projects.net import DELETES, changed_keys, net_change, rows_of
from deltic.projects.notes import ProjectNotes
from deltic.projects.partitions import AS_NULL, named, sharing, shown
from deltic.projects.planning import DatasetPlan
from deltic.projects.server import Server, spark_errors
from deltic.projects.tables import CatalogTables
from deltic.schema import BOOLEAN, Field, Schema
from deltic.session import Session, View
from deltic.session.options import PIPELINE_RETAINS

REPLACED_VALUES: Final = 16_000_000
"""A view in Delta with at most so many values (its rows times its columns) is written whole rather than merged by Spark.

A MERGE takes seconds, and rewrites the files of all rows that it changes; deltalake writes 1.5M rows of 3 columns in half a second.
"""


@dataclass(slots=True)
class Publisher:
    """Writes views to their tables; different views at the same time, if threads do."""

    session: Session
    server: Server
    tables: CatalogTables
    notes: ProjectNotes

    def publish(self, one: DatasetPlan) -> str:
        """Writes a view, or what has changed in it since it was written; returns what there is to say."""
        key = one.dataset.key
        view = self.session.view(key)
        if one.dataset.live:
            return f"{key}: live"
        published = self.notes.published.get(key)
        if published is not None and published[0] != view._arrangement:
            published = None
        said = "unchanged"
        if published is not None and not self._changed(view, published[1]):
            if self.session.epoch - published[1] < PIPELINE_RETAINS // 2:  # a note is a tick of its own
                return f"{key}: {said}"
        else:
            with spark_errors(f"{one.dataset.place}: {key}: "):
                said = self._written(one.dataset, view, published)
        self.notes.published[key] = [view._arrangement, self.session.epoch]
        return f"{key}: {said}"

    def lag(self, one: DatasetPlan) -> int:
        """How many committed epochs a view's table lacks; 0 if the view has not changed in them. All, if the session lacks the view."""
        key, published = one.dataset.key, self.notes.published.get(one.dataset.key)
        if key not in self.session.views or published is None or published[0] != (view := self.session.view(key))._arrangement:
            return self.session.epoch
        return self.session.epoch - max(0, published[1]) if self._changed(view, published[1]) else 0

    def replace(self, dataset: Dataset, frame: Any) -> None:
        """Makes the rows of a frame of the server those of a table."""
        location = self.tables.replace(dataset, frame, self.notes.locations.get(dataset.key))
        if location is not None:
            self.notes.locations[dataset.key] = location

    def _written(self, dataset: Dataset, view: View, published: list[Any] | None) -> str:
        said = None
        if self.tables.format(dataset) == "delta":
            said = self._replaced(dataset, view) or (None if published is None else self._merged(dataset, published[1]))
        elif published is not None and dataset.partitions:
            said = self._partitions(dataset, view, published[1])
        return said or self._whole(dataset, view)

    def _partitions(self, dataset: Dataset, view: View, since: int) -> str | None:
        """Writes the partitions that have changed; None if that is not possible."""
        before = self.notes.locations.get(dataset.key)
        folder = None if before is None else local(before)
        if before is None or folder is None or not folder.is_dir() or not named(view.schema, dataset.partitions):
            return None
        columns = tuple(view.schema[view.schema.find(name)[0]].name for name in dataset.partitions)
        try:
            keys = sharing(changed_keys(view, columns, since, self.session.epoch), view.schema, columns)
        except StateError:  # the epochs between are no longer retained, or the view did not exist in one of them
            return None
        frame = self.server.of_rows(rows_of(view, columns, keys), view.schema)
        changed = {shown(key) for key in keys}
        self.notes.locations[dataset.key] = self.tables.replace_partitions(dataset, frame, before, changed)
        return f"incremental, {len(changed):,} partitions written"

    def _whole(self, dataset: Dataset, view: View) -> str:
        rows = view.to_arrow()
        self.replace(dataset, self.server.of_rows(rows, view.schema))
        return f"incremental, {rows.num_rows:,} rows"

    def _replaced(self, dataset: Dataset, view: View) -> str | None:
        """Writes a small view whole to its table in Delta, which takes less than a job of Spark's; None if that is not possible.

        A table with a change feed is not written so: its feed should have what has changed alone. If a write fails, Spark writes the
        view whole: what the table has now is not known, so that no change can be merged into it.
        """
        table = self.tables.direct(dataset) if self._held(view) * len(view.schema) <= REPLACED_VALUES else None
        if table is None or table.feed:
            return None
        rows = view.to_arrow()
        match table.replace(view.schema, rows, self._transaction(dataset)):
            case Replacement.WRITTEN:
                return f"incremental, {rows.num_rows:,} rows written"
            case Replacement.FAILED:
                return f"{self._whole(dataset, view)} written by Spark, since the table has changed or could not be written"
            case Replacement.REFUSED:
                return None

    def _held(self, view: View) -> int:
        """How many rows a view has, equal ones counted each."""
        spines = self.session._runtime.committed.snapshot(view._arrangement)
        return sum(int(batch.weights[0].sum()) for spine in spines for batch in spine.batches)

    def _transaction(self, dataset: Dataset) -> tuple[str, int]:
        return f"deltic-{self.session._state_id}-{dataset.key}", self.session.epoch

    def _merged(self, dataset: Dataset, since: int) -> str | None:
        """Merges what has changed in a view into its table in Delta; None if that is not possible."""
        try:
            change = None if self._mixes(dataset, since) else net_change(self.session, dataset.key, since)
        except StateError:  # the epochs between are no longer retained, or the view did not exist in one of them
            return None
        if change is None:
            return None
        marked = Schema((*self.session.view(dataset.key).schema, Field(DELETES, BOOLEAN)))
        self.tables.merge(dataset, change, self.server.of_rows(change.rows, marked), self._transaction(dataset))
        return f"incremental, {change.changed:,} {'keys' if change.unique else 'different rows'} merged"

    def _mixes(self, dataset: Dataset, since: int) -> bool:
        """Whether a change touches rows that a MERGE cannot tell apart: by its partitions, Delta has NULL instead of an empty string."""
        view = self.session.view(dataset.key)
        fields = [view.schema[view.schema.find(name)[0]] for name in dataset.partitions]
        columns = tuple(field.name for field in fields if field.type.name == "STRING")
        if not columns:
            return False
        touched = set(changed_keys(view, columns, since, self.session.epoch))
        alike = {key for key in touched if len(sharing([key], view.schema, columns)) > 1}
        texts = [key for key in sharing(alike, view.schema, columns) if any(value is not None and value in AS_NULL for value in key)]
        return not touched.isdisjoint(texts) or rows_of(view, columns, texts).num_rows > 0

    def _changed(self, view: View, since: int) -> bool:
        """Whether a view has changed since an epoch; True if that is not known, also since it was dropped and filled again meanwhile."""
        if since < 0:
            return True
        try:
            return any(view.changes(epoch).num_rows for epoch in range(since + 1, self.session.epoch + 1))
        except StateError:
            return True
