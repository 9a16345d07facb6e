"""Patterns of edges as views, in the language of every engine, and Deltic's engine for them.

A pattern's rows are the assignments of nodes to its variables for which all its edges exist; one node may be assigned to several variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import deltic
from benchmarks.checks import Change
from benchmarks.engine import Answer, arrow
from deltic import kernels

COLUMNS = ["src", "dst"]
TABLE = "CREATE TABLE edges (src BIGINT NOT NULL, dst BIGINT NOT NULL)"


@dataclass(frozen=True)
class Pattern:
    """`edges` are pairs of variables of one letter, each but the first with a variable of an earlier one; `listed` or else counted."""

    edges: tuple[str, ...]
    listed: bool = False

    @property
    def variables(self) -> list[str]:
        """In order of their first places."""
        return list(dict.fromkeys("".join(self.edges)))

    @property
    def names(self) -> list[str]:
        """The view's columns."""
        return self.variables if self.listed else ["n"]

    def sql(self) -> str:
        """
        >>> Pattern(("xy", "yz", "zx")).sql()
        'SELECT count(*) AS n FROM edges xy JOIN edges yz ON xy.dst = yz.src JOIN edges zx ON yz.dst = zx.src AND xy.src = zx.dst'
        """
        place: dict[str, str] = {}
        joined = []
        for edge in self.edges:
            columns = {variable: f"{edge}.{column}" for variable, column in zip(edge, COLUMNS, strict=True)}
            conditions = [f"{place[variable]} = {column}" for variable, column in columns.items() if variable in place]
            joined.append(f"edges {edge}" + (f" ON {' AND '.join(conditions)}" if conditions else ""))
            place = columns | place
        picked = ", ".join(f"{place[variable]} AS {variable}" for variable in self.variables) if self.listed else "count(*) AS n"
        return f"SELECT {picked} FROM {' JOIN '.join(joined)}"

    def cypher(self) -> str:
        """
        >>> Pattern(("xy", "yz"), listed=True).cypher()
        'MATCH (x:Node)-[:Edge]->(y:Node), (y:Node)-[:Edge]->(z:Node) RETURN x.id, y.id, z.id'
        """
        matched = ", ".join(f"({source}:Node)-[:Edge]->({target}:Node)" for source, target in map(tuple, self.edges))
        return f"MATCH {matched} RETURN {', '.join(f'{variable}.id' for variable in self.variables) if self.listed else 'count(*)'}"


TRIANGLE = ("xy", "xz", "yz")
PATTERNS = {
    "triangles": Pattern(TRIANGLE),
    "triangles_listed": Pattern(TRIANGLE, listed=True),
    "cliques": Pattern(("ab", "ac", "ad", "bc", "bd", "cd")),
    "cycles": Pattern(("ab", "bc", "cd", "da")),
    "bow_ties": Pattern(("ab", "bc", "ca", "ad", "de", "ea")),
}


class Embedded:
    """Deltic in this process, through its public API; the view is called `found`."""

    def __init__(self, pattern: Pattern) -> None:
        kernels.warm_up()
        self.pattern = pattern
        self.session = deltic.Session()
        self.session.sql(f"{TABLE}; CREATE MATERIALIZED VIEW found AS {pattern.sql()}")
        self.before = self.session.view("found").changes()  # how many there are without edges: 0

    def prepare(self, edges: Change) -> dict[str, pa.Table]:
        return {"edges": arrow(edges, COLUMNS)}

    def tick(self, prepared: dict[str, pa.Table]) -> pa.Table:
        self.session.apply(prepared)
        return self.session.view("found").changes()

    def answer(self, read: pa.Table) -> Answer:
        changes, self.before = pa.concat_tables([self.before, read]), self.before[:0]
        columns = [np.asarray(changes[name].combine_chunks()).astype(np.int64) for name in (*self.pattern.names, "_weight")]
        return Answer(columns[:-1], columns[-1])


def engine(pattern: str) -> Embedded:
    return Embedded(PATTERNS[pattern])
