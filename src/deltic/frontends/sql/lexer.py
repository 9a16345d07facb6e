"""Splits a script into tokens, by the lexical rules of Spark's grammar (SqlBaseLexer.g4).

Invariant: tokens are in the order of the text, do not overlap, and cover everything but blanks and comments. Every token has its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from deltic.errors import Span, SyntaxFailure

WORD: Final = "word"
QUOTED: Final = "quoted"
STRING: Final = "string"
NUMBER: Final = "number"
HINT: Final = "hint"
SIGN: Final = "sign"
END: Final = "end"


NOTHING_GIVEN: Final[Mapping[str, object]] = MappingProxyType({})


class Token(NamedTuple):
    """Characters [start, end) of the text.

    word: the form that the grammar compares: a word in upper case, or a sign; "" for other tokens. text: the characters of a string or
    quoted name, unescaped; of other tokens as written.
    """

    kind: str
    text: str
    word: str
    start: int
    end: int


_TOKEN: Final = re.compile(
    r"""
      (?P<blank>(?:\s|--(?:\\\r?\n|[^\r\n])*)+)
    | (?P<hint>/\*\+.*?\*/)
    | (?P<comment>/\*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<string>'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+")
    | (?P<quoted>`(?:[^`]++|``)*+`)
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYfFdD])?(?!\w))
    | (?P<word>\w+)
    | (?P<sign><=>|>>>|<>|!=|==|<=|>=|!>|!<|<<|>>|\|\||\|>|->|=>|::|\?\?|[-+*/%&|^~=<>!?:;,.()\[\]{}@$])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"/\*(?!\+)|\*/")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OPENING: Final = {"'": "quote", '"': "quote", "`": "quote", "/": "comment"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def tokenize(text: str, name: str, given: Mapping[str, object] = NOTHING_GIVEN) -> list[Token]:
    """The tokens of a script. Raises SyntaxFailure for an unterminated quote or comment, and for characters that are not SQL."""
    _check_characters(text, name)
    tokens: list[Token] = []
    offset, match = 0, _TOKEN.match
    while offset < len(text):
        token = match(text, offset)
        if token is None:
            raise _unknown(text, offset, name)
        kind, end = token.lastgroup, token.end()
        if kind == "comment":
            end = _past_comment(text, offset, name)
        elif kind == WORD:
            word = token.group()
            tokens.append(Token(WORD, word, word.upper(), offset, end))
        elif kind == SIGN:
            sign = token.group()
            tokens.append(Token(SIGN, sign, sign, offset, end))
        elif kind == NUMBER:
            tokens.append(Token(NUMBER, token.group(), "", offset, end))
        elif kind == HINT and not (tokens and tokens[-1].word == "SELECT"):
            span = Span(text, offset, end, name)
            raise SyntaxFailure("a hint must follow SELECT, in one comment", span=span, expected="SELECT /*+ hint, hint */ …")
        elif kind != "blank":
            tokens.append(_quoted(kind or "", token.group(), Span(text, offset, end, name)))
        offset = end
    return _identified(_with_given(tokens, given), name) if any(token.word == "IDENTIFIER" for token in tokens) else tokens


def is_open(text: str) -> bool:
    """Whether the text ends within a quote or a comment."""
    try:
        tokenize(text, "")
    except SyntaxFailure as failure:
        span = failure.span
        return span is not None and span.end == len(text) and text[span.start] in _OPENING
    return False


def _with_given(tokens: list[Token], given: Mapping[str, object]) -> list[Token]:
    """With the texts that are given for parameters in IDENTIFIER(…) as strings."""
    replaced: list[Token] = []
    within = False
    for token in tokens:
        opened = bool(replaced) and token.word == "(" and replaced[-1].word == "IDENTIFIER"
        within = opened or (within and token.word != ")")
        value = given.get(token.text) if token.kind == WORD and within and replaced[-1].word == ":" else None
        if isinstance(value, str):
            replaced[-1] = Token(STRING, value, "", replaced[-1].start, token.end)
        else:
            replaced.append(token)
    return replaced


