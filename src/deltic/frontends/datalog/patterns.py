"""Patterns: what a value must be for a pattern to match, the variables that it binds, and whether several patterns leave values out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from deltic.errors import Span, TypeMismatch, UnknownName, did_you_mean
from deltic.expr.nodes import Expr
from deltic.frontends.datalog.declarations import BoundTerm
from deltic.frontends.datalog.kinds import BOOL, Constructor, Kind, TupleKind, UnionKind
from deltic.frontends.datalog.tree import (
    Arguments,
    BindingTerm,
    ConstantTerm,
    ConstructorTerm,
    Term,
    TupleTerm,
    VariableTerm,
    WildcardTerm,
)
from deltic.frontends.datalog.values import field_index, part, tag_is


class PatternVisitor(Protocol):
    """What a pattern consists of."""

    def condition(self, condition: Expr) -> None:
        """The value matches only if this holds."""

    def variable(self, term: VariableTerm, value: BoundTerm) -> None:
        """A variable in the pattern, and the part of the value at its place."""

    def term(self, term: Term, value: BoundTerm) -> None:
        """An expression in the pattern, to which the part at its place must be equal."""


def take_apart(pattern: Term, value: BoundTerm, visitor: PatternVisitor) -> None:
    """Visits the parts of a pattern. Raises TypeMismatch if it cannot match a value of this kind."""
    match pattern:
        case WildcardTerm():
            return
        case VariableTerm():
            visitor.variable(pattern, value)
        case BindingTerm():
            visitor.variable(VariableTerm(pattern.name, pattern.span), value)
            take_apart(pattern.pattern, value, visitor)
        case TupleTerm():
            if not isinstance(value.kind, TupleKind) or len(value.kind.items) != len(pattern.items):
                raise TypeMismatch(
                    f"a tuple of {len(pattern.items)} cannot match a value of {value.kind}", span=pattern.span, expected=str(value.kind)
                )
            for i, (item, kind) in enumerate(zip(pattern.items, value.kind.items, strict=True)):
                take_apart(item, part(value, i, kind, item.span), visitor)
        case ConstructorTerm():
            _construct(pattern, value, visitor)
        case _:
            visitor.term(pattern, value)


def _construct(pattern: ConstructorTerm, value: BoundTerm, visitor: PatternVisitor) -> None:
    constructor = constructor_of(pattern, value.kind)
    assert isinstance(value.kind, UnionKind)
    tag = tag_is(value, value.kind, constructor.name, pattern.span)
    if tag is not None:
        visitor.condition(tag)
    for (name, kind), inner in zip(constructor.fields, by_field(pattern, constructor), strict=True):
        if inner is not None:
            take_apart(inner, part(value, field_index(value.kind, name), kind, inner.span), visitor)


def constructor_of(pattern: ConstructorTerm, kind: Kind) -> Constructor:
    """The constructor of the kind that the pattern names. Raises TypeMismatch."""
    name = local_name(pattern.name)
    constructors = kind.constructors if isinstance(kind, UnionKind) else ()
    constructor = next((one for one in constructors if one.name == name), None)
    if constructor is None:
        names = ", ".join(one.name for one in constructors)
        raise TypeMismatch(
            f"{pattern.name} is not a constructor of {kind}", span=pattern.span, expected=f"one of {names}" if names else str(kind)
        )
    return constructor


def local_name(name: str) -> str:
    """A name without DDlog's standard module."""
    return name.removeprefix("ddlog_std::").removeprefix("std::")


def by_field(term: ConstructorTerm, constructor: Constructor) -> list[Term | None]:
    """The argument for each field; None if it is not named. Raises TypeMismatch and UnknownName."""
    names = [name for name, _ in constructor.fields]
    return by_name(term.arguments, names, f"constructor {constructor.name}", term.span)


