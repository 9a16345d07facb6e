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
    def latest(self, columns: Mapping[str, str]) -> Mapping[str, int]:
        """Table → the greatest value of a TIMESTAMP column in added rows, in microseconds; tables without a value are left out.

        columns: table → column. Invalid rows are skipped: the tick reports them. Cost: reads the changes once.
        """
        ...