def _identified(tokens: list[Token], name: str) -> list[Token]:
    """With the names that IDENTIFIER('…') and IDENTIFIER('…' || '…') spell in their place, as quoted names."""
    identified: list[Token] = []
    position = 0
    while position < len(tokens):
        first, end = tokens[position], _end_of_spelling(tokens, position)
        spelled = _names("".join(token.text for token in tokens[position + 2 : end : 2]), name)
        if spelled:
            identified += [part._replace(start=first.start, end=tokens[end].end) for part in spelled]
            position = end + 1
        else:
            identified.append(first)
            position += 1
    return identified


def _end_of_spelling(tokens: list[Token], position: int) -> int:
    """Where the parenthesis after IDENTIFIER ('…' || '…' is; `position` if no such thing is there."""
    if [token.word for token in tokens[position : position + 2]] != ["IDENTIFIER", "("]:
        return position
    for i, token in enumerate(islice(tokens, position + 2, None)):
        if i % 2 and token.word == ")":
            return position + 2 + i
        if token.word != "||" if i % 2 else token.kind != STRING:
            break
    return position


def _names(text: str, name: str) -> list[Token]:
    """The names of a text such as a.b; none if it is no name."""
    try:
        parts = tokenize(text, name)
    except SyntaxFailure:
        return []
    if len(parts) % 2 == 0 or any(part.word != "." if i % 2 else part.kind not in (WORD, QUOTED) for i, part in enumerate(parts)):
        return []
    return [part if i % 2 else part._replace(kind=QUOTED, word="") for i, part in enumerate(parts)]


def _quoted(kind: str, written: str, span: Span) -> Token:
    match kind:
        case "raw":
            kind, value = STRING, written[2:-1]
        case "string":
            quote = written[0]
            value = written[1:-1].replace(quote * 2, quote) if "\\" not in written else _unescaped(written[1:-1], quote)
        case "quoted":
            value = written[1:-1].replace("``", "`")
            if not value.strip():
                wrong = "of blanks alone" if value else "empty"
                raise SyntaxFailure(f"a name is {wrong}", span=span, expected="a name of at least one character that is not a blank")
        case _:
            value = written
    return Token(kind, value, "", span.start, span.end)


def _unescaped(text: str, quote: str) -> str:
    """The characters of a string, with escapes and doubled quotes replaced."""

    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is not None:
            number = int(code, 16)
            return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
        return chr(int(match[3], 8)) if match[3] else _ESCAPED.get(match[4], match[4])

    parts = re.split(r"(\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.))", text, flags=re.DOTALL)
    return "".join(_ESCAPE.sub(one, part) if i % 2 else part.replace(quote * 2, quote) for i, part in enumerate(parts))


def _past_comment(text: str, start: int, name: str) -> int:
    """The offset after the comment that opens at `start`; comments nest."""
    depth = 0
    for match in _COMMENT.finditer(text, start):
        depth += 1 if match.group() == "/*" else -1
        if not depth:
            return match.end()
    raise SyntaxFailure("unterminated comment", span=Span(text, start, len(text), name), remedy="close it with */")


def _check_characters(text: str, name: str) -> None:
    """Raises SyntaxFailure at a lone surrogate, which cannot be encoded."""
    if (match := _SURROGATE.search(text)) is not None:
        span = Span(_SURROGATE.sub("\ufffd", text), match.start(), match.end(), name)
        raise SyntaxFailure("the text contains a lone surrogate", span=span, remedy="decode the text as UTF-8 before it is read")


def _unknown(text: str, offset: int, name: str) -> SyntaxFailure:
    if _OPENING.get(text[offset]) == "quote":
        return SyntaxFailure("unterminated quote", span=Span(text, offset, len(text), name), remedy=f"close it with {text[offset]}")
    if text.startswith("/*+", offset):
        return SyntaxFailure("unterminated hint", span=Span(text, offset, len(text), name), remedy="close it with */")
    return SyntaxFailure(f"the character {text[offset]!r} has no meaning in SQL", span=Span(text, offset, offset + 1, name))
