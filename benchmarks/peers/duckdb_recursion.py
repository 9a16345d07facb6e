"""DuckDB: edges kept up to date from Arrow, the recursive query run again after every tick."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.checks import Change
from benchmarks.engine import Answer, arrow

APPLY = """
    DELETE FROM edges WHERE (src, dst) IN (SELECT (src, dst) FROM changes WHERE _weight < 0);
    INSERT INTO edges SELECT src, dst FROM changes WHERE _weight > 0;
"""
QUERIES = {
    "closure": """
        WITH RECURSIVE paths AS (SELECT src, dst FROM edges UNION SELECT p.src, e.dst FROM paths p JOIN edges e ON p.dst = e.src)
        SELECT src, dst FROM paths
    """,
    "reachability": """
        WITH RECURSIVE reached (node) AS (SELECT $root::BIGINT UNION SELECT e.dst FROM reached r JOIN edges e ON r.node = e.src)
        SELECT node FROM reached
    """,
}


class Recompute:
    def __init__(self, view: str, root: int) -> None:
        self.query = QUERIES[view].replace("$root", str(root))
        self.connection = duckdb.connect()
        self.connection.execute("CREATE TABLE edges (src BIGINT NOT NULL, dst BIGINT NOT NULL)")

    def prepare(self, edges: Change) -> pa.Table:
        return arrow(edges, ["src", "dst"])

    def tick(self, prepared: pa.Table) -> pa.Table:
        self.connection.register("changes", prepared)
        self.connection.execute(f"BEGIN; {APPLY} COMMIT;")
        return self.connection.sql(self.query).to_arrow_table()

    def answer(self, read: pa.Table) -> Answer:
        return Answer([np.asarray(column) for column in read.columns], None)


def engine(view: str, root: int) -> Recompute:
    return Recompute(view, root)
