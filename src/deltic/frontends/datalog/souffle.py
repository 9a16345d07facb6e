"""Reads Soufflé's syntax into the tree of DDlog's: its aggregates become relations, and its disjunctions rules (souffle_rules.py)."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any, Final

from lark import Token, Tree

from deltic.errors import Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported
from deltic.frontends.datalog.components import expanded
from deltic.frontends.datalog.equivalence import check_equivalence, closure, pairs_of
from deltic.frontends.datalog.fact_files import Directive, DirectiveOption, FactFile, check_files, fact_file
from deltic.frontends.datalog.grammar import grammar, parsed
from deltic.frontends.datalog.souffle_rules import Rules
from deltic.frontends.datalog.tree import (
    AtomTerm,
    CallTerm,
    ConstantTerm,
    ConstructorDeclaration,
    ConstructorTerm,
    ConversionTerm,
    DatalogColumn,
    FunctionDeclaration,
    Item,
    NamedTypeTerm,
    OperationTerm,
    RelationDeclaration,
    SouffleAggregateTerm,
    Term,
    TupleTerm,
    TupleTypeTerm,
    TypeDeclaration,
    TypeTerm,
    VariableTerm,
    WildcardTerm,
)

TYPES: Final = {"number": "s64", "unsigned": "usize", "float": "double", "symbol": "string"}
WORDS: Final = {"band": "&", "bor": "|", "bxor": "^", "bshl": "<<", "bshr": ">>"}
CONSTRAINTS: Final = ("contains", "match")
FUNCTORS: Final = ("cat", "strlen", "substr", "to_number", "to_string", "range")
CONVERSIONS: Final = {
    **dict.fromkeys(("itof", "utof"), "double"),
    **dict.fromkeys(("ftoi", "utoi"), "s64"),
    **dict.fromkeys(("ftou", "itou"), "usize"),
}
_REMEDIES: Final = {
    **dict.fromkeys((".plan", ".pragma"), "leave it out"),
    ".include": "read the files together: deltic.Program(Path(…), Path(…)), or one text",
    ".printsize": ".output, or count : { … } in a rule",
    ".limitsize": "a condition in the rule that ends it",
}
_MOST_FACTORS: Final = 16
_REFUSED: Final = re.compile(r"^\s*(\.(?:plan|pragma|include))\b", re.MULTILINE)
_DDLOG: Final = re.compile(r"\s*(?:(?:input|output|internal)\s+)?(?:relation|stream|multiset|typedef|function|extern|index|import)\b")
_SKIPPED: Final = r"//[^\n]*|/\*[\s\S]*?\*/"
_INSTANCE: Final = re.compile(rf'{_SKIPPED}|"(?:\\[\s\S]|[^"\\])*"|\.init(?:\s|{_SKIPPED})+([A-Za-z_?][A-Za-z0-9_?]*)')
"""The name of an instance, in its group, or what can contain such a text without being one."""
_DOTTED: Final = re.compile(r"\.[A-Za-z_?]")
_ESCAPE: Final = re.compile(r'\\[nt"\\]')
_ESCAPES: Final = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def parse_souffle(text: str, name: str) -> tuple[Item, ...]:
    """The items of a program in Soufflé's syntax. Raises SyntaxFailure, Unsupported and UnknownName."""
    if refused := _REFUSED.search(text):
        span = Span(text, refused.start(1), refused.end(1), name)
        raise Unsupported(f"{refused[1]} is not supported", span=span, remedy=_REMEDIES[refused[1]])
    reader = SouffleReader(text, name)
    nodes = expanded([node for node in _parsed(text, name).children if isinstance(node, Tree)], reader.span)
    for node in sorted(nodes, key=lambda one: one.data != "functor"):
        reader.read(node)
    return reader.items()


