"""Kùzu: a graph database; its graph is kept up to date, the pattern's query run again after every tick."""

from __future__ import annotations

from dataclasses import dataclass

import kuzu
import numpy as np
import pyarrow as pa

from benchmarks.checks import Change, Words
from benchmarks.engine import Absent, Answer
from benchmarks.patterns import PATTERNS, Pattern

LIMIT_S = 60.0
SCHEMA = "CREATE NODE TABLE Node (id INT64 PRIMARY KEY); CREATE REL TABLE Edge (FROM Node TO Node)"
DELETE = "UNWIND $rows AS r MATCH (a:Node {id: r.src})-[e:Edge]->(b:Node {id: r.dst}) DELETE e"


@dataclass(frozen=True)
class Tick:
    """The nodes that no tick before had, the new edges, and those that go."""

    nodes: pa.Table
    new: pa.Table
    deleted: list[dict[str, int]]


class Recompute:
    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.known: Words = np.zeros(0, np.int64)
        self.connection = kuzu.Connection(kuzu.Database(":memory:"))
        self.connection.set_query_timeout(int(LIMIT_S * 1e3))
        self.connection.execute(SCHEMA)

    def prepare(self, edges: Change) -> Tick:
        weight, source, target = edges
        nodes = np.setdiff1d(np.concatenate([source, target]), self.known)
        self.known = np.union1d(self.known, nodes)
        new = weight > 0
        deleted = zip(source[~new].tolist(), target[~new].tolist(), strict=True)
        rows = [{"src": a, "dst": b} for a, b in deleted]
        return Tick(pa.table({"id": nodes}), pa.table({"src": source[new], "dst": target[new]}), rows)

    def tick(self, prepared: Tick) -> list[list[int]]:
        nodes, new = prepared.nodes, prepared.new
        if prepared.deleted:
            self.connection.execute(DELETE, {"rows": prepared.deleted})
        if nodes.num_rows:
            self.connection.execute("COPY Node FROM nodes")
        if new.num_rows:
            self.connection.execute("COPY Edge FROM new")
        try:
            result = self.connection.execute(self.pattern.cypher())
        except RuntimeError as error:
            if "Interrupted" not in str(error):
                raise
            raise Absent(f"the query does not end within {LIMIT_S:.0f} s") from error
        assert isinstance(result, kuzu.QueryResult)
        return [list(row) for row in result]

    def answer(self, read: list[list[int]]) -> Answer:
        return Answer(list(np.array(read, np.int64).reshape(-1, len(self.pattern.names)).T), None)


def engine(pattern: str) -> Recompute:
    return Recompute(PATTERNS[pattern])
