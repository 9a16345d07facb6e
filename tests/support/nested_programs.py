"""Test support: small random circuits with nested scopes, and their meaning, computed from scratch over dicts.

Streams are Z-sets of pairs of small integers. The evaluator has no notion of changes: a scope is iterated synchronously from empty, each
node computed from whole relations, until no feedback changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Row = tuple[int, int]
ZSet = dict[Row, int]
DOMAIN = 5
LIMIT = 12
HEAVY = 1 << 20

MAPS: Mapping[str, Callable[[int, int], Row]] = {
    "swap": lambda a, b: (b, a),
    "next": lambda a, b: (a, (b + 1) % DOMAIN),
    "first": lambda a, b: (a, a),
    "sum": lambda a, b: ((a + b) % DOMAIN, b),
}
MULTIWAY = {"triangle": ("py", "yq", "pq"), "star": ("yp", "yq", "yw"), "chain": ("py", "yz", "zq"), "same": ("pq", "pq", "py")}
FILTERS: Mapping[str, Callable[[int, int], bool]] = {"unequal": lambda a, b: a != b, "less": lambda a, b: a < b}


@dataclass
class Spec:
    """A node. inputs: local numbers. inside: of a child. detail: what kind of map, filter or reduce."""

    kind: str
    inputs: list[int] = field(default_factory=list)
    detail: str = ""
    inside: Scope | None = None


@dataclass
class Scope:
    """nodes, in order; imports are those of the parent's nodes; feedbacks come first and name their sources."""

    nodes: list[Spec]
    export: int


class Diverges(Exception):
    """A scope changes beyond the limit."""


class Heavy(Exception):
    """Weights grow too large for a test."""


def random_program(rng: random.Random, tables: int = 2) -> Scope:
    """The root: tables, then one child or the sum of two."""
    depth = rng.choice((1, 1, 1, 2, 2, 3))
    nodes = [Spec("table") for _ in range(tables)]
    nodes.append(_random_child(rng, len(nodes), depth))
    if rng.random() < 0.2:
        nodes.append(_random_child(rng, len(nodes), 1))
        nodes.append(Spec("plus", [tables, tables + 1]))
    return Scope(nodes, len(nodes) - 1)


def _random_child(rng: random.Random, streams: int, depth: int) -> Spec:
    imports = [rng.randrange(streams) for _ in range(rng.randint(1, 3))]
    return Spec("child", imports, "", _random_scope(rng, len(imports), depth))


def _random_scope(rng: random.Random, imports: int, depth: int) -> Scope:
    feedbacks = rng.choice((1, 1, 2, 3)) if depth == 1 else rng.choice((1, 1, 2))
    nodes = [Spec("feedback") for _ in range(feedbacks)]
    nodes += [Spec("import", [i]) for i in range(imports)]
    steps = rng.randint(2, 7)
    deeper = rng.randrange(steps) if depth > 1 else -1
    for step in range(steps):
        if step == deeper:
            nodes.append(_random_child(rng, len(nodes), depth - 1))
        else:
            nodes.append(_random_node(rng, len(nodes)))
    for feedback in range(feedbacks):
        source = rng.randrange(feedbacks, len(nodes))
        if rng.random() < 0.7:
            base = rng.randrange(feedbacks, len(nodes))
            nodes.append(Spec("plus", [source, base]))
            source = len(nodes) - 1
        if rng.random() < 0.85:
            nodes.append(Spec("distinct", [source]))
            source = len(nodes) - 1
        nodes[feedback].inputs = [source]
    return Scope(nodes, rng.choice((len(nodes) - 1, nodes[0].inputs[0], rng.randrange(len(nodes)))))


KINDS = (
    *("join",) * 6,
    *("distinct",) * 3,
    *("reduce",) * 3,
    *("map",) * 3,
    *("plus",) * 3,
    *("filter", "negate", "antijoin", "antijoin", "semijoin", "top", "delay", "minus"),
)


def _random_node(rng: random.Random, streams: int) -> Spec:
    kind = rng.choice(KINDS)
    recent = [max(rng.randrange(streams), rng.randrange(streams)) for _ in range(2)]
    match kind:
        case "join" | "plus" | "minus" | "antijoin" | "semijoin":
            return Spec(kind, [recent[0], rng.randrange(streams)])
        case "map":
            return Spec(kind, recent[:1], rng.choice([*MAPS]))
        case "filter":
            return Spec(kind, recent[:1], rng.choice([*FILTERS]))
        case "reduce":
            return Spec(kind, recent[:1], rng.choice(("min", "max", "count", "sum", "all")))
        case _:
            return Spec(kind, recent[:1])


def with_multiway(rng: random.Random, scope: Scope) -> Scope:
    """The program with most joins replaced by joins of three."""
    nodes = []
    for at, spec in enumerate(scope.nodes):
        inside = None if spec.inside is None else with_multiway(rng, spec.inside)
        if spec.kind == "join" and rng.random() < 0.8:
            third = max(rng.randrange(at), rng.randrange(at))
            nodes.append(Spec("multiway", [*spec.inputs, third], rng.choice([*MULTIWAY])))
        else:
            nodes.append(Spec(spec.kind, spec.inputs, spec.detail, inside))
    return Scope(nodes, scope.export)


def live(scope: Scope) -> set[int]:
    """The nodes that the export, a feedback or a delay depends on: others are left out of a scope, and cannot diverge."""
    reached: set[int] = set()
    waiting = [scope.export, *(i for i, spec in enumerate(scope.nodes) if spec.kind in ("feedback", "delay"))]
    while waiting:
        at = waiting.pop()
        if at not in reached:
            reached.add(at)
            waiting += scope.nodes[at].inputs if scope.nodes[at].kind != "import" else []
    return reached


