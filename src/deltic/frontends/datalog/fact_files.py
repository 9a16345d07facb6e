"""The files that Soufflé's .input and .output name: `.input edge(filename="edges.csv", rfc4180=true, headers=true)`.

A file is in the folder that the command gives, or below it; a program cannot name others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final
from typing import Literal as OneOf

from deltic.errors import CatalogError, Span, SyntaxFailure, UnknownName, Unsupported, did_you_mean

Directive = OneOf["input", "output"]
OPTIONS: Final = ("IO", "filename", "delimiter", "rfc4180", "headers")
SUFFIXES: Final = {"input": ".facts", "output": ".csv"}
_ESCAPES: Final = {"\\t": "\t", "\\\\": "\\"}


@dataclass(frozen=True, slots=True)
class DirectiveOption:
    """name = value, with places."""

    name: str
    value: str
    name_span: Span
    value_span: Span


@dataclass(frozen=True, slots=True)
class FactFile:
    """A file of a relation's rows, one in each line. path: below the folder of the command; None is standard output.

    quoted: values are quoted as RFC 4180 has it. headers: the first line has the names of the columns.
    """

    directive: Directive
    path: str | None
    delimiter: str
    quoted: bool
    headers: bool
    span: Span


def fact_file(directive: Directive, relation: str, options: Sequence[DirectiveOption], span: Span) -> FactFile:
    """The file of a directive. span: the relation's name there. Raises UnknownName, Unsupported and SyntaxFailure."""
    given: dict[str, DirectiveOption] = {}
    for one in options:
        if one.name not in OPTIONS:
            expected = f"one of {', '.join(OPTIONS)}"
            raise UnknownName(
                f"there is no option {one.name} here", span=one.name_span, expected=expected, remedy=did_you_mean(one.name, OPTIONS)
            )
        if one.name in given:
            raise SyntaxFailure(f"the option {one.name} is given twice", span=one.name_span)
        given[one.name] = one
    quoted, headers = _flag(given.get("rfc4180")), _flag(given.get("headers"))
    path: str | None = f"{relation}{SUFFIXES[directive]}"
    if "filename" in given:
        path = _path(given["filename"])
    if not _is_file(directive, given.get("IO")):
        path = None
    return FactFile(directive, path, _delimiter(given.get("delimiter"), "," if quoted else "\t"), quoted, headers, span)


def _flag(option: DirectiveOption | None) -> bool:
    if option is None:
        return False
    if option.value not in ("true", "false"):
        raise SyntaxFailure(f"invalid value {option.value!r} of {option.name}", span=option.value_span, expected="true or false")
    return option.value == "true"


def _is_file(directive: Directive, option: DirectiveOption | None) -> bool:
    if option is None or option.value == "file":
        return True
    if directive == "output" and option.value == "stdout":
        return False
    expected = "file" if directive == "input" else "file or stdout"
    raise Unsupported(f"IO={option.value} is not supported here", span=option.value_span, expected=expected)


def _delimiter(option: DirectiveOption | None, default: str) -> str:
    if option is None:
        return default
    value = _ESCAPES.get(option.value, option.value)
    if len(value) != 1 or value in '\r\n"\0':
        raise Unsupported(f"invalid delimiter {option.value!r}", span=option.value_span, expected='one character, such as "," or "\\t"')
    return value


def _path(option: DirectiveOption) -> str:
    path = PurePath(option.value)
    if not path.name or "\0" in option.value:
        raise SyntaxFailure("invalid file name", span=option.value_span, expected="the name of a file")
    if path.is_absolute() or ".." in path.parts:
        remedy = "name a file in the folder of facts or outputs, which the command gives: --facts DIR, --output DIR"
        raise Unsupported("the file is outside the folder", span=option.value_span, remedy=remedy)
    return str(path)


def check_files(files: Iterable[FactFile]) -> None:
    """Raises CatalogError for a file that is written and is also read or written for another directive."""
    by_path: dict[str, FactFile] = {}
    for one in sorted(files, key=lambda file: file.directive):
        if one.path is None:
            continue
        other = by_path.setdefault(one.path.casefold(), one)
        if other is not one and one.directive == "output":
            what = "read" if other.directive == "input" else "written"
            raise CatalogError(
                f"the file {one.path} is {what} for another relation", span=one.span, remedy='name another file: filename="…"'
            )
