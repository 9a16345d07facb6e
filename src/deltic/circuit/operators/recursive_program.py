"""Finds the program of rules that a scope is, if it consists of joins, maps of words, sums and distinct relations.

A term of a sum is followed upwards from its arrangement through maps to a join, an import or a feedback. A join of two arrangements is two
rules, one for the change of each; of these the first reads the other with this iteration's change, the second without. A multiway join
brings its rules along: where several of its relations may propose the values of a word, the rule has a variant for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from deltic.circuit.nodes import Node
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.linear import Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_multiway import NestedMultiwayJoin
from deltic.circuit.operators.nested_reweigh import NestedReweigh
from deltic.circuit.rules import Extend, Fetch, Product, RuleAtom
from deltic.circuit.rules import Rule as DeltaRule
from deltic.expr.nodes import Call, Column, Expr, Literal
from deltic.schema import Schema
from deltic.trace.encoding import Layout
from deltic.trace.recursion import (
    ApplyRule,
    Collection,
    Comparison,
    Condition,
    Lookup,
    Operand,
    Operation,
    Rearrange,
    RecursiveProgram,
    RecursiveRelation,
    RecursiveRule,
    RuleVariant,
    Settle,
)
from deltic.types import BIGINT, DATE, INT, SMALLINT, STRING, TIMESTAMP, TIMESTAMP_NTZ, TINYINT, Type

ORDERED: Final = (TINYINT, SMALLINT, INT, BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""Types of one word if not NULL, ordered as their values."""

COMPARISONS: Final[Mapping[str, tuple[Comparison, bool]]] = {
    "equal": ("equal", False),
    "not_equal": ("not_equal", False),
    "less": ("less", False),
    "less_equal": ("less_or_equal", False),
    "greater": ("less", True),
    "greater_equal": ("less_or_equal", True),
}
"""A function of expressions as a comparison, and whether its sides are exchanged."""

Found = tuple[RecursiveProgram, tuple[Node, ...], Node, dict[str, tuple[int, int]]]
"""The program, the feedback of each recursive collection, a join, and the arrangements: (words of a row without iterations, depth)."""


class NotAProgram(Exception):
    """The scope is not a program."""


def find_program(nodes: Sequence[Node], export: int) -> Found | None:
    """The scope as a program; None if it is anything else."""
    try:
        return _Finder(nodes, export).found()
    except NotAProgram:
        return None


def _require(condition: object) -> None:
    if not condition:
        raise NotAProgram


@dataclass(frozen=True, slots=True)
class SummedTerm:
    """What a node adds to a relation. words: the words of a row, of those of the node. conditions: on words of the node."""

    words: tuple[Operand, ...]
    conditions: tuple[Condition, ...] = ()

    def through(self, words: Sequence[Operand], more: Sequence[Condition] = ()) -> SummedTerm:
        """The term of a node whose words `words` are those of this one. more: conditions on words of that node."""

        def moved(operand: Operand) -> Operand:
            return operand if operand[0] is None else words[operand[0]]

        conditions = (Condition(c.comparison, moved(c.left), moved(c.right)) for c in self.conditions)
        return SummedTerm(tuple(map(moved, self.words)), (*conditions, *more))