def meaning(scope: Scope, given: list[ZSet], previous: list[ZSet] | None = None, nodes: set[int] | None = None) -> list[ZSet]:
    """The value of each node: tables and imports from `given`, feedbacks and delays from the values of the iteration before.

    nodes: those that count; None for all.
    """
    values: list[ZSet] = []
    tables = 0
    for at, spec in enumerate(scope.nodes):
        if nodes is not None and at not in nodes:
            values.append({})
            continue
        match spec.kind:
            case "table":
                value = given[tables]
                tables += 1
            case "import":
                value = given[spec.inputs[0]]
            case "feedback" | "delay":
                value = previous[spec.inputs[0]] if previous is not None else {}
            case "child":
                assert spec.inside is not None
                value = fixed_point(spec.inside, [values[i] for i in spec.inputs])
            case _:
                value = _apply(spec, [values[i] for i in spec.inputs])
        if any(abs(weight) > HEAVY for weight in value.values()):
            raise Heavy
        values.append(value)
    return values


def fixed_point(scope: Scope, given: list[ZSet]) -> ZSet:
    """The export's value once no feedback changes."""
    sources = [spec.inputs[0] for spec in scope.nodes if spec.kind in ("feedback", "delay")]
    before: list[ZSet] | None = None
    nodes = live(scope)
    for iteration in range(LIMIT + 1):
        values = meaning(scope, given, before, nodes)
        if all(values[s] == ({} if before is None else before[s]) for s in sources):
            return values[scope.export]
        if iteration == LIMIT:
            raise Diverges
        before = values
    raise AssertionError


def _apply(spec: Spec, given: list[ZSet]) -> ZSet:
    a = given[0]
    match spec.kind:
        case "map":
            return add((MAPS[spec.detail](*row), w) for row, w in a.items())
        case "filter":
            return {row: w for row, w in a.items() if FILTERS[spec.detail](*row)}
        case "negate":
            return {row: -w for row, w in a.items()}
        case "plus":
            return add([*a.items(), *given[1].items()])
        case "minus":
            return add([*a.items(), *((row, -w) for row, w in given[1].items())])
        case "join":
            return add(((x[1], y[1]), w * v) for x, w in a.items() for y, v in given[1].items() if x[0] == y[0])
        case "multiway":
            return _multiway(MULTIWAY[spec.detail], given)
        case "distinct":
            return present(a)
        case "semijoin" | "antijoin":
            there = {row[0] for row, w in add((((y[0], 0), v) for y, v in given[1].items())).items() if w > 0}
            return {row: w for row, w in a.items() if (row[0] in there) == (spec.kind == "semijoin")}
        case "reduce":
            return _reduced(spec.detail, present(a))
        case "top":
            return dict.fromkeys(sorted(present(a))[:2], 1)
        case _:
            raise AssertionError(spec.kind)


def _multiway(atoms: tuple[str, ...], given: list[ZSet]) -> ZSet:
    """The rows (p, q) of the join of the streams by variables."""
    partial: list[tuple[dict[str, int], int]] = [({}, 1)]
    for variables, stream in zip(atoms, given, strict=True):
        rows = [(dict(zip(variables, row, strict=True)), w) for row, w in stream.items()]
        partial = [({**p, **r}, w * v) for p, w in partial for r, v in rows if all(p.get(name, x) == x for name, x in r.items())]
    return add(((p["p"], p["q"]), w) for p, w in partial)


def _reduced(function: str, rows: ZSet) -> ZSet:
    if function == "all":
        return {(len(rows), 0): 1}
    groups: dict[int, list[int]] = {}
    for a, b in rows:
        groups.setdefault(a, []).append(b)
    read: Callable[[list[int]], int] = {"min": min, "max": max, "count": len, "sum": sum}[function]
    return {(a, read(values)): 1 for a, values in groups.items()}


def present(rows: ZSet) -> ZSet:
    return {row: 1 for row, w in rows.items() if w > 0}


def add(pairs: object) -> ZSet:
    """The sum of weighted rows."""
    total: ZSet = {}
    for row, w in pairs:  # type: ignore[attr-defined]
        total[row] = total.get(row, 0) + w
    return {row: w for row, w in total.items() if w}


def random_content(rng: random.Random, size: int) -> ZSet:
    """A table of at most `size` different rows."""
    return {(rng.randrange(DOMAIN), rng.randrange(DOMAIN)): rng.choice((1, 1, 1, 2)) for _ in range(size)}


def random_changes(rng: random.Random, content: list[ZSet], ticks: int) -> list[list[ZSet]]:
    """Changes of the tables, tick by tick, that leave no negative weights; `content` is the start, and is not changed."""
    now = [dict(table) for table in content]
    changes = []
    for _ in range(ticks):
        tick: list[ZSet] = []
        for table in now:
            change: ZSet = {}
            for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
                if table and rng.random() < 0.6:
                    row = rng.choice(sorted(table))
                    change[row] = change.get(row, 0) - 1
                    table[row] -= 1
                else:
                    row = (rng.randrange(DOMAIN), rng.randrange(DOMAIN))
                    change[row] = change.get(row, 0) + 1
                    table[row] = table.get(row, 0) + 1
                if not table[row]:
                    del table[row]
            tick.append({row: w for row, w in change.items() if w})
        changes.append(tick)
    return changes
