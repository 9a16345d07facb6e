"""What SET assigns: columns of the changed table, and fields of its STRUCT columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deltic.errors import QueryError, Span, TypeMismatch, UnknownName, did_you_mean
from deltic.expr import Expr
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_updated_field import updated_field
from deltic.frontends.sql.cursor import DEFAULT_SCHEMA
from deltic.frontends.sql.scope import qualifiers
from deltic.frontends.sql.store_assignment import as_stored
from deltic.schema import Field, TableSchema


@dataclass(frozen=True, slots=True)
class AssignedColumn:
    """The column at `position` of a table, or the field of it at `path`. field: its type, and its name with the names that lead to it.

    span: of the last name.
    """

    position: int
    path: tuple[str, ...]
    field: Field
    span: Span

    def meets(self, other: AssignedColumn) -> bool:
        """Whether one is the other or contains it."""
        shared = min(len(self.path), len(other.path))
        return self.position == other.position and self.path[:shared] == other.path[:shared]

    def assigned(self, column: Expr, value: Expr, table: str) -> Expr:
        """The column with the value. A field of NULL is set in a STRUCT of NULLs, as in Spark. Raises TypeMismatch."""
        if not self.path:
            return value
        return updated_field(column, self.path, as_stored(value, self.field, table, self.span), self.span, in_null=True)


def assigned_columns(targets: Iterable[Sequence[tree.Name]], table: TableSchema, qualifier: str) -> list[AssignedColumn]:
    """By the names before =, which may begin with those of the table, `qualifier`.

    Raises UnknownName and TypeMismatch for a name that leads nowhere, and QueryError for a column that is given twice.
    """
    known = frozenset((*qualifiers(qualifier), f"{DEFAULT_SCHEMA}.{qualifier.lower()}"))
    earlier: list[AssignedColumn] = []
    for names in targets:
        start = next((i for i in range(len(names) - 1, 0, -1) if _is_qualified(names, i, known, table)), 0)
        one = _assigned(names[start:], table)
        if (other := next(filter(one.meets, earlier), None)) is not None:
            twice = f"the column {one.field.name!r} is given twice"
            message = twice if one.path == other.path else f"{one.field.name!r} and {other.field.name!r} are both given"
            raise QueryError(message, span=one.span, expected="each part of a column once")
        earlier.append(one)
    return earlier


def positions_of(names: Iterable[tree.Name], table: TableSchema) -> list[int]:
    """The columns of the table, each once. Raises UnknownName and QueryError."""
    return [one.position for one in assigned_columns([[name] for name in names], table, table.name)]


def _is_qualified(names: Sequence[tree.Name], start: int, known: frozenset[str], table: TableSchema) -> bool:
    """Whether the names before `start` are the table's, and the one there a column's."""
    return ".".join(name.text for name in names[:start]).lower() in known and bool(table.schema.find(names[start].text))


def _assigned(names: Sequence[tree.Name], table: TableSchema) -> AssignedColumn:
    first, *rest = names
    if not (positions := table.schema.find(first.text)):
        remedy = did_you_mean(first.text, list(table.schema.names))
        raise UnknownName(f"table {table.name} has no column {first.text!r}", span=first.span, remedy=remedy)
    field, path = table.schema[positions[0]], []
    for name in rest:
        if field.type.name != "STRUCT":
            message = f"column {field.name} of table {table.name} is {field.type.sql}"
            raise TypeMismatch(message, span=name.span, expected="a STRUCT before the dot")
        part = next((part for part in field.type.parts if part.name.lower() == name.text.lower()), None)
        if part is None:
            remedy = did_you_mean(name.text, [part.name for part in field.type.parts])
            raise UnknownName(f"column {field.name} of table {table.name} has no field {name.text!r}", span=name.span, remedy=remedy)
        path.append(part.name)
        field = replace(part, name=f"{field.name}.{part.name}")
    return AssignedColumn(positions[0], tuple(path), field, names[-1].span)
