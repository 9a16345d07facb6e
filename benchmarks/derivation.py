"""What a Datalog program derives, from scratch: semi-naive evaluation with NumPy. It shares no code with Deltic.

A relation is a sorted int64[n] of rows packed into one number, of columns below `LIMIT`. After the first round each rule is run once
for each of its derived atoms, over what was new in the round before. The atoms of a rule are joined in the order that keeps the valuations
fewest, which are counted before each join. Cost: a round is linear in the relations that grew in the round before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks import checks
from benchmarks.checks import Words
from benchmarks.programs import Atom, Program
from benchmarks.workloads import Feed

BITS = 21
LIMIT = 1 << BITS
Bound = dict[str, Words]
"""The value of each variable, in the valuations so far."""


def pack(columns: Sequence[Words]) -> Words:
    """Rows as one number each, sorted, without repetition."""
    packed = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        packed = packed << BITS | column
    return np.unique(packed)


def unpack(packed: Words, width: int) -> list[Words]:
    return [packed >> (BITS * (width - 1 - i)) & (LIMIT - 1) for i in range(width)]


def outputs(program: Program, feeds: Mapping[str, Feed], every: int = 1) -> Iterator[tuple[int, list[Words]]]:
    """(tick, columns of the output after it), for the load and every so many ticks."""
    ticks = 1 + max(int(feed[-1, 0]) for feed in feeds.values() if len(feed))
    changes = {name: checks.split(feed, ticks) for name, feed in feeds.items()}
    facts = {name: np.zeros(0, np.int64) for name in program.inputs}
    for tick in range(ticks):
        for name, parts in changes.items():
            weight, *columns = parts[tick]
            assert all(column.max(initial=0) < LIMIT for column in columns)
            removed, added = (pack([column[chosen] for column in columns]) for chosen in (weight < 0, weight > 0))
            assert np.isin(removed, facts[name]).all() and not np.isin(added, facts[name]).any(), "the feed repeats a fact"
            facts[name] = np.union1d(np.setdiff1d(facts[name], removed, assume_unique=True), added)
        if tick % every == 0:
            yield tick, unpack(derive(program, facts)[program.output], program.derived[program.output])


def derive(program: Program, facts: Mapping[str, Words]) -> dict[str, Words]:
    """All derived relations."""
    widths = program.inputs | program.derived
    known = {name: Relation(facts.get(name, np.zeros(0, np.int64)), width) for name, width in widths.items()}
    new: dict[str, Relation] = {}
    first = True
    while first or any(len(rows.packed) for rows in new.values()):
        parts: dict[str, list[Words]] = {name: [np.zeros(0, np.int64)] for name in program.derived}
        for head, body in program.rules:
            places = [i for i, atom in enumerate(body) if atom[0] in program.derived]
            for place in places if not first else [-1] if not places else []:
                bound = _valuations(body, [new[name] if i == place else known[name] for i, (name, _) in enumerate(body)], place)
                if program.differ(body):
                    assert program.unequal is not None
                    one, other = (bound[name] for name in program.unequal)
                    bound = {name: column[one != other] for name, column in bound.items()}
                parts[head[0]].append(pack([bound[name] for name in head[1]]))
        first = False
        new = {name: known[name].without(np.unique(np.concatenate(rows))) for name, rows in parts.items()}
        known |= {name: known[name].merged(rows) for name, rows in new.items() if len(rows.packed)}
    return {name: known[name].packed for name in program.derived}


class Relation:
    """Rows, with the orders in which they have been searched. packed: int64[n], sorted, without repetition."""

    def __init__(self, packed: Words, width: int) -> None:
        self.packed, self.width = packed, width
        self._columns: list[Words] | None = None
        self._orders: dict[tuple[int, ...], tuple[Words, Words | None]] = {}

    @property
    def columns(self) -> list[Words]:
        if self._columns is None:
            self._columns = unpack(self.packed, self.width)
        return self._columns

    def without(self, packed: Words) -> Relation:
        """The rows that are not in this relation. packed: sorted."""
        places = np.searchsorted(self.packed, packed)
        places[places == len(self.packed)] = 0
        return Relation(packed[self.packed[places] != packed] if len(self.packed) else packed, self.width)

    def merged(self, other: Relation) -> Relation:
        """With the rows of another one, which has none of these. The sort is one merge of two runs."""
        return Relation(np.sort(np.concatenate((self.packed, other.packed)), kind="stable"), self.width)

    def order(self, places: tuple[int, ...]) -> tuple[Words, Words | None]:
        """The keys of these columns in ascending order, and the rows in their order; None is that of `packed`."""
        if places not in self._orders:
            keys = _key([self.columns[place] for place in places], len(self.packed))
            order = None if places == tuple(range(len(places))) else np.argsort(keys, kind="stable")
            self._orders[places] = (keys if order is None else keys[order], order)
        return self._orders[places]


def _key(columns: Sequence[Words], rows: int) -> Words:
    key = np.zeros(rows, np.int64)
    for column in columns:
        key = key << BITS | column
    return key


def _valuations(body: Sequence[Atom], relations: Sequence[Relation], place: int) -> Bound:
    """Those of a body; begun at the atom at `place`, which has new rows, and continued with the one that makes the fewest."""
    start = max(place, 0)
    bound: Bound = dict(zip(body[start][1], relations[start].columns, strict=True))
    rest = [i for i in range(len(body)) if i != start]
    while rest:
        near = [i for i in rest if bound.keys() & set(body[i][1])] or rest[:1]
        joins = {i: Join(bound, body[i][1], relations[i]) for i in near}
        chosen = min(near, key=lambda i: joins[i].size)
        rest.remove(chosen)
        bound = joins[chosen].valuations()
    return bound


class Join:
    """The valuations of both sides that agree in their common variables. size: how many they are."""

    def __init__(self, bound: Bound, terms: Sequence[str], relation: Relation) -> None:
        self._bound, self._terms, self._relation = bound, terms, relation
        common = [i for i, name in enumerate(terms) if name in bound]
        ordered, self._order = relation.order(tuple(common))
        key = _key([bound[terms[i]] for i in common], len(next(iter(bound.values()))))
        self._first = np.searchsorted(ordered, key, "left")
        self._counts = np.searchsorted(ordered, key, "right") - self._first
        self.size = int(self._counts.sum())

    def valuations(self) -> Bound:
        rows = np.repeat(np.arange(len(self._counts)), self._counts)
        places = np.arange(self.size) - np.repeat(np.cumsum(self._counts) - self._counts - self._first, self._counts)
        matches = places if self._order is None else self._order[places]
        columns = zip(self._terms, self._relation.columns, strict=True)
        return {name: column[rows] for name, column in self._bound.items()} | {
            name: column[matches] for name, column in columns if name not in self._bound
        }
