"""Soufflé's components: the items of each instance, with the names of its relations, types and branches qualified by that of the instance.

A name in an instance is that of the instance itself, or else of what surrounds its `.init`; so a component sees the relations of the
program. An instance has the items of the components from which its own inherits, without the rules of relations that it overrides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from typing import Literal as OneOf

from lark import Token, Tree

from deltic.errors import CatalogError, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean

Node: TypeAlias = Any
"""A tree of lark's, whose children are trees, tokens and None."""
Role: TypeAlias = OneOf["relation", "type", "branch"]
SpanOf: TypeAlias = Callable[[Any], Span]

_ROLES: Final[Mapping[str, Mapping[int | None, Role]]] = {
    "call": {0: "relation"},
    "target": {0: "relation"},
    "names": {None: "relation"},
    "type": {0: "type"},
    "subtype": {0: "type", 1: "type"},
    "alias": {None: "type"},
    "attribute": {1: "type"},
    "conversion": {1: "type"},
    "branch": {0: "branch"},
    "construct": {0: "branch"},
}
"""What the children of a node name, by their place; None: all of them."""
_OF_LITERALS: Final = ("rule", "heads", "disjunction", "conjunction", "negation", "parenthesised")
"""Nodes whose children are literals, but for parentheses in a value. The `body` of an aggregate has literals in a value."""


@dataclass(frozen=True, slots=True)
class ComponentItem:
    """An item of an instance. arguments: what the parameters of the component stand for in which it is written."""

    node: Node
    arguments: Mapping[str, ComponentArgument]


@dataclass(slots=True)
class ComponentScope:
    """The names of the program, or of an instance, which has a prefix such as `graph.`."""

    prefix: str = ""
    outer: ComponentScope | None = None
    names: dict[tuple[Role | OneOf["instance"], str], str] = field(default_factory=dict)
    """The qualified names of what is declared here, by what they name and by the names in the text."""
    components: dict[str, ComponentItem] = field(default_factory=dict)

    def scopes(self) -> Iterator[ComponentScope]:
        """This one, and those around it."""
        scope: ComponentScope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def qualified(self, role: Role, name: str) -> str:
        """The name in the program; the name itself if nothing declares it."""
        instance, separator, rest = name.partition(".")
        for scope in self.scopes():
            if (found := scope.names.get(("instance", instance) if separator else (role, name))) is not None:
                return f"{found}.{rest}" if separator else found
        return name

    def component(self, name: str) -> ComponentItem | None:
        return next((scope.components[name] for scope in self.scopes() if name in scope.components), None)


@dataclass(frozen=True, slots=True)
class ComponentArgument:
    """What a parameter of a component stands for. scope: that around `.init`, or the instance itself for an argument of a base."""

    name: str
    scope: ComponentScope

    @property
    def type(self) -> str:
        """The type in the program, once the names of the scope are declared."""
        return self.scope.qualified("type", self.name)


def expanded(items: Sequence[Node], span: SpanOf) -> list[Node]:
    """The items of a program without components and instances. Raises UnknownName, TypeMismatch, CatalogError and Unsupported."""
    return _Expansion(span).items([ComponentItem(one, {}) for one in items], ComponentScope(), ())


