"""lark's parsers by the grammars of this package, and their errors, with places and what was expected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.lexer import PatternRE, TerminalDef

from deltic.errors import Span, SyntaxFailure

DEPTH: Final = 200
"""How deep lark's tree of a program may be: it is converted recursively."""
_WORDS: Final = {
    "UPPER": "a name that begins with a capital",
    "LOWER": "a name that begins with a small letter",
    "END": "'.'",
    "TYPE_VARIABLE": "a type variable such as 'A",
    "KIND": "relation, multiset or stream",
    "ROLE": "input, output or internal",
}


@lru_cache(maxsize=32)
def grammar(file: str, instances: frozenset[str] = frozenset()) -> Lark:
    """The parser of a grammar of this package. instances: the names with which a QUALIFIED begins; after others, a dot ends a rule."""
    text = resources.files(__package__ or "").joinpath(file).read_text(encoding="utf-8")

    def edit(terminal: TerminalDef) -> None:
        if terminal.name == "QUALIFIED":
            first = "|".join(map(re.escape, sorted(instances))) or "(?!)"
            terminal.pattern = PatternRE(f"(?:{first}){terminal.pattern.value}")

    starts = ["start", "terms", "commands"]
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True, start=starts, edit_terminals=edit)


def parsed(parser: Lark, text: str, name: str, start: str) -> Tree[Token]:
    """lark's tree. Raises SyntaxFailure."""
    try:
        tree = parser.parse(text, start=start)
    except UnexpectedInput as error:
        raise _failure(error, parser, text, name) from None
    _check_depth(tree, text, name)
    return tree


def _failure(error: UnexpectedInput, parser: Lark, text: str, name: str) -> SyntaxFailure:
    offset = error.pos_in_stream if isinstance(error.pos_in_stream, int) else len(text)
    token = getattr(error, "token", None)
    ended = offset < 0 or offset >= len(text) or (isinstance(token, Token) and token.type == "$END")
    offset = len(text.rstrip()) if ended else offset
    width = 1 if not isinstance(token, Token) or ended else max(1, len(token))
    names = getattr(error, "accepts", None) or getattr(error, "allowed", None) or getattr(error, "expected", None) or ()
    words = sorted({_word(one, parser) for one in names if one != "$END"})
    unexpected = "end of the text" if ended else repr(text[offset : offset + width])
    remedy = None
    if any(word in words for word in ("'.'",)) and len(words) > 1:
        remedy = "a rule ends with '.'; the parts of its body are separated by ','"
    return SyntaxFailure(f"unexpected {unexpected}", span=Span(text, offset, offset + width, name), expected=_listed(words), remedy=remedy)


def _listed(words: Sequence[str]) -> str | None:
    return None if not words else ", ".join(words) if len(words) <= 8 else f"{', '.join(words[:8])}, …"


def _word(terminal: str, parser: Lark) -> str:
    if terminal in _WORDS:
        return _WORDS[terminal]
    pattern = parser.get_terminal(terminal).pattern
    return repr(pattern.value) if pattern.type == "str" else terminal.lower().replace("_", " ")


def _check_depth(tree: Tree[Token], text: str, name: str) -> None:
    level: list[Tree[Token]] = [tree]
    for _ in range(DEPTH):
        level = [part for node in level for part in node.children if isinstance(part, Tree)]
        if not level:
            return
    meta = level[0].meta
    span = Span(text, meta.start_pos, meta.start_pos + 1, name)
    raise SyntaxFailure("the term is nested too deeply", span=span, remedy="assign a part of it to a variable: var x = …")
