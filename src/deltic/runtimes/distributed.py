"""Changes that are outside this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from deltic.schema import TableSchema


class Distributed(ABC):
    """Changes of one or several tables that are encoded where they are, by a runtime that can reach them."""

    __slots__ = ()

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, TableSchema]:
        """Name → the schema that the changes of the table were created for."""
        ...

    @abstractmethod
    def extremes(self, columns: Mapping[str, str]) -> Mapping[str, tuple[int, int | None]]:
        """Table → the least value of a column in all rows, and the greatest in added ones or None.

        Values are microseconds of a TIMESTAMP, days of a DATE, or whole numbers.

        columns: table → column. Tables without a value are left out. Invalid rows are skipped: the tick reports them. Cost: reads the
        changes once.
        """
        ...

    def latest(self, columns: Mapping[str, str]) -> Mapping[str, int]:
        """The greatest values of `extremes`; tables without one are left out."""
        return {table: latest for table, (_, latest) in self.extremes(columns).items() if latest is not None}