def _parsed(text: str, name: str) -> Tree[Token]:
    try:
        instances = frozenset(found[1] for found in _INSTANCE.finditer(text) if found[1])
        return parsed(grammar("souffle.lark", instances), text, name, "start")
    except SyntaxFailure as error:
        span = error.span
        if span is None:
            raise
        if span.written == "<=" and text[: span.start].rstrip().endswith(")"):
            raise Unsupported("subsumption is not supported", span=span, remedy="min() or max() of a group") from None
        if _DDLOG.match(text, text.rfind("\n", 0, span.start) + 1):
            raise SyntaxFailure(error.message, span=span, remedy="DDlog's syntax is the dialect ddlog, which is the default") from None
        raise


class SouffleReader:
    """Collects declarations and directives, and then makes items."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.types: list[TypeDeclaration] = []
        self.columns: dict[str, tuple[tuple[DatalogColumn, ...], Span]] = {}
        self.files: dict[str, list[FactFile]] = {}
        """By relation, in the order of the directives."""
        self.equivalences: set[str] = set()
        self.functors: list[FunctionDeclaration] = []
        self.rules: list[tuple[list[AtomTerm], list[list[Term]], Span]] = []

    def span(self, node: Any) -> Span:
        if isinstance(node, Token):
            return Span(self.text, node.start_pos or 0, node.end_pos or 0, self.name)
        return Span(self.text, getattr(node.meta, "start_pos", 0), getattr(node.meta, "end_pos", 0), self.name)

    def read(self, node: Any) -> None:
        """One item."""
        getattr(self, f"_{node.data}")(node, *node.children)

    def items(self) -> tuple[Item, ...]:
        """All items, in the tree of DDlog."""
        check_files(one for files in self.files.values() for one in files)
        rules = Rules({name: columns for name, (columns, _) in self.columns.items()}, {one.name: one for one in self.types})
        derived = {head.name for heads, _, _ in self.rules for head in heads} | {*self.equivalences}
        declarations: list[Item] = [*self.types, *self.functors]
        for name, (columns, span) in self.columns.items():
            files = self.files.get(name, ())
            read, written = (tuple(one for one in files if one.directive == directive) for directive in ("input", "output"))
            is_input, is_output = bool(read), bool(written)
            if is_input and (name in derived or is_output):
                source = f"{name}_input"
                declarations.append(RelationDeclaration("input", "relation", source, columns, None, None, span, read))
                arguments = tuple((None, VariableTerm(one.name, span)) for one in columns)
                rules.add([self._derived(AtomTerm(name, arguments, span, span))], [AtomTerm(source, arguments, span, span)], span)
                is_input = False
            role: Any = "input" if is_input else "output" if is_output else "internal"
            declarations.append(RelationDeclaration(role, "relation", name, columns, None, None, span, read if is_input else written))
            if name in self.equivalences:
                declarations.append(RelationDeclaration("internal", "relation", pairs_of(name), columns, None, None, span))
                for head, body in closure(name, span):
                    rules.add(head, body, span)
        for heads, bodies, span in self.rules:
            for body in bodies:
                rules.add([self._derived(one) for one in heads], body, span)
        return (*declarations, *rules.relations, *rules.rules)

    def _derived(self, head: AtomTerm) -> AtomTerm:
        """The head of a rule; of an equivalence relation, that of its pairs."""
        return replace(head, name=pairs_of(head.name)) if head.name in self.equivalences else head

    # declarations

    def _type(self, node: Any, name: Token, *body: Any) -> None:
        span, kind = self.span(name), body[0].data
        if kind == "branch":
            constructors = tuple(
                ConstructorDeclaration(str(one.children[0]), self._attributes(one.children[1]), self.span(one)) for one in body
            )
            self.types.append(TypeDeclaration(str(name), (), None, constructors, span))
            return
        if kind == "record":
            fields = self._attributes(body[0].children[0])
            self.types.append(TypeDeclaration(str(name), (), TupleTypeTerm(tuple(one.type for one in fields), span), (), span))
            return
        self.types.append(TypeDeclaration(str(name), (), self._named(body[0].children[0]), (), span))

    def _subtype(self, node: Any, name: Token, base: Token) -> None:
        self.types.append(TypeDeclaration(str(name), (), self._named(base), (), self.span(name)))

    def _named(self, name: Token) -> TypeTerm:
        return NamedTypeTerm(TYPES.get(str(name), str(name)), (), self.span(name))

    def _attributes(self, node: Any) -> tuple[DatalogColumn, ...]:
        if node is None:
            return ()
        pairs = [one.children for one in node.children]
        return tuple(DatalogColumn(str(name), self._named(type), self.span(name)) for name, type in pairs)

    def _declaration(self, node: Any, names: Any, attributes: Any, *rest: Any) -> None:
        for one in rest:
            if isinstance(one, Tree):
                raise Unsupported("choice-domain is not supported", span=self.span(one), remedy="min() or max() of a group")
        for name in names.children:
            if str(name) in self.columns:
                raise SyntaxFailure(f"relation {name} is declared twice", span=self.span(name))
            self.columns[str(name)] = (self._attributes(attributes), self.span(name))
            if "eqrel" in rest:
                check_equivalence(str(name), [str(one.children[1]) for one in attributes.children] if attributes else [], self.span(name))
                self.equivalences.add(str(name))

    def _functor(self, node: Any, name: Token, parameters: Any, result: Token) -> None:
        """A function in Python, which the session or the program registers."""
        types = [] if parameters is None else [one.children[-1] for one in parameters.children]
        columns = tuple(DatalogColumn(f"x{i}", self._named(type), self.span(type)) for i, type in enumerate(types))
        self.functors.append(FunctionDeclaration(str(name), columns, self._named(result), None, self.span(name)))

    def _directive(self, node: Any, word: Token, targets: Any) -> None:
        if word not in (".input", ".output"):
            raise Unsupported(f"{word} is not supported", span=self.span(word), remedy=_REMEDIES[word])
        for target in targets.children:
            name, *options = target.children
            given = [self._option(*one.children) for one in options if one is not None]
            directive: Directive = "input" if word == ".input" else "output"
            self.files.setdefault(str(name), []).append(fact_file(directive, str(name), given, self.span(name)))

    def _option(self, name: Token, value: Token) -> DirectiveOption:
        text = str(value)[1:-1] if str(value).startswith('"') else str(value)
        return DirectiveOption(str(name), text, self.span(name), self.span(value))

    # rules

    def _rule(self, node: Any, heads: Any, body: Any, _: Any) -> None:
        atoms = [self._head(one) for one in heads.children]
        bodies = [[]] if body is None else self.bodies(body)
        self.rules.append((atoms, bodies, self.span(node)))

    def _head(self, node: Any) -> AtomTerm:
        atom = self.literal(node)
        if not isinstance(atom, AtomTerm):
            raise SyntaxFailure("the head of a rule is not an atom", span=self.span(node), expected="relation(…)")
        return atom

    def bodies(self, node: Any) -> list[list[Term]]:
        """The alternatives of a disjunction, each a list of literals."""
        alternatives: list[list[Term]] = []
        for conjunction in node.children:
            choices: list[list[list[Term]]] = []
            for one in conjunction.children:
                inner = self._inner(one)
                choices.append(self.bodies(inner) if inner is not None else [[self.literal(one)]])
            alternatives += [[term for choice in choices_ for term in choice] for choices_ in product(*choices)]
        return alternatives

    def _inner(self, node: Any) -> Any:
        """The disjunction of a literal in parentheses that is not a value."""
        return node.children[0] if isinstance(node, Tree) and node.data == "parenthesised" else None

    def literal(self, node: Any) -> Term:
        """An atom, a negated atom or a constraint."""
        span = self.span(node)
        match node.data:
            case "negation":
                inner = node.children[0]
                grouped = self._inner(inner)
                if grouped is not None:
                    alternatives = self.bodies(grouped)
                    if len(alternatives) != 1 or len(alternatives[0]) != 1:
                        raise Unsupported("a negated group is not supported", span=span, remedy="a relation of its own, negated")
                    return OperationTerm("not", (alternatives[0][0],), span)
                return OperationTerm("not", (self.literal(inner),), span)
            case "constraint":
                left, operator, right = node.children
                return OperationTerm({"=": "=="}.get(str(operator), str(operator)), (self.term(left), self.term(right)), span)
            case "call":
                return self._atom_or_constraint(node, span)
            case "true" | "false":
                return ConstantTerm(node.data == "true", "bool", span)
        raise SyntaxFailure(
            "this is neither an atom nor a constraint", span=span, expected="relation(…), or x = y", remedy=self._instance(span)
        )

    def _instance(self, span: Span) -> str | None:
        """The remedy where a qualified name may be meant, whose dot has ended the rule."""
        return f"{span.written}.… requires an instance: .init {span.written} = …" if _DOTTED.match(self.text, span.end) else None

    def _atom_or_constraint(self, node: Any, span: Span) -> Term:
        name, *arguments = node.children
        terms = [self.term(one) for one in arguments if one is not None]
        if str(name) in self.columns or str(name) not in CONSTRAINTS:
            return AtomTerm(str(name), tuple((None, one) for one in terms), span, self.span(name))
        if name == "contains":
            return CallTerm("contains", (terms[1], terms[0]), span)
        pattern = terms[0]
        if not isinstance(pattern, ConstantTerm):
            raise Unsupported("the pattern of match is not a constant", span=pattern.span)
        whole = ConstantTerm(f"^(?:{pattern.value})$", "string", pattern.span)
        return CallTerm("regexp_like", (terms[1], whole), span)

    # terms

    def term(self, node: Any) -> Term:
        """A value."""
        span = self.span(node)
        match node.data:
            case "number":
                return ConstantTerm(int(str(node.children[0]).rstrip("u"), 0), "integer", span)
            case "float":
                return ConstantTerm(float(node.children[0]), "float", span)
            case "text":
                body = str(node.children[0])[1:-1]
                return ConstantTerm(_ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], body), "string", span)
            case "wildcard":
                return WildcardTerm(span)
            case "variable":
                return VariableTerm(str(node.children[0]), span)
            case "true" | "false":
                return ConstantTerm(node.data == "true", "bool", span)
            case "term" | "product" | "value":
                return self._operations(node)
            case "negative":
                operand = self.term(node.children[0])
                if isinstance(operand, ConstantTerm) and isinstance(operand.value, int | float):
                    return ConstantTerm(-operand.value, operand.kind, span)
                return OperationTerm("unary -", (operand,), span)
            case "parenthesised":
                return self._value(node, span)
            case "call":
                return self._call(node, span)
            case "count" | "aggregate":
                return self._aggregate(node, span)
            case _:
                return self._rare(node, span)

    def _rare(self, node: Any, span: Span) -> Term:
        match node.data:
            case "construct":
                name, *arguments = node.children
                return ConstructorTerm(str(name), tuple((None, self.term(one)) for one in arguments if one is not None), span)
            case "record_term":
                return TupleTerm(tuple(self.term(one) for one in node.children), span)
            case "conversion":
                return ConversionTerm(self.term(node.children[0]), self._named(node.children[1]), span)
            case "best":
                word, first, *others = node.children
                result = self.term(first)
                for one in others:
                    result = CallTerm(str(word), (result, self.term(one)), span)
                return result
            case "unary_word" if node.children[0] == "bnot":
                return OperationTerm("unary ~", (self.term(node.children[1]),), span)
            case "user_functor":
                name, *arguments = node.children
                if str(name) not in {one.name for one in self.functors}:
                    raise UnknownName(f"there is no functor {name}", span=self.span(name), remedy=f".functor {name}(x: number): number")
                return CallTerm(str(name), tuple(self.term(one) for one in arguments if one is not None), span)
            case "power":
                base, exponent = map(self.term, node.children)
                return self._power(base, exponent, span)
            case "nil":
                raise Unsupported("nil is not supported, as records cannot contain themselves", span=span, remedy="a relation of the parts")
        raise Unsupported("this is not supported as a value", span=span, expected="a number, a symbol, a variable or a functor of them")

    def _operations(self, node: Any) -> Term:
        result = self.term(node.children[0])
        for operator, right in zip(node.children[1::2], node.children[2::2], strict=True):
            operand = self.term(right)
            span = Span(self.text, result.span.start, operand.span.end, self.name)
            result = OperationTerm(WORDS.get(str(operator), str(operator)), (result, operand), span)
        return result

    def _value(self, node: Any, span: Span) -> Term:
        (disjunction,) = node.children
        (first, *others) = disjunction.children
        if others or len(first.children) != 1:
            raise SyntaxFailure("expected a value in parentheses", span=span)
        return self.term(first.children[0])

    def _power(self, base: Term, exponent: Term, span: Span) -> Term:
        if not (isinstance(exponent, ConstantTerm) and isinstance(exponent.value, int) and 0 < exponent.value <= _MOST_FACTORS):
            expected = f"a constant from 1 to {_MOST_FACTORS} as exponent"
            raise Unsupported("this ^ is not supported", span=span, expected=expected, remedy="multiply")
        result = base
        for _ in range(exponent.value - 1):
            result = OperationTerm("*", (result, base), span)
        return result

    def _call(self, node: Any, span: Span) -> Term:
        name, *arguments = node.children
        terms = [self.term(one) for one in arguments if one is not None]
        one = ConstantTerm(1, "integer", span)
        match str(name), terms:
            case "cat", [first, *others] if others:
                for other in others:
                    first = OperationTerm("++", (first, other), span)
                return first
            case "strlen", [value]:
                return ConversionTerm(CallTerm("len", (value,), span), NamedTypeTerm("s64", (), span), span)
            case "substr", [value, start, length]:
                return CallTerm("substring", (value, _narrow(OperationTerm("+", (start, one), span)), _narrow(length)), span)
            case "to_number", [value]:
                return CallTerm("bigint", (value,), span)
            case "to_string", [value]:
                return CallTerm("to_string", (value,), span)
            case "range", [_, _]:
                return CallTerm("range", tuple(terms), span)
            case "range", [_, _, step]:
                if not isinstance(step, ConstantTerm) or not isinstance(step.value, int) or step.value == 0:
                    raise Unsupported("this step of range is not supported", span=step.span, expected="a whole number that is not 0")
                return CallTerm("range", tuple(terms), span)
            case ("itof" | "utof" | "ftoi" | "utoi" | "ftou" | "itou") as function, [value]:
                return ConversionTerm(value, NamedTypeTerm(CONVERSIONS[function], (), span), span)
        if str(name) in (*FUNCTORS, *CONVERSIONS):
            raise TypeMismatch(f"the functor {name} does not have {len(terms)} arguments", span=span)
        raise Unsupported(
            f"the functor {name} is not supported",
            span=self.span(name),
            expected=f"one of {', '.join((*FUNCTORS, *CONVERSIONS))}, min, max",
            remedy=f"a function in Python: .functor, and @{name}(…)",
        )

    def _aggregate(self, node: Any, span: Span) -> Term:
        *value, body = node.children
        function = "count" if node.data == "count" else str(value[0])
        inner = body.children[0]
        alternatives = self.bodies(inner) if inner.data == "disjunction" else [[self.literal(inner)]]
        if len(alternatives) != 1:
            raise Unsupported("a disjunction in an aggregate is not supported", span=span, remedy="a relation of its own")
        argument = self.term(value[1]) if function != "count" else None
        return SouffleAggregateTerm(function, argument, tuple(alternatives[0]), span)


def _narrow(term: Term) -> Term:
    return ConversionTerm(term, NamedTypeTerm("s32", (), term.span), term.span)
