"""Imports and transformers: the items of modules under qualified names, and the items of a transformer for each application.

A module's names are `path::name` in the program, or `alias::name` where it is imported by an alias; in the module itself they are not
qualified. A transformer's relations are those of the application; its own get a name for each application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, TypeAlias

from deltic.errors import Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.frontends.datalog.rewriting import mapped
from deltic.frontends.datalog.tree import (
    AppliedRelation,
    AtomTerm,
    CallTerm,
    ConstructorDeclaration,
    ConstructorTerm,
    DatalogRule,
    FunctionDeclaration,
    IndexDeclaration,
    Item,
    ModuleImport,
    NamedTypeTerm,
    RelationDeclaration,
    TransformerApplication,
    TransformerDeclaration,
    TypeDeclaration,
)

ReadModule: TypeAlias = Callable[[str, Span], Sequence[Item]]
"""The items of a module by its path. Raises UnknownName."""
_NAMED: Final = (
    NamedTypeTerm,
    ConstructorTerm,
    ConstructorDeclaration,
    CallTerm,
    AtomTerm,
    TypeDeclaration,
    FunctionDeclaration,
    RelationDeclaration,
    IndexDeclaration,
    TransformerDeclaration,
    TransformerApplication,
)
_DECLARATIONS: Final = (TypeDeclaration, FunctionDeclaration, RelationDeclaration, IndexDeclaration, TransformerDeclaration)


def expanded(items: Sequence[Item], read: ReadModule) -> tuple[Item, ...]:
    """The items of a program and its modules without imports, transformers and applications."""
    loaded: dict[str, list[Item]] = {}
    own = _imported(items, "", read, loaded)
    return _applied([*(item for module in loaded.values() for item in module), *own])


def _imported(items: Sequence[Item], prefix: str, read: ReadModule, loaded: dict[str, list[Item]]) -> list[Item]:
    """The items of a module under its prefix, without imports; adds the modules that it imports to `loaded`."""
    aliases: dict[str, str] = {}
    for item in items:
        if isinstance(item, ModuleImport):
            aliases[item.alias or item.name] = item.name
            if item.name not in loaded:
                loaded[item.name] = []  # a module that is imported in a cycle
                loaded[item.name] += _imported(read(item.name, item.span), f"{item.name}::", read, loaded)
    declared = {name: prefix + name for item in items for name in _names(item)}

    def renamed(name: str) -> str:
        if name in declared:
            return declared[name]
        alias, separator, local = name.rpartition("::")
        return f"{aliases[alias]}::{local}" if separator and alias in aliases else name

    rest = [item for item in items if not isinstance(item, ModuleImport)]
    return [_with_names(item, renamed) for item in rest]


def _names(item: Item) -> Iterable[str]:
    """The names that an item declares."""
    if isinstance(item, _DECLARATIONS):
        yield item.name
    if isinstance(item, TypeDeclaration):
        yield from (one.name for one in item.constructors)


def _with_names(item: Any, renamed: Callable[[str], str]) -> Any:
    """The item with each name of a declaration or a use of one replaced."""

    def change(part: Any) -> Any:
        if not isinstance(part, _NAMED):
            return None
        inner = {one.name: mapped(getattr(part, one.name), change) for one in fields(part) if one.name != "name"}
        return replace(part, name=renamed(part.name), **inner)

    return mapped(item, change)


# transformers


def _applied(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items with each application replaced by the items of its transformer."""
    transformers = {item.name: item for item in items if isinstance(item, TransformerDeclaration)}
    relations = {item.name: item for item in items if isinstance(item, RelationDeclaration)}
    applied: list[Item] = []
    number = 0
    for item in items:
        if isinstance(item, TransformerApplication):
            number += 1
            applied += _application(item, transformers, relations, number)
        elif not isinstance(item, TransformerDeclaration):
            applied.append(item)
    return tuple(applied)


def _application(
    apply: TransformerApplication,
    transformers: Mapping[str, TransformerDeclaration],
    relations: Mapping[str, RelationDeclaration],
    number: int,
) -> list[Item]:
    declared = transformers.get(apply.name)
    if declared is None:
        raise UnknownName(f"there is no transformer {apply.name}", span=apply.span, remedy=did_you_mean(apply.name, transformers))
    names: dict[str, str] = {}
    given: list[Item] = []
    for formals, actuals, what in ((declared.inputs, apply.inputs, "input"), (declared.outputs, apply.outputs, "output")):
        if len(formals) != len(actuals):
            raise TypeMismatch(f"{apply.name} has {len(formals)} {what} relations, found {len(actuals)}", span=apply.span)
        for formal, (actual, span) in zip(formals, actuals, strict=True):
            if actual not in relations:
                raise UnknownName(f"there is no relation {actual}", span=span, remedy=f"declare it: relation {actual}(…)")
            given.append(AppliedRelation(actual, formal, span))
            names[formal.name] = actual
    for inner in declared.items:
        if not isinstance(inner, RelationDeclaration | DatalogRule) or (
            isinstance(inner, RelationDeclaration) and inner.role != "internal"
        ):
            raise Unsupported(
                "a transformer has relations and rules", span=declared.span, remedy="declare types, functions and inputs outside it"
            )
        if isinstance(inner, RelationDeclaration):
            names[inner.name] = f"{apply.name}_{number}_{inner.name}"
    return [*given, *(_with_names(inner, lambda name: names.get(name, name)) for inner in declared.items)]
