"""Readable: rows in several forms. ReadableView: the methods to read a view, of a session as of its last commit, or of a state folder."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltic.errors import DelticError, SetupError, TooManyRows
from deltic.runtimes.shown_rows import SHOWN, rows_html
from deltic.runtimes.sought import SoughtValues, sought_by_columns, sought_by_key
from deltic.schema import Field, Schema
from deltic.types import type_of, with_variants

if TYPE_CHECKING:
    import pandas
    import polars

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


class Readable(ABC):
    """Rows that can be read in several forms."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Columns in the order of the query."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The content; a row of weight w occurs w times."""

    def to_pandas(self) -> pandas.DataFrame:
        """The content as a pandas DataFrame; requires pandas.

        Integers with NULLs are of pandas' nullable types, such as Int64, so that none is rounded; in FLOAT and DOUBLE, NULL is NaN.
        """
        try:
            import pandas  # noqa: PLC0415  an optional extra
        except ImportError as error:
            raise SetupError("pandas is not installed", remedy='pip install "deltic[spark]", or pandas by itself') from error
        content = self.to_arrow()
        frame: pandas.DataFrame = content.to_pandas(integer_object_nulls=True)
        dtypes = (pandas.Int8Dtype(), pandas.Int16Dtype(), pandas.Int32Dtype(), pandas.Int64Dtype())
        nullable = dict(zip(_INTEGERS, dtypes, strict=True))
        for i, column in enumerate(content.columns):
            if column.null_count and column.type in nullable:
                frame.isetitem(i, column.to_pandas(types_mapper=nullable.get))
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

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows, as many as `rows()` lists. O(rows), without their values."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts, all of one commit."""
        return iter(self.rows())

    def _repr_html_(self) -> str:
        """The first rows, as notebooks show them, or why they cannot be read. O(rows)."""
        try:
            content = self.to_arrow()
        except DelticError as error:
            return f"<p>{escape(error.message)}</p>"
        return rows_html(content.slice(0, SHOWN), content.num_rows)


class ReadableView(Readable):
    """A view. Every read costs O(rows read)."""

    name: str

    def __repr__(self) -> str:
        """The name and the columns; of a view that cannot be read any more, the name."""
        try:
            columns = ", ".join(f"{field.name} {field.type.sql}" for field in self.schema)
        except DelticError:
            return f"<view {self.name}>"
        return f"<view {self.name} ({columns})>"

    @abstractmethod
    def _count(self) -> int:
        """The number of rows, each as often as its weight says. O(rows), without their values."""

    def __len__(self) -> int:
        """See Readable. Raises TooManyRows for more than Python's lengths can say."""
        count = self._count()
        if count > sys.maxsize:
            raise TooManyRows(
                f"{self.name} has {count:,} rows, and a length is at most {sys.maxsize:,}", remedy="SELECT count(*) by columns"
            )
        return count

    def __bool__(self) -> bool:
        """Whether there is a row; of more, too, than a length can say. O(rows)."""
        return self._count() > 0

    @abstractmethod
    def changes(self, epoch: int | None = None) -> pa.Table:
        """The last change: the view's columns and `_weight`, which is positive for added rows and negative for removed ones.

        epoch: an earlier retained epoch. Raises StateError for other epochs.
        """

    @abstractmethod
    def errors(self) -> pa.Table:
        """The errors of the view, where they are isolated: error, place, expression, row and weight; no rows if it is exact.

        place: file:line:column, if the text is known. row: the columns that the expression reads. O(errors).
        """

    @abstractmethod
    def lookup(self, key: Any, *, by: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The rows with a key: a value, a tuple, or a dict over the view's key columns (`key_columns`) or the first of them.

        by: the names of any columns, of which the key then has the values, in their order. None finds NULL.
        O(log state + matching rows). By other columns than the first of the key's, the first call sorts the view by them in memory,
        in O(n log n), and later ones sort the rows that have been written since. Texts with a collation are found by it: the rows with
        the other values of the key are compared with them, all rows if there are none. Raises DataError for a column that the view lacks.
        """

    @property
    @abstractmethod
    def _leading(self) -> tuple[Field, ...]:
        """The fields of the key of `lookup`."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key of `lookup`: those that identify a row, if there are any, else all."""
        return tuple(f.name for f in self._leading)

    def _sought(self, stored: Schema, key: Any, by: Sequence[str] | None) -> SoughtValues:
        """What `lookup` looks up. stored: the fields of the stored rows. Raises DataError."""
        if by is None:
            return sought_by_key(self.name, stored, self._leading, key)
        return sought_by_columns(self.name, stored, self.schema.names, key, by)


def listed(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as dicts; a VARIANT is a Variant."""
    rows: list[dict[str, Any]] = table.to_pylist()
    for name in [field.name for field in table.schema if pa.types.is_nested(field.type) and type_of(field.type).has_variant]:
        for row in rows:
            row[name] = with_variants(row[name])
    return rows
