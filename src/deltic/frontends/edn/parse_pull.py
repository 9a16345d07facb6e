"""Pull patterns, from their forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final
from typing import Literal as OneOf

from deltic.errors import SyntaxFailure, TypeMismatch, Unsupported
from deltic.frontends.edn.kinds import kind_of
from deltic.frontends.edn.parse_clause import is_symbol, is_variable, variable
from deltic.frontends.edn.tree import PullPattern, PullSpec, PullTerm
from deltic.frontends.edn.values import Keyword, ListForm, LocatedForm, MapForm, Symbol, VectorForm, write

_PATTERN: Final = "[:attribute {:reference [:attribute]}]"
_SPEC: Final = ":attribute, [:attribute :limit 10], {:reference [:attribute]} or *"
_OPTIONS: Final = (":as", ":limit", ":default")


def pull_term(form: LocatedForm, arguments: Sequence[LocatedForm]) -> PullTerm:
    """(pull ?e pattern). Raises SyntaxFailure, Unsupported and TypeMismatch."""
    if arguments and is_symbol(arguments[0], "$"):
        arguments = arguments[1:]
    if len(arguments) != 2 or not is_variable(arguments[0]):
        raise SyntaxFailure("invalid pull", span=form.span, expected=f"(pull ?e {_PATTERN})")
    if isinstance(arguments[1].value, Symbol):
        remedy = "write the pattern in the query"
        raise Unsupported("a pull pattern that is an input", span=arguments[1].span, expected=_PATTERN, remedy=remedy)
    return PullTerm(variable(arguments[0]), _pattern(arguments[1]), form.span)


def _pattern(form: LocatedForm) -> PullPattern:
    if not isinstance(form.value, VectorForm) or not form.value.parts:
        raise SyntaxFailure(f"{write(form)} is not a pull pattern", span=form.span, expected=_PATTERN)
    parts = form.value.parts
    specs = tuple(spec for part in parts if not _is_wildcard(part) for spec in _specs(part))
    return PullPattern(specs, any(map(_is_wildcard, parts)), form.span)


def _is_wildcard(form: LocatedForm) -> bool:
    return is_symbol(form, "*") or form.value in (Keyword("*"), "*")


def _specs(form: LocatedForm) -> Iterator[PullSpec]:
    if not isinstance(form.value, MapForm):
        yield _attribute(form)
        return
    if not form.value.pairs:
        raise SyntaxFailure("the map has no attribute", span=form.span, expected="{:reference [:attribute]}")
    for key, nested in form.value.pairs:
        yield replace(_attribute(key), nested=_nested(nested))


def _nested(form: LocatedForm) -> PullPattern | int | OneOf["..."]:
    """What an attribute has in a map."""
    if is_symbol(form, "...") or form.value == "...":
        return "..."
    if isinstance(form.value, VectorForm):
        return _pattern(form)
    return _count(form, "the depth of a recursion")


def _count(form: LocatedForm, what: str) -> int:
    value = form.value
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
        expected = "a pattern, a positive number or ..." if what.startswith("the depth") else "a positive number or nil"
        raise TypeMismatch(f"{what} is not {write(form)}", span=form.span, expected=expected)
    return value


def _attribute(form: LocatedForm) -> PullSpec:
    """An attribute, perhaps with options: [:name :as "n" :limit 1], or in the older form (limit :name 1)."""
    if isinstance(form.value, Keyword):
        return PullSpec(form)
    parts = form.value.parts if isinstance(form.value, VectorForm | ListForm) else ()
    if len(parts) == 3 and (is_symbol(parts[0], "limit") or is_symbol(parts[0], "default")):
        return _with_options(parts[1], [LocatedForm(Keyword(write(parts[0])), parts[0].span), parts[2]])
    if not parts or not isinstance(parts[0].value, Keyword):
        raise SyntaxFailure(f"{write(form)} is not an attribute of a pattern", span=form.span, expected=_SPEC)
    if len(parts) % 2 == 0:
        raise SyntaxFailure(f"{write(parts[-1])} has no value", span=parts[-1].span, expected=", ".join(_OPTIONS) + ", each with a value")
    return _with_options(parts[0], parts[1:])


def _with_options(name: LocatedForm, options: Sequence[LocatedForm]) -> PullSpec:
    spec = PullSpec(name)
    for key, value in zip(options[::2], options[1::2], strict=True):
        match write(key):
            case ":as":
                if not isinstance(value.value, Keyword | Symbol | str):
                    raise TypeMismatch(f"{write(value)} is not a key", span=value.span, expected="a keyword or a string")
                spec = replace(spec, key=value)
            case ":limit":
                spec = replace(spec, limit=None if value.value is None else _count(value, "a limit"))
            case ":default":
                kind_of(value)
                spec = replace(spec, default=value)
            case ":xform":
                raise Unsupported(":xform is not supported", span=key.span, remedy="apply the function to the result")
            case other:
                raise SyntaxFailure(f"a pattern has no option {other}", span=key.span, expected=", ".join(_OPTIONS))
    return spec
