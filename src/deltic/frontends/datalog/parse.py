"""Parses DDlog's syntax: lark's tree by ddlog.lark, converted to the tree of tree.py. Every error has its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn, TypeGuard

from lark import Token, Tree

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.datalog.attributes import attribute, connected
from deltic.frontends.datalog.grammar import grammar, parsed
from deltic.frontends.datalog.parse_term import TermConverter
from deltic.frontends.datalog.tree import (
    Attribute,
    ConstructorDeclaration,
    DatalogColumn,
    DatalogRule,
    FormalRelation,
    FunctionDeclaration,
    IndexDeclaration,
    Item,
    ModuleImport,
    RelationDeclaration,
    Term,
    TransformerApplication,
    TransformerDeclaration,
    TypeDeclaration,
)


def parse_program(text: str, name: str) -> tuple[Item, ...]:
    """The items of a program. Raises SyntaxFailure and Unsupported."""
    tree = _parsed(text, name)
    convert = Converter(text, name)
    items: list[Item] = []
    before: list[Attribute] = []
    for part in tree.children:
        if isinstance(part, Token):
            before.append(convert.attribute(part))
            continue
        inner = [convert.attribute(one) for one in part.scan_values(_is_attribute)]
        of_rules = [convert.attribute(one) for one in part.children if part.data == "transformer" and _is_attribute(one)]
        connected(None, [one for one in inner if not (one.hints and one in of_rules)])
        item = connected(convert.item(part), before)
        assert item is not None
        items += (*before, *inner, item)
        before = []
    connected(None, before)
    return (*items, *before)


def _parsed(text: str, name: str) -> Tree[Token]:
    try:
        return parsed(grammar("ddlog.lark"), text, name, "start")
    except SyntaxFailure as error:
        if error.span is None or not re.match(r"\.(decl|type|input|output|comp|functor)\b", text[error.span.start :]):
            raise
        raise SyntaxFailure(error.message, span=error.span, remedy='Soufflé\'s syntax is the dialect souffle: dialect="souffle"') from None


def parse_term(text: str, name: str) -> Term:
    """One term, as commands have them."""
    tree = parsed(grammar("ddlog.lark"), text, name, "terms")
    return Converter(text, name).term(tree.children[0])


def _is_attribute(node: object) -> TypeGuard[Token]:
    return isinstance(node, Token) and node.type == "ATTRIBUTE"


class Converter(TermConverter):
    """Converts lark's trees of items."""

    def attribute(self, token: Token) -> Attribute:
        """#[name = value]. Raises UnknownName and SyntaxFailure."""
        return attribute(str(token), self.span(token))

    def item(self, node: Tree[Token]) -> Item:
        method = getattr(self, f"_{node.data}_item")
        item: Item = method(node, *node.children)
        return item

    def _typedef_item(self, node: Any, name: Token, parameters: Any, *body: Any) -> TypeDeclaration:
        names = () if parameters is None else tuple(str(one) for one in parameters.children)
        if len(body) == 1 and body[0].data not in ("braced", "bare"):
            return TypeDeclaration(str(name), names, self.type(body[0]), (), self.span(name))
        return TypeDeclaration(str(name), names, None, tuple(self._constructor(one) for one in body), self.span(name))

    def _constructor(self, node: Any) -> ConstructorDeclaration:
        name, *fields = node.children
        return ConstructorDeclaration(str(name), self.columns(fields), self.span(name))

    def _extern_type_item(self, node: Any, name: Token, parameters: Any) -> NoReturn:
        raise Unsupported(
            f"the extern type {name} has no definition", span=self.span(name), remedy="typedef it: a struct or a tagged union"
        )

    def columns(self, nodes: Sequence[Any]) -> tuple[DatalogColumn, ...]:
        """name: type, …"""
        columns = []
        for node in nodes:
            if node is not None:
                *_, name, type = node.children  # attributes are before the name
                columns.append(DatalogColumn(str(name), self.type(type), self.span(name)))
        return tuple(columns)

    def _function_item(self, node: Any, name: Token, *rest: Any) -> FunctionDeclaration:
        *columns, type, body = rest
        result = None if type is None else self.type(type)
        return FunctionDeclaration(str(name), self.columns(columns), result, self.term(body), self.span(name))

    def _extern_item(self, node: Any, name: Token, *rest: Any) -> FunctionDeclaration:
        *columns, type = rest
        return FunctionDeclaration(str(name), self.columns(columns), self.type(type), None, self.span(name))

    def _relation_item(self, node: Any, role: Any, kind: Any, name: Token, columns: Any, key: Any) -> RelationDeclaration:
        record = self.type(columns.children[0]) if columns.data == "record" else None
        fields = () if record is not None else self.columns(columns.children)
        unique = None if key is None else (str(key.children[0]), self.term(key.children[1]))
        as_role: Any = "internal" if role is None else str(role)
        as_kind: Any = str(kind)
        return RelationDeclaration(as_role, as_kind, str(name), fields, record, unique, self.span(name))

    def _index_item(self, node: Any, name: Token, columns: Any, atom: Any) -> IndexDeclaration:
        return IndexDeclaration(str(name), self.columns(columns.children), self.atom(atom), self.span(name))

    def _import_item(self, node: Any, name: Token, alias: Any) -> ModuleImport:
        return ModuleImport(str(name), None if alias is None else str(alias), self.span(name))

    def _transformer_item(self, node: Any, name: Token, *rest: Any) -> TransformerDeclaration:
        formals = [one for one in rest if isinstance(one, Tree) and one.data == "formals"]
        items: list[Item | None] = []
        hints: list[Attribute] = []
        for one in rest:
            if _is_attribute(one):
                hints += [attribute for attribute in (self.attribute(one),) if attribute.hints]
            elif isinstance(one, Tree) and one.data != "formals":
                items.append(connected(self.item(one), hints))
                hints = []
        connected(None, hints)
        inputs, outputs = (tuple(self._formal(one) for one in part.children if one is not None) for part in formals)
        return TransformerDeclaration(str(name), inputs, outputs, tuple(one for one in items if one is not None), self.span(name))

    def _formal(self, node: Any) -> FormalRelation:
        name, kind, columns = node.children
        record = self.type(columns.children[0]) if columns.data == "record" else None
        fields = () if record is not None else self.columns(columns.children)
        return FormalRelation(str(name), str(kind), fields, record, self.span(name))

    def _apply_item(self, node: Any, name: Token, inputs: Any, outputs: Any) -> TransformerApplication:
        first, second = (tuple((str(one), self.span(one)) for one in part.children if one is not None) for part in (inputs, outputs))
        return TransformerApplication(str(name), first, second, self.span(name))

    def _rule_item(self, node: Any, *parts: Any) -> DatalogRule:
        *heads_and_body, _ = parts
        heads, body = [part.children for part in heads_and_body]
        return DatalogRule(
            tuple(self.atom(one) for one in heads), tuple(self.term(one) for one in body if one is not None), self.span(node)
        )