def by_name(arguments: Arguments, names: Sequence[str], what: str, span: Span) -> list[Term | None]:
    """The argument for each name: positional arguments are complete, named ones may leave names out."""
    if any(name is not None for name, _ in arguments):
        given: dict[str, Term] = {}
        for name, argument in arguments:
            if name is None:
                raise TypeMismatch(f"{what} has positional and named arguments", span=argument.span, expected="one or the other")
            if name not in names:
                raise UnknownName(f"{what} has no field {name}", span=argument.span, remedy=did_you_mean(name, names))
            if name in given:
                raise TypeMismatch(f"{what} has two arguments .{name}", span=argument.span)
            given[name] = argument
        return [given.get(name) for name in names]
    if len(arguments) != len(names):
        listed = f" ({', '.join(names)})" if names else ""
        raise TypeMismatch(f"{what} takes {len(names)} argument{'' if len(names) == 1 else 's'}{listed}, found {len(arguments)}", span=span)
    return [argument for _, argument in arguments]


def unmatched(patterns: Sequence[Term], kind: Kind) -> str | None:
    """A value that no pattern matches, as text; None if there is none (Maranget 2007, for one column at a time)."""
    witness = _unmatched([[pattern] for pattern in patterns], [kind])
    return None if witness is None else witness[0]


def _unmatched(rows: list[list[Term]], kinds: list[Kind]) -> list[str] | None:
    """Values for `kinds` that no row of patterns matches, or None."""
    if not kinds:
        return None if rows else []
    kind, rest = kinds[0], kinds[1:]
    rows = [[_bare(row[0]), *row[1:]] for row in rows]
    for name, inner in _shapes(kind):
        below = [[*parts, *row[1:]] for row in rows if (parts := _parts(row[0], kind, name, len(inner))) is not None]
        if not any(_names(row[0], kind) for row in rows):
            break
        witness = _unmatched(below, [*inner, *rest])
        if witness is not None:
            return [_shown(kind, name, witness[: len(inner)]), *witness[len(inner) :]]
    else:
        if _is_finite(kind):
            return None
    witness = _unmatched([row[1:] for row in rows if isinstance(row[0], WildcardTerm)], rest)
    return None if witness is None else ["_", *witness]


def _bare(pattern: Term) -> Term:
    """The pattern without names: a variable is a wildcard."""
    if isinstance(pattern, VariableTerm):
        return WildcardTerm(pattern.span)
    return _bare(pattern.pattern) if isinstance(pattern, BindingTerm) else pattern


def _shapes(kind: Kind) -> Iterator[tuple[str, list[Kind]]]:
    match kind:
        case UnionKind():
            yield from ((one.name, [inner for _, inner in one.fields]) for one in kind.constructors)
        case TupleKind():
            yield "", list(kind.items)
        case _ if kind == BOOL:
            yield from (("true", []), ("false", []))


def _is_finite(kind: Kind) -> bool:
    return isinstance(kind, UnionKind | TupleKind) or kind == BOOL


def _names(pattern: Term, kind: Kind) -> bool:
    """Whether the pattern tells shapes of the kind apart."""
    return not isinstance(pattern, WildcardTerm) and _is_finite(kind)


def _parts(pattern: Term, kind: Kind, name: str, count: int) -> list[Term] | None:
    """The patterns of the parts if the pattern matches values of this shape."""
    match pattern:
        case WildcardTerm():
            return [pattern] * count
        case ConstructorTerm() if isinstance(kind, UnionKind):
            constructor = constructor_of(pattern, kind)
            if constructor.name != name:
                return None
            return [WildcardTerm(pattern.span) if one is None else one for one in by_field(pattern, constructor)]
        case TupleTerm():
            return list(pattern.items)
        case ConstantTerm() if kind == BOOL:
            return [] if str(pattern.value).lower() == name else None
        case _:
            return None


def _shown(kind: Kind, name: str, parts: Sequence[str]) -> str:
    if isinstance(kind, TupleKind):
        return f"({', '.join(parts)})"
    return f"{name}{{{', '.join(parts)}}}" if parts else name
