"""Test support: random multiway joins as rules of the operator, random changes, and what comes of them by brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.operator import Context, Tick
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.rules import Extend, Fetch, Product, Rule, RuleAtom
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows
from deltic.trace.share import Share
from deltic.trace.spine import Spine
from tests.support.strings import string_table

Row = tuple[int, ...]
ZSet = dict[Row, int]
Order = tuple[int, ...]

SHAPES: dict[str, tuple[tuple[str, ...], ...]] = {
    "triangle": ("xy", "xz", "yz"),
    "self loop and edge": ("x", "xy"),
    "square": ("xy", "yz", "zw", "wx"),
    "clique": ("xy", "xz", "xw", "yz", "yw", "zw"),
    "bow-tie": ("xy", "yz", "zx", "xw", "wv", "vx"),
    "loomis-whitney": ("xyz", "xyw", "xzw", "yzw"),
    "star": ("xy", "xz", "xw"),
    "path": ("xy", "yz", "zw"),
    "twice the same": ("xy", "xy"),
    "one": ("xyz",),
    "payloads": ("xyp", "yzqr", "zx"),
    "wide": ("xyz", "zyw", "wx"),
}


@dataclass(frozen=True)
class Query:
    """atoms: (relation, its variables) of each occurrence. output: variables. measured: a variable that is summed as well."""

    atoms: tuple[tuple[str, str], ...]
    output: str
    measured: str | None = None


@dataclass
class Compiling:
    """Arrangements in the order of requests: (relation, order of its columns) to port."""

    ports: dict[tuple[str, Order], int] = field(default_factory=dict)

    def port(self, relation: str, order: Sequence[int]) -> tuple[int, str]:
        key = (relation, tuple(order))
        return self.ports.setdefault(key, len(self.ports)), f"{relation}:{order}"


def rules_of(query: Query, rng: random.Random, compiling: Compiling) -> tuple[Rule, ...]:
    """One rule for each occurrence, with random orders of variables, and payloads fetched or not."""
    return tuple(_rule(query, j, rng, compiling) for j in range(len(query.atoms)))


def _rule(query: Query, j: int, rng: random.Random, compiling: Compiling) -> Rule:
    relation, start = query.atoms[j]
    port, _ = compiling.port(relation, range(len(start)))
    bound = list(start)
    done = {j}
    steps: list[Extend | Fetch] = []
    factors = 1
    while len(done) < len(query.atoms):
        whole = [k for k in range(len(query.atoms)) if k not in done and set(query.atoms[k][1]) <= set(bound)]
        alone = [k for k in range(len(query.atoms)) if k not in done and _alone(query, k, bound) and rng.random() < 0.7]
        if whole or alone:
            k = (whole or alone)[0]
            atom = _atom(query, k, j, bound, None, compiling)
            steps.append(Fetch(atom))
            bound += [v for v in _ordered(query.atoms[k][1], bound, None) if v not in bound]
            done.add(k)
            factors += 1
            continue
        variable = rng.choice(sorted({v for _, variables in query.atoms for v in variables} - set(bound)))
        having = [k for k in range(len(query.atoms)) if k not in done and variable in query.atoms[k][1]]
        rng.shuffle(having)
        atoms = tuple(_atom(query, k, j, bound, variable, compiling) for k in having)
        steps.append(Extend(atoms))
        bound.append(variable)
        for k, atom in zip(having, atoms, strict=True):
            if atom.leaf:
                done.add(k)
                factors += 1
    weights = [Product((0,) * factors)]
    if query.measured:
        word = bound.index(query.measured)
        weights += [Product((), word), Product((), word, "high"), Product((), word, "low")]
    return Rule(port, tuple(range(len(start))), tuple(steps), tuple(bound.index(v) for v in query.output), tuple(weights))


def _alone(query: Query, k: int, bound: Sequence[str]) -> bool:
    """Whether nobody else has the free variables of occurrence k, of whose others one at least is bound."""
    free = set(query.atoms[k][1]) - set(bound)
    others = {v for i, (_, variables) in enumerate(query.atoms) if i != k for v in variables}
    return free.isdisjoint(others) and len(free) < len(query.atoms[k][1])


def _ordered(variables: str, bound: Sequence[str], variable: str | None) -> list[str]:
    """As they are bound: those that are, in that order, then `variable`, then the others."""
    first = [v for v in bound if v in variables]
    rest = [v for v in variables if v not in bound]
    return [*first, *sorted(rest, key=lambda v: v != variable)]


def _atom(query: Query, k: int, j: int, bound: Sequence[str], variable: str | None, compiling: Compiling) -> RuleAtom:
    relation, variables = query.atoms[k]
    order = _ordered(variables, bound, variable)
    port, name = compiling.port(relation, [variables.index(v) for v in order])
    key = tuple(bound.index(v) for v in order if v in bound)
    leaf = variable is None or len(key) + 1 == len(variables)
    return RuleAtom(port, name, len(variables), key, k < j, leaf)


def brute_force(query: Query, content: Mapping[str, ZSet]) -> Counter[tuple[Row, int]]:
    """{(output row, 0): weight, (output row, 1): weight times the measured variable}, without zeros."""
    partial: list[tuple[dict[str, int], int]] = [({}, 1)]
    for relation, variables in query.atoms:
        extended = []
        for bound, weight in partial:
            for row, w in content[relation].items():
                if all(bound.get(v, x) == x for v, x in zip(variables, row, strict=True)):
                    extended.append(({**bound, **dict(zip(variables, row, strict=True))}, weight * w))
        partial = extended
    out: Counter[tuple[Row, int]] = Counter()
    for bound, weight in partial:
        row = tuple(bound[v] for v in query.output)
        out[row, 0] += weight
        if query.measured:
            out[row, 1] += weight * bound[query.measured]
    return Counter({key: weight for key, weight in out.items() if weight})


def measured(rows: Rows, query: Query) -> Counter[tuple[Row, int]]:
    """The same of the operator's rows, whose limbs have to say the same as its whole numbers."""
    out: Counter[tuple[Row, int]] = Counter()
    columns = [column.tolist() for column in rows.columns]
    weights = [weight.tolist() for weight in rows.weights]
    limbs: Counter[Row] = Counter()
    for i in range(len(rows)):
        row = tuple(column[i] for column in columns)
        out[row, 0] += weights[0][i]
        if query.measured:
            out[row, 1] += weights[1][i]
            limbs[row] += (weights[2][i] << 32) + weights[3][i]
    assert all(out[row, 1] == total for row, total in limbs.items())
    return Counter({key: weight for key, weight in out.items() if weight})


