"""Programs: tables, views, sources and sinks, declared by SQL, Datalog and circuits in Python, bound together. A program runs nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias

from deltic.errors import CatalogError, CircuitError, QueryError, SyntaxFailure
from deltic.frontends.python import UDF, Circuit
from deltic.frontends.sql import parse_script
from deltic.frontends.sql.user_functions import check_name
from deltic.frontends.statements import CreateFunction, Statement
from deltic.purity import shown
from deltic.session.catalog import Catalog
from deltic.session.circuits import circuit_statements
from deltic.session.collector import without_collector
from deltic.session.datalog import Datalog, datalog_statements
from deltic.session.draft import Draft
from deltic.session.frame_views import FrameView, frame_statements, frames_over


@dataclass(frozen=True, slots=True)
class SqlText:
    """SQL statements; errors call them `name`."""

    text: str
    name: str

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The content of a file. Raises QueryError if it cannot be read, SyntaxFailure if it is not UTF-8."""
        try:
            return cls(Path(path).read_text(encoding="utf-8"), os.fspath(path))
        except UnicodeDecodeError as error:
            raise SyntaxFailure(f"{os.fspath(path)}: byte {error.start} is not UTF-8", expected="a script in UTF-8") from error
        except OSError as error:
            raise QueryError(f"cannot read {os.fspath(path)}: {error.strerror}", expected="a file of SQL") from error
        except ValueError as error:  # of a path that no file system can have
            raise QueryError(f"invalid path {os.fspath(path)!r}: {error}", expected="a file of SQL") from error


@dataclass(frozen=True, slots=True)
class BoundStatements:
    """Statements that are bound already."""

    statements: tuple[Statement, ...]


Part: TypeAlias = SqlText | Datalog | Circuit | UDF | FrameView | BoundStatements
DATALOG = ".dl"
"""The suffix of files of Datalog; others are SQL."""


class Program:
    """The definition of a whole pipeline, for `Pipeline`, `Session.program` and `deltic run`: SQL scripts, Datalog and circuits.

    Each part is SQL text, the path of a file of SQL or (.dl) of Datalog, a Datalog, a Circuit, a UDF, a function with @deltic.view, or
    another Program. A part reads what the parts before it define: an input of a circuit may be a table that SQL declares, with its source,
    and a sink in SQL may read an output of a circuit.

    Immutable: a circuit counts as it is when the program is made. Raises QueryError, with the place, and CircuitError.
    """

    __slots__ = ("_catalog", "_parts")

    def __init__(self, *parts: str | os.PathLike[str] | Datalog | Circuit | UDF | FrameView | Program) -> None:
        self._bind(tuple(bound for part in parts for bound in _parts_of(part)))

    @classmethod
    def of(cls, program: str | Program, name: str = "<sql>") -> Program:
        """The program itself; of text, that of the SQL script, which errors call `name`."""
        if isinstance(program, Program):
            return program
        if not isinstance(program, str):
            raise CircuitError(f"invalid program {shown(program)}", expected="a deltic.Program, or SQL as a string")
        bound = cls.__new__(cls)
        bound._bind((SqlText(program, name),))
        return bound

    @classmethod
    def defined_by(cls, statements: Iterable[Statement]) -> Program:
        """The program of statements that another front end has bound."""
        bound = cls.__new__(cls)
        bound._bind((BoundStatements(tuple(statements)),))
        return bound

    @without_collector
    def _bind(self, parts: tuple[Part, ...]) -> None:
        draft = Draft(Catalog())
        for part in parts:
            for statement in _statements(part, draft):
                draft.apply(statement)
        if draft.replanned:
            remedy = "leave it out, and run it once: session.sql('ALTER MATERIALIZED VIEW … REPLAN')"
            raise CatalogError("REPLAN is not a definition", span=next(iter(draft.replanned.values())), remedy=remedy)
        self._parts, self._catalog = parts, draft.catalog

    @property
    def catalog(self) -> Catalog:
        """What it defines."""
        return self._catalog

    @property
    def _relations(self) -> Catalog:
        """What `deltic.Circuit(program)` reads."""
        return self._catalog

    def __eq__(self, other: object) -> bool:
        return self._parts == other._parts if isinstance(other, Program) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts)

    def __getstate__(self) -> tuple[Part, ...]:
        return self._parts

    def __setstate__(self, parts: tuple[Part, ...]) -> None:
        self._bind(parts)


def _parts_of(part: object) -> tuple[Part, ...]:
    match part:
        case str():
            return (SqlText(part, "<sql>"),)
        case os.PathLike():
            return (Datalog.read(part) if Path(part).suffix == DATALOG else SqlText.read(part),)
        case Datalog():
            return (part,)
        case Circuit():
            return (copy(part),)
        case UDF() | FrameView():
            return (part,)
        case Program():
            return part._parts
    expected = "SQL text, the path of a file of SQL or Datalog, a deltic.Datalog, Circuit, UDF or Program, or a function with @deltic.view"
    raise CircuitError(f"{part!r} cannot be part of a program", expected=expected)


def _statements(part: Part, draft: Draft) -> Iterator[Statement]:
    if isinstance(part, SqlText):
        return parse_script(part.text, part.name, draft)
    if isinstance(part, BoundStatements):
        return iter(part.statements)
    if isinstance(part, Datalog):
        return datalog_statements(part, draft, warn=False)
    if isinstance(part, UDF):
        return iter((registration(part),))
    if isinstance(part, FrameView):
        return frame_statements(part, frames_over(lambda: draft), draft)
    return circuit_statements(part, draft.catalog.tables, draft.catalog)


def registration(function: UDF, *, or_replace: bool = False) -> CreateFunction:
    """The statement that defines a function in Python. Raises CatalogError for the name of a builtin function."""
    check_name(function.name, None)
    return CreateFunction(function.defined, or_replace, False, None)
