"""Converts lark's trees of types and terms to the tree of tree.py, with places. Patterns are terms, too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

from lark import Token

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.datalog.grammar import grammar, parsed
from deltic.frontends.datalog.tree import (
    Arguments,
    AssignmentTerm,
    AtomTerm,
    BindingTerm,
    BlockTerm,
    CallTerm,
    ClosureTerm,
    ConstantTerm,
    ConstructorTerm,
    ConversionTerm,
    FieldTerm,
    IfTerm,
    InspectTerm,
    InterpolatedTerm,
    MapTerm,
    MatchTerm,
    NamedTypeTerm,
    OperationTerm,
    RecordTerm,
    Term,
    TupleTerm,
    TupleTypeTerm,
    TypeTerm,
    TypeVariableTerm,
    VariableTerm,
    VectorTerm,
    WildcardTerm,
)
from deltic.plan.nodes import MOST_DELAY

_PIECE: Final = re.compile(r"\\([\s\S])|\$\{([^}]*)\}")
_CLOSURES: Final = {
    **dict.fromkeys(("arg_min", "arg_max", "group_arg_min", "group_arg_max"), (1, ("x",))),
    "stream_aggregate": (2, ("acc", "v", "w")),
}
"""The calls that take a closure: its position among the arguments, and the names of its parameters."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": "\n", **{one: one for one in "\\\"'$"}}


def with_closure(call: CallTerm) -> CallTerm:
    """The call with a closure in place of the name of a function: f stands for |x| f(x)."""
    position, parameters = _CLOSURES.get(call.name, (0, ()))
    if not parameters or len(call.arguments) <= position:
        return call
    name = call.arguments[position]
    if not isinstance(name, VariableTerm) or name.new:
        return call
    body = CallTerm(name.name, tuple(VariableTerm(one, name.span) for one in parameters), name.span)
    closure = ClosureTerm(parameters, body, name.span)
    return replace(call, arguments=(*call.arguments[:position], closure, *call.arguments[position + 1 :]))


class TermConverter:
    """Converts lark's trees of types and terms. offset: where the text begins in `whole`, of which it is a part."""

    def __init__(self, whole: str, name: str, offset: int = 0) -> None:
        self.whole, self.name, self.offset = whole, name, offset

    def span(self, node: Any) -> Span:
        """The place of a token or a tree."""
        if isinstance(node, Token):
            start, end = node.start_pos or 0, node.end_pos or 0
        else:
            start, end = getattr(node.meta, "start_pos", 0), getattr(node.meta, "end_pos", 0)
        return Span(self.whole, start + self.offset, end + self.offset, self.name)

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
        steps = 0 if delay is None else self._delay(delay)
        return AtomTerm(str(name), given, self.span(node), self.span(name), record, steps, prime is not None)

    def _delay(self, token: Token) -> int:
        digits = token[1:].lstrip("0")
        if not digits or len(digits) > len(str(MOST_DELAY)) or int(digits) > MOST_DELAY:
            raise SyntaxFailure(
                f"invalid delay {token}", span=self.span(token), expected=f"a number of transactions from 1 to {MOST_DELAY}"
            )
        return int(digits)

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
        return with_closure(CallTerm(str(name)[1:], (self.term(value), *self._positional(arguments)), self.span(node)))

    def _call(self, node: Any, name: Token, *arguments: Any) -> Term:
        return with_closure(CallTerm(str(name), self._positional(arguments), self.span(node)))

    def _positional(self, arguments: Sequence[Any]) -> tuple[Term, ...]:
        given = [one for one in arguments if one is not None]
        for one in given:
            if one.data == "named":
                raise SyntaxFailure(
                    f"unexpected {one.children[0]} =",
                    span=self.span(one),
                    expected="the arguments of a function by position",
                    remedy="only relations and constructors have named arguments; their names begin with a capital letter",
                )
        return tuple(map(self.term, given))

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
        body, position = str(token)[start:-1], (token.start_pos or 0) + start
        parts: list[Term] = []
        plain, last, span = "", 0, self.span(node)
        for piece in _PIECE.finditer(body):
            plain += body[last : piece.start()]
            last = piece.end()
            if piece[1] is not None:
                if piece[1] not in _ESCAPES:
                    at = position + self.offset + piece.start()
                    expected = r"""\n, \t, \r, \0, \\, \", \' or \$"""
                    raise SyntaxFailure(f"unknown escape {piece[0]}", span=Span(self.whole, at, at + 2, self.name), expected=expected)
                plain += _ESCAPES[piece[1]]
                continue
            parts += [ConstantTerm(plain, "string", span)] if plain else []
            plain = ""
            parts.append(self._inner(piece[2], position + piece.start(2)))
        plain += body[last:]
        if not parts:
            return ConstantTerm(plain, "string", span)
        parts += [ConstantTerm(plain, "string", span)] if plain else []
        return InterpolatedTerm(tuple(parts), span)

    def _inner(self, text: str, position: int) -> Term:
        """The term in ${…}, whose places are those in the whole text."""
        try:
            tree = parsed(grammar("ddlog.lark"), text, self.name, "terms")
        except SyntaxFailure as error:
            start = position + self.offset + (error.span.start if error.span else 0)
            error.move(Span(self.whole, start, start + 1, self.name))
            raise
        return TermConverter(self.whole, self.name, position + self.offset).term(tree.children[0])

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

    def _map(self, node: Any, *cases: Any) -> Term:
        pairs = tuple((self.term(one.children[0]), self.term(one.children[1])) for one in cases if one is not None)
        return MapTerm(pairs, self.span(node))

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
