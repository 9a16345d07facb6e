"""MAX RECURSION LEVEL n behind the name of a CTE or of a declared view: taken out of the tokens, since sqlglot does not know it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import Span, SyntaxFailure
from deltic.frontends.sql.spans import Places

WORDS: Final = ("MAX", "RECURSION", "LEVEL")
LARGEST: Final = 2**31 - 1
"""As in Spark."""


@dataclass(frozen=True, slots=True)
class Level:
    """A limit of iterations, and where its clause stands."""

    limit: int
    span: Span


Levels = Mapping[int, Level]
"""By the offset of the name that a clause belongs to."""


def take_levels(places: Places) -> tuple[Places, Levels]:
    """The statement without the clauses, and these."""
    tokens, levels = list(places.tokens), dict[int, Level]()
    for at in reversed(range(len(tokens) - 2)):
        if _words(tokens[at : at + 3]) == WORDS and (name := _named(tokens[:at])) is not None:
            levels[name.start] = Level(_limit(places, at), _span(places, at, min(at + 3, len(tokens) - 1)))
            del tokens[at : at + 4]
    return replace(places, tokens=tokens), levels


def check_levels(tree: exp.Expr, levels: Levels) -> None:
    """Raises SyntaxFailure at a clause that belongs to no CTE of a WITH RECURSIVE."""
    found = [with_ for with_ in tree.find_all(exp.With) if with_.args.get("recursive")]
    names = {cte.args["alias"].this.meta.get("start") for with_ in found for cte in with_.expressions}
    check_owners(names, levels)


def check_owners(names: Iterable[int | None], levels: Levels) -> None:
    """Raises SyntaxFailure at a clause that belongs to none of the names, which are given by their offsets."""
    for start in sorted(levels.keys() - set(names)):
        expected = "WITH RECURSIVE name (column, …) MAX RECURSION LEVEL n AS (…)"
        raise SyntaxFailure("MAX RECURSION LEVEL does not fit here", span=levels[start].span, expected=expected)


def _words(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple("" if token.token_type == TokenType.IDENTIFIER else token.text.upper() for token in tokens)


def _named(before: Sequence[Token]) -> Token | None:
    """The name that ends what stands before a clause, or whose columns in parentheses do."""
    at, depth = len(before) - 1, 0
    while at >= 0 and (depth or before[at].token_type == TokenType.R_PAREN):
        depth += (before[at].token_type == TokenType.R_PAREN) - (before[at].token_type == TokenType.L_PAREN)
        at -= 1
    return before[at] if at > 0 else None


def _limit(places: Places, at: int) -> int:
    token = places.tokens[at + 3] if at + 3 < len(places.tokens) else places.tokens[-1]
    if token.token_type != TokenType.NUMBER or not token.text.isdigit() or int(token.text) > LARGEST:
        raise SyntaxFailure(f"syntax error at {token.text!r}", span=places.at(token), expected=f"a whole number, at most {LARGEST:,}")
    return int(token.text)


def _span(places: Places, first: int, last: int) -> Span:
    return replace(places.at(places.tokens[first]), end=places.tokens[last].end + 1)
