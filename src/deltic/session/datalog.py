"""Datalog programs as statements for the catalog, like those of a SQL script."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from deltic.errors import DatalogWarning, QueryError, Span, SyntaxFailure
from deltic.frontends.datalog import DIALECTS, DatalogBinder, Dialect, bind_datalog, imports
from deltic.frontends.statements import Namespace, Statement
from deltic.purity import shown


@dataclass(frozen=True, slots=True)
class Datalog:
    """The text of a Datalog program, for `Session.datalog` and `Program`; errors call it `name`.

    dialect: the syntax, DDlog's or Soufflé's. modules: (path in imports, text, name in errors).
    """

    text: str
    name: str = "<datalog>"
    dialect: Dialect = "ddlog"
    modules: tuple[tuple[str, str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.dialect not in DIALECTS:
            raise QueryError(f"there is no dialect {self.dialect!r} of Datalog", expected="ddlog or souffle")

    @classmethod
    def read(cls, path: str | os.PathLike[str], dialect: Dialect = "ddlog") -> Self:
        """The content of a file, and of the modules that it imports: a::b is a/b.dl in the file's folder. Raises QueryError, with the place
        of an import if its file cannot be read, and SyntaxFailure."""
        text, modules = _text(path), dict[str, tuple[str, str]]()
        waiting = imports(text, os.fspath(path)) if dialect == "ddlog" else []
        for one in waiting:
            if one.name not in modules:
                file = Path(path).parent.joinpath(*one.name.split("::")).with_suffix(".dl")
                modules[one.name] = _text(file, one.span), str(file)
                waiting += imports(*modules[one.name])
        return cls(text, os.fspath(path), dialect, tuple((name, *module) for name, module in modules.items()))

    @classmethod
    def of(cls, program: str | os.PathLike[str] | Datalog, name: str = "<datalog>", dialect: Dialect = "ddlog") -> Datalog:
        """The program itself, that of a text, or that of a file. Raises QueryError."""
        if isinstance(program, Datalog):
            return program
        if not isinstance(program, str | os.PathLike):
            raise QueryError(f"invalid program {shown(program)}", expected="Datalog as a string, or the path of a file")
        return cls(program, name, dialect) if isinstance(program, str) else cls.read(program, dialect)

    def bound(self) -> DatalogBinder:
        """The program, checked as far as it can be without a session. Raises QueryError."""
        return bind_datalog(self.text, self.name, self.dialect, {name: (text, file) for name, text, file in self.modules})


def _text(path: str | os.PathLike[str], span: Span | None = None) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SyntaxFailure(f"{os.fspath(path)}: byte {error.start} is not UTF-8", span=span, expected="a program in UTF-8") from error
    except OSError as error:
        raise QueryError(f"cannot read {os.fspath(path)}: {error.strerror}", span=span, expected="a file of Datalog") from error


def datalog_statements(program: Datalog, namespace: Namespace, *, warn: bool = True) -> Iterator[Statement]:
    """A table for each input relation that the namespace lacks, and a view for each other relation. Issues DatalogWarning."""
    binder = program.bound()
    if warn:
        for message, span in binder.warnings():
            warnings.warn(f"{span.name}:{span.line}:{span.column}: {message}", DatalogWarning, stacklevel=3)
    yield from binder.statements(namespace)
