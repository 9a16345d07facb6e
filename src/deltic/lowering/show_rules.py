"""Multiway joins of a circuit told for people: the order in which each rule binds variables, what it reads, and how large results can be.

Everything is read off the circuit, so that it is what runs. Within a rule a variable is called as the column that binds it first, with a
number behind where another one is called so already.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Dataflow, Node, Shape
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.operators.nested_multiway import NestedMultiwayJoin
from deltic.circuit.rules import Extend, Rule, RuleAtom
from deltic.lowering.agm import agm_bound


@dataclass(frozen=True, slots=True)
class Read:
    """An arrangement as a rule reads it. key: variables by which; found: those that it gives; new: with this tick's change."""

    arrangement: str
    key: tuple[str, ...]
    found: tuple[str, ...]
    new: bool

    def __str__(self) -> str:
        sides = [", ".join(self.key), *(["->", ", ".join(self.found)] if self.found else [])]
        return f"{'new' if self.new else 'old'} {self.arrangement} ({' '.join(filter(None, sides))})"


@dataclass(frozen=True, slots=True)
class RulePicture:
    """change: the arrangement whose change it starts from. order: of all variables, those of the change first. steps: what each reads."""

    change: str
    order: tuple[str, ...]
    steps: tuple[tuple[Read, ...], ...]

    def __str__(self) -> str:
        steps = "; ".join(" and ".join(map(str, reads)) for reads in self.steps)
        return f"order {', '.join(self.order)}: change of {self.change}; {steps}"


@dataclass(frozen=True, slots=True)
class JoinPicture:
    """One multiway join. node: its id. arrangements: all that it reads; shared: those of them that several rules or operators read.

    exponent: of relations with n different rows each at most n^exponent different ones are found, before they are summed up. rows: at most
    so many with the relations as they are; None while one of them is empty, and where rows are replicated.
    """

    node: str
    rules: tuple[RulePicture, ...]
    arrangements: tuple[str, ...]
    shared: tuple[str, ...]
    exponent: float
    rows: int | None

    def lines(self) -> list[str]:
        bound = f"at most n^{self.exponent:g} rows from relations of n" + ("" if self.rows is None else f", {self.rows:,} from these")
        count = f"{len(self.rules)} rules, {len(self.arrangements)} arrangements, {len(self.shared)} of them shared"
        return [f"multiway join {self.node}: {count}; {bound} (AGM)", *(f"  rule {i}: {rule}" for i, rule in enumerate(self.rules, 1))]


def pictures(
    nodes: Sequence[Node], peers: Sequence[Node], circuit: Dataflow, statistics: Mapping[str, tuple[int, int]]
) -> Iterator[JoinPicture]:
    """Those of the multiway joins among the nodes, and in the scopes that they are.

    peers: all nodes of the nodes' own scope. statistics: (rows, bytes) by arrangement.
    """
    for node in nodes:
        match node.operator:
            case MultiwayJoinOperator() as join:
                yield _picture(node, join, peers, circuit, statistics)
            case NestedMultiwayJoin(flat=join):
                yield _picture(node, join, peers, circuit, statistics)
            case Child(nodes=inner):
                yield from pictures(inner, inner, circuit, statistics)


def _picture(
    node: Node, join: MultiwayJoinOperator, peers: Sequence[Node], circuit: Dataflow, statistics: Mapping[str, tuple[int, int]]
) -> JoinPicture:
    """peers: the nodes of its own scope."""
    ports = {port: name for name, (port, _, _) in join.sources.items()}
    reads = [ports[port] for port in range(len(ports))]
    readers = Counter(atom for rule in join.rules for atom in {atom.arrangement for step in rule.steps for atom in step.atoms})
    for name, source in zip(reads, node.inputs, strict=True):
        readers[name] += sum(source in other.inputs for other in peers if other.id != node.id)
    edges = [(edge, statistics.get(name, (0, 0))[0]) for name, edge in _edges(join.rules[0], reads)]
    bound = frozenset[int]().union(*(edge for edge, _ in edges))
    unknown = join.cube is not None or any(rows == 0 for _, rows in edges)
    sizes = None if unknown else tuple((edge, math.log2(rows)) for edge, rows in edges)
    return JoinPicture(
        node.name,
        tuple(_rule(rule, reads, circuit) for rule in join.rules),
        tuple(map(short, reads)),
        tuple(short(name) for name in reads if readers[name] > 1),
        round(agm_bound(bound, tuple((edge, 1.0) for edge, _ in edges)), 3),
        None if sizes is None else math.floor(2 ** agm_bound(bound, sizes) * (1 + 1e-9)),
    )


def _edges(rule: Rule, ports: Sequence[str]) -> list[tuple[str, frozenset[int]]]:
    """For each occurrence its arrangement and the positions that it binds: a relation is bound where its last word is."""
    edges = [(ports[rule.port], frozenset(range(len(rule.start))))]
    at = len(rule.start)
    for step in rule.steps:
        bound = range(at, at := at + step.width)
        edges += [(atom.arrangement, frozenset((*atom.key, *bound))) for atom in step.atoms if atom.leaf]
    return edges


def _rule(rule: Rule, ports: Sequence[str], circuit: Dataflow) -> RulePicture:
    names = _distinct([word_names(circuit.arrangements[ports[rule.port]].shape)[word] for word in rule.start], [])
    steps = []
    for step in rule.steps:
        first = step.atoms[0]
        words = word_names(circuit.arrangements[first.arrangement].shape)[len(first.key) : first.width]
        found = _distinct(words[:1] if isinstance(step, Extend) else words, names)
        steps.append(tuple(_read(atom, names, found) for atom in step.atoms))
        names = [*names, *found]
    return RulePicture(short(ports[rule.port]), tuple(dict.fromkeys(names)), tuple(steps))


def _read(atom: RuleAtom, names: Sequence[str], found: Sequence[str]) -> Read:
    return Read(short(atom.arrangement), tuple(names[p] for p in atom.key), tuple(dict.fromkeys(found)), atom.new)


def _distinct(words: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names of words, those of one field alike, none of them taken."""
    found: dict[str, str] = {}
    for word in words:
        number, name = 1, word
        while name in taken:
            number, name = number + 1, f"{word}{number + 1}"
        found.setdefault(word, name)
    return [found[word] for word in words]


def word_names(shape: Shape) -> list[str]:
    """A column's name for each word of a row."""
    return [f.name for f, s in zip(shape.schema, shape.layout.slices, strict=True) for _ in range(s.start, s.stop)]


def short(arrangement: str) -> str:
    """Enough of an arrangement's id to tell it apart."""
    role, _, digest = arrangement.rpartition("-")
    return f"{role}-{digest[:8]}"