@dataclass(slots=True)
class _Finder:
    nodes: Sequence[Node]
    export: int
    recursive: int = 0
    """How many collections are those of recursive relations, the first ones."""
    collections: list[Collection] = field(default_factory=list)
    relations: list[RecursiveRelation] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    rules: list[RecursiveRule] = field(default_factory=list)
    of_node: dict[int, int] = field(default_factory=dict)
    """The collection of what a feedback, an import or an arrangement adds."""
    copies: dict[tuple[int, int], int] = field(default_factory=dict)
    """The collections with the same rows as another and a further key, by that and the key."""
    late: set[int] = field(default_factory=set)
    """The collections that get nothing at iteration 0: those of recursive relations, arranged."""
    arrangements: dict[str, tuple[int, int]] = field(default_factory=dict)
    joins: list[Node] = field(default_factory=list)

    def found(self) -> Found:
        nodes, exported = self.nodes, self.nodes[self.export].operator
        _require(all(n.shape.weights == 1 for n in nodes) and _distinct(exported))
        feedback = [n for n in nodes if isinstance(n.operator, Feedback)]
        sources = [n.operator.source for n in feedback if isinstance(n.operator, Feedback)]
        _require(sources and len({*sources}) == len(sources) and all(_distinct(nodes[i].operator) for i in sources))
        for node in feedback:
            self.of_node[node.id] = self._collect(Collection(node.shape.layout.width))
        self.recursive = len(feedback)
        readers = Counter(i for n in nodes for i in n.inputs)
        distinct = {n.inputs[0]: n for n in nodes if _distinct(n.operator)}
        numbers: dict[int, int] = {}
        for node in nodes:
            match node.operator:
                case NestedArrange(depth=1) if node.id in distinct:
                    _require(readers[node.id] == 1 and isinstance(node.owns, str))
                case NestedArrange(depth=1):
                    self._arrange(node)
                case NestedReweigh():
                    _require(_distinct(node.operator) and node.inputs[0] in distinct and not (readers[node.id] and node.id in sources))
                    numbers[node.id] = self._settle_distinct(node, sources)
                case NestedJoin() | NestedMultiwayJoin():
                    _require(readers[node.id] == 1)
                    self.joins.append(node)
                case Map() | Plus():
                    _require(readers[node.id] <= 1 or self._only_moves(node))
                case Feedback() | Import():
                    pass
                case _:
                    raise NotAProgram
        _require(self.joins)
        program = RecursiveProgram(
            tuple(self.collections),
            tuple(self.relations),
            tuple(self._with_copies()),
            tuple(self.rules),
            self.recursive,
            numbers[self.export],
        )
        return program, tuple(feedback), self.joins[0], self.arrangements

    def _collect(self, collection: Collection) -> int:
        self.collections.append(collection)
        return len(self.collections) - 1

    def _only_moves(self, node: Node) -> bool:
        """Whether the node is maps of a distinct relation or an import alone, which cost nothing when they are run twice."""
        while isinstance(node.operator, Map):
            node = self.nodes[node.inputs[0]]
        return isinstance(node.operator, Feedback | Import | NestedReweigh)

    def _with_copies(self) -> Iterator[Operation]:
        """The operations, and after each the copies of the collection that it adds to."""
        for operation in self.operations:
            yield operation
            match operation:
                case Rearrange(collection):
                    filled: int | None = collection
                case Settle(number) if self.relations[number].derivations is None:
                    filled = self.relations[number].adds_to
                case _:
                    continue
            for (source, _), copy in self.copies.items():
                if source == filled:
                    yield Rearrange(copy, source, tuple(range(self.collections[source].width)))

    def _arrange(self, node: Node) -> None:
        """A distinct relation with its words moved, or a relation that is not distinct."""
        assert node.owns is not None
        width = node.shape.layout.width
        _require(width)
        self._arranged(node.owns, width, 1)
        number = self._collect(Collection(width, arrangement=node.owns))
        moves = self._moves(node)
        if moves is not None:
            self.operations.append(Rearrange(number, *moves))
            if moves[0] < self.recursive:
                self.late.add(number)
        else:
            self.relations.append(RecursiveRelation(width, None, number))
            self._settle(node.inputs[0], width)
        self.of_node[node.id] = number

    def _moves(self, node: Node) -> tuple[int, tuple[int, ...]] | None:
        """(the collection, the moves) if the arrangement has all words of a distinct relation in some order; None if it has not."""
        term, below = SummedTerm(tuple((i, 0) for i in range(node.shape.layout.width))), self.nodes[node.inputs[0]]
        while isinstance(below.operator, Map):
            term, below = _mapped(term, below.operator), self.nodes[below.inputs[0]]
        words = [word for word, _ in term.words if word is not None]
        complete = sorted(words) == list(range(below.shape.layout.width)) and len(words) == len(term.words)
        if not isinstance(below.operator, Feedback | NestedReweigh) or term.conditions or not complete:
            return None
        return self.of_node[below.id], tuple(words)

    def _settle_distinct(self, node: Node, sources: Sequence[int]) -> int:
        derived, width = self.nodes[node.inputs[0]], node.shape.layout.width
        _require(width and derived.owns is not None)
        assert derived.owns is not None
        self._arranged(derived.owns, width, 1)
        recursive = node.id in sources
        adds_to = sources.index(node.id) if recursive else self._collect(Collection(width))
        self.relations.append(RecursiveRelation(width, derived.owns, adds_to, recursive))
        self.of_node[node.id] = adds_to
        self._settle(derived.inputs[0], width)
        return len(self.relations) - 1

    def _settle(self, terms: int, width: int) -> None:
        """Rules for what is added to the last relation, and then its sum."""
        target = len(self.relations) - 1
        for start, variants in self._rules(terms, SummedTerm(tuple((i, 0) for i in range(width)))):
            self.operations.append(ApplyRule(len(self.rules)))
            self.rules.append(RecursiveRule(start, target, variants))
        self.operations.append(Settle(target))

    def _arranged(self, name: str, width: int, depth: int) -> None:
        _require(self.arrangements.setdefault(name, (width, depth)) == (width, depth))

    def _rules(self, number: int, term: SummedTerm) -> Iterator[tuple[int, tuple[RuleVariant, ...]]]:
        """(the collection that it starts from, its variants) of each rule for what a node adds."""
        node = self.nodes[number]
        match node.operator:
            case Plus():
                for i in node.inputs:
                    yield from self._rules(i, term)
            case Map():
                yield from self._rules(node.inputs[0], _mapped(term, node.operator))
            case Feedback() | Import() | NestedArrange() | NestedReweigh():
                yield self._source(node), (RuleVariant((), term.words, term.conditions),)
            case NestedJoin():
                yield from self._joined(node, node.operator, term)
            case NestedMultiwayJoin():
                for rule in node.operator.timed.rules:
                    yield self._source(self.nodes[node.inputs[rule.port]]), tuple(self._variants(node, node.operator, rule, term))
            case _:
                raise NotAProgram

    def _source(self, node: Node) -> int:
        """The collection of what a node adds."""
        if node.id not in self.of_node and isinstance(node.operator, Import):
            self.of_node[node.id] = self._collect(Collection(node.shape.layout.width, input=node.operator.position))
        _require(node.id in self.of_node)
        return self.of_node[node.id]

    def _joined(self, node: Node, join: NestedJoin, term: SummedTerm) -> Iterator[tuple[int, tuple[RuleVariant, ...]]]:
        flat = join.flat
        _require(flat.weights == ((0, 0),) and not flat.keys and flat.chain is None and not flat.limbs and flat.key)
        for side, name in ((0, flat.right), (1, flat.left)):
            start, other = (self.nodes[node.inputs[i]] for i in (side, 1 - side))
            own, width = flat.widths[side][0], flat.widths[1 - side][0]
            registers = {(side, word): word for word in range(own)}
            registers |= {(1 - side, word): word if word < flat.key else own + word - flat.key for word in range(width)}
            step = self._lookup(start, other, name, join.depths[1 - side], tuple(range(flat.key)), own, side == 0)
            derived = term.through([(registers[place], 0) for place in flat.output])
            yield self._source(start), (RuleVariant((step,), derived.words, derived.conditions),)

    def _lookup(self, start: Node, other: Node, name: str, depth: int, key: tuple[int, ...], bound: int, new: bool) -> Lookup:
        """A lookup in the arrangement `name`, whose change is that of `other`."""
        width = other.shape.layout.width
        _require(depth in (0, 1) and (depth == 1) == isinstance(other.operator, NestedArrange))
        self._arranged(name, width, depth)
        collection = None
        if depth == 1 and not (isinstance(start.operator, Import) and self._source(other) in self.late):
            collection = self._keyed(self._source(other), len(key))
        return Lookup(name, key, bound, width, depth == 1, collection, new)

    def _keyed(self, number: int, key: int) -> int:
        """The collection with this key and the same rows."""
        collection = self.collections[number]
        if collection.key in (None, key):
            self.collections[number] = replace(collection, key=key)
            return number
        if (number, key) not in self.copies:
            self.copies[number, key] = self._collect(Collection(collection.width, key))
        return self.copies[number, key]

    def _variants(self, node: Node, join: NestedMultiwayJoin, rule: DeltaRule, term: SummedTerm) -> Iterator[RuleVariant]:
        """A variant for each relation that may propose the word that the rule binds first."""
        _require(not join.flat.naive and join.flat.cube is None and rule.weights == (Product(),) and not rule.limbs)
        start = self.nodes[node.inputs[rule.port]]
        _require(all(0 <= word < start.shape.layout.width for word in rule.start))
        extend = rule.steps[0] if isinstance(rule.steps[0], Extend) else None
        fetches = [step for step in rule.steps if isinstance(step, Fetch)]
        _require(len(fetches) + (extend is not None) == len(rule.steps) and not any(step.predicate for step in rule.steps))
        atoms = _positioned(rule, extend, fetches)
        proposing = range(len(atoms)) if extend is None else [n for n, (atom, _) in enumerate(atoms) if len(rule.start) in atom.key]
        for first in proposing if extend is not None else (0,):
            order = [first, *(n for n in range(len(atoms)) if n != first)]
            places = {position: word for position, word in enumerate(rule.start)}
            bound, steps = start.shape.layout.width, []
            for n in order:
                atom, positions = atoms[n]
                key = tuple(places[p] for p in positions[: self._known(positions, places)])
                steps.append(self._looked_up(start, node, join, atom, key, bound))
                places |= {p: bound + i for i, p in enumerate(positions[len(key) :])}
                bound = steps[-1].registers
            derived = term.through([(places[position], 0) for position in rule.output])
            yield RuleVariant(tuple(steps), derived.words, derived.conditions)

    @staticmethod
    def _known(positions: Sequence[int], places: Mapping[int, int]) -> int:
        """How many of the first positions are bound; no position after them may be."""
        bound = [p in places for p in positions]
        _require(bound == sorted(bound, reverse=True))
        return sum(bound)

    def _looked_up(self, start: Node, node: Node, join: NestedMultiwayJoin, atom: RuleAtom, key: tuple[int, ...], bound: int) -> Lookup:
        depth = join.depths[list(join.flat.sources).index(atom.arrangement)]
        return self._lookup(start, self.nodes[node.inputs[atom.port]], atom.arrangement, depth, key, bound, atom.new)


