"""Changes that are not in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from deltic.schema import TableSchema


class Distributed(ABC):
    """Changes of one table or several, which stay where they are until a runtime that reaches them has them encoded there."""

    __slots__ = ()

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, TableSchema]:
        """By name the tables that they change, as they were made for."""
        ...

    @abstractmethod
    def latest(self, columns: Mapping[str, str]) -> Mapping[str, int]:
        """By table the greatest value of one TIMESTAMP column in rows that are added, in microseconds; tables without one are left out.

        columns: by table. Rows that do not fit are passed over: the tick tells of them. Cost: reads the changes once.
        """
        ...
