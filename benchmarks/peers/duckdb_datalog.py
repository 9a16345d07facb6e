"""DuckDB: facts kept up to date from Arrow, a linear program as a recursive query that is run again after every tick."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.checks import Change
from benchmarks.engine import Absent, Answer, arrow

QUERIES = {
    "same_generation": """
        WITH RECURSIVE same (x, y) AS (
            SELECT a.c0, b.c0 FROM parent a JOIN parent b ON a.c1 = b.c1 AND a.c0 <> b.c0
            UNION
            SELECT a.c0, b.c0 FROM same s JOIN parent a ON a.c1 = s.x JOIN parent b ON b.c1 = s.y AND a.c0 <> b.c0
        )
        SELECT x, y FROM same
    """,
    "dataflow": """
        WITH RECURSIVE found (x, y) AS (
            SELECT c0, c1 FROM nulledge UNION SELECT f.x, a.c1 FROM found f JOIN arc a ON f.y = a.c0
        )
        SELECT x, y FROM found
    """,
}


class Recompute:
    def __init__(self, case: str, widths: dict[str, int]) -> None:
        if case not in QUERIES:
            raise Absent("a relation that is read twice in a recursive rule is not a recursive query")
        self.query, self.widths = QUERIES[case], widths
        self.connection = duckdb.connect()
        for name, width in widths.items():
            self.connection.execute(f"CREATE TABLE {name} ({', '.join(f'c{i} BIGINT NOT NULL' for i in range(width))})")

    def prepare(self, *changes: Change) -> dict[str, pa.Table]:
        return {name: arrow(change, _columns(width)) for (name, width), change in zip(self.widths.items(), changes, strict=True)}

    def tick(self, prepared: dict[str, pa.Table]) -> pa.Table:
        self.connection.execute("BEGIN")
        for name, change in prepared.items():
            columns = ", ".join(_columns(self.widths[name]))
            self.connection.register("changes", change)
            self.connection.execute(f"DELETE FROM {name} WHERE ({columns}) IN (SELECT ({columns}) FROM changes WHERE _weight < 0)")
            self.connection.execute(f"INSERT INTO {name} SELECT {columns} FROM changes WHERE _weight > 0")
        self.connection.execute("COMMIT")
        return self.connection.sql(self.query).to_arrow_table()

    def answer(self, read: pa.Table) -> Answer:
        return Answer([np.asarray(column) for column in read.columns], None)


def _columns(width: int) -> list[str]:
    return [f"c{i}" for i in range(width)]


def engine(case: str, widths: dict[str, int]) -> Recompute:
    return Recompute(case, widths)
