"""Java's regular expressions as Python's: a pattern of java.util.regex is read by its own grammar and written for `re`.

Invariant: a pattern is translated exactly, or refused with RegexFault. Classes are computed as sets of code points, so nesting,
`&&` and properties mean what they mean in Java; `.`, `^`, `$` and `\\b` are written out, since Python's know other line ends and words.

Refused: the flags u, U and x, `\\X`, `\\G`, properties by script, block or a binary property, lookbehind of variable length, and
references to groups that come later. `\\b` is that of Java 17: letters, digits and marks of any script are words; properties are of
Python's version of Unicode. A match never begins or ends within a character, as it can in Java's pairs of UTF-16.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from deltic.expr.rows.codepoints import (
    TOP,
    CodePoints,
    as_class,
    category,
    characters,
    complement,
    intersection,
    points,
    satisfying,
    union,
    with_both_cases,
)


class RegexFault(Exception):
    """What is wrong with a pattern, in words, or not supported."""


_LINE_ENDS: Final = characters("\n\r\u0085\u2028\u2029")
_VERTICAL: Final = union(_LINE_ENDS, characters("\x0b\x0c"))
_HORIZONTAL: Final = points(*characters(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200A))
_DIGIT: Final = points((48, 57))
_LOWER, _UPPER = points((97, 122)), points((65, 90))
_LETTER: Final = union(_LOWER, _UPPER)
_WORD: Final = points(*_LETTER, *_DIGIT, (95, 95))
_SPACE: Final = characters(" \t\n\x0b\f\r")
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE, "h": _HORIZONTAL, "v": _VERTICAL}
_PUNCTUATION: Final = points((33, 47), (58, 64), (91, 96), (123, 126))
_POSIX: Final = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": points((0, 127)),
    "Alpha": _LETTER,
    "Digit": _DIGIT,
    "Alnum": union(_LETTER, _DIGIT),
    "Punct": _PUNCTUATION,
    "Graph": points((33, 126)),
    "Print": points((32, 126)),
    "Blank": characters(" \t"),
    "Cntrl": points((0, 31), (127, 127)),
    "XDigit": points((48, 57), (65, 70), (97, 102)),
    "Space": _SPACE,
}
_CATEGORIES: Final = frozenset((
    "L", "M", "N", "P", "S", "Z", "C", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf",
    "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs", "Cn",
))  # fmt: skip
_NAMED: Final = {"letter": "L", "digit": "Nd", "punctuation": "P", "control": "Cc", "titlecase": "Lt"}
_CASED: Final = {"lowercase": str.islower, "uppercase": str.isupper, "javalowercase": str.islower, "javauppercase": str.isupper}
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_END: Final = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_LINE_END: Final = r"(?=\Z|[\r\x85\u2028\u2029]|(?<!\r)\n)"
_LINE_START: Final = r"(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))"
_FLAGS: Final = "idms"
_REPEAT: Final = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")
_UNICODE: Final = re.compile(r"([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|([0-9a-fA-F]{4})")
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern for `re`. Raises RegexFault."""
    text = _Translator(_unquoted(pattern)).whole()
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise RegexFault(f"it is not supported: {error}") from None


def fault(pattern: str) -> str | None:
    """What is wrong with the pattern, None if nothing is."""
    try:
        compiled(pattern)
    except RegexFault as error:
        return f"the regular expression {pattern!r} is refused: {error}"
    return None


def _unquoted(pattern: str) -> str:
    r"""Without \Q … \E: what stands between them, each character of ASCII that is no letter or digit with a backslash."""
    parts, quoted, position = [], False, 0
    while position < len(pattern):
        pair = pattern[position : position + 2]
        if quoted and pair == r"\E":
            quoted, position = False, position + 2
        elif not quoted and pair == r"\Q":
            quoted, position = True, position + 2
        elif quoted:
            character = pattern[position]
            parts.append(f"\\{character}" if character.isascii() and not character.isalnum() else character)
            position += 1
        else:
            size = 2 if pair[0] == "\\" else 1
            parts.append(pair[:size])
            position += size
    return "".join(parts)


