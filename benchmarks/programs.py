"""Datalog programs of the benchmarks: their rules, the facts that they are run on, and changes of these facts.

A program has input relations of two or three columns and one output of pairs. Facts come as a feed of each relation, as those of
benchmarks.workloads. A tick deletes facts and adds as many others, chosen at random from all relations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.workloads import Feed

Fact = tuple[str, tuple[int, ...]]
Atom = tuple[str, tuple[str, ...]]
Rule = tuple[Atom, tuple[Atom, ...]]


@dataclass(frozen=True)
class Program:
    """inputs: the columns of each. derived: the relations that rules derive, with their columns; the first one is the output.

    rules: (head, body), of variables alone. unequal: variables that must differ wherever both occur in a rule.
    """

    inputs: dict[str, int]
    derived: dict[str, int]
    rules: tuple[Rule, ...]
    unequal: tuple[str, str] | None = None

    @property
    def output(self) -> str:
        return next(iter(self.derived))

    def text(self) -> str:
        """In the syntax of DDlog."""

        def declared(name: str, width: int) -> str:
            return f"relation {name}({', '.join(f'c{i}: s64' for i in range(width))})"

        def written(atom: Atom) -> str:
            return f"{atom[0]}({', '.join(atom[1])})"

        lines = [f"input {declared(*one)}" for one in self.inputs.items()]
        lines += [("output " if name == self.output else "") + declared(name, width) for name, width in self.derived.items()]
        for head, body in self.rules:
            parts = [written(atom) for atom in body]
            if self.differ(body):
                assert self.unequal is not None
                parts.append(" != ".join(self.unequal))
            lines.append(f"{written(head)} :- {', '.join(parts)}.")
        return "\n".join(lines)

    def differ(self, body: tuple[Atom, ...]) -> bool:
        """Whether the rule requires that two variables differ."""
        names = {name for _, terms in body for name in terms}
        return self.unequal is not None and names.issuperset(self.unequal)


def rules(text: str) -> tuple[Rule, ...]:
    """Rules, one a line: H a b <- P a c, Q c b."""

    def atom(part: str) -> Atom:
        name, *terms = part.split()
        return name, tuple(terms)

    pairs = (line.split("<-") for line in text.strip().splitlines())
    return tuple((atom(head), tuple(atom(part) for part in body.split(","))) for head, body in pairs)


POINTS_TO = Program(
    {"AddressOf": 2, "Assign": 2, "Load": 2, "Store": 2},
    {"PointsTo": 2},
    rules("""
        PointsTo y x <- AddressOf y x
        PointsTo y x <- Assign y z, PointsTo z x
        PointsTo y w <- Load y x, PointsTo x z, PointsTo z w
        PointsTo z w <- Store y x, PointsTo y z, PointsTo x w
    """),
)
"""Andersen's analysis (1994), without contexts and fields: y = &x, y = z, y = *x, *y = x."""

SAME_GENERATION = Program(
    {"Parent": 2},
    {"Same": 2},
    rules("""
        Same x y <- Parent x p, Parent y p
        Same x y <- Parent x a, Same a b, Parent y b
    """),
    unequal=("x", "y"),
)

DATAFLOW = Program(
    {"NullEdge": 2, "Arc": 2},
    {"Null": 2},
    rules("""
        Null x y <- NullEdge x y
        Null x y <- Null x w, Arc w y
    """),
)
"""The analysis of null pointers over a graph of control flow (CSDA) of Graspan (Wang et al. 2017)."""

CLASSES = Program(
    {"Concept": 2, "SubClass": 2, "Both": 3, "Exists": 3, "Implied": 3, "SubRole": 2, "Chain": 3},
    {"Super": 2, "Related": 3},
    rules("""
        Super x y <- Concept x y
        Super x b <- Super x a, SubClass a b
        Super x b <- Super x a, Super x c, Both a c b
        Related x r b <- Super x a, Exists a r b
        Super x d <- Related x r y, Super y a, Implied r a d
        Related x s y <- Related x r y, SubRole r s
        Related x t z <- Related x r y, Related y s z, Chain r s t
    """),
)
"""Completion of an ontology in OWL EL by the rules of Baader, Brandt and Lutz (2005); a concept is a superclass of itself (Concept)."""


