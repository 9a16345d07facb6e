"""Parses value:path, which reads a part of a VARIANT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import NUMBER

if TYPE_CHECKING:
    from deltic.frontends.sql.cursor import TokenCursor


def path_of(cursor: TokenCursor, value: tree.Expression, start: int) -> tree.PathOf:
    """name.name[0]['name'], after the colon."""
    path, field = "$", None
    while True:
        if cursor.passes("["):
            if cursor.token.kind == NUMBER and cursor.token.text.isdigit():
                path += f"[{cursor.take().text}]"
            else:
                field = cursor.string("a number, or a name in quotes")
                path += _step(field)
            cursor.expect("]")
        elif path == "$" or cursor.passes("."):
            field = cursor.identifier("the name of a field").text
            path += f".{field}" if field and not set(field) & set(".[") else _step(field)
        else:
            return tree.PathOf(value, path, field, cursor.since(start))


def _step(name: str) -> str:
    return f"['{name}']" if "'" not in name else f'["{name}"]'
