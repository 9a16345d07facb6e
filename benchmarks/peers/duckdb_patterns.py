"""DuckDB: edges kept up to date from Arrow, the pattern's query run again after every tick."""

from __future__ import annotations

import threading

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.checks import Change
from benchmarks.engine import Absent, Answer, arrow
from benchmarks.patterns import COLUMNS, PATTERNS, TABLE

LIMIT_S = 60.0
APPLY = """
    DELETE FROM edges WHERE (src, dst) IN (SELECT (src, dst) FROM changes WHERE _weight < 0);
    INSERT INTO edges SELECT src, dst FROM changes WHERE _weight > 0;
"""


class Recompute:
    def __init__(self, query: str) -> None:
        self.query = query
        self.connection = duckdb.connect()
        self.connection.execute(TABLE)

    def prepare(self, edges: Change) -> pa.Table:
        return arrow(edges, COLUMNS)

    def tick(self, prepared: pa.Table) -> pa.Table:
        self.connection.register("changes", prepared)
        self.connection.execute(f"BEGIN; {APPLY} COMMIT;")
        limit = threading.Timer(LIMIT_S, self.connection.interrupt)
        limit.start()
        try:
            return self.connection.sql(self.query).to_arrow_table()
        except duckdb.InterruptException as error:
            raise Absent(f"the query does not end within {LIMIT_S:.0f} s") from error
        finally:
            limit.cancel()

    def answer(self, read: pa.Table) -> Answer:
        return Answer([np.asarray(column) for column in read.columns], None)


def engine(pattern: str) -> Recompute:
    return Recompute(PATTERNS[pattern].sql())
