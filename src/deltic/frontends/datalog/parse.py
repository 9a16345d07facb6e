"""Parses DDlog's syntax: lark's tree by ddlog.lark, converted to the tree of tree.py. Every error has its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, NoReturn

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.datalog.tree import (
    Arguments,
    AssignmentTerm,
    AtomTerm,
    BindingTerm,
    BlockTerm,
    CallTerm,
    ClosureTerm,
    ConstantTerm,
    ConstructorDeclaration,
    ConstructorTerm,
    ConversionTerm,
    DatalogColumn,
    DatalogRule,
    FieldTerm,
    FormalRelation,
    FunctionDeclaration,
    IfTerm,
    IndexDeclaration,
    InspectTerm,
    InterpolatedTerm,
    Item,
    MatchTerm,
    ModuleImport,
    NamedTypeTerm,
    OperationTerm,
    RecordTerm,
    RelationDeclaration,
    Term,
    TransformerApplication,
    TransformerDeclaration,
    TupleTerm,
    TupleTypeTerm,
    TypeDeclaration,
    TypeTerm,
    TypeVariableTerm,
    VariableTerm,
    VectorTerm,
    WildcardTerm,
)

DEPTH: Final = 200
"""How deep lark's tree of a program may be: it is converted recursively."""
_PIECE: Final = re.compile(r"\\([\s\S])|\$\{([^}]*)\}")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_WORDS: Final = {
    "UPPER": "a name that begins with a capital",
    "LOWER": "a name that begins with a small letter",
    "END": "'.'",
    "TYPE_VARIABLE": "a type variable such as 'A",
    "KIND": "relation, multiset or stream",
    "ROLE": "input, output or internal",
}


def parse_program(text: str, name: str) -> tuple[Item, ...]:
    """The items of a program. Raises SyntaxFailure and Unsupported."""
    tree = parsed(grammar("ddlog.lark"), text, name, "start")
    convert = Converter(text, name)
    return tuple(convert.item(part) for part in tree.children if isinstance(part, Tree))


def parse_term(text: str, name: str) -> Term:
    """One term, as commands have them."""
    tree = parsed(grammar("ddlog.lark"), text, name, "terms")
    return Converter(text, name).term(tree.children[0])


@cache
def grammar(file: str) -> Lark:
    """The parser of a grammar of this package."""
    text = resources.files(__package__ or "").joinpath(file).read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True, start=["start", "terms", "commands"])


def parsed(parser: Lark, text: str, name: str, start: str) -> Tree[Token]:
    """lark's tree. Raises SyntaxFailure."""
    try:
        tree = parser.parse(text, start=start)
    except UnexpectedInput as error:
        raise _failure(error, parser, text, name) from None
    _check_depth(tree, text, name)
    return tree


def _failure(error: UnexpectedInput, parser: Lark, text: str, name: str) -> SyntaxFailure:
    at = error.pos_in_stream if isinstance(error.pos_in_stream, int) else len(text)
    token = getattr(error, "token", None)
    ended = at < 0 or at >= len(text) or (isinstance(token, Token) and token.type == "$END")
    at = len(text.rstrip()) if ended else at
    width = 1 if not isinstance(token, Token) or ended else max(1, len(token))
    names = getattr(error, "accepts", None) or getattr(error, "allowed", None) or getattr(error, "expected", None) or ()
    words = sorted({_word(one, parser) for one in names if one != "$END"})
    found = "the end of the program" if ended else repr(text[at : at + width])
    remedy = None
    if any(word in words for word in ("'.'",)) and len(words) > 1:
        remedy = "a rule ends with '.'; the parts of its body are separated by ','"
    return SyntaxFailure(f"unexpected {found}", span=Span(text, at, at + width, name), expected=_listed(words), remedy=remedy)


def _listed(words: Sequence[str]) -> str | None:
    return None if not words else ", ".join(words) if len(words) <= 8 else f"{', '.join(words[:8])}, …"


