"""Pathway: a pattern as joins of two, kept up to date (see pathway_feed). It keeps what they give, so its memory is limited."""

from __future__ import annotations

import resource
from functools import partial
from typing import Any

import pathway as pw

from benchmarks.checks import Change
from benchmarks.patterns import PATTERNS, Pattern
from benchmarks.peers import pathway_feed
from benchmarks.peers.pathway_feed import Tick, rows_of

EDGE = 0
LIMIT_GB = 8


class Rows(pw.Schema):
    """An edge or a tick's mark."""

    kind: int = pw.column_definition(primary_key=True)
    src: int = pw.column_definition(primary_key=True)
    dst: int = pw.column_definition(primary_key=True)


def view(pattern: Pattern, rows: Any) -> Any:
    edges = rows.filter(pw.this.kind == EDGE)
    source, target = tuple(pattern.edges[0])
    matches = edges.select(**{source: pw.this.src, target: pw.this.dst})
    bound = [source, target]
    for edge in pattern.edges[1:]:
        ends = dict(zip(edge, (edges.src, edges.dst), strict=True))
        conditions = [matches[variable] == end for variable, end in ends.items() if variable in bound]
        new = {variable: end for variable, end in ends.items() if variable not in bound}
        matches = matches.join(edges, *conditions).select(**{variable: matches[variable] for variable in bound}, **new)
        bound += new
    return matches.select(**{name: pw.this[name] for name in bound}) if pattern.listed else matches.reduce(n=pw.reducers.count())


class Incremental(pathway_feed.Incremental):
    def __init__(self, pattern: Pattern) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_GB << 30, LIMIT_GB << 30))
        super().__init__(Rows, pattern.names, partial(view, pattern))

    def prepare(self, edges: Change) -> Tick:
        return rows_of(EDGE, edges, 3)


def engine(pattern: str) -> Incremental:
    return Incremental(PATTERNS[pattern])
