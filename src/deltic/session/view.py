"""A view's content, its last change, and those who want to hear of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deltic.circuit.nodes import ArrangementSpec
from deltic.connectors.fitting import fit
from deltic.errors import DataError, SetupError
from deltic.schema import Schema
from deltic.session.definitions import Stored
from deltic.session.subscribers import Subscriber
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.encoding import encode
from deltic.trace.merge import merge
from deltic.trace.probe import probe
from deltic.trace.reading import copied
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

if TYPE_CHECKING:
    import pandas
    import polars
    import pyspark.sql

    from deltic.session.session import Session


class View:
    """A materialized view of a session, as of the last commit. Every read decodes what it needs: O(rows read)."""

    def __init__(self, session: Session, name: str) -> None:
        self._session, self.name = session, name

    @property
    def schema(self) -> Schema:
        """Columns in the order of the query."""
        return self._session.stored(self.name).reader.schema

    def to_arrow(self) -> pa.Table:
        """The content; a row that is there w times stands w times."""
        strings = self._session.strings
        return self._session.read(self.name, lambda stored, parts: stored.reader.content(_merged(parts), strings))

    def to_pandas(self) -> pandas.DataFrame:
        """The content as a pandas DataFrame."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The content as a Polars DataFrame; needs polars."""
        try:
            import polars  # noqa: PLC0415  an optional extra
        except ImportError as error:
            raise SetupError("polars is not installed", remedy="pip install polars") from error
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_spark(self) -> pyspark.sql.DataFrame:
        """The content as a Spark DataFrame of the session's Spark."""
        spark = self._session.spark
        if spark is None:
            raise SetupError("this session has no Spark", remedy="make it with deltic.Session(spark=spark, state='folder')")
        return spark.createDataFrame(self.to_arrow())

    def rows(self) -> list[dict[str, Any]]:
        """The content as dicts."""
        return _pylist(self.to_arrow())

    def lookup(self, key: Any) -> list[dict[str, Any]]:
        """The rows under a key: a value, a tuple, or a dict over the view's key columns (`key_columns`) or the first of them.

        O(log state + rows found).
        """
        return self._session.read(self.name, lambda stored, spines: self._found(stored, spines, key))

    def _found(self, stored: Stored, spines: Sequence[Spine], key: Any) -> list[dict[str, Any]]:
        spec = stored.spec
        values = self._key_values(spec, key)
        words = self._key_words(spec, values)
        width = spec.shape.layout.width
        parts = []
        for spine in spines:
            _, columns, weights = probe(spine, words, range(width), Counters())
            rows = Rows(columns, weights)
            parts.append(rows if spine.share is None else spine.share.of(rows))
        found = consolidate(Rows.concat(parts))
        return _pylist(stored.reader.table(copied(found.columns, found.weights[0]), self._session.strings))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that `lookup` takes: those that identify a row where there are such, else all."""
        spec = self._session.stored(self.name).spec
        return tuple(f.name for f in spec.shape.schema.fields[: spec.key])

    def changes(self, epoch: int | None = None) -> pa.Table:
        """The last tick's change: the view's columns and `_weight`; a row that came has a positive weight, one that went a negative.

        epoch: an earlier tick, of those that the state retains. Raises StateError for one that it does not.
        """
        return self._session.last_change(self.name) if epoch is None else self._session.change_at(self.name, epoch)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls `callback(changes)` after each commit that changes the view. Returns a function that ends the subscription."""
        return self._session.subscribe(self.name, callback)

    def _key_words(self, spec: ArrangementSpec, values: tuple[Any, ...]) -> list[np.ndarray]:
        fields = spec.shape.schema.fields[: len(values)]
        arrays = [fit([value], f, f"a key of view {self.name}") for value, f in zip(values, fields, strict=True)]
        return [word for array, f in zip(arrays, fields, strict=True) for word in encode(array, f, self._session.strings)]

    def _key_values(self, spec: ArrangementSpec, key: Any) -> tuple[Any, ...]:
        names = [f.name for f in spec.shape.schema.fields[: spec.key]]
        expected = names[0] if len(names) == 1 else f"{', '.join(names)}, or the first of them"
        if isinstance(key, Mapping):
            given = {str(name).lower(): value for name, value in key.items()}
            values = [given.pop(n.lower()) for n in names[: len(given)] if n.lower() in given]
            if given or len(values) != len(key):
                raise DataError(f"view {self.name} cannot be looked up by {', '.join(map(str, key))}", expected=expected)
            return tuple(values)
        values = list(key) if isinstance(key, Sequence) and not isinstance(key, str) else [key]
        if not 1 <= len(values) <= len(names):
            raise DataError(f"view {self.name} has no key of {len(values)} columns", expected=expected)
        return tuple(values)


def _merged(parts: Sequence[Spine]) -> Batch:
    batches = [spine.scan(Counters()) for spine in parts]
    return batches[0] if len(batches) == 1 else merge(batches)


def _pylist(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