@dataclass(slots=True)
class _Translator:
    """One pass over a pattern. flags: those that hold at `position`. groups: how many have opened. closed: those that have closed."""

    pattern: str
    position: int = 0
    flags: frozenset[str] = frozenset()
    groups: int = 0
    closed: set[int] = field(default_factory=set)
    names: dict[str, int] = field(default_factory=dict)

    def whole(self) -> str:
        text = self._alternatives()
        if self.position < len(self.pattern):
            raise RegexFault("unmatched )")
        return text

    def _peek(self, ahead: int = 0) -> str:
        place = self.position + ahead
        return self.pattern[place] if place < len(self.pattern) else ""

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise RegexFault("it ends too early")
        self.position += 1
        return character

    def _passes(self, text: str) -> bool:
        passed = self.pattern.startswith(text, self.position)
        self.position += len(text) if passed else 0
        return passed

    def _alternatives(self) -> str:
        parts = [self._sequence()]
        while self._passes("|"):
            parts.append(self._sequence())
        return "|".join(parts)

    def _sequence(self) -> str:
        parts: list[str] = []
        while (character := self._peek()) and character not in "|)":
            if self._flags_alone():
                continue
            atom = self._atom()
            parts.append(atom + self._quantifier())
        return "".join(parts)

    def _atom(self) -> str:
        match character := self._take():
            case "(":
                return self._group()
            case "[":
                return as_class(self._class(True))
            case ".":
                return as_class(complement(() if "s" in self.flags else characters("\n") if "d" in self.flags else _LINE_ENDS))
            case "^":
                if "m" not in self.flags:
                    return r"\A"
                return r"(?:(?!\Z)(?:\A|(?<=\n)))" if "d" in self.flags else f"(?:{_LINE_START})"
            case "$":
                return self._end("m" in self.flags)
            case "\\":
                return self._escaped()
            case "*" | "+" | "?" | "{":
                raise RegexFault(f"there is nothing before {character} to repeat")
            case _:
                return as_class(self._cases(characters(character)))

    def _end(self, lines: bool) -> str:
        if "d" in self.flags:
            return r"(?=\n|\Z)" if lines else r"(?=\n?\Z)"
        return _LINE_END if lines else _END

    def _cases(self, ranges: CodePoints) -> CodePoints:
        return with_both_cases(ranges) if "i" in self.flags else ranges

    def _quantifier(self) -> str:
        if (sign := self._peek()) and sign in "*+?":
            self.position += 1
        elif sign == "{":
            repeat = _REPEAT.match(self.pattern, self.position)
            if repeat is None or (repeat[3] and int(repeat[3]) < int(repeat[1])):
                raise RegexFault("invalid repetition {")
            sign, self.position = repeat[0], repeat.end()
        else:
            return ""
        if (mode := self._peek()) and mode in "?+":
            self.position += 1
            return sign + mode
        return sign

    def _flags_alone(self) -> bool:
        """(?flags) holds to the end of the group that it is in."""
        match = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?\)").match(self.pattern, self.position)
        if match is None:
            return False
        self._set_flags(match[1], match[2] or "")
        self.position = match.end()
        return True

    def _set_flags(self, on: str, off: str) -> None:
        for flag in on + off:
            if flag not in _FLAGS:
                raise RegexFault(f"the flag {flag} is not supported")
        self.flags = (self.flags | set(on)) - set(off)

    def _group(self) -> str:
        outer = self.flags
        number, start = 0, self._group_start()
        if start in ("(", "(?P<"):
            self.groups += 1
            number = self.groups
        if start == "(?P<":
            start = self._group_name(number)
        inner = self._alternatives()
        if not self._passes(")"):
            raise RegexFault("unclosed group")
        self.flags = outer
        self.closed.add(number)
        return f"{start}{inner})"

    def _group_start(self) -> str:
        if not self._passes("?"):
            return "("
        for start in ("<=", "<!", "=", "!", ">", ":"):
            if self._passes(start):
                return f"(?{start}"
        if self._passes("<"):
            return "(?P<"
        match = re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]*))?:").match(self.pattern, self.position)
        if match is None:
            raise RegexFault("unknown group (?")
        self._set_flags(match[1], match[2] or "")
        self.position = match.end()
        return "(?:"

    def _group_name(self, number: int) -> str:
        name = _NAME.match(self.pattern, self.position)
        if name is None or name[0] in self.names:
            raise RegexFault("the name of a group is invalid")
        self.position = name.end()
        if not self._passes(">"):
            raise RegexFault("the name of a group is invalid")
        self.names[name[0]] = number
        return f"(?P<{name[0]}>"

    def _escaped(self) -> str:
        match character := self._take():
            case "A":
                return r"\A"
            case "z":
                return r"\Z"
            case "Z":
                return self._end(False)
            case "b" | "B":
                return self._word_boundary(character)
            case "R":
                return f"(?:\\r\\n|{as_class(_VERTICAL)})"
            case "k":
                return self._named_reference()
            case _ if "1" <= character <= "9":
                return self._reference(int(character))
        self.position -= 1
        return as_class(self._escaped_set())

    def _word_boundary(self, letter: str) -> str:
        if self._peek() == "{":
            raise RegexFault(r"\b{g} is not supported")
        word = as_class(points(*category("L"), *category("Nd"), *category("Mn"), (95, 95)))
        inside, outside = f"(?<={word})", f"(?<!{word})"
        if letter == "b":
            return f"(?:{inside}(?!{word})|{outside}(?={word}))"
        return f"(?:{inside}(?={word})|{outside}(?!{word}))"

    def _reference(self, number: int) -> str:
        while self._peek().isdecimal() and self._peek().isascii() and number * 10 + int(self._peek()) <= self.groups:
            number = number * 10 + int(self._take())
        return self._referring(number)

    def _named_reference(self) -> str:
        match = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.position)
        if match is None or match[1] not in self.names:
            raise RegexFault("a reference to an unknown group")
        self.position = match.end()
        return self._referring(self.names[match[1]])

    def _referring(self, number: int) -> str:
        if number not in self.closed:
            raise RegexFault("a reference to a group that does not end before it is not supported")
        return f"(?ai:(?:\\{number}))" if "i" in self.flags else f"(?:\\{number})"

    def _escaped_set(self) -> CodePoints:
        """The set that an escape denotes, from the character after the backslash on."""
        character = self._peek()
        if character in _CLASSES or character.lower() in _CLASSES:
            self.position += 1
            chosen = _CLASSES[character.lower()]
            return chosen if character.islower() else complement(chosen)
        if character in ("p", "P"):
            self.position += 1
            return self._property(character == "P")
        return self._cases(characters(self._escaped_character()))

    def _escaped_character(self) -> str:
        match character := self._take():
            case "0":
                return self._octal()
            case "x":
                return self._hexadecimal()
            case "u":
                return self._unicode()
            case "c":
                return chr(ord(self._take()) ^ 64)
            case "N":
                return self._by_name()
            case _ if character in _CONTROL:
                return _CONTROL[character]
            case _ if character.isascii() and character.isalpha():
                raise RegexFault(f"\\{character} is not supported")
        return character

    def _octal(self) -> str:
        match = re.compile(r"[0-3][0-7]{2}|[0-7]{1,2}").match(self.pattern, self.position)
        if match is None:
            raise RegexFault("invalid octal escape")
        self.position = match.end()
        return chr(int(match[0], 8))

    def _hexadecimal(self) -> str:
        match = re.compile(r"\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{2})").match(self.pattern, self.position)
        if match is None or (code := int(match[1] or match[2], 16)) > TOP:
            raise RegexFault("invalid hexadecimal escape")
        self.position = match.end()
        return chr(code)

    def _unicode(self) -> str:
        """Two escapes of a surrogate pair are one character."""
        match = re.compile(r"([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|([0-9a-fA-F]{4})").match(
            self.pattern, self.position
        )
        if match is None:
            raise RegexFault("invalid Unicode escape")
        self.position = match.end()
        if match[3]:
            return chr(int(match[3], 16))
        return chr(0x10000 + (int(match[1], 16) - 0xD800 << 10) + int(match[2], 16) - 0xDC00)

    def _by_name(self) -> str:
        match = re.compile(r"\{([^}]*)\}").match(self.pattern, self.position)
        try:
            named = unicodedata.lookup(match[1]) if match else ""
        except KeyError:
            named = ""
        if match is None or len(named) != 1:
            raise RegexFault("unknown character name")
        self.position = match.end()
        return named

    def _property(self, negated: bool) -> CodePoints:
        match = re.compile(r"\{([^}]*)\}|(.)").match(self.pattern, self.position)
        if match is None:
            raise RegexFault("invalid property")
        self.position = match.end()
        name = match[1] or match[2]
        chosen = self._property_named(name)
        return complement(chosen) if negated else chosen

    def _property_named(self, name: str) -> CodePoints:
        bare = name.removeprefix("Is")
        if "=" in name:
            key, _, bare = name.partition("=")
            if key.lower() not in ("gc", "general_category"):
                raise RegexFault(f"the property {name} is not supported")
        if "i" in self.flags and (bare in ("Lower", "Upper", "Lu", "Ll", "Lt") or bare.lower() in _CASED):
            raise RegexFault(f"the property {name} with the flag i is not supported")
        if name in _POSIX:
            return _POSIX[name]
        if bare in _CATEGORIES:
            return category(bare)
        if name.startswith("Is") and bare.lower() in _NAMED:
            return category(_NAMED[bare.lower()])
        if name.lower() in _CASED or (name.startswith("Is") and bare.lower() in _CASED):
            return satisfying(_CASED[bare.lower()])
        raise RegexFault(f"the property {name} is not supported")

    def _class(self, closing: bool) -> CodePoints:
        """A character class from after its [ on, as Java reads it; `closing`: its ] is read too."""
        negated = closing and self._passes("^")
        chosen: CodePoints | None = None
        while True:
            character = self._peek()
            if character == "[":
                self.position += 1
                chosen = union(chosen or (), self._class(True))
            elif self._passes("&&"):
                right = self._right_operand()
                if right is None and chosen is None:
                    raise RegexFault("invalid character class")
                chosen = right if chosen is None else chosen if right is None else intersection(chosen, right)
            elif character == "]" and chosen is not None:
                self.position += closing
                return complement(chosen) if negated else chosen
            else:
                chosen = union(chosen or (), self._range())
            assert chosen is not None

    def _right_operand(self) -> CodePoints | None:
        right: CodePoints | None = None
        while self._peek() not in ("]", "&", ""):
            right = union(right or (), self._class(self._passes("[")))
        return right

    def _range(self) -> CodePoints:
        """A character, a range of them, or an escape, within a class."""
        first = self._take()
        if first == "\\":
            if (letter := self._peek()).lower() in _CLASSES or letter in ("p", "P"):
                return self._escaped_set()
            first = self._escaped_character()
        if self._peek() != "-" or self._peek(1) in ("[", "]", ""):
            return self._cases(characters(first))
        self.position += 1
        last = self._take()
        if last == "\\":
            last = self._escaped_character()
        if last < first:
            raise RegexFault("the range of characters is empty")
        return self._cases(points((ord(first), ord(last))))
