"""Multiway joins of a circuit told for people: the order in which each rule binds variables, what it reads, and how large results can be.

Everything is read off the circuit, so that it is what runs. Within a rule a variable is called as the column that binds it first, with a
number behind where another one is called so already.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Circuit, Node
from deltic.circuit.operators.multiway import MultiwayJoin
from deltic.circuit.rules import Atom, Extend, Rule
from deltic.lowering.agm import agm_bound


@dataclass(frozen=True, slots=True)
class Read:
    """An arrangement as a rule reads it. key: variables by which; found: those that it gives; new: with this tick's change."""

    arrangement: str
    key: tuple[str, ...]
    found: tuple[str, ...]
    new: bool

    def __str__(self) -> str:
        return f"{self.arrangement} ({', '.join(self.key)}{' -> ' if self.found else ''}{', '.join(self.found)})"


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

    exponent: with relations of n rows each the result has at most n^exponent. rows: at most so many with the relations as they are; None
    while one of them is empty, and where rows are replicated.
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


def picture(node: Node, circuit: Circuit, statistics: Mapping[str, tuple[int, int]]) -> JoinPicture:
    """The picture of the node, whose operator is a MultiwayJoin. statistics: (rows, bytes) by arrangement."""
    join = node.operator
    assert isinstance(join, MultiwayJoin)
    readers = Counter(name for other in circuit.nodes for name in other.reads)
    for rule in join.rules:
        readers.update({atom.arrangement for step in rule.steps for atom in step.atoms})
    edges = [(edge, statistics.get(name, (0, 0))[0]) for name, edge in _edges(join.rules[0], node.reads)]
    shared = frozenset(p for p, count in Counter(p for edge, _ in edges for p in edge).items() if count > 1)
    unknown = join.cube is not None or any(rows == 0 for _, rows in edges)
    sizes = None if unknown else tuple((edge, math.log2(rows)) for edge, rows in edges)
    return JoinPicture(
        node.name,
        tuple(_rule(rule, node.reads, circuit) for rule in join.rules),
        tuple(map(_short, node.reads)),
        tuple(_short(name) for name in node.reads if readers[name] > 2),  # this operator and one of its rules are two
        round(agm_bound(shared, tuple((edge, 1.0) for edge, _ in edges)), 3),
        None if sizes is None else math.floor(2 ** agm_bound(shared, sizes) * (1 + 1e-9)),
    )


def _edges(rule: Rule, ports: Sequence[str]) -> list[tuple[str, frozenset[int]]]:
    """For each occurrence its arrangement and the positions that it binds: a relation is bound where its last word is."""
    edges = [(ports[rule.port], frozenset(range(len(rule.start))))]
    at = len(rule.start)
    for step in rule.steps:
        bound = range(at, at := at + step.width)
        edges += [(atom.arrangement, frozenset((*atom.key, *bound))) for atom in step.atoms if atom.leaf]
    return edges


def _rule(rule: Rule, ports: Sequence[str], circuit: Circuit) -> RulePicture:
    names = _distinct([_words(circuit, ports[rule.port])[word] for word in rule.start], [])
    steps = []
    for step in rule.steps:
        first = step.atoms[0]
        words = _words(circuit, first.arrangement)[len(first.key) :]
        found = _distinct(words[:1] if isinstance(step, Extend) else words, names)
        steps.append(tuple(_read(atom, names, found) for atom in step.atoms))
        names = [*names, *found]
    return RulePicture(_short(ports[rule.port]), tuple(dict.fromkeys(names)), tuple(steps))


def _read(atom: Atom, names: Sequence[str], found: Sequence[str]) -> Read:
    return Read(_short(atom.arrangement), tuple(names[p] for p in atom.key), tuple(dict.fromkeys(found)), atom.new)


def _distinct(words: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names of words, those of one field alike, none of them taken."""
    found: dict[str, str] = {}
    for word in words:
        number, name = 1, word
        while name in taken:
            number, name = number + 1, f"{word}{number + 1}"
        found.setdefault(word, name)
    return [found[word] for word in words]


def _words(circuit: Circuit, arrangement: str) -> list[str]:
    """A column's name for each word of the arrangement."""
    shape = circuit.arrangements[arrangement].shape
    return [f.name for f, s in zip(shape.schema, shape.layout.slices, strict=True) for _ in range(s.start, s.stop)]


def _short(arrangement: str) -> str:
    role, _, digest = arrangement.rpartition("-")
    return f"{role}-{digest[:8]}"
