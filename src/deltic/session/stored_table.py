"""The rows of a table, which nothing but the session reads: a table's own state, without a view of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from deltic.session.contents import Contents
from deltic.session.view import merged, values_with
from deltic.types import frozen_list


class StoredTable:
    """A table of a session, as of the last commit."""

    def __init__(self, contents: Contents, name: str) -> None:
        self._contents, self.name = contents, name

    def to_arrow(self) -> pa.Table:
        """All rows."""
        strings = self._contents.strings
        return self._contents.read_table(self.name, lambda stored, spines: stored.reader.content(merged(spines), strings))

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python's values; what is nested is frozen."""
        return list(zip(*map(frozen_list, self.to_arrow().columns), strict=True))

    def values_with(self, columns: Sequence[str], keys: Collection[tuple[Any, ...]]) -> list[list[Any]]:
        """The values of each column in the rows that have one of several different keys in some columns. O(log state + rows), as `lookup`
        of a view."""
        strings = self._contents.strings
        return self._contents.read_table(self.name, lambda stored, spines: values_with(stored, spines, self.name, columns, keys, strings))
