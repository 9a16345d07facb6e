"""A bound DataFrame: a plan, and what its columns are called in PySpark.

A column has an id, as in Catalyst: projections, filters and joins keep it, so that `df.a` is one column wherever it has gone to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Final

from deltic.errors import Span
from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import Scope, ScopeColumn
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan, Project

_IDS: Final = count(1)
_MARK: Final = "\0"
"""Begins the qualifiers that are ids, which no name in a text can."""


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """A column of a frame at `index` of its plan. qualifier: the alias of the DataFrame or the name of the table that it is from."""

    name: str
    index: int
    qualifier: str | None = None
    id: int = field(default_factory=lambda: next(_IDS))

    def written(self, span: Span, name: str | None = None) -> tree.ColumnName:
        """The name of exactly this column in an expression. name: as the program writes it, whose case is that of what is selected."""
        return tree.ColumnName((tree.Name(self.mark, span), tree.Name(name or self.name, span)), span)

    @property
    def mark(self) -> str:
        """The qualifier of what `written` makes."""
        return f"{_MARK}{self.id}"


@dataclass(frozen=True, slots=True)
class Sorted:
    """A term of the order of a frame's rows. index: of the plan's column."""

    index: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class BoundFrame:
    """A bound DataFrame.

    columns: those of the DataFrame. below: columns that it no longer has, which a filter or a sort after it may still read, as in Spark.
    ids: the columns of each DataFrame in it, by the id of its plan. order: of its rows, for a limit after it.
    """

    plan: Plan
    columns: tuple[FrameColumn, ...]
    below: tuple[FrameColumn, ...] = ()
    ids: Mapping[int, frozenset[int]] = field(default_factory=lambda: MappingProxyType({}))
    order: tuple[Sorted, ...] = ()

    @property
    def scope(self) -> Scope:
        """The names of the columns: of all by id, of those of the DataFrame by name."""
        names = [ScopeColumn(column.name, column.qualifier, column.index) for column in self.columns]
        ids = [ScopeColumn(column.name, column.mark, column.index, hidden=True) for column in (*self.columns, *self.below)]
        return Scope((*names, *ids), self.plan.schema)

    @property
    def by_mark(self) -> Mapping[str, FrameColumn]:
        """All columns by their marks; of one that occurs twice the first."""
        return {column.mark: column for column in reversed((*self.columns, *self.below))}

    def alone(self) -> BoundFrame:
        """The DataFrame's own columns, in their order, and nothing else; its rows have no order."""
        if [(column.index, column.name) for column in self.columns] == [*enumerate(self.plan.schema.names)]:
            return replace(self, order=())
        plan = Project(self.plan, tuple((column.name, reference(self.plan.schema, column.index)) for column in self.columns))
        return BoundFrame(plan, tuple(replace(column, index=i) for i, column in enumerate(self.columns)), ids=self.ids)

    def marked(self, plan_id: int) -> BoundFrame:
        """The frame as the DataFrame of the plan."""
        return replace(self, ids={**self.ids, plan_id: frozenset(column.id for column in self.columns)})

    def renewed(self) -> BoundFrame:
        """The frame with new ids: the other side of a join with itself."""
        new = {column.id: next(_IDS) for column in (*self.columns, *self.below)}
        ids = {plan_id: frozenset(new.get(one, one) for one in ids) for plan_id, ids in self.ids.items()}
        columns, below = (tuple(replace(column, id=new[column.id]) for column in part) for part in (self.columns, self.below))
        return replace(self, columns=columns, below=below, ids=ids)


def over(plan: Plan, names: Iterable[str] | None = None, qualifier: str | None = None) -> BoundFrame:
    """A frame of all columns of a plan."""
    called = plan.schema.names if names is None else tuple(names)
    return BoundFrame(plan, tuple(FrameColumn(name, i, qualifier) for i, name in enumerate(called)))
