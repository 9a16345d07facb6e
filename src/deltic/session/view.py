"""A view of a session: its content, its changes, and subscriptions to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltic.errors import SetupError
from deltic.runtimes.readable_view import ReadableView, listed
from deltic.runtimes.sought import SoughtValues
from deltic.runtimes.view_errors import NO_ERRORS, errors_of, listed_errors
from deltic.schema import Field, Schema
from deltic.session.contents import Contents
from deltic.session.definitions import Stored
from deltic.session.engines import spark_frame
from deltic.session.subscribers import Subscriber
from deltic.storage.reader import checked_epoch
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.reading import copied, total_weight
from deltic.trace.spine import Spine
from deltic.trace.strings import SoughtStrings, StringTable

if TYPE_CHECKING:
    import pyspark.sql


class View(ReadableView):
    """A materialized view of a session, as of the last commit. Reads decode the rows that they return: O(rows read)."""

    def __init__(self, contents: Contents, name: str, spark: pyspark.sql.SparkSession | None) -> None:
        self._contents, self.name, self._spark = contents, name, spark

    @property
    def _arrangement(self) -> str:
        """The id of the view's arrangement, in the state too. A view of another meaning has another id."""
        return self._contents.stored(self.name).spec.id

    @property
    def _is_stream(self) -> bool:
        """Whether the content is that of the last tick."""
        return self._contents.stored(self.name).spec.ephemeral

    @property
    def schema(self) -> Schema:
        """Columns in the order of the query."""
        return self._contents.stored(self.name).reader.schema

    def to_arrow(self) -> pa.Table:
        """The content; a row of weight w is listed w times."""
        return self._contents.read(self.name, self._content)

    def rows(self) -> list[dict[str, Any]]:
        """See ReadableView."""
        return self._contents.read(self.name, lambda stored, spines: listed(self._content(stored, spines)))

    def _count(self) -> int:
        """See ReadableView."""
        return self._contents.read(self.name, lambda stored, spines: sum(total_weight(spine.scan(Counters())) for spine in spines))

    def to_spark(self) -> pyspark.sql.DataFrame:
        """The content as a Spark DataFrame of the session's Spark, with the types of the schema."""
        if self._spark is None:
            raise SetupError("this session has no Spark", remedy="deltic.Session(spark=spark, state='folder') has one")
        frame: pyspark.sql.DataFrame = spark_frame(self._spark, self.to_arrow(), self.schema)
        return frame

    def lookup(self, key: Any, *, by: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """See ReadableView."""
        return self._contents.read(self.name, lambda stored, spines: self._matches(stored, spines, key, by))

    def _content(self, stored: Stored, spines: Sequence[Spine]) -> pa.Table:
        return stored.reader.content(merged(spines), self._contents.strings)

    def _matches(self, stored: Stored, spines: Sequence[Spine], key: Any, by: Sequence[str] | None) -> list[dict[str, Any]]:
        return listed(self._table(stored, spines, self._sought(stored.spec.shape.schema, key, by)))

    def _table(self, stored: Stored, spines: Sequence[Spine], sought: SoughtValues) -> pa.Table:
        strings = self._contents.strings
        matches = sought.rows(spines, SoughtStrings(strings) if sought.has_strings else strings)
        return stored.reader.content(matches, strings)

    @property
    def _leading(self) -> tuple[Field, ...]:
        spec = self._contents.stored(self.name).spec
        return spec.shape.schema.fields[: spec.key]

    def changes(self, epoch: int | None = None) -> pa.Table:
        """See ReadableView. Raises StateError also for an epoch at which the view had another definition, or did not exist."""
        return self._contents.change(self.name) if epoch is None else self._contents.change_at(self.name, checked_epoch(epoch))

    def errors(self) -> pa.Table:
        """See ReadableView."""
        self._contents.stored(self.name)  # open, and not dropped
        places = self._contents.definitions.places
        if self.name not in places:
            return NO_ERRORS
        return listed_errors(self._contents.read(errors_of(self.name), self._content), places[self.name])

    def _arrangement_if_last(self, epoch: int) -> str | None:
        """`_arrangement` after the commit of an epoch; None unless that is the last commit."""
        return self._contents.arrangement_if_last(epoch, self.name)

    def _content_if_last(self, epoch: int) -> pa.Table | None:
        """The content after the commit of an epoch; None unless that is the last commit."""
        return self._contents.read_if_last(epoch, self.name, self._content)

    def _change_if_last(self, epoch: int) -> pa.Table | None:
        """The change in the commit of an epoch, also if the view has errors; None unless that is the last commit."""
        return self._contents.change_if_last(epoch, self.name)

    def _has_errors_if_last(self, epoch: int) -> bool | None:
        """Whether the view has errors after the commit of an epoch; None unless that is the last commit."""
        return self._contents.has_errors_if_last(epoch, self.name)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls `callback(changes)` after each commit that changes the view. Returns a function that ends the subscription."""
        return self._contents.subscribe(self.name, callback)


def rows_with(view: View, columns: Sequence[str], keys: Collection[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """By column, the values of the rows of a view that have one of several different keys in some columns; see `lookup`."""
    strings = view._contents.strings
    values = view._contents.read(view.name, lambda stored, spines: values_with(stored, spines, view.name, columns, keys, strings))
    return dict(zip(view.schema.names, values, strict=True))


def values_with(
    stored: Stored, spines: Sequence[Spine], name: str, columns: Sequence[str], keys: Collection[tuple[Any, ...]], strings: StringTable
) -> list[list[Any]]:
    """The values of each column in the rows that have one of several different keys in some columns."""
    if not keys:
        return [[] for _ in stored.reader.schema]
    fields = stored.spec.shape.schema
    positions = [fields.find(column)[0] for column in columns]
    order = sorted(range(len(columns)), key=positions.__getitem__)
    first, *others = keys if order == sorted(order) else (tuple(key[i] for i in order) for key in keys)
    sought = SoughtValues(name, fields, tuple(sorted(positions)), first, tuple(others))
    matches = sought.rows(spines, SoughtStrings(strings) if sought.has_strings else strings)
    return stored.reader.values(copied(matches.columns, matches.weights[0]), strings)


def merged(parts: Sequence[Spine]) -> Batch:
    batches = [spine.scan(Counters()) for spine in parts]
    return batches[0] if len(batches) == 1 else merge(batches)
