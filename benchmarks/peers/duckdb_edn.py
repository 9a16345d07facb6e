"""DuckDB: datoms kept up to date from Arrow in a table for each attribute, over which ten queries are run again after every tick."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import edn, social
from benchmarks.checks import Change
from benchmarks.engine import Answer, arrow


class Recompute:
    def __init__(self) -> None:
        self.connection = duckdb.connect()
        for name, attribute in social.ATTRIBUTES.items():
            kind = "VARCHAR" if attribute.kind == "string" else "BIGINT"
            self.connection.execute(f"CREATE TABLE {social.table_name(name)} (e BIGINT NOT NULL, v {kind} NOT NULL)")

    def prepare(self, *changes: Change) -> dict[str, pa.Table]:
        named = zip(social.ATTRIBUTES.items(), changes, strict=True)
        return {name: _datoms(attribute, change) for (name, attribute), change in named if len(change[0])}

    def tick(self, prepared: dict[str, pa.Table]) -> dict[str, pa.Table]:
        self.connection.execute("BEGIN")
        for name, change in prepared.items():
            self.connection.register("changes", change)
            self.connection.execute(f"DELETE FROM {social.table_name(name)} WHERE (e, v) IN (SELECT (e, v) FROM changes WHERE _weight < 0)")
            self.connection.execute(f"INSERT INTO {social.table_name(name)} SELECT e, v FROM changes WHERE _weight > 0")
        self.connection.execute("COMMIT")
        return {name: self.connection.sql(query.sql).to_arrow_table() for name, query in social.QUERIES.items()}

    def answer(self, read: dict[str, pa.Table]) -> Answer:
        whole = {name: [*edn.columns_of(table), np.ones(len(table), np.int64)] for name, table in read.items()}
        return Answer(edn.social_answer(whole).columns, None)


def _datoms(attribute: social.Attribute, change: Change) -> pa.Table:
    table = arrow(change, ["e", "v"])
    if attribute.kind != "string":
        return table
    return table.set_column(1, "v", pa.array([f"p{one}" for one in change[2].tolist()]))


def engine() -> Recompute:
    return Recompute()
