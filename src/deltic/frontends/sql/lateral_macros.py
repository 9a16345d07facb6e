"""Table functions in SQL over columns, LATERAL f(t.x): the query of the function for all rows at once.

The query gets one more relation in FROM, the ArgumentRows, whose columns are the parameters, and returns their columns after its own; so
each result has the row, or the arguments, to which it belongs. A SELECT without DISTINCT and groups, or a UNION ALL of such ones, is
evaluated for the rows themselves. Any other query is evaluated for the different arguments, which are keys of its groups; an aggregate
without GROUP BY has a row for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltic.errors import Span, Unsupported
from deltic.expr.functions.signature import check_count
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import has_aggregate, restricted
from deltic.frontends.sql.table_macros import TableBody, check_names, substituted
from deltic.frontends.statements import Namespace


def lateral(
    body: TableBody, arguments: Sequence[tree.Expression], namespace: Namespace, alias: tree.TableAlias | None, span: Span, *, left: bool
) -> tree.DefinedLateral:
    """A call with columns. left: of a LEFT JOIN, which joins the rows with the results by the arguments.

    Raises TypeMismatch for a wrong number of arguments, Unsupported for a query that cannot be evaluated so.
    """
    least = sum(parameter.default is None for parameter in body.parameters)
    check_count(body.name.text, arguments, least, len(body.parameters), span)
    check_names(body, namespace)
    given = [*arguments, *(p.default for p in body.parameters[len(arguments) :] if p.default is not None)]
    values = tuple(tree.CastCall(value, p.type, False, value.span) for p, value in zip(body.parameters, given, strict=True))
    function, names = body.name.text, tuple(parameter.name.text for parameter in body.parameters)
    rows = tree.Name(f"arguments of {function}", body.name.span)
    columns = tuple(tree.ColumnName((rows, tree.Name(name, span)), span) for name in names)
    by_row = not left and _is_by_row(body.query)
    query = substituted(body.query, dict(zip((name.lower() for name in names), columns, strict=True)), function.lower())
    whole = _Body(function, rows, columns, by_row, span).query(query)
    declared = tuple((column.name, column.type) for column in body.columns)
    return tree.DefinedLateral(whole, function, by_row, names, values, rows.text, declared, alias, span)


def _is_by_row(query: tree.Query) -> bool:
    """Whether each row of the result follows from one of the ArgumentRows and rows of the other relations."""
    match query:
        case tree.SelectQuery():
            return not (query.distinct or query.group or _is_over_all(query))
        case tree.SetQuery():
            return query.operator == "UNION" and not query.distinct and all(map(_is_by_row, query.parts))
        case tree.WholeQuery():
            return _is_by_row(query.body)
        case tree.ValuesQuery() | tree.PipeQuery() | tree.GivenQuery():
            return True


def _is_over_all(select: tree.SelectQuery) -> bool:
    """Whether all rows are one group."""
    return select.group is None and (select.having is not None or any(has_aggregate(item.expression) for item in select.items))


@dataclass(frozen=True, slots=True)
class _Body:
    """The query of `function`, whose parameters are `columns`, those of the ArgumentRows, which are called `rows`. span: of the call."""

    function: str
    rows: tree.Name
    columns: tuple[tree.ColumnName, ...]
    by_row: bool
    span: Span

    def query(self, query: tree.Query) -> tree.Query:
        match query:
            case tree.SelectQuery():
                self._check_windows(query)
                self._check_subqueries(query)
                return self._over_all(query) if _is_over_all(query) else self._select(query)
            case tree.SetQuery():
                if query.by_name:
                    raise self._refused("UNION BY NAME", query.span, "UNION ALL, with the columns in one order")
                return replace(query, parts=tuple(map(self.query, query.parts)))
            case tree.WholeQuery():
                if query.limit is not None:
                    raise self._refused("LIMIT", query.limit.span, "join its query, as a view, on the columns")
                for cte in query.ctes:
                    self._check(cte)
                return replace(query, body=self.query(query.body), order=())
            case tree.ValuesQuery():
                raise self._refused("VALUES", query.span, "SELECT without FROM, and UNION ALL")
            case tree.PipeQuery():
                raise self._refused("pipe syntax", query.span, "SELECT … FROM … WHERE …")
            case tree.GivenQuery():
                raise AssertionError("the body of a function is a text")

    def _select(self, select: tree.SelectQuery) -> tree.SelectQuery:
        group = select.group
        if group is not None and group.sets is not None:
            raise self._refused("ROLLUP, CUBE or GROUPING SETS", group.span, "join its query, as a view, on the columns")
        if group is not None and not group.every:
            group = replace(group, keys=(*group.keys, *self.columns))
        return replace(select, items=(*select.items, *self._items()), source=self._beside(select.source), group=group)

    def _items(self) -> tuple[tree.SelectItem, ...]:
        if self.by_row:
            return (tree.SelectItem(tree.Star(self.rows, (), self.span), (), self.span),)
        return tuple(tree.SelectItem(column, column.parts[-1:], self.span) for column in self.columns)

    def _beside(self, source: tree.Source | None) -> tree.Source:
        """The ArgumentRows, joined with FROM; after it where a RIGHT or FULL JOIN would add NULLs to them."""
        rows = tree.ArgumentRows(self.span)
        if source is None:
            return rows
        if not (isinstance(source, tree.JoinedTables) and source.alias is None):
            return tree.JoinedTables(rows, (self._comma(source),), None, self.span)
        if any(join.kind in ("RIGHT", "FULL") for join in source.joins):
            self._check(source)
            return tree.JoinedTables(source, (self._comma(rows),), None, self.span)
        return tree.JoinedTables(rows, (self._comma(source.first), *source.joins), None, self.span)

    def _comma(self, right: tree.Source) -> tree.JoinClause:
        return tree.JoinClause(",", False, right, None, (), self.span)

    def _over_all(self, select: tree.SelectQuery) -> tree.SelectQuery:
        """With a group of the rows that match, for each of the arguments; aggregates are over rows with a mark, which others lack."""
        if select.laterals:
            raise self._refused("LATERAL VIEW beside an aggregate without GROUP BY", select.laterals[0].span, "use it in a view")
        span, word = self.span, tree.Name("mark", self.span)
        name = tree.Name(f"rows of {self.function}", span)
        true = tree.KeywordExpression("TRUE", span)
        one = tree.SelectQuery((tree.SelectItem(true, (word,), span),), False, None, None, (), None, None, None, span)
        marks = tree.DerivedTable(one, tree.TableAlias(name, (), span), span)
        matches = marks if select.source is None else tree.JoinedTables(select.source, (self._comma(marks),), None, span)
        join = tree.JoinClause("LEFT", False, matches, select.where or true, (), span)
        mark = tree.ColumnName((name, word), span)
        return replace(
            select,
            items=(*_over_marked(select.items, mark), *self._items()),
            source=tree.JoinedTables(tree.ArgumentRows(span), (join,), None, span),
            where=None,
            group=tree.GroupClause(self.columns, False, span),
            having=_over_marked(select.having, mark),
        )

    def _check_windows(self, select: tree.SelectQuery) -> None:
        """Raises Unsupported for a window function, whose partitions would be those of all arguments."""
        for part in tree.walk(select, lambda part: part is select or not isinstance(part, tree.QUERIES)):
            if isinstance(part, tree.OverCall):
                raise self._refused("a window function", part.span, "use it in a view")

    def _check_subqueries(self, select: tree.SelectQuery) -> None:
        """Raises Unsupported for a subquery in FROM that reads a parameter."""
        for part in () if select.source is None else tree.walk(select.source, lambda part: not isinstance(part, tree.DerivedTable)):
            if isinstance(part, tree.DerivedTable):
                self._check(part)

    def _check(self, node: object) -> None:
        for part in tree.walk(node):
            if isinstance(part, tree.ColumnName) and part.parts[0] is self.rows:
                raise self._refused("a parameter in a subquery of FROM, or beside RIGHT or FULL JOIN,", part.span, "read it in WHERE")

    def _refused(self, what: str, place: Span, remedy: str) -> Unsupported:
        return Unsupported(f"{what} is not supported in {self.function}, which is called with columns", span=place, remedy=remedy)


def _over_marked(node: Any, mark: tree.ColumnName) -> Any:
    """The tree with each aggregate over the rows that have the mark."""
    return tree.rewritten(node, lambda part: restricted(part, mark), lambda part: not isinstance(part, tree.QUERIES))
