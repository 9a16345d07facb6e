"""Every error that Deltic raises on purpose, as one tree.

A message says what is wrong, where in the user's text (with a caret), what was expected, and what to do.
Bad input raises one of these; a broken invariant of Deltic's own is an `assert`.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Self

WIDTH: Final = 240
"""Of a line longer than twice this, an error shows this many characters after the place, and half as many before it."""
LONGEST: Final = 2_000
"""The most characters of a message, of what is expected and of a remedy that the text of an error has: values may be megabytes."""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a user's text: characters [start, end) of `text`, which came from `name`."""

    text: str
    start: int
    end: int
    name: str = "<sql>"

    @property
    def line(self) -> int:
        """Counted from 1."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Counted from 1."""
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    @property
    def written(self) -> str:
        """What stands there, on one line."""
        return " ".join(self.text[self.start : self.end].split())

    def picture(self) -> str:
        """The line of the text with carets under the span; of a long line, only the part around the span's start."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        stop = self.text.find("\n", self.start)
        stop = len(self.text) if stop < 0 else stop
        first, last = begin, stop
        if stop - begin > 2 * WIDTH:
            first, last = max(begin, self.start - WIDTH // 2), min(stop, self.start + WIDTH)
        before, after = "…" * (first > begin), "…" * (last < stop)
        line = before + self.text[first:last] + after
        indent = "".join("\t" if c == "\t" else " " * _cells(c) for c in line[: self.start - first + len(before)])
        width = max(1, sum(map(_cells, self.text[self.start : min(self.end, last)])))
        return f"  {line}\n  {indent}{'^' * width}"


def _cells(character: str) -> int:
    """The columns of a terminal that a character takes: none for one that combines with the one before, 2 for a wide one."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class DelticError(Exception):
    """Base of every error of Deltic.

    message: what is wrong, one sentence without a final stop.
    span: where in the user's text, if known.
    expected: what would have been valid.
    remedy: what to do.
    code: stable, even if the class is renamed; the text begins with it (docs/errors.md). The text shows long parts shortened.
    """

    code: ClassVar[str] = "DELTIC-0000"

    def __init__(self, message: str, *, span: Span | None = None, expected: str | None = None, remedy: str | None = None) -> None:
        self.message, self.span, self.expected, self.remedy = message, span, expected, remedy
        super().__init__(self._text())

    def move(self, span: Span | None) -> None:
        """Gives the error another place: of an error in a text that is part of a larger one."""
        self.span = span
        self.args = (self._text(),)

    def advise(self, remedy: str) -> None:
        """Says what to do instead."""
        self.remedy = remedy
        self.args = (self._text(),)

    def _text(self) -> str:
        place = "" if self.span is None else f"{self.span.name}:{self.span.line}:{self.span.column}: "
        lines = [f"[{self.code}] {place}{shortened(self.message)}"]
        if self.span is not None:
            lines.append(self.span.picture())
        if self.expected:
            lines.append(f"expected: {shortened(self.expected)}")
        if self.remedy:
            lines.append(f"help: {shortened(self.remedy)}")
        return "\n".join(lines)


def shortened(text: str, longest: int = LONGEST) -> str:
    """The beginning and the end of a long text: what is wrong usually follows the value.

    >>> len(shortened("x" * 10_000)), shortened("the value"), shortened("a long value", 9)
    (2000, 'the value', 'a long…ue')
    """
    if len(text) <= longest:
        return text
    end = longest // 4
    return f"{text[: longest - end - 1]}…{text[-end:]}"


class QueryError(DelticError):
    """A statement that Deltic refuses: its text, its names, or its types."""

    code = "DELTIC-1000"


class SyntaxFailure(QueryError):
    """The text does not parse."""

    code = "DELTIC-1001"


class UnknownName(QueryError):
    """A table, view, column, function or hint that does not exist. relation: its name, of a table or view."""

    code = "DELTIC-1002"
    relation: str | None = None

    @classmethod
    def of_relation(
        cls, name: str, message: str, *, span: Span | None = None, expected: str | None = None, remedy: str | None = None
    ) -> Self:
        """The error for a table or view."""
        error = cls(message, span=span, expected=expected, remedy=remedy)
        error.relation = name
        return error


class AmbiguousName(QueryError):
    """A name that means more than one column."""

    code = "DELTIC-1003"


class TypeMismatch(QueryError):
    """An expression whose types do not match."""

    code = "DELTIC-1004"


class Unsupported(QueryError):
    """SQL that Deltic does not support (yet); the remedy names an alternative."""

    code = "DELTIC-1005"


class CatalogError(QueryError):
    """A name that is defined twice, or dropped while something reads it."""

    code = "DELTIC-1006"


class ModuleFailure(QueryError):
    """A Python module that cannot be imported, or that defines no program."""

    code = "DELTIC-1007"


class UnsafeRule(QueryError):
    """A variable of a Datalog rule, or of a query in EDN, that nothing binds."""

    code = "DELTIC-1008"


class DataError(DelticError):
    """Changes that do not fit their table; nothing of the tick is applied. `table` and `ordinal` say which row, where known.

    refused: (ordinal, message) of rows that the table refuses, each as it is without those before it: the first ones,
    if the tick is to list any.
    """

    code = "DELTIC-2000"

    table: str = ""
    ordinal: int = 0
    row: int | None = None
    refused: tuple[tuple[int, str], ...] = ()


