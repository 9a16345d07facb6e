"""Descriptions of multiway joins: the order in which each rule binds variables, the arrangements that it reads, and bounds on the result.

They are derived from the dataflow, so they show what runs. Within a rule a variable has the name of the column that binds it first,
followed by a number if the name is in use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Dataflow, Node, Shape
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.keys import ONE
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.operators.nested_multiway import NestedMultiwayJoin
from deltic.circuit.operators.not_null import NotNull
from deltic.circuit.rules import Extend, Rule, RuleAtom
from deltic.lowering.agm import agm_bound


@dataclass(frozen=True, slots=True)
class Read:
    """A lookup in an arrangement. key: the variables looked up; bound: those that it binds; new: whether this tick's change is included."""

    arrangement: str
    key: tuple[str, ...]
    bound: tuple[str, ...]
    new: bool

    def __str__(self) -> str:
        sides = [", ".join(self.key), *(["->", ", ".join(self.bound)] if self.bound else [])]
        return f"{'new' if self.new else 'old'} {self.arrangement} ({' '.join(filter(None, sides))})"


@dataclass(frozen=True, slots=True)
class RulePicture:
    """change: the arrangement whose change it starts from. order: all variables, those of the change first. steps: the reads of each."""

    change: str
    order: tuple[str, ...]
    steps: tuple[tuple[Read, ...], ...]

    def __str__(self) -> str:
        steps = "; ".join(" and ".join(map(str, reads)) for reads in self.steps)
        return f"order {', '.join(self.order)}: change of {self.change}; {steps}"


@dataclass(frozen=True, slots=True)
class JoinPicture:
    """One multiway join. node: its id. arrangements: all that it reads; shared: those that several rules or operators read.

    exponent: relations of n distinct rows each have at most n^exponent distinct results, before these are summed. rows: the bound for the
    current sizes; None while a relation is empty, and if rows are replicated.
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
    """The multiway joins among the nodes and in their scopes.

    peers: all nodes of the scope of `nodes`. statistics: arrangement → (rows, bytes).
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
    """peers: the nodes of its scope."""
    ports = {port: name for name, (port, _, _) in join.sources.items()}
    reads = [ports[port] for port in range(len(ports))]
    starts = [_start(source, node, reads, peers) for source in node.inputs]
    readers = Counter(atom for rule in join.rules for atom in {atom.arrangement for step in rule.steps for atom in step.atoms})
    for name, source in zip(reads, node.inputs, strict=False):
        readers[name] += sum(source in other.inputs for other in peers if other.id != node.id)
    edges = [(edge, statistics.get(name, (0, 0))[0]) for name, edge in _edges(join.rules[0], starts)]
    bound = frozenset[int]().union(*(edge for edge, _ in edges))
    unknown = join.cube is not None or any(rows == 0 for _, rows in edges)
    sizes = None if unknown else tuple((edge, math.log2(rows)) for edge, rows in edges)
    return JoinPicture(
        node.name,
        tuple(_rule(rule, starts, circuit) for rule in join.rules),
        tuple(map(short, reads)),
        tuple(short(name) for name in reads if readers[name] > 1),
        round(agm_bound(bound, tuple((edge, 1.0) for edge, _ in edges)), 3),
        None if sizes is None else math.floor(2 ** agm_bound(bound, sizes) * (1 + 1e-9)),
    )


def _start(source: int, node: Node, reads: Sequence[str], peers: Sequence[Node]) -> str:
    """The arrangement whose change an input is, possibly without rows that have NULLs."""
    (source,) = peers[source].inputs if isinstance(peers[source].operator, NotNull) else (source,)
    return reads[node.inputs.index(source)]


def _edges(rule: Rule, ports: Sequence[str]) -> list[tuple[str, frozenset[int]]]:
    """For each occurrence (its arrangement, the positions of its variables). It occurs in the step that binds its last word."""
    ones = frozenset(position for position, word in enumerate(rule.start) if word == ONE)
    edges = [(ports[rule.port], frozenset(range(len(rule.start))) - ones)]
    position = len(rule.start)
    for step in rule.steps:
        bound = range(position, position := position + step.width)
        edges += [(atom.arrangement, frozenset((*atom.key, *bound)) - ones) for atom in step.atoms if atom.leaf]
    return edges


def _rule(rule: Rule, ports: Sequence[str], circuit: Dataflow) -> RulePicture:
    words = word_names(circuit.arrangements[ports[rule.port]].shape)
    names = _distinct(["" if word == ONE else words[word] for word in rule.start], [])
    steps = []
    for step in rule.steps:
        first = step.atoms[0]
        words = word_names(circuit.arrangements[first.arrangement].shape)[len(first.key) : first.width]
        bound = _distinct(words[:1] if isinstance(step, Extend) else words, names)
        steps.append(tuple(_read(atom, names, bound) for atom in step.atoms))
        names = [*names, *bound]
    return RulePicture(short(ports[rule.port]), tuple(filter(None, dict.fromkeys(names))), tuple(steps))


def _read(atom: RuleAtom, names: Sequence[str], bound: Sequence[str]) -> Read:
    return Read(short(atom.arrangement), tuple(filter(None, (names[p] for p in atom.key))), tuple(dict.fromkeys(bound)), atom.new)


def _distinct(words: Sequence[str], used: Sequence[str]) -> list[str]:
    """The names of words, equal for words of one field, and different from those in use."""
    renamed: dict[str, str] = {}
    for word in words:
        number, name = 1, word
        while name in used:
            number, name = number + 1, f"{word}{number + 1}"
        renamed.setdefault(word, name)
    return [renamed[word] for word in words]


def word_names(shape: Shape) -> list[str]:
    """The name of its column for each word of a row."""
    return [f.name for f, s in zip(shape.schema, shape.layout.slices, strict=True) for _ in range(s.start, s.stop)]


def short(arrangement: str) -> str:
    """An abbreviated arrangement id."""
    role, _, digest = arrangement.rpartition("-")
    return f"{role}-{digest[:8]}"
