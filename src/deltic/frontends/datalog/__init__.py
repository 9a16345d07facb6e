"""Binds Datalog, in DDlog's syntax, to the plans that SQL makes: joins by shared variables, antijoins for negation, DISTINCT for sets, and
recursions for relations that depend on themselves.

parse.py makes the tree of tree.py; declarations.py checks what is declared; bind_term.py types terms, bind_body.py turns the body of a rule
into a plan, strata.py orders relations, bind_program.py makes tables and views of them. Plans are not optimized.
souffle.py makes the same tree of Soufflé's syntax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from deltic.errors import Span, UnknownName, did_you_mean
from deltic.frontends.datalog.bind_program import DatalogBinder
from deltic.frontends.datalog.modules import expanded
from deltic.frontends.datalog.parse import parse_program
from deltic.frontends.datalog.souffle import parse_souffle
from deltic.frontends.datalog.tree import Item, ModuleImport

__all__ = ["DIALECTS", "DatalogBinder", "Dialect", "Module", "bind_datalog", "imports"]

Dialect: TypeAlias = Literal["ddlog", "souffle"]
Module: TypeAlias = tuple[str, str]
"""(its text, its name in errors)."""
NOTHING: Final[Mapping[str, Module]] = MappingProxyType({})
DIALECTS: Final = {"ddlog": parse_program, "souffle": parse_souffle}


def bind_datalog(text: str, name: str, dialect: Dialect = "ddlog", modules: Mapping[str, Module] = NOTHING) -> DatalogBinder:
    """A program, checked as far as it can be without the relations of a session. Raises subclasses of QueryError, with the place.

    modules: (text, name in errors) by the path in imports.
    """

    def read(path: str, span: Span) -> Sequence[Item]:
        if path not in modules:
            raise UnknownName(
                f"there is no module {path}", span=span, remedy=did_you_mean(path, modules) or "deltic.Datalog.read finds files"
            )
        return parse_program(*modules[path])

    return DatalogBinder(expanded(DIALECTS[dialect](text, name), read))


def imports(text: str, name: str) -> list[ModuleImport]:
    """The imports of a program in DDlog's syntax. Raises SyntaxFailure."""
    return [item for item in parse_program(text, name) if isinstance(item, ModuleImport)]