class FrameError(DataError):
    """A frame with a missing or extra column, or a wrong type."""

    code = "DELTIC-2001"


class ConstraintViolation(DataError):
    """NULL in a NOT NULL column, or a value out of its type's range."""

    code = "DELTIC-2002"


class DuplicateKey(ConstraintViolation):
    """Two rows under one primary key."""

    code = "DELTIC-2003"


class AbsentRow(DataError):
    """A delete or update of a row that does not exist."""

    code = "DELTIC-2004"


class MalformedVariant(DataError, ValueError):
    """What is no VARIANT: a value of Python, a text of JSON, or bytes."""

    code = "DELTIC-2005"


class CircuitError(DelticError):
    """A circuit whose nodes do not fit together."""

    code = "DELTIC-4000"


class EvaluationError(DelticError):
    """An expression that fails on a row (Spark's ANSI rules); the tick is rolled back."""

    code = "DELTIC-3000"


class ArithmeticOverflow(EvaluationError):
    """A number outside the range of its type."""

    code = "DELTIC-3001"


class DivisionByZero(EvaluationError):
    """Division or modulo by zero."""

    code = "DELTIC-3002"


class CastFailure(EvaluationError):
    """A value that cannot be cast."""

    code = "DELTIC-3003"


class WeightOverflow(EvaluationError):
    """A weight that does not fit in 64 bits."""

    code = "DELTIC-3004"


class ImpureFunction(EvaluationError):
    """A user function that returned two results for one row."""

    code = "DELTIC-3005"


class FailedView(EvaluationError):
    """A view whose errors are isolated, and that has some."""

    code = "DELTIC-3008"


class NegativeWeight(EvaluationError):
    """A row whose weight in a relation would be negative."""

    code = "DELTIC-3006"


class Divergence(EvaluationError):
    """A recursion that exceeds its limit of iterations; the tick is rolled back."""

    code = "DELTIC-3007"


class SubscriberError(DelticError):
    """Subscribers that raised after a commit; the tick stays. `causes` has their exceptions."""

    code = "DELTIC-4001"

    def __init__(self, message: str, *, causes: tuple[BaseException, ...] = ()) -> None:
        self.causes = causes
        super().__init__(message)


class ClosedError(DelticError):
    """A session, transaction or circuit that is used after its end, or before its start."""

    code = "DELTIC-4003"


class TooManyRows(DelticError):
    """A view whose rows, each as often as its weight says, are more than can be listed."""

    code = "DELTIC-4004"


class ReentrantCall(DelticError):
    """A session that is changed by a function that it calls while it commits."""

    code = "DELTIC-4005"


class StateError(DelticError):
    """A state folder that cannot be used as it is."""

    code = "DELTIC-5000"


class CorruptState(StateError):
    """Bytes that are not what the manifest says."""

    code = "DELTIC-5001"


class StateInUse(StateError):
    """Another live writer holds the state folder."""

    code = "DELTIC-5002"


class StateTakenOver(StateError):
    """A newer writer has taken the state folder; this one may not commit."""

    code = "DELTIC-5003"


class SourceError(DelticError):
    """A source's folder or file that cannot be read: absent, truncated, changed since it was read, or with columns of other types."""

    code = "DELTIC-6000"


class SinkError(DelticError):
    """A sink's folder that cannot be written: in use by another sink, full, or holding other files."""

    code = "DELTIC-6001"


class ClockError(DelticError):
    """A time that would go back, or a session without a clock."""

    code = "DELTIC-4002"


class SetupError(DelticError):
    """The machine lacks something: Java, an extra, a data set."""

    code = "DELTIC-7000"


class TaskFailed(DelticError):
    """A Spark task failed for good, or its job was cancelled; the tick was not committed. The cause has Spark's report."""

    code = "DELTIC-7001"


class PlanWarning(UserWarning):
    """A view is correct, but its plan is expensive. place: `file:line:column`. text: without the place."""

    def __init__(self, span: Span, text: str) -> None:
        self.place, self.text = f"{span.name}:{span.line}:{span.column}", text
        super().__init__(f"{self.place}: {text}")


class DatalogWarning(UserWarning):
    """A relation of a Datalog program that nothing derives, or that nothing reads."""


def most_like(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is most like `name`, whose case does not count; None if none is."""
    lowered = {candidate.lower(): candidate for candidate in reversed(list(candidates))}
    close = difflib.get_close_matches(name.lower(), list(lowered), 1, 0.6)
    return lowered[close[0]] if close else None


def unknown_function(name: str, known: Iterable[str]) -> str:
    """A remedy for a function that does not exist: one that is like it, or a function of the user's own."""
    like = most_like(name, list(known))
    own = f"a function of your own is registered first: session.register({name!r}, …), or deltic.UDF in a program"
    return f"did you mean {like!r}? Otherwise, {own}" if like else own


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A remedy naming the candidate that is most like `name`, or all of them where they are few."""
    names = list(dict.fromkeys(candidates))
    if (close := most_like(name, names)) is not None:
        return f"did you mean {close!r}?"
    if len(names) == 1:
        return f"there is only {names[0]}"
    return f"there are {', '.join(names)}" if 0 < len(names) <= 12 else None
