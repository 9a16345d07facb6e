"""Table functions in the select list of a grouped query: they are applied to the groups, as a query over the grouped one."""

from __future__ import annotations

from dataclasses import replace

from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import has_aggregate
from deltic.frontends.sql.bind_table_function import makes_rows
from deltic.frontends.sql.naming import output_name
from deltic.frontends.sql.scope import Scope


def rows_of_groups(node: tree.SelectQuery, scope: Scope) -> tree.SelectQuery | None:
    """`SELECT explode(collect_list(a)) x, b … GROUP BY b` as `SELECT explode(g) x, b FROM (SELECT collect_list(a) g, b … GROUP BY b)`.

    None if it has no table function, or QUALIFY, or groups by what a table function returns or tests it. scope: of FROM.
    Windows are those of the groups.
    """
    made = [item for item in node.items if makes_rows(item.expression)]
    if not made or node.qualify is not None or any(isinstance(item.expression, tree.Star) for item in node.items):
        return None
    returned = {name.text.lower() for item in made for name in item.names} or {"col", "pos", "key", "value"}
    tested = [] if node.having is None else tree.walk(node.having)
    if any(isinstance(part, tree.ColumnName) and part.parts[-1].text.lower() in returned for part in tested):
        return None
    inner: list[tree.SelectItem] = []
    outer: list[tree.SelectItem] = []
    places: list[int] = []
    """Of each item that is no table function among `inner`, from 1; 0 for a table function."""
    for item in node.items:
        if isinstance(item.expression, tree.FunctionCall) and makes_rows(item.expression):
            arguments = tuple(_moved(argument, None, inner, node) for argument in item.expression.arguments)
            outer.append(replace(item, expression=replace(item.expression, arguments=arguments)))
            places.append(0)
        else:
            name = tree.Name(output_name(item, scope), item.span)
            outer.append(replace(item, expression=_moved(item.expression, item, inner, node), names=(name,)))
            places.append(len(inner))
    group = None if node.group is None else _group(node.group, places)
    if group is None and node.group is not None:
        return None
    grouped = replace(node, items=tuple(inner), distinct=False, group=group)
    source = tree.DerivedTable(grouped, None, node.span)
    return tree.SelectQuery(tuple(outer), node.distinct, None, source, (), None, None, None, node.span)


def _moved(node: tree.Expression, item: tree.SelectItem | None, inner: list[tree.SelectItem], query: tree.SelectQuery) -> tree.Expression:
    """What stands for an expression outside, which is added to the items of the grouped query; a constant stays.

    An item keeps its alias, which other items may name, if it is the only one of that name.
    """
    if item is None and not has_aggregate(node) and not any(isinstance(part, (tree.ColumnName, *tree.QUERIES)) for part in tree.walk(node)):
        return node
    text = f"item {len(inner) + 1}"
    if item is not None and item.names:
        aliases = [name.text.lower() for other in query.items for name in other.names]
        text = item.names[0].text if aliases.count(item.names[0].text.lower()) == 1 else text
    name = tree.Name(text, node.span)
    inner.append(tree.SelectItem(node, (name,), node.span))
    return tree.ColumnName((name,), node.span)


def _group(group: tree.GroupClause, places: list[int]) -> tree.GroupClause | None:
    """The clause with the places of the grouped query's items; None if one is that of a table function."""
    keys = []
    for key in group.keys:
        number = tree.unnest(key)
        if isinstance(number, tree.NumberText) and number.text.isdigit() and 0 < int(number.text) <= len(places):
            if not (place := places[int(number.text) - 1]):
                return None
            key = replace(number, text=str(place))
        keys.append(key)
    return replace(group, keys=tuple(keys))
