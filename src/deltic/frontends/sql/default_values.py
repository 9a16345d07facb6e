"""The DEFAULTs of a table in one statement that changes its rows: what omitted columns get, and what the word DEFAULT means.

As in Spark, DEFAULT stands alone: in VALUES, in the select list of an INSERT, after = of SET, and in VALUES of a MERGE. A column that is
called so hides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltic.errors import Span, TypeMismatch
from deltic.expr import Expr, Literal
from deltic.frontends.sql import tree
from deltic.frontends.sql.assigned_columns import AssignedColumn
from deltic.frontends.sql.column_defaults import default_value, defaults_of
from deltic.frontends.statements import Namespace
from deltic.schema import TableSchema


class DefaultValues:
    """now_us: the time of the statement, in microseconds since 1970 UTC."""

    def __init__(self, table: TableSchema, catalog: Namespace, now_us: int) -> None:
        self.table, self._now_us = table, now_us
        self._defaults = defaults_of(catalog, table.name)
        self._values: dict[int, Expr] = {}

    def value(self, position: int, span: Span) -> Expr:
        """What a column gets; NULL without a DEFAULT. Raises EvaluationError and TypeMismatch for a DEFAULT that has no value now."""
        field = self.table.schema[position]
        if (default := self._defaults.get(field.name.lower())) is None:
            return Literal(None, field.type.read, span)
        if position not in self._values:
            self._values[position] = default_value(default, field, self.table.name, self._now_us)
        return self._values[position]

    def in_values(self, values: Iterable[tree.Expression], columns: Sequence[AssignedColumn]) -> list[tree.Expression]:
        """What columns are set to, where DEFAULT has its value; a field has none."""
        return [value if one.path else self._word(value, one.position) for value, one in zip(values, columns, strict=True)]

    def in_query(self, query: tree.Query, positions: Sequence[int]) -> tree.Query:
        """The query of an INSERT into columns, where DEFAULT has its value."""
        match query:
            case tree.WholeQuery():
                return replace(query, body=self.in_query(query.body, positions))
            case tree.ValuesQuery():
                return replace(query, rows=tuple(self._row(row, positions) for row in query.rows))
            case tree.SelectQuery(items=(tree.SelectItem(expression=tree.Star(is_plain=True)),), source=tree.ValuesQuery() as source):
                return replace(query, source=replace(source, rows=tuple(self._row(row, positions) for row in source.rows)))
            case tree.SelectQuery():
                return replace(query, items=self._items(query.items, positions))
            case tree.PipeQuery(steps=(*steps, tree.PipeSelect() as last)):
                select = replace(last.query, items=self._items(last.query.items, positions))
                return replace(query, steps=(*steps, replace(last, query=select)))
            case _:
                return query

    def _items(self, items: Sequence[tree.SelectItem], positions: Sequence[int]) -> tuple[tree.SelectItem, ...]:
        """After a star, columns count from the last."""
        star = next((i for i, item in enumerate(items) if isinstance(item.expression, tree.Star)), len(items))
        before = [self._item(item, i) for item, i in zip(items[:star], positions, strict=False)]
        rest = items[max(star, len(before)) :]
        after = positions[len(positions) - len(rest) + 1 :]
        if len(after) != len(rest) - 1 or any(isinstance(item.expression, tree.Star) for item in rest[1:]):
            return (*before, *rest)
        return (*before, rest[0], *(self._item(item, i) for item, i in zip(rest[1:], after, strict=True)))

    def _item(self, item: tree.SelectItem, position: int) -> tree.SelectItem:
        """An item that is DEFAULT gets a name of its own: a later DEFAULT would be its alias."""
        value = self._word(item.expression, position)
        if item.names or value is item.expression:
            return item
        return replace(item, expression=value, names=(tree.Name(f"DEFAULT of {position}", item.span),))

    def _row(self, row: tree.Expression, positions: Sequence[int]) -> tree.Expression:
        if not isinstance(row, tree.RowValue):
            return self._word(row, positions[0])
        values = [self._word(item, i) for item, i in zip(row.items, positions, strict=False)]
        if all(value is item for value, item in zip(values, row.items, strict=False)):
            return row
        return replace(row, items=(*values, *row.items[len(values) :]))

    def _word(self, node: tree.Expression, position: int) -> tree.Expression:
        """The node; if it is DEFAULT, with the value that the column has."""
        if isinstance(node, tree.Parenthesised):
            inner = self._word(node.inner, position)
            return node if inner is node.inner else replace(node, inner=inner)
        if not isinstance(node, tree.ColumnName) or [part.text.upper() for part in node.parts] != ["DEFAULT"]:
            return node
        field = self.table.schema[position]
        if not field.nullable and field.name.lower() not in self._defaults:
            message = f"column {field.name} of table {self.table.name} is NOT NULL and has no DEFAULT"
            raise TypeMismatch(message, span=node.span, remedy="give it a value")
        return replace(node, variable=tree.VariableUse(self.value(position, node.span), ()))