def _word(terminal: str, parser: Lark) -> str:
    if terminal in _WORDS:
        return _WORDS[terminal]
    pattern = parser.get_terminal(terminal).pattern
    return repr(pattern.value) if pattern.type == "str" else terminal.lower().replace("_", " ")


def _check_depth(tree: Tree[Token], text: str, name: str) -> None:
    level: list[Tree[Token]] = [tree]
    for _ in range(DEPTH):
        level = [part for node in level for part in node.children if isinstance(part, Tree)]
        if not level:
            return
    meta = level[0].meta
    span = Span(text, meta.start_pos, meta.start_pos + 1, name)
    raise SyntaxFailure("the term is nested too deeply", span=span, remedy="assign a part of it to a variable: var x = …")


class Converter:
    """Converts lark's tree. offset: where the text begins in `whole`, of which it is a part."""

    def __init__(self, whole: str, name: str, offset: int = 0) -> None:
        self.whole, self.name, self.offset = whole, name, offset

    def span(self, node: Any) -> Span:
        """The place of a token or a tree."""
        if isinstance(node, Token):
            start, end = node.start_pos or 0, node.end_pos or 0
        else:
            start, end = getattr(node.meta, "start_pos", 0), getattr(node.meta, "end_pos", 0)
        return Span(self.whole, start + self.offset, end + self.offset, self.name)

    # items

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
        found = []
        for node in nodes:
            if node is not None:
                name, type = node.children
                found.append(DatalogColumn(str(name), self.type(type), self.span(name)))
        return tuple(found)

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
        items = [one for one in rest if isinstance(one, Tree) and one.data != "formals"]
        inputs, outputs = (tuple(self._formal(one) for one in part.children if one is not None) for part in formals)
        return TransformerDeclaration(str(name), inputs, outputs, tuple(map(self.item, items)), self.span(name))

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

    # types

    def type(self, node: Any) -> TypeTerm:
        match node.data:
            case "tuple_type":
                return TupleTypeTerm(tuple(self.type(one) for one in node.children if one is not None), self.span(node))
            case "type_variable":
                return TypeVariableTerm(str(node.children[0]), self.span(node))
            case "reference_type":
                return self.type(node.children[0])
        name, arguments = node.children
        given = () if arguments is None else arguments.children
        return NamedTypeTerm(str(name), tuple(int(one) if isinstance(one, Token) else self.type(one) for one in given), self.span(node))

    # terms

    def atom(self, node: Any) -> AtomTerm:
        """R(…) or R[…]."""
        if len(node.children) == 1:  # &R(…)
            return self.atom(node.children[0])
        name, delay, prime, *arguments = node.children
        record = self.term(arguments[0]) if node.data == "record_atom" else None
        given = () if record is not None else self.arguments(arguments)
        steps = 0 if delay is None else int(delay[1:])
        return AtomTerm(str(name), given, self.span(node), self.span(name), record, steps, prime is not None)

    def arguments(self, nodes: Sequence[Any]) -> Arguments:
        """Positional and named ones."""
        return tuple(
            (str(one.children[0])[1:], self.term(one.children[1])) if one.data == "named" else (None, self.term(one))
            for one in nodes
            if one is not None
        )

    def term(self, node: Any) -> Term:
        """A term of any kind."""
        method = getattr(self, f"_{node.data}", None)
        if method is None:
            return self._operation(node)
        term: Term = method(node, *node.children)
        return term

    def _operation(self, node: Any) -> Term:
        """Operators of one level: from the left, or as one operation of `and` and `or`."""
        fixed = {"term": "=>", "disjunction": "or", "conjunction": "and", "bit_or": "|", "bit_xor": "^", "bit_and": "&"}
        span = self.span(node)
        if node.data in fixed:
            operands = tuple(self.term(one) for one in node.children)
            if node.data in ("disjunction", "conjunction", "term"):
                return OperationTerm(fixed[node.data], operands, span)
            result = operands[0]
            for operand in operands[1:]:
                result = OperationTerm(fixed[node.data], (result, operand), self._both(result.span, operand.span))
            return result
        result = self.term(node.children[0])
        for operator, right in zip(node.children[1::2], node.children[2::2], strict=True):
            operand = self.term(right)
            result = OperationTerm(str(operator), (result, operand), self._both(result.span, operand.span))
        return result

    def _both(self, first: Span, last: Span) -> Span:
        return Span(first.text, first.start, last.end, first.name)

    def _negation(self, node: Any, operand: Any) -> Term:
        return OperationTerm("not", (self.term(operand),), self.span(node))

    def _prefix(self, node: Any, operator: Token, operand: Any) -> Term:
        value = self.term(operand)
        if operator == "-" and isinstance(value, ConstantTerm) and isinstance(value.value, int | float) and value.kind != "bool":
            return ConstantTerm(-value.value, value.kind, self.span(node), value.bits, value.signed)
        return OperationTerm(f"unary {operator}", (value,), self.span(node))

    def _conversion(self, node: Any, value: Any, *types: Any) -> Term:
        result = self.term(value)
        for type in types:
            result = ConversionTerm(result, self.type(type), self._both(result.span, self.span(type)))
        return result

    def _field(self, node: Any, value: Any, name: Token) -> Term:
        return FieldTerm(self.term(value), str(name)[1:], self.span(node))

    def _method(self, node: Any, value: Any, name: Token, *arguments: Any) -> Term:
        given = tuple(self.term(one) for one in arguments if one is not None)
        return CallTerm(str(name)[1:], (self.term(value), *given), self.span(node))

    def _call(self, node: Any, name: Token, *arguments: Any) -> Term:
        return CallTerm(str(name), tuple(self.term(one) for one in arguments if one is not None), self.span(node))

    def _integer(self, node: Any, text: Token) -> Term:
        return ConstantTerm(int(text.replace("_", ""), 0 if text[:2] in ("0x", "0b") else 10), "integer", self.span(node))

    def _sized(self, node: Any, text: Token) -> Term:
        bits, _, rest = text.partition("'")
        signed = rest.startswith("s")
        base = {"b": 2, "o": 8, "d": 10, "h": 16}[rest[signed]]
        return ConstantTerm(int(rest[signed + 1 :].replace("_", ""), base), "integer", self.span(node), int(bits), signed)

    def _float(self, node: Any, text: Token) -> Term:
        return ConstantTerm(float(text), "float", self.span(node))

    def _raw(self, node: Any, text: Token) -> Term:
        return ConstantTerm(str(text)[2:-2], "string", self.span(node))

    def _true(self, node: Any) -> Term:
        return ConstantTerm(True, "bool", self.span(node))

    def _false(self, node: Any) -> Term:
        return ConstantTerm(False, "bool", self.span(node))

    def _text(self, node: Any, token: Token) -> Term:
        start = token.index('"') + 1
        body, at = str(token)[start:-1], (token.start_pos or 0) + start
        parts: list[Term] = []
        plain, last, span = "", 0, self.span(node)
        for found in _PIECE.finditer(body):
            plain += body[last : found.start()]
            last = found.end()
            if found[1] is not None:
                plain += _ESCAPES.get(found[1], found[1])
                continue
            parts += [ConstantTerm(plain, "string", span)] if plain else []
            plain = ""
            parts.append(self._inner(found[2], at + found.start(2)))
        plain += body[last:]
        if not parts:
            return ConstantTerm(plain, "string", span)
        parts += [ConstantTerm(plain, "string", span)] if plain else []
        return InterpolatedTerm(tuple(parts), span)

    def _inner(self, text: str, at: int) -> Term:
        """The term in ${…}, whose places are those in the whole text."""
        try:
            tree = parsed(grammar("ddlog.lark"), text, self.name, "terms")
        except SyntaxFailure as error:
            start = at + self.offset + (error.span.start if error.span else 0)
            error.move(Span(self.whole, start, start + 1, self.name))
            raise
        return Converter(self.whole, self.name, at + self.offset).term(tree.children[0])

    def _wildcard(self, node: Any) -> Term:
        return WildcardTerm(self.span(node))

    def _variable(self, node: Any, name: Token) -> Term:
        return VariableTerm(str(name), self.span(node))

    def _new_variable(self, node: Any, name: Token) -> Term:
        return VariableTerm(str(name), self.span(node), True)

    def _new_tuple(self, node: Any, *names: Token) -> Term:
        return TupleTerm(tuple(VariableTerm(str(one), self.span(one), True) for one in names), self.span(node))

    def _binding(self, node: Any, name: Token, pattern: Any) -> Term:
        return BindingTerm(str(name), self.term(pattern), self.span(node))

    def _constant(self, node: Any, name: Token) -> Term:
        return ConstructorTerm(str(name), (), self.span(node))

    def _construct(self, node: Any, name: Token, *arguments: Any) -> Term:
        return ConstructorTerm(str(name), self.arguments(arguments), self.span(node))

    def _atom(self, node: Any, *_: Any) -> Term:
        return self.atom(node)

    def _record_atom(self, node: Any, *_: Any) -> Term:
        return self.atom(node)

    def _parenthesised(self, node: Any, *items: Any) -> Term:
        terms = tuple(self.term(one) for one in items if one is not None)
        return terms[0] if len(terms) == 1 else TupleTerm(terms, self.span(node))

    def _vector(self, node: Any, *items: Any) -> Term:
        return VectorTerm(tuple(self.term(one) for one in items if one is not None), self.span(node))

    def _if(self, node: Any, condition: Any, then: Any, otherwise: Any) -> Term:
        return IfTerm(self.term(condition), self.term(then), None if otherwise is None else self.term(otherwise), self.span(node))

    def _if_let(self, node: Any, pattern: Any, value: Any, then: Any, otherwise: Any) -> Term:
        rest = WildcardTerm(self.span(otherwise))
        cases = ((self.term(pattern), self.term(then)), (rest, self.term(otherwise)))
        return MatchTerm(self.term(value), cases, self.span(node))

    def _match(self, node: Any, value: Any, *cases: Any) -> Term:
        pairs = tuple((self.term(one.children[0]), self.term(one.children[1])) for one in cases)
        return MatchTerm(self.term(value), pairs, self.span(node))

    def _block(self, node: Any, *statements: Any) -> Term:
        *steps, result = [self.term(one) for one in statements]
        for step in steps:
            if not isinstance(step, AssignmentTerm):
                raise Unsupported("a step of a block that is not an assignment has no effect", span=step.span, expected="var x = …;")
        if isinstance(result, AssignmentTerm):
            raise SyntaxFailure("a block ends with its value", span=result.span, expected="var x = …; x")
        return BlockTerm(tuple(one for one in steps if isinstance(one, AssignmentTerm)), result, self.span(node))

    def _assignment(self, node: Any, pattern: Any, value: Any) -> Term:
        return AssignmentTerm(self.term(pattern), self.term(value), self.span(node))

    def _record_binding(self, node: Any, name: Token, atom: Any) -> Term:
        return RecordTerm(str(name), self.atom(atom), self.span(node))

    def _inspect(self, node: Any, value: Any) -> Term:
        return InspectTerm(self.term(value), self.span(node))

    def _closure(self, node: Any, *parts: Any) -> Term:
        *parameters, body = parts
        pairs = [one.children for one in parameters if one is not None]
        names = tuple(str(name) for name, _ in pairs)
        types = tuple(None if type is None else self.type(type) for _, type in pairs)
        return ClosureTerm(names, self.term(body), self.span(node), types)

    def _for(self, node: Any, *_: Any) -> NoReturn:
        remedy = "FlatMap makes a row of each element, and group_by aggregates rows"
        raise Unsupported("for loops are not supported", span=self.span(node), remedy=remedy)

    def _return(self, node: Any, *_: Any) -> NoReturn:
        raise Unsupported("return is not supported", span=self.span(node), remedy="the value of a block is its last term: if (c) x else y")
