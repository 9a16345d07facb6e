"""Sets of characters in a Java regular expression: classes, escapes and properties, read into sets of code points."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from deltic.expr.rows.codepoints import (
    TOP,
    CodePoints,
    category,
    characters,
    complement,
    in_any_case,
    in_every_case,
    intersection,
    is_cased,
    points,
    satisfying,
    union,
    with_both_cases,
)


class RegexFault(Exception):
    """What is wrong with a pattern, in words, or not supported."""


LINE_ENDS: Final = characters("\n\r\u0085\u2028\u2029")
VERTICAL: Final = union(LINE_ENDS, characters("\x0b\x0c"))
_HORIZONTAL: Final = points(*characters(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200A))
_DIGIT: Final = points((48, 57))
_LOWER, _UPPER = points((97, 122)), points((65, 90))
_LETTER: Final = union(_LOWER, _UPPER)
_WORD: Final = points(*_LETTER, *_DIGIT, (95, 95))
_SPACE: Final = characters(" \t\n\x0b\f\r")
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE, "h": _HORIZONTAL, "v": VERTICAL}
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
CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_FOLDED_IN_CLASSES: Final = frozenset("IiSsKk\xb5\xc5\xe5\xff")
"""Those of Latin-1 that have another case outside it."""
_TWO_UNITS: Final = points((0xD800, 0xDFFF), (0x10000, TOP))
DEEPEST: Final = 100
"""The most groups and classes within one another: patterns are read, and compiled by `re`, recursively."""


@dataclass(slots=True)
class SetReader:
    """A pattern, read up to `position`. flags: those that hold there.

    wide: a set is written so that Java searches for the pattern by characters, not by UTF-16 units; `.` is not.
    row_end: where the last row of characters that Java compares at once ends. depth: the groups and classes that are open.
    """

    pattern: str
    position: int = 0
    depth: int = 0
    flags: frozenset[str] = frozenset()
    wide: bool = False
    row_end: int = 0

    def _peek(self, ahead: int = 0) -> str:
        place = self.position + ahead
        return self.pattern[place] if place < len(self.pattern) else ""

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise RegexFault(f"groups or classes are nested more than {DEEPEST} deep")

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

    def _cases(self, ranges: CodePoints) -> CodePoints:
        if "i" not in self.flags:
            return ranges
        return in_any_case(ranges) if "u" in self.flags else with_both_cases(ranges)

    def _cases_of(self, character: str, *, in_row: bool = False, in_class: bool = False) -> CodePoints:
        """A character in its cases. in_row: it is one of several that Java compares at once. Alone, one without cases is itself."""
        if not {"i", "u"} <= self.flags:
            return self._cases(characters(character))
        if in_row:
            return in_every_case(character)
        if not is_cased(character):
            return characters(character)
        self.wide |= not in_class or character > "\xff" or character in _FOLDED_IN_CLASSES
        return in_every_case(character)

    def _escaped_set(self) -> CodePoints:
        """The set that an escape denotes, from the character after the backslash on."""
        character = self._peek()
        if character in _CLASSES or character.lower() in _CLASSES:
            self.position += 1
            chosen = _CLASSES[character.lower()]
            self.wide |= character.isupper()
            return chosen if character.islower() else complement(chosen)
        if character in ("p", "P"):
            self.position += 1
            return self._property(character == "P")
        in_row = self.position <= self.row_end
        character = self._escaped_character()
        self.wide |= bool(intersection(characters(character), _TWO_UNITS))
        return self._cases_of(character, in_row=in_row)

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
            case _ if character in CONTROL:
                return CONTROL[character]
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
        self.wide |= negated or name not in _POSIX
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
        self._enter()
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
                self.depth -= 1
                self.wide |= negated
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
            self.wide |= bool(intersection(characters(first), _TWO_UNITS))
            return self._cases_of(first, in_class=True)
        self.position += 1
        last = self._take()
        if last == "\\":
            last = self._escaped_character()
        if last < first:
            raise RegexFault("the range of characters is empty")
        ranges = points((ord(first), ord(last)))
        self.wide |= "i" in self.flags or bool(intersection(ranges, _TWO_UNITS))
        return self._cases(ranges)
