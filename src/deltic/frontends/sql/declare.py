"""DECLARE RECURSIVE VIEW, which says what columns a view has before its query is there, so that other views can read it.

It is parsed as a CREATE TABLE, whose columns it has.
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import SyntaxFailure
from deltic.frontends.sql.cursor import Cursor
from deltic.frontends.sql.spans import Places

FORM: Final = "DECLARE RECURSIVE VIEW name (column type [NOT NULL], …) [MAX RECURSION LEVEL n]"


def as_table(places: Places) -> Places | None:
    """The statement as CREATE TABLE, if it is DECLARE RECURSIVE VIEW."""
    cursor = Cursor(places, 0)
    if not cursor.passes("DECLARE"):
        return None
    if not cursor.passes("RECURSIVE", "VIEW"):
        raise SyntaxFailure("this statement is not understood", span=cursor.span, expected=FORM)
    declare, _, view, *rest = places.tokens
    head = [_instead(declare, TokenType.CREATE, "CREATE"), _instead(view, TokenType.TABLE, "TABLE")]
    return Places(places.text, places.name, [*head, *rest])


def _instead(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
