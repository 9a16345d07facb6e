"""The arguments of functions in queries: how many there are, and of which kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from deltic.errors import Span, TypeMismatch
from deltic.frontends.edn.kinds import ANY, BIGDEC, BIGINT_KIND, DOUBLE_KIND, EdnKind, EdnTerm

Terms: TypeAlias = Sequence[EdnTerm]
Builder: TypeAlias = "Callable[[str, Terms, Span | None], EdnTerm]"
"""(the function as it is written, its arguments, its place) → its result. Raises TypeMismatch and Unsupported."""


def check_count(name: str, arguments: Terms, least: int, most: int | None, span: Span | None) -> None:
    """Raises TypeMismatch. most: None is any number."""
    if len(arguments) < least or (most is not None and len(arguments) > most):
        expected = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
        raise TypeMismatch(f"{name} has {len(arguments)} arguments", span=span, expected=expected)


def check_kind(name: str, term: EdnTerm, kinds: Sequence[EdnKind], span: Span | None) -> None:
    """Raises TypeMismatch for a value of another kind."""
    if term.kind not in kinds:
        remedy = "declare the :db/valueType of its attribute" if term.kind == ANY else None
        if term.kind in (BIGINT_KIND, BIGDEC) and DOUBLE_KIND in kinds:
            remedy = "(double ?x) or (long ?x) first"
        expected, place = ", ".join(map(str, kinds)), term.expr.span or span
        raise TypeMismatch(f"{name} does not accept a value of kind {term.kind}", span=place, expected=expected, remedy=remedy)