class _Expansion:
    def __init__(self, span: SpanOf) -> None:
        self.span = span

    def items(self, contents: Sequence[ComponentItem], scope: ComponentScope, opened: tuple[Node, ...]) -> list[Node]:
        """The items of a scope and of the instances in it. opened: the components whose instances surround it."""
        for one in contents:
            self._declare(one, scope)
        result: list[Node] = []
        for one in contents:
            match one.node.data:
                case "component":
                    continue
                case "instance":
                    name, base = one.node.children
                    component, arguments = self._named(base, one.arguments, scope)
                    self._check_open(base, component, opened)
                    inner = ComponentScope(f"{scope.prefix}{name}.", scope)
                    parts = self._contents(component, arguments, inner, frozenset(), ())
                    result += self.items(parts, inner, (*opened, component.node))
                case "override":
                    raise Unsupported(".override is not in a component", span=self.span(one.node), expected=".override in a .comp")
                case _:
                    result.append(_renamed(one.node, scope, one.arguments))
        return result

    def _declare(self, one: ComponentItem, scope: ComponentScope) -> None:
        node = one.node
        match node.data:
            case "component":
                name = node.children[0]
                if str(name) in scope.components:
                    raise CatalogError(f"component {name} is declared twice", span=self.span(name))
                scope.components[str(name)] = one
            case "instance":
                name = node.children[0]
                if ("instance", str(name)) in scope.names:
                    raise CatalogError(f"instance {name} is declared twice", span=self.span(name))
                scope.names["instance", str(name)] = f"{scope.prefix}{name}"
            case "declaration":
                for name in _children(node.children[0]):
                    scope.names["relation", str(name)] = f"{scope.prefix}{name}"
            case "type" | "subtype":
                scope.names["type", str(node.children[0])] = f"{scope.prefix}{node.children[0]}"
                for branch in node.children[1:]:
                    if isinstance(branch, Tree) and branch.data == "branch":
                        scope.names["branch", str(branch.children[0])] = f"{scope.prefix}{branch.children[0]}"

    def _contents(
        self,
        component: ComponentItem,
        arguments: Mapping[str, ComponentArgument],
        scope: ComponentScope,
        overridden: frozenset[str],
        heirs: tuple[Node, ...],
    ) -> list[ComponentItem]:
        """The items of a component and of those from which it inherits.

        scope: that of the instance. overridden: relations whose rules are those of heirs.
        """
        _, _, bases, *items = component.node.children
        own = [one for one in items if isinstance(one, Tree)]
        overrides = [one.children[0] for one in own if one.data == "override"]
        contents: list[ComponentItem] = []
        hidden = overridden | {str(one) for one in overrides}
        for base in _children(bases):
            inherited, of_base = self._named(base, arguments, scope)
            self._check_open(base, inherited, (*heirs, component.node))
            contents += self._contents(inherited, of_base, scope, hidden, (*heirs, component.node))
        for name in overrides:
            self._check_override(name, contents)
        for one in own:
            if one.data != "override" and (rest := _without(one, overridden)) is not None:
                contents.append(ComponentItem(rest, arguments))
        return contents

    def _named(
        self, base: Node, arguments: Mapping[str, ComponentArgument], scope: ComponentScope
    ) -> tuple[ComponentItem, dict[str, ComponentArgument]]:
        """The component that `Name<argument, …>` names, and what its parameters stand for."""
        token, given = base.children
        name = arguments[str(token)].name if str(token) in arguments else str(token)
        component = scope.component(name)
        if component is None:
            known = {one for each in scope.scopes() for one in each.components}
            raise UnknownName(f"there is no component {name}", span=self.span(token), remedy=did_you_mean(name, known))
        parameters = [str(one) for one in _children(component.node.children[1])]
        values = [str(one) for one in _children(given)]
        if len(parameters) != len(values):
            expected = f"{name}<{', '.join(parameters)}>" if parameters else name
            raise TypeMismatch(f"component {name} does not have {len(values)} parameters", span=self.span(base), expected=expected)
        resolved = (arguments.get(one) or ComponentArgument(one, scope) for one in values)
        return component, {**component.arguments, **dict(zip(parameters, resolved, strict=True))}

    def _check_open(self, base: Node, component: ComponentItem, opened: tuple[Node, ...]) -> None:
        if component.node in opened:
            names = [str(one.children[0]) for one in (*opened[opened.index(component.node) :], component.node)]
            raise Unsupported(f"component {names[0]} contains itself: {' → '.join(names)}", span=self.span(base))

    def _check_override(self, name: Node, contents: Sequence[ComponentItem]) -> None:
        for one in contents:
            if one.node.data == "declaration" and name in _children(one.node.children[0]):
                if not any(part == "overridable" for part in one.node.children):
                    remedy = f".decl {name}(…) overridable"
                    raise Unsupported(f"relation {name} is not overridable", span=self.span(name), remedy=remedy)
                return
        raise UnknownName(f"no relation {name} is inherited", span=self.span(name), expected="a relation of a component after ':'")


def _children(node: Node | None) -> Sequence[Any]:
    return () if node is None else node.children


def _without(node: Node, overridden: frozenset[str]) -> Node | None:
    """The rule without its heads of these relations; None if it has no others."""
    if node.data != "rule" or not overridden:
        return node
    heads, *rest = node.children
    kept = [one for one in _children(heads) if not (isinstance(one, Tree) and one.data == "call" and str(one.children[0]) in overridden)]
    return Tree(node.data, [Tree("heads", kept, heads.meta), *rest], node.meta) if kept else None


def _renamed(node: Node, scope: ComponentScope, arguments: Mapping[str, ComponentArgument], is_value: bool = False) -> Node:
    """The item with qualified names, at their places in the text. is_value: it is part of a value, where a call is one of a functor."""
    roles = {} if is_value and node.data == "call" else _ROLES.get(node.data, {})
    is_value = node.data != "body" and (is_value or node.data not in _OF_LITERALS)
    children: list[Any] = []
    for i, child in enumerate(node.children):
        if isinstance(child, Tree):
            children.append(_renamed(child, scope, arguments, is_value))
        elif isinstance(child, Token) and (role := roles.get(i, roles.get(None))) is not None:
            argument = arguments.get(str(child)) if role == "type" else None
            children.append(child.update(value=argument.type if argument else scope.qualified(role, str(child))))
        else:
            children.append(child)
    return Tree(node.data, children, node.meta)
