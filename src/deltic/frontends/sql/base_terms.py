"""The base case of a recursive query: the query without the terms that read the relation itself.

It determines the relation's columns and types, so conditions that read the relation are removed as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.frontends.sql import tree

Names = frozenset[str]


def reads(query: tree.Query, name: str) -> bool:
    """Whether the query reads the relation `name`, by itself or through its CTEs."""
    return _reads(query, frozenset((name.lower(),)))


def base_of(query: tree.Query, name: str) -> tree.Query | None:
    """The query without the terms that read the relation `name`; None if nothing remains."""
    return _base(query, frozenset((name.lower(),)))


def _reads(node: object, names: Names) -> bool:
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tree.TableName) and part.name.text.lower() in names:
            return True
        if isinstance(part, tree.WholeQuery) and part.ctes:
            _, inside = _ctes(part, names)
            if any(_reads(one, inside) for one in (part.body, part.order, part.limit) if one):
                return True
        elif isinstance(part, tuple):
            waiting.extend(part)
        else:
            waiting.extend(tree.parts(part))
    return False


def _ctes(node: tree.WholeQuery, names: Names) -> tuple[Sequence[tree.CommonTable], Names]:
    """(the CTEs that read none of `names`, the names extended by the CTEs that do)."""
    kept = []
    for cte in node.ctes:
        own = frozenset((cte.name.text.lower(),))
        if _reads(cte.query, names - own if node.recursive else names):
            names |= own
        else:
            names -= own
            kept.append(cte)
    return kept, names


def _base(node: tree.Query, names: Names) -> tree.Query | None:
    if not _reads(node, names):
        return node
    match node:
        case tree.SetQuery():
            return _set_operation(node, names)
        case tree.SelectQuery():
            return _select(node, names)
        case tree.WholeQuery():
            kept, names = _ctes(node, names)
            body = _base(node.body, names)
            return None if body is None else replace(node, ctes=tuple(kept), body=body)
        case tree.PipeQuery():
            first = None if any(_reads(step, names) for step in node.steps) else _base(node.first, names)
            return None if first is None else replace(node, first=first)
        case tree.ValuesQuery() | tree.GivenQuery():
            return None


def _set_operation(node: tree.SetQuery, names: Names) -> tree.Query | None:
    sides = [side for part in node.parts if (side := _base(part, names)) is not None]
    if len(sides) < 2:
        return sides[0] if sides else None
    return replace(node, parts=tuple(sides))


def _select(node: tree.SelectQuery, names: Names) -> tree.Query | None:
    where = None if node.where is not None and _reads(node.where, names) else node.where
    having = None if node.having is not None and _reads(node.having, names) else node.having
    source = None if node.source is None else _source(node.source, names)
    if source is None and node.source is not None:
        return None
    rest = replace(node, where=where, having=having, source=source)
    return None if _reads(rest, names) else rest


def _source(node: tree.Source, names: Names) -> tree.Source | None:
    match node:
        case tree.DerivedTable():
            query = _base(node.query, names)
            return None if query is None else replace(node, query=query)
        case tree.JoinedTables():
            first = _source(node.first, names)
            joins = [join for join in node.joins if not (join.kind.endswith(("SEMI", "ANTI")) and _reads(join, names))]
            rights = [_source(join.right, names) for join in joins]
            if first is None or any(right is None for right in rights):
                return None
            kept = tuple(replace(join, right=right) for join, right in zip(joins, rights, strict=True) if right is not None)
            return replace(node, first=first, joins=kept)
        case _:
            return None if _reads(node, names) else node
