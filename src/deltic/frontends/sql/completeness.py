"""Whether every token of a statement is where it means something.

sqlglot passes over tokens that lack their operand (`SELECT a,, b`, `JOIN t ON`, `CASE WHEN a b END`), over parentheses that are not
closed, and over words of other dialects (`t *`, `SELECT AS x`). What a tree does not show is found here, among the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import SyntaxFailure
from deltic.frontends.sql.spans import Places


def _types(names: str) -> frozenset[TokenType]:
    return frozenset(getattr(TokenType, name) for name in names.split())


WANTING: Final = _types(
    "COMMA ON WHERE HAVING SELECT DISTINCT FROM GROUP_BY ORDER_BY LIMIT UNION EXCEPT INTERSECT JOIN USING AND OR NOT IN BETWEEN LIKE FOR "
    "CASE WHEN THEN ELSE WITH ALIAS VALUES EQ NEQ LTE GTE NULLSAFE_EQ PLUS DASH SLASH DIV MOD DPIPE AMP PIPE CARET TILDE "
    "DOT DCOLON COLLATE"
)
"""Tokens behind which something must stand that is none of ENDING."""

ENDING: Final = _types(
    "COMMA R_PAREN FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT UNION EXCEPT INTERSECT JOIN ON THEN WHEN ELSE END AND OR EQ NEQ LT LTE GT GTE "
    "SLASH DPIPE FOR"
)
TOGETHER: Final = frozenset({(TokenType.CASE, TokenType.WHEN), (TokenType.DISTINCT, TokenType.FROM)})
"""Pairs that stand together all the same: CASE WHEN, IS DISTINCT FROM."""

APART: Final = frozenset(
    (
        (TokenType.L_PAREN, TokenType.COMMA),
        (TokenType.L_PAREN, TokenType.FROM),
        (TokenType.SELECT, TokenType.ALIAS),
        (TokenType.GROUP_BY, TokenType.DISTINCT),
        (TokenType.NATURAL, TokenType.UNION),
        (TokenType.NATURAL, TokenType.EXCEPT),
        (TokenType.NATURAL, TokenType.INTERSECT),
        (TokenType.ASC, TokenType.DESC),
        (TokenType.DESC, TokenType.ASC),
        (TokenType.ASC, TokenType.ASC),
        (TokenType.DESC, TokenType.DESC),
    )
)
"""Pairs that never stand together."""

JOINS: Final = _types("JOIN LEFT RIGHT FULL INNER CROSS NATURAL SEMI ANTI")
QUERIES: Final = _types("SELECT WITH VALUES")
CLAUSES: Final = ENDING | JOINS


def check_complete(places: Places) -> None:
    """Raises SyntaxFailure at the first token that has no place where it stands. Parentheses are checked before."""
    tokens = places.tokens
    for before, token, behind in zip([None, *tokens[:-1]], tokens, [*tokens[1:], None], strict=True):
        pair = (token.token_type, behind.token_type if behind is not None else None)
        if pair in APART or (token.token_type in WANTING and _ends(behind) and pair not in TOGETHER):
            found = f"before {behind.text!r}" if behind is not None else "at the end"
            raise SyntaxFailure(f"something is missing behind {token.text!r}, {found}", span=places.at(token))
        if _is_misplaced(before, token, behind):
            raise SyntaxFailure(f"syntax error at {token.text!r}", span=places.at(token))
    _check_ends(places)
    for opening, wanted in _unanswered(tokens):
        raise SyntaxFailure(f"{opening.text} without {wanted}", span=places.at(opening))


def _ends(token: Token | None) -> bool:
    return token is None or token.token_type in ENDING


def _is_misplaced(before: Token | None, token: Token, behind: Token | None) -> bool:
    match token.token_type:
        case TokenType.ALIAS:
            return before is None
        case TokenType.ISNULL | TokenType.NOTNULL:  # `x NOTNULL`; isnull(x) is a function
            return behind is None or behind.token_type != TokenType.L_PAREN
        case TokenType.DOT:  # x.y and .5
            number = behind is not None and behind.token_type == TokenType.NUMBER and behind.start == token.end + 1
            return not number and (before is None or before.token_type in WANTING | CLAUSES | {TokenType.L_PAREN, TokenType.STAR})
        case _:
            return False


def check_parentheses(places: Places) -> None:
    """Raises SyntaxFailure at a parenthesis that closes nothing or is never closed."""
    opened: list[Token] = []
    for token in places.tokens:
        if token.token_type == TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type == TokenType.R_PAREN:
            if not opened:
                raise SyntaxFailure("this parenthesis closes nothing", span=places.at(token))
            opened.pop()
    if opened:
        raise SyntaxFailure("this parenthesis is never closed", span=places.at(opened[-1]))


def _check_ends(places: Places) -> None:
    """Every END has its CASE, and AS stands before a query only in CREATE VIEW … AS."""
    cases, queries = 0, places.tokens[0].token_type == TokenType.CREATE
    for token, behind in pairwise([*places.tokens, None]):
        assert token is not None
        cases += (token.token_type == TokenType.CASE) - (token.token_type == TokenType.END)
        if token.token_type == TokenType.ALIAS and behind is not None and behind.token_type in QUERIES:
            if not queries:
                raise SyntaxFailure("AS does not stand before a query here", span=places.at(token))
            queries = False
        if cases < 0:
            raise SyntaxFailure("END without CASE", span=places.at(token), remedy="put a name in `back quotes`")


def _unanswered(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """Tokens that another one must answer before the next of their kind: WHEN … THEN, FILTER (WHERE …), USING (name)."""
    waiting: Token | None = None
    for i, token in enumerate(tokens):
        following = [after.token_type for after in tokens[i + 1 : i + 3]]
        if token.token_type == TokenType.WHEN and waiting is None:
            waiting = token
        elif token.token_type == TokenType.THEN:
            waiting = None
        elif waiting is not None and token.token_type in (TokenType.WHEN, TokenType.ELSE):
            yield waiting, "THEN"
        behind_call = i > 0 and tokens[i - 1].token_type == TokenType.R_PAREN
        if token.token_type == TokenType.FILTER and behind_call and following != [TokenType.L_PAREN, TokenType.WHERE]:
            yield token, "(WHERE …)"
        if token.token_type == TokenType.USING and following == [TokenType.L_PAREN, TokenType.R_PAREN]:
            yield token, "columns"
    if waiting is not None:
        yield waiting, "THEN"
