"""The base of a recursive query: what is left of it without the terms that read the relation itself.

It says what columns the relation has, and of what types, so conditions that read the relation are left out as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

Names = frozenset[str]


def reads(query: exp.Expr, name: str) -> bool:
    """Whether the query reads the relation `name`, by itself or through its CTEs."""
    return _reads(query, frozenset((name.lower(),)))


def base_of(query: exp.Expr, name: str) -> exp.Expr | None:
    """A copy of the query without the terms that read the relation `name`; None where nothing is left."""
    return _base(query.copy(), frozenset((name.lower(),)))


def _reads(node: exp.Expr, names: Names) -> bool:
    if isinstance(node, exp.Table) and node.name.lower() in names:
        return True
    _, inside = _ctes(node, names)
    return any(_reads(part, inside) for part in _parts(node))


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node's own parts, its WITH left aside."""
    for key, value in node.args.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and key != "with_":
                yield part


def _ctes(node: exp.Expr, names: Names) -> tuple[list[exp.Expr], Names]:
    """The CTEs that read none of `names`; and what reads one of them by name in the rest of the node."""
    found = node.args.get("with_")
    kept: list[exp.Expr] = []
    if found is None:
        return kept, names
    for cte in found.expressions:
        own = frozenset((cte.alias.lower(),))
        if _reads(cte.this, names - own if found.args.get("recursive") else names):
            names |= own
        else:
            names -= own
            kept.append(cte)
    return kept, names


def _base(node: exp.Expr, names: Names) -> exp.Expr | None:
    if not _reads(node, names):
        return node
    kept, names = _ctes(node, names)
    if (found := node.args.get("with_")) is not None:
        found.set("expressions", kept)
        node.set("with_", found if kept else None)
    match node:
        case exp.Union() | exp.Except() | exp.Intersect():
            return _set_operation(node, names)
        case exp.Subquery():
            inner = _base(node.this, names)
            node.set("this", inner)
            return None if inner is None else node
        case exp.Select():
            return _select(node, names)
        case _:
            return None


def _set_operation(node: exp.Expr, names: Names) -> exp.Expr | None:
    left, right = _base(node.this, names), _base(node.expression, names)
    if left is not None and right is not None:
        node.set("this", left)
        node.set("expression", right)
        return node
    side = left if left is not None else right
    found = node.args.get("with_")
    return side if side is None or found is None else exp.Subquery(this=side, with_=found)


def _select(node: exp.Select, names: Names) -> exp.Expr | None:
    for clause in ("where", "having"):
        if (condition := node.args.get(clause)) is not None and _reads(condition, names):
            node.set(clause, None)
    joins = [join for join in node.args.get("joins") or () if not (join.kind in ("SEMI", "ANTI") and _reads(join, names))]
    node.set("joins", joins)
    start = node.args.get("from_")
    for item in [*([] if start is None else [start]), *joins]:
        inner = _base(item.this, names)
        if inner is None:
            return None
        item.set("this", inner)
    return None if _reads(node, names) else node
