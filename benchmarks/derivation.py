"""What a Datalog program derives, from scratch: semi-naive evaluation with NumPy. It shares no code with Deltic.

A relation is a sorted int64[n] of rows packed into one number, of columns below `LIMIT`. After the first round each rule is run once
for each of its derived atoms, over what was new in the round before.
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
    known = {**facts, **{name: np.zeros(0, np.int64) for name in program.derived}}
    new: dict[str, Words] = {}
    first = True
    while first or any(map(len, new.values())):
        found: dict[str, list[Words]] = {name: [] for name in program.derived}
        for head, body in program.rules:
            places = [i for i, atom in enumerate(body) if atom[0] in program.derived]
            for place in places if not first else [-1] if not places else []:
                bound = _valuations(body, place, known, new, widths)
                if program.differ(body):
                    assert program.unequal is not None
                    one, other = (bound[name] for name in program.unequal)
                    bound = {name: column[one != other] for name, column in bound.items()}
                found[head[0]].append(pack([bound[name] for name in head[1]]))
        first = False
        new = {name: np.setdiff1d(np.concatenate([known[name][:0], *parts]), known[name]) for name, parts in found.items()}
        for name, rows in new.items():
            known[name] = np.union1d(known[name], rows)
    return {name: known[name] for name in program.derived}


def _valuations(body: Sequence[Atom], place: int, known: Mapping[str, Words], new: Mapping[str, Words], widths: Mapping[str, int]) -> Bound:
    """Those of a body whose atom at `place` is among the new rows; begun there, and continued with the smallest that shares a variable."""
    rest = list(range(len(body)))
    bound: Bound = {}
    while rest:
        near = sorted((i for i in rest if set(body[i][1]) & bound.keys()), key=lambda i: len(known[body[i][0]]))
        at = place if not bound and place >= 0 else next(iter(near), rest[0])
        rest.remove(at)
        name, terms = body[at]
        columns = dict(zip(terms, unpack(new[name] if at == place else known[name], widths[name]), strict=True))
        bound = _joined(bound, columns) if bound else columns
    return bound


def _joined(left: Bound, right: Bound) -> Bound:
    """The valuations of both that agree in their common variables."""
    common = [name for name in right if name in left]
    keys = []
    for side in (left, right):
        key = np.zeros(len(next(iter(side.values()))), np.int64)
        for name in common:
            key = key << BITS | side[name]
        keys.append(key)
    order = np.argsort(keys[1], kind="stable")
    ordered = keys[1][order]
    first, last = np.searchsorted(ordered, keys[0], "left"), np.searchsorted(ordered, keys[0], "right")
    counts = last - first
    rows = np.repeat(np.arange(len(counts)), counts)
    matches = order[np.repeat(first, counts) + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)]
    return {name: column[rows] for name, column in left.items()} | {
        name: column[matches] for name, column in right.items() if name not in left
    }
