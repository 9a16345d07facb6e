"""Pathway: recursive views over edges as its `iterate`, kept up to date (see pathway_feed)."""

from __future__ import annotations

from typing import Any

import pathway as pw

from benchmarks.checks import Change
from benchmarks.peers import pathway_feed
from benchmarks.peers.pathway_feed import Tick, rows_of

EDGE = 0


class Rows(pw.Schema):
    """An edge or a tick's mark."""

    kind: int = pw.column_definition(primary_key=True)
    src: int = pw.column_definition(primary_key=True)
    dst: int = pw.column_definition(primary_key=True)


class Node(pw.Schema):
    node: int


def closure(edges: Any) -> Any:
    def step(paths: Any, edges: Any) -> dict[str, Any]:
        longer = paths.join(edges, paths.dst == edges.src).select(src=pw.left.src, dst=pw.right.dst)
        return {"paths": edges.concat_reindex(longer).groupby(pw.this.src, pw.this.dst).reduce(pw.this.src, pw.this.dst)}

    return pw.iterate(step, paths=pw.iterate_universe(edges), edges=edges)["paths"]


def reachability(edges: Any, root: int) -> Any:
    roots = pw.debug.table_from_rows(Node, [(root,)])

    def step(reached: Any, edges: Any, roots: Any) -> dict[str, Any]:
        ahead = reached.join(edges, reached.node == edges.src).select(node=pw.right.dst)
        return {"reached": roots.concat_reindex(ahead).groupby(pw.this.node).reduce(pw.this.node)}

    return pw.iterate(step, reached=pw.iterate_universe(roots), edges=edges, roots=roots)["reached"]


class Incremental(pathway_feed.Incremental):
    def __init__(self, view: str, root: int) -> None:
        def over(rows: Any) -> Any:
            edges = rows.filter(pw.this.kind == EDGE).select(pw.this.src, pw.this.dst)
            return closure(edges) if view == "closure" else reachability(edges, root)

        super().__init__(Rows, ["src", "dst"] if view == "closure" else ["node"], over)

    def prepare(self, edges: Change) -> Tick:
        return rows_of(EDGE, edges, 3)


def engine(view: str, root: int) -> Incremental:
    return Incremental(view, root)