class Running:
    """An operator over spines that are appended to, tick by tick, and the relations' contents as they should be."""

    def __init__(self, query: Query, rng: random.Random) -> None:
        self.query, self.compiling = query, Compiling()
        self.operator = MultiwayJoinOperator(rules_of(query, rng, self.compiling))
        self.content: dict[str, ZSet] = {relation: {} for relation, _ in query.atoms}
        self.arity = {relation: len(variables) for relation, variables in query.atoms}
        self.state = {f"{relation}:{[*order]}": Spine(self.arity[relation], 1) for relation, order in self.compiling.ports}
        self.shares: dict[str, Share] = {}

    def change_of(self, relation: str, order: Order, change: ZSet) -> Batch:
        columns = [np.array([row[c] for row in change], np.int64) for c in order]
        return consolidate(Rows(columns, (np.array([*change.values()], np.int64),)))

    def batches(self, changes: Mapping[str, ZSet]) -> list[Batch]:
        out = []
        for relation, order in self.compiling.ports:
            batch = self.change_of(relation, order, changes.get(relation, {}))
            share = self.shares.get(f"{relation}:{[*order]}")
            out.append(batch if share is None else share.of_batch(batch))
        return out

    def said(self, operator: MultiwayJoinOperator, changes: Mapping[str, ZSet]) -> Counter[tuple[Row, int]]:
        """What the operator says of the changes."""
        context = Context(0, 1, Tick(1), self.state, string_table(1))
        return measured(operator.step(self.batches(changes), context), self.query)

    def tick(self, changes: Mapping[str, ZSet]) -> Counter[tuple[Row, int]]:
        """The same, and they are real then."""
        batches = self.batches(changes)
        actual = self.said(self.operator, changes)
        for (relation, order), batch in zip(self.compiling.ports, batches, strict=True):
            self.state[f"{relation}:{[*order]}"] = self.state[f"{relation}:{[*order]}"].appended(batch)
        for relation, change in changes.items():
            self.content[relation] = summed(self.content[relation], change)
        return actual


def summed(a: ZSet, b: ZSet) -> ZSet:
    out = Counter(a)
    for row, weight in b.items():
        out[row] += weight
    return {row: weight for row, weight in out.items() if weight}


def random_change(rng: random.Random, content: ZSet, arity: int, domain: int, rows: int) -> ZSet:
    """Some rows with weights from -3 to 3, some of them taking back what is there."""
    change: ZSet = {}
    for _ in range(rows):
        change[tuple(rng.randrange(domain) for _ in range(arity))] = rng.choice((-3, -2, -1, 1, 2, 3))
    for row in rng.sample(sorted(content), min(len(content), rows // 2)):
        change[row] = -content[row]
    return change


def random_query(rng: random.Random, shape: str | None = None) -> Query:
    """A shape with one relation for all occurrences that have so many columns, or some different ones."""
    shape = shape or rng.choice(sorted(SHAPES))
    relations = [f"r{len(variables)}{rng.choice(('', '', 'b'))}" for variables in SHAPES[shape]]
    variables = sorted({v for atom in SHAPES[shape] for v in atom})
    output = "".join(rng.sample(variables, rng.randrange(len(variables) + 1)))
    return Query(tuple(zip(relations, SHAPES[shape], strict=True)), output, rng.choice((None, *variables)))


def difference(a: Counter[tuple[Row, int]], b: Counter[tuple[Row, int]]) -> Counter[tuple[Row, int]]:
    """a - b, without zeros."""
    return Counter({key: a[key] - b[key] for key in {*a, *b} if a[key] != b[key]})
