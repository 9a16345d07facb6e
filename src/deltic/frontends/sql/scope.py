"""Name resolution in a query: the columns that a name can refer to.

Names are case-insensitive. A column of an enclosing query is an OuterColumn. An aggregate that is not computed yet is a Column with index
AGGREGATED + its number, a key of GROUP BY with a subquery one with KEYED + its number, a window function one with WINDOWED + its number,
the value of a subquery one with SUBQUERY + its number, a select item that is read by its alias one with ALIASED + its position. None of
them occurs in the plans that the binder returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.nodes import Column, Expr, OuterColumn, columns_of, outer_columns
from deltic.frontends.sql import tree
from deltic.plan.nodes import Plan, Table
from deltic.plan.subquery_nodes import outer_number
from deltic.schema import Field, Schema

ALIASED: Final = 1 << 22
KEYED: Final = 1 << 23
AGGREGATED: Final = 1 << 24
WINDOWED: Final = 1 << 26
SUBQUERY: Final = 1 << 28


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A name of the column at `index` of the rows. A hidden one (the other side of USING) matches only its qualified name."""

    name: str
    qualifier: str | None
    index: int
    hidden: bool = False
    filled: int = 0
    """As of Column."""

    def qualifiers(self) -> Iterator[str | None]:
        """What may be before the name."""
        if not self.hidden:
            yield None
        if self.qualifier is not None:
            yield from qualifiers(self.qualifier)


def qualifiers(relation: str) -> Iterator[str]:
    """The names of a relation, in small letters: a table of a schema, `schema.table`, is meant by `table` too."""
    parts = relation.lower().split(".")
    yield from (".".join(parts[i:]) for i in range(len(parts)))


@dataclass(frozen=True, slots=True)
class Scope:
    """The names of a query's FROM, the schema of its rows, and the row of the enclosing query."""

    columns: tuple[ScopeColumn, ...]
    schema: Schema
    outer: Outer | None = None
    _by_name: dict[tuple[str, str | None], list[ScopeColumn]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The columns by name and qualifier, once one has been looked up."""

    def around(self) -> Iterator[Outer]:
        """The rows of the enclosing queries, from the nearest on."""
        outer = self.outer
        while outer is not None:
            yield outer
            outer = outer.scope.outer

    def find(self, name: str, qualifier: str | None) -> tuple[ScopeColumn, ...]:
        """The columns of this scope that match a name; enclosing scopes are not searched."""
        if not self._by_name:
            by_name: dict[tuple[str, str | None], list[ScopeColumn]] = {}
            for column in self.columns:
                for meant in column.qualifiers():
                    by_name.setdefault((column.name.lower(), meant), []).append(column)
            self._by_name.update(by_name)
        return tuple(self._by_name.get((name.lower(), None if qualifier is None else qualifier.lower()), ()))

    def star(self, qualifier: str | None) -> tuple[ScopeColumn, ...]:
        """The columns of `*`, or of `qualifier.*`, in which hidden ones come first, as in Spark."""
        if qualifier is None:
            return tuple(c for c in self.columns if not c.hidden)
        columns = [c for c in self.columns if qualifier.lower() in c.qualifiers()]
        return tuple(sorted(columns, key=lambda c: not c.hidden))

    def column(self, column: ScopeColumn) -> Column:
        """The expression that reads a column."""
        own = self.schema[column.index]
        return Column(column.index, own.type, own.nullable, column.name, filled=column.filled)


@dataclass(slots=True)
class Outer:
    """The row of an enclosing query for which one of its subqueries is evaluated.

    columns: those that the subquery reads: each over the rows of `scope`, and what stands for it in the subquery.
    aggregate: binds an aggregate in the clause of the enclosing query that has the subquery; None for LATERAL and in functions.
    given: in the body of a function, what its parameters, the columns of `scope`, are over the rows of the call.
    """

    scope: Scope
    aggregate: Callable[[tree.FunctionCall], Expr] | None = None
    given: tuple[Expr, ...] | None = None
    columns: dict[int, tuple[Column, OuterColumn]] = field(default_factory=dict)

    def over(self, column: Column) -> Expr:
        """A column of `scope` over the rows of the enclosing query."""
        return column if self.given is None else self.given[column.index]

    def column(self, column: Column) -> OuterColumn:
        """The column as the subquery reads it."""
        if column.index not in self.columns:
            outer = OuterColumn(outer_number(), column.type, column.nullable, column.name, column.span, column.filled)
            self.columns[column.index] = column, outer
        return replace(self.columns[column.index][1], span=column.span)


@dataclass(frozen=True, slots=True)
class Body:
    """A call of a function in SQL. values: by the names of its parameters, over the rows of the call."""

    function: str
    values: Mapping[str, Expr]

    @property
    def scope(self) -> Scope:
        """The parameters, as subqueries of the body read them: also after the function's name."""
        schema = Schema(tuple(Field(name, value.type, value.nullable) for name, value in self.values.items()))
        return Scope(tuple(ScopeColumn(name, self.function, i) for i, name in enumerate(schema.names)), schema)


@dataclass(frozen=True, slots=True)
class ScopedRelation:
    """A relation of FROM: a plan and the names of its columns."""

    plan: Plan
    scope: Scope


def relation(plan: Plan, qualifier: str | None, names: Iterable[str] | None = None) -> ScopedRelation:
    """A table, view or derived table under the name `qualifier`. names: new names of its columns."""
    called = plan.schema.names if names is None else tuple(names)
    types = [one.type for one in plan.table.schema] if isinstance(plan, Table) else []
    filled = [type.precision if type.name == "CHAR" else 0 for type in types] or [0] * len(called)
    columns = tuple(ScopeColumn(name, qualifier, i, filled=filled[i]) for i, name in enumerate(called))
    return ScopedRelation(plan, Scope(columns, plan.schema))


def moved(columns: Iterable[ScopeColumn], by: int) -> tuple[ScopeColumn, ...]:
    """The columns, shifted right by `by` positions."""
    return tuple(replace(column, index=column.index + by) for column in columns)


def reads_outer(expr: Expr) -> bool:
    """Whether the expression reads a row of an enclosing query."""
    return bool(outer_columns(expr))


def reads_subqueries(expr: Expr) -> bool:
    """Whether the expression reads the value of a subquery."""
    return any(index >= SUBQUERY for index in columns_of(expr))


def reads_windows(expr: Expr) -> bool:
    """Whether the expression reads a window function."""
    return any(WINDOWED <= index < SUBQUERY for index in columns_of(expr))


def check_names(names: Sequence[object], columns: int, span: Span) -> None:
    """Raises TypeMismatch unless there is a name for each column."""
    if len(names) != columns:
        raise TypeMismatch("the column names do not fit the columns", span=span, expected=f"{columns} names, found {len(names)}")
