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
