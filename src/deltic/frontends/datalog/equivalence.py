"""Soufflé's eqrel: the least equivalence relation that has the pairs which are read and derived for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from deltic.errors import Span, TypeMismatch
from deltic.frontends.datalog.tree import AtomTerm, Term, VariableTerm

Rule: TypeAlias = tuple[list[AtomTerm], list[Term]]


def pairs_of(name: str) -> str:
    """The relation of the pairs that the program itself has for an equivalence relation."""
    return f"{name}_pairs"


def check_equivalence(name: str, types: Sequence[str], span: Span) -> None:
    """types: those of the columns. Raises TypeMismatch for columns that cannot be equivalent."""
    if len(types) != 2 or types[0] != types[1]:
        found = ", ".join(types) or "none"
        raise TypeMismatch(f"the columns of eqrel {name} are not a pair", span=span, expected=f"two columns of one type, found {found}")


def closure(name: str, span: Span) -> Iterator[Rule]:
    """The rules of an equivalence relation: a step along a pair, in either direction, extends a path. Both directions make it reflexive."""

    def atom(relation: str, first: str, second: str) -> AtomTerm:
        return AtomTerm(relation, ((None, VariableTerm(first, span)), (None, VariableTerm(second, span))), span, span)

    for ends in (("x", "y"), ("y", "x")):
        yield [atom(name, "x", "y")], [atom(pairs_of(name), *ends)]
        yield [atom(name, "z", "y")], [atom(name, "z", "x"), atom(pairs_of(name), *ends)]
