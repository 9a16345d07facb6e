"""Java's regular expressions as Python's: a pattern of java.util.regex is read by its own grammar and written for `re`.

Invariant: a pattern is translated exactly, or refused with RegexFault. Classes are computed as sets of code points, so nesting,
`&&` and properties mean what they mean in Java; `.`, `^`, `$` and `\\b` are written out, since Python's know other line ends and words.

Refused: the flags U and x, `\\X`, `\\G`, properties by script, block or a binary property, lookbehind of variable length, and
references to groups that come later. `\\b` is that of Java 17: letters, digits and marks of any script are words; properties are of
Python's version of Unicode. A match that begins within a character, at its second UTF-16 unit, has a translation of its own, in
which that unit stands in the place of the character.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from deltic.expr.rows.codepoints import TOP, CodePoints, as_class, category, characters, complement, intersection, points, union
from deltic.expr.rows.java_sets import CONTROL, LINE_ENDS, VERTICAL, RegexFault, SetReader

_END: Final = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_LINE_END: Final = r"(?=\Z|[\r\x85\u2028\u2029]|(?<!\r)\n)"
_LINE_START: Final = r"(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))"
_FLAGS: Final = "idmsu"
_NOT_LITERAL: Final = frozenset("$.^([|)*+?{")
_ESCAPED_LITERAL: Final = frozenset("0xucN")
_REPEAT: Final = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_TIMES: Final = re.compile(r"\{([0-9]+)(?:,\1)?\}")
_AROUND: Final = ("(?=", "(?!", "(?<=", "(?<!")
Slot = Literal["", "first", "rest"]
_SECOND: Final = points((0xDC00, 0xDFFF))
_PAIRS: Final = points((0xDC00, 0xDFFF), (0x10000, TOP))
"""The characters of two units, and the second units."""
_HERE: Final = as_class(_SECOND)


@dataclass(frozen=True, slots=True)
class Translation:
    """text: for `re`. wide: some set is written so that Java searches by characters, not by UTF-16 units; `.` is not.

    looks_back: it tests what is before a position. begins_within: a match may take the second unit of a character, or tests a position.
    """

    text: str
    wide: bool
    looks_back: bool
    begins_within: bool


def translated(pattern: str, within: str | None = None) -> Translation:
    """A pattern for `re`; `within`: for a match that begins at the second unit of this character. Raises RegexFault."""
    translator = _Translator(_unquoted(pattern), within=None if within is None else ord(within))
    text = translator.whole()
    wide = translator.wide or any(character > "\uffff" for character in pattern)
    return Translation(text, wide, translator.looks_back, translator.begins_within)


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
class _Translator(SetReader):
    """One pass over a pattern. groups: how many have opened. closed: those that have closed.

    looks_back, begins_within: as in Translation. within: the character in whose middle a match begins. lookbehinds: how many
    are open. slot: what the next set is in a lookbehind by units; empty elsewhere.
    halved: the set may be half of a character there.
    """

    within: int | None = None
    groups: int = 0
    closed: set[int] = field(default_factory=set)
    names: dict[str, int] = field(default_factory=dict)
    looks_back: bool = False
    begins_within: bool = False
    lookbehinds: int = 0
    slot: Slot = ""
    halved: bool = False

    def whole(self) -> str:
        text = self._alternatives()
        if self.position < len(self.pattern):
            raise RegexFault("unmatched )")
        return text

    def _alternatives(self) -> str:
        slot = self.slot
        parts = [self._sequence()]
        while self._passes("|"):
            self.slot = slot
            parts.append(self._sequence())
        return "|".join(parts)

    def _sequence(self) -> str:
        parts: list[str] = []
        while (character := self._peek()) and character not in "|)":
            if self._flags_alone():
                continue
            beginning, first = self.position, self.slot == "first"
            if beginning >= self.row_end:
                self.row_end = self._end_of_row()
            self.halved = self.halved and not first
            atom = self._atom()
            quantifier = self._quantifier()
            parts.append(self._repeated(atom, quantifier, beginning) if first and self.halved else atom + quantifier)
        return "".join(parts)

    def _end_of_row(self) -> int:
        """Where the characters end that Java compares at once from here on: two or more, without the last if it is repeated."""
        beginning, ends = self.position, [self.position]
        while (character := self._peek()) and character not in _NOT_LITERAL:
            self.position += 1
            if character == "\\":
                letter = self._peek()
                if not letter or (letter.isascii() and letter.isalnum() and letter not in CONTROL and letter not in _ESCAPED_LITERAL):
                    break
                self._escaped_character()
            ends.append(self.position)
        if self._peek() in ("*", "+", "?", "{") and len(ends) > 1 and self.position == ends[-1]:
            ends.pop()
        self.position = beginning
        return ends[-1] if len(ends) > 2 else beginning

    def _repeated(self, atom: str, quantifier: str, beginning: int) -> str:
        """A repetition at the beginning of a lookbehind by units, where only the first of the repeated may be half of a character."""
        times = _TIMES.match(quantifier)
        if not times or int(times[1]) < 2:
            return atom + quantifier
        end, self.position = self.position, beginning
        if self._peek() == "(":
            raise RegexFault("a lookbehind that begins with a repeated group is not supported: write it out")
        rest = self._atom()
        self.position = end
        return f"{atom}{rest}{{{int(times[1]) - 1}}}"

    def _atom(self) -> str:
        match character := self._take():
            case "(":
                return self._group()
            case "[":
                return self._one_of(self._class(True))
            case ".":
                return self._one_of(complement(() if "s" in self.flags else characters("\n") if "d" in self.flags else LINE_ENDS))
            case "^":
                if "m" not in self.flags:
                    return self._looking_back(r"\A")
                return self._looking_back(r"(?:(?!\Z)(?:\A|(?<=\n)))" if "d" in self.flags else f"(?:{_LINE_START})")
            case "$":
                return self._end("m" in self.flags)
            case "\\":
                return self._escaped()
            case "*" | "+" | "?" | "{":
                raise RegexFault(f"there is nothing before {character} to repeat")
            case _:
                return self._one_of(self._cases_of(character, in_row=self.position <= self.row_end))

    def _one_of(self, ranges: CodePoints) -> str:
        """A character of the set. Looking back to where a match began within a character, it is the whole character."""
        self.begins_within |= bool(intersection(ranges, _SECOND))
        if self.slot:
            return as_class(self._by_unit(ranges))
        if self.within is None or not self.lookbehinds:
            return as_class(ranges)
        rest = intersection(ranges, complement(_SECOND))
        return as_class(union(rest, _SECOND) if any(low <= self.within <= high for low, high in ranges) else rest)

    def _by_unit(self, ranges: CodePoints) -> CodePoints:
        """The set in a lookbehind that goes back by units: of a character of two units it may reach the second one, and not pass both."""
        half = self.slot == "first" and intersection(ranges, _SECOND) == _SECOND
        self.slot, self.halved = "rest", self.halved or half
        single = intersection(ranges, complement(_PAIRS))
        return union(single, _PAIRS) if half else single

    def _looking_back(self, assertion: str, negated: bool = False) -> str:
        """An assertion about what is before a position. Within a character there is only its first unit, which nothing matches."""
        self.looks_back = self.begins_within = True
        if self.slot and not negated:
            self.slot = "rest"  # it does not hold within a character, so that the next set is no half of one
        if self.within is None:
            return assertion
        return f"(?:(?={_HERE})|{assertion})" if negated else f"(?:(?!{_HERE}){assertion})"

    def _end(self, lines: bool) -> str:
        if "d" in self.flags:
            return r"(?=\n|\Z)" if lines else r"(?=\n?\Z)"
        return _LINE_END if lines else _END

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
        self._enter()
        outer = self.flags
        number, start = 0, self._group_start()
        if start in ("(", "(?P<"):
            self.groups += 1
            number = self.groups
        if start == "(?P<":
            start = self._group_name(number)
        looking_back = start in ("(?<=", "(?<!")
        self.begins_within |= start in _AROUND
        slot, self.slot = self.slot, self._slot_in(start)
        self.lookbehinds += looking_back
        inner = self._alternatives()
        self.lookbehinds -= looking_back
        self.slot = slot if start in _AROUND else self.slot
        if not self._passes(")"):
            raise RegexFault("unclosed group")
        self.depth -= 1
        self.flags = outer
        self.closed.add(number)
        return self._looking_back(f"{start}{inner})", start == "(?<!") if looking_back else f"{start}{inner})"

    def _slot_in(self, start: str) -> Slot:
        """Java goes back by characters if there is one of two units in what follows of the pattern, otherwise by units."""
        if start in ("(?<=", "(?<!"):
            return "" if any(character > "\uffff" for character in self.pattern[self.position :]) else "first"
        return "" if start in _AROUND else self.slot

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
                return self._looking_back(r"\A")
            case "z":
                return r"\Z"
            case "Z":
                return self._end(False)
            case "b" | "B":
                return self._word_boundary(character)
            case "R":
                return f"(?:\\r\\n|{as_class(VERTICAL)})"
            case "k":
                return self._named_reference()
            case _ if "1" <= character <= "9":
                return self._reference(int(character))
        self.position -= 1
        return self._one_of(self._escaped_set())

    def _word_boundary(self, letter: str) -> str:
        if self._peek() == "{":
            raise RegexFault(r"\b{g} is not supported")
        words = points(*category("L"), *category("Nd"), *category("Mn"), (95, 95))
        word = as_class(words)
        slot, self.slot = self.slot, ""
        self.lookbehinds += 1
        before = self._one_of(words)
        self.lookbehinds -= 1
        inside, outside = self._looking_back(f"(?<={before})"), self._looking_back(f"(?<!{before})", negated=True)
        self.slot = "rest" if slot and letter == "b" else slot
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
        if {"i", "u"} <= self.flags:
            raise RegexFault("a reference to a group is not supported with the flags i and u")
        return f"(?ai:(?:\\{number}))" if "i" in self.flags else f"(?:\\{number})"
