"""Queries of every shape as atoms, random changes for them, and what they mean: all combinations of rows, one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from deltic.dbsp.weights import summed
from deltic.wcoj.index import Atom, Variable
from deltic.wcoj.trie import Key, Row, ZSetTrie

Rows = dict[Row, int]
Contents = dict[str, Rows]


def atoms(text: str) -> list[Atom]:
    """`r(x,y) s(y,1)`: letters are variables, digits constants."""
    made = []
    for one in text.split():
        relation, _, terms = one.removesuffix(")").partition("(")
        made.append(Atom(relation, tuple(int(term) if term.isdigit() else Variable(term) for term in terms.split(","))))
    return made


SHAPES = {
    "triangle": "r(x,y) s(y,z) t(x,z)",
    "triangle of one relation": "g(x,y) g(x,z) g(y,z)",
    "triangle round and round": "g(x,y) g(y,z) g(z,x)",
    "triangle with a side twice": "g(x,y) g(x,y) g(x,z) s(y,z)",
    "4-clique": "g(a,b) g(a,c) g(a,d) g(b,c) g(b,d) g(c,d)",
    "4-cycle": "r(a,b) s(b,c) r(c,d) s(d,a)",
    "4-cycle of one relation": "g(a,b) g(b,c) g(c,d) g(d,a)",
    "bow-tie": "g(a,b) g(b,c) g(a,c) g(c,d) g(d,e) g(c,e)",
    "Loomis–Whitney 3": "r(x,y) s(y,z) t(z,x)",
    "Loomis–Whitney 4": "r(a,b,c) s(b,c,d) t(c,d,a) r(d,a,b)",
    "star": "r(h,a) s(h,b) t(h,c)",
    "star of one relation": "g(h,a) g(h,b) g(h,c)",
    "path": "r(a,b) s(b,c) t(c,d)",
    "path of one relation": "g(a,b) g(b,c) g(c,d)",
    "triangle with a tail": "g(a,b) g(b,c) g(c,a) r(c,d)",
    "constants": "r(x,1) r(x,y) s(0,y) s(y,x)",
    "a variable twice in an atom": "r(x,x) s(x,y) t(y,z,y)",
    "two that share nothing": "r(a,b) s(c,d)",
    "one atom": "r(y,x)",
    "sets of one column": "r(x) s(x,y) r(y)",
}
SIZES = {
    "4-clique": {"values": 4, "load": 10},
    "bow-tie": {"values": 3, "load": 6},
    "Loomis–Whitney 4": {"values": 3, "load": 16},
    "a variable twice in an atom": {"values": 3, "load": 12},
    "4-cycle of one relation": {"values": 3, "load": 7},
}
"""What random changes of a shape are made of, where it is not what they are by default."""


def variables(query: Sequence[Atom]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(variable for atom in query for variable in atom.variables))


def widths(query: Sequence[Atom]) -> dict[str, int]:
    return {atom.relation: len(atom.terms) for atom in query}


def bindings(query: Sequence[Atom], contents: Mapping[str, Rows], bound: dict[Variable, Key]) -> Iterator[tuple[dict[Variable, Key], int]]:
    if not query:
        yield bound, 1
        return
    first, *rest = query
    for row, weight in contents[first.relation].items():
        extended = dict(bound)
        pairs = zip(first.terms, row, strict=True)
        if all((extended.setdefault(term, key) if isinstance(term, Variable) else term) == key for term, key in pairs):
            for full, factor in bindings(rest, contents, extended):
                yield full, weight * factor


def joined(query: Sequence[Atom], contents: Mapping[str, Rows]) -> ZSetTrie:
    """The join, every combination of rows tried."""
    order = variables(query)
    return ZSetTrie.of((tuple(full[variable] for variable in order), weight) for full, weight in bindings(query, contents, {}))


def added(contents: Mapping[str, Rows], change: Mapping[str, Rows]) -> Contents:
    return {name: summed([*rows.items(), *change.get(name, {}).items()], "added") for name, rows in contents.items()}


def nothing(query: Sequence[Atom]) -> Contents:
    return {relation: {} for relation in widths(query)}


def random_changes(rng: random.Random, query: Sequence[Atom], *, values: int = 4, load: int = 8, ticks: int = 8) -> Iterator[Contents]:
    """A bulk load, then inserts and deletes of single rows and now and then of several; some relations stand still for many ticks."""
    size = widths(query)
    everything = {name: list(product(range(values), repeat=width)) for name, width in size.items()}
    contents = nothing(query)

    def weight() -> int:
        return rng.choice([-3, -2, -1, 1, 1, 1, 2, 3])

    change: Contents = {name: {row: weight() for row in rng.sample(rows, min(load, len(rows)))} for name, rows in everything.items()}
    still = rng.choice([None, *size])
    for _ in range(ticks):
        yield change
        contents = added(contents, change)
        names = [name for name in size if name != still] or [*size]
        change = {}
        for name in rng.sample(names, rng.choice([1, 1, len(names)])):
            present = contents[name]
            change[name] = {rng.choice(everything[name]): weight() for _ in range(rng.choice([1, 1, 1, 3]))}
            if present and rng.random() < 0.5:
                row = rng.choice([*present])
                change[name] = {row: -present[row]}