class Facts:
    """The facts of a program: those that are loaded, and a source of others."""

    def __init__(self, program: Program, draw: Callable[[], Fact], size: int, ticks: int, changes: int, seed: int) -> None:
        self.program, self._draw, self._known = program, draw, set[Fact]()
        self._rng = np.random.default_rng(seed)
        self._rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in program.inputs}
        live = [self._fresh(0) for _ in range(size)]
        for tick in range(1, ticks + 1):
            for place in sorted(self._rng.choice(len(live), changes // 2, replace=False).tolist(), reverse=True):
                name, row = live[place]
                self._rows[name].append((tick, -1, *row))
                live[place] = live[-1]
                live.pop()
            live += [self._fresh(tick) for _ in range(changes - changes // 2)]

    def _fresh(self, tick: int) -> Fact:
        """A fact that has never been there."""
        while (fact := self._draw()) in self._known:
            pass
        self._known.add(fact)
        self._rows[fact[0]].append((tick, 1, *fact[1]))
        return fact

    def add(self, name: str, rows: list[tuple[int, ...]]) -> None:
        """Facts that are loaded and stay."""
        self._rows[name] = [(0, 1, *row) for row in rows] + self._rows[name]

    def feeds(self) -> dict[str, Feed]:
        """A feed of each input relation."""
        return {name: np.array(rows, np.int64).reshape(-1, self.program.inputs[name] + 2) for name, rows in self._rows.items()}


def points_to(statements: int, ticks: int, changes: int = 10, seed: int = 21) -> Facts:
    """Modules of 100 statements over 70 variables; an assignment passes a value to a variable declared soon after."""
    rng, each = np.random.default_rng(seed), 70

    def draw() -> Fact:
        kind, module = rng.random(), int(rng.integers(statements // 100)) * each
        y, x, step = (int(one) for one in rng.integers(0, (each, each, 8)))
        if kind < 0.35:
            return "AddressOf", (module + y, module + x)
        if kind < 0.8:
            return "Assign", (module + min(x + 1 + step, each - 1), module + x)
        return ("Load" if kind < 0.9 else "Store"), (module + y, module + x)

    return Facts(POINTS_TO, draw, statements, ticks, changes, seed)


def same_generation(people: int, ticks: int, changes: int = 10, seed: int = 22) -> Facts:
    """Families of 100: each person has one parent, or two, among those born before in the family."""
    rng = np.random.default_rng(seed)

    def draw() -> Fact:
        person = int(rng.integers(people))
        born = person % 100
        return "Parent", (person, person - born + int(rng.integers(born // 4, born // 2 + 1)) if born else person + 1)

    return Facts(SAME_GENERATION, draw, people, ticks, changes, seed)


def dataflow(arcs: int, ticks: int, changes: int = 10, seed: int = 23) -> Facts:
    """Procedures of 100 statements; arcs lead from a statement to one of the ten after it, and one of a hundred back."""
    rng, statements = np.random.default_rng(seed), arcs // 2

    def draw() -> Fact:
        at = int(rng.integers(statements))
        place = at % 100
        if rng.random() < 0.02:
            return "NullEdge", (at, at - place + min(place + 1, 99))
        back = rng.random() < 0.01
        return "Arc", (at, at - place + (max(place - 20, 0) if back else min(place + 1 + int(rng.integers(10)), 99)))

    return Facts(DATAFLOW, draw, arcs, ticks, changes, seed)


def classes(axioms: int, ticks: int, changes: int = 10, seed: int = 24) -> Facts:
    """Concepts in a hierarchy: a concept is below one of about half its number. Twenty roles, four of them transitive."""
    rng, concepts, roles = np.random.default_rng(seed), axioms // 2, 20

    def above(concept: int) -> int:
        return concept // 2 + int(rng.integers(3)) if concept > 100 else int(rng.integers(20))

    def draw() -> Fact:
        kind, concept = rng.random(), int(rng.integers(20, concepts))
        role = int(rng.integers(roles))
        if kind < 0.6:
            return "SubClass", (concept, above(concept))
        if kind < 0.7:
            return "Both", (above(concept), above(concept), above(above(concept)))
        if kind < 0.85:
            return "Exists", (concept, role, above(concept))
        if kind < 0.99:
            return "Implied", (role, above(concept), above(concept))
        if kind < 0.995:
            return "SubRole", (role, role - role % 5 + int(rng.integers(5)))
        return "Chain", (role - role % 5,) * 3

    made = Facts(CLASSES, draw, axioms, ticks, changes, seed)
    made.add("Concept", [(one, one) for one in range(concepts)])
    return made