def _positioned(rule: DeltaRule, extend: Extend | None, fetches: Sequence[Fetch]) -> list[tuple[RuleAtom, tuple[int, ...]]]:
    """Each relation of the rule and the position of each of its words."""
    position, atoms = len(rule.start) + (extend is not None), []
    for step in fetches:
        atoms.append((step.atom, (*step.atom.key, *range(position, position + step.width))))
        position += step.width
    if extend is not None:
        keys = Counter((atom.arrangement, (*atom.key, len(rule.start))) for atom in extend.atoms)
        _require(keys == Counter((atom.arrangement, atom.key) for atom, _ in atoms if len(rule.start) in atom.key))
    return atoms


def _distinct(operator: object) -> bool:
    return isinstance(operator, NestedReweigh) and operator.flat.rule == "distinct" and operator.depth == 1


def _mapped(term: SummedTerm, operator: Map) -> SummedTerm:
    """The term of the map's input."""
    places = operator.places if operator.predicate is None else replace(operator, predicate=None).places
    _require(places is not None and not operator.measures)
    assert places is not None
    more = () if operator.predicate is None else tuple(_conditions(operator.predicate, operator.source, operator.layout))
    return term.through(places, more)


def _conditions(predicate: Expr, source: Schema, layout: Layout) -> Iterator[Condition]:
    """The comparisons of words of which the predicate is the conjunction."""
    match predicate:
        case Call(function="and", arguments=arguments):
            for argument in arguments:
                yield from _conditions(argument, source, layout)
        case Call(function=name, arguments=(left, right)) if name in COMPARISONS:
            comparison, exchanged = COMPARISONS[name]
            type = _compared(left, right)
            _require(type in ORDERED or (type == STRING and comparison in ("equal", "not_equal")))
            sides = [_operand(side, source, layout) for side in (left, right)]
            yield Condition(comparison, *(reversed(sides) if exchanged else sides))
        case _:
            raise NotAProgram


def _compared(left: Expr, right: Expr) -> Type:
    """The type of both sides, of which one is a column."""
    _require(left.type == right.type)
    return left.type


def _operand(side: Expr, source: Schema, layout: Layout) -> Operand:
    match side:
        case Column(index=index, type=type, filled=0) if source[index].type == type and not source[index].nullable:
            return layout.slices[index].start, 0
        case Literal(value=int(value), type=type) if type == BIGINT:
            return None, value
        case _:
            raise NotAProgram
