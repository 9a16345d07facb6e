"""ReadableView: the methods to read a view, of a session as of its last commit, or of a state folder at one of its epochs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deltic.errors import DataError, SetupError
from deltic.schema import Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

if TYPE_CHECKING:
    import pandas
    import polars


class ReadableView(ABC):
    """A view. Every read costs O(rows read)."""

    name: str

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Columns in the order of the query."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The content; a row of weight w occurs w times."""

    @abstractmethod
    def changes(self, epoch: int | None = None) -> pa.Table:
        """The last change: the view's columns and `_weight`, which is positive for added rows and negative for removed ones.

        epoch: an earlier retained epoch. Raises StateError for other epochs.
        """

    @abstractmethod
    def lookup(self, key: Any) -> list[dict[str, Any]]:
        """The rows with a key: a value, a tuple, or a dict over the view's key columns (`key_columns`) or the first of them.

        O(log state + matching rows).
        """

    @property
    @abstractmethod
    def _leading(self) -> tuple[Field, ...]:
        """The fields of the key of `lookup`."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key of `lookup`: those that identify a row, if there are any, else all."""
        return tuple(f.name for f in self._leading)

    def to_pandas(self) -> pandas.DataFrame:
        """The content as a pandas DataFrame; requires pandas."""
        try:
            import pandas  # noqa: PLC0415, F401  an optional extra
        except ImportError as error:
            raise SetupError("pandas is not installed", remedy='pip install "deltic[spark]", or pandas by itself') from error
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The content as a Polars DataFrame; requires polars."""
        try:
            import polars  # noqa: PLC0415  an optional extra
        except ImportError as error:
            raise SetupError("polars is not installed", remedy="pip install polars") from error
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """The content as dicts."""
        return listed(self.to_arrow())

    def _key_values(self, key: Any) -> tuple[Any, ...]:
        """The values of a key of `lookup`, for the first of its columns. Raises DataError."""
        names = self.key_columns
        expected = names[0] if len(names) == 1 else f"{', '.join(names)}, or the first of them"
        if isinstance(key, Mapping):
            given = {str(name).lower(): value for name, value in key.items()}
            values = [given.pop(n.lower()) for n in names[: len(given)] if n.lower() in given]
            if given or len(values) != len(key):
                raise DataError(f"view {self.name} cannot be looked up by {', '.join(map(str, key))}", expected=expected)
            return tuple(values)
        values = list(key) if isinstance(key, Sequence) and not isinstance(key, str) else [key]
        if not 1 <= len(values) <= len(names):
            remedy = "a key of one column is a tuple of its list: ([…],)" if self._leading[0].type.is_nested else None
            raise DataError(f"view {self.name} has no key of {len(values)} columns", expected=expected, remedy=remedy)
        return tuple(values)


def rows_under(spines: Sequence[Spine], words: Sequence[np.ndarray], width: int) -> Batch:
    """The rows with the keys in all spines. words: int64[n] for each leading column. width: the number of words of a row."""
    parts = []
    for spine in spines:
        _, columns, weights = probe(spine, words, range(width), Counters())
        rows = Rows(columns, weights)
        parts.append(rows if spine.share is None else spine.share.of(rows))
    return consolidate(Rows.concat(parts))


def listed(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as dicts."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
