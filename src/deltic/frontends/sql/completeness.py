"""Whether every token of a statement has its operand. sqlglot passes over some that have none: `SELECT a,, b`, `JOIN t ON`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import Span, SyntaxFailure


def _types(names: str) -> frozenset[TokenType]:
    return frozenset(getattr(TokenType, name) for name in names.split())


WANTING: Final = _types(
    "COMMA ON WHERE HAVING SELECT DISTINCT FROM GROUP_BY ORDER_BY LIMIT UNION EXCEPT INTERSECT JOIN USING AND OR NOT IN BETWEEN LIKE "
    "CASE WHEN THEN ELSE WITH ALIAS EQ NEQ LTE GTE NULLSAFE_EQ PLUS DASH SLASH DIV MOD DPIPE AMP PIPE CARET TILDE DOT DCOLON"
)
"""Tokens behind which something must stand that is none of ENDING."""

ENDING: Final = _types(
    "COMMA R_PAREN FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT UNION EXCEPT INTERSECT JOIN ON THEN WHEN ELSE END AND OR EQ NEQ LT LTE GT GTE "
    "SLASH DPIPE"
)

TOGETHER: Final = frozenset({(TokenType.CASE, TokenType.WHEN), (TokenType.DISTINCT, TokenType.FROM)})
"""Pairs that stand together all the same: CASE WHEN, IS DISTINCT FROM."""


def check_complete(text: str, name: str, tokens: Sequence[Token]) -> None:
    """Raises SyntaxFailure at the first token that lacks what must follow it."""
    for token, behind in zip(tokens, [*tokens[1:], None], strict=True):
        last = behind is None or (behind.token_type in ENDING and (token.token_type, behind.token_type) not in TOGETHER)
        opened = token.token_type == TokenType.L_PAREN and behind is not None and behind.token_type == TokenType.COMMA
        if opened or (token.token_type in WANTING and last):
            found = f"before {behind.text!r}" if behind is not None else "at the end"
            span = Span(text, token.start, token.end + 1, name)
            raise SyntaxFailure(f"something is missing behind {token.text!r}, {found}", span=span)
