"""Random changes and ALTER TABLEs of two tables, run by a session and by DuckDB, with restarts between."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import duckdb

from deltic import Session

TABLES = """
CREATE TABLE t (id BIGINT, a BIGINT, b STRING NOT NULL, PRIMARY KEY (id));
CREATE TABLE u (a BIGINT, c BIGINT);
"""
VIEWS = {
    "sums": "SELECT b, sum(a) AS a, count(*) AS n FROM t WHERE id <> 3 GROUP BY b",
    "joined": "SELECT t.id, t.b, u.c FROM t JOIN u ON t.a = u.a",
    "least": "SELECT a, min(c) AS c FROM u GROUP BY a",
    "first": "SELECT id, a FROM t ORDER BY a NULLS LAST, id LIMIT 3",
    "distinct_a": "SELECT DISTINCT a FROM u",
    "unmatched": "SELECT id FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL) AND a IS NOT NULL",
}


def create(session: Session) -> None:
    session.sql(TABLES + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items()))


def arrangements(session: Session) -> set[str]:
    return set(session._definitions.circuit.arrangements)


STEPS = 14
TYPES = {"BIGINT": ("NULL", "5", "-1"), "STRING": ("NULL", "'q'"), "DATE": ("NULL", "DATE '2024-02-29'"), "DOUBLE": ("1.5e0",)}


class Replay:
    """A session and DuckDB, which run the same statements."""

    def __init__(self, random: Random, state: Path | None, shards: int | None, spark: Any = None) -> None:
        self.random, self.options = random, {"state": state, "shards": shards, "spark": spark}
        self.peer = duckdb.connect()
        self.columns = {"t": ["id", "a", "b"], "u": ["a", "c"]}
        self.types: dict[str, str] = {}
        self.ids, self.names = 0, 0
        self.peer.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b VARCHAR); CREATE TABLE u (a BIGINT, c BIGINT)")
        self.session = Session(**self.options)
        self.script = TABLES
        create(self.session)

    def run(self, statement: str) -> None:
        self.session.sql(statement)
        self.peer.execute(statement.replace(" STRING", " VARCHAR"))

    def value(self, column: str) -> str:
        if column in ("a", "c"):
            return self.random.choice(("NULL", *"01234"))
        return self.random.choice(("'x'", "'y'")) if column == "b" else self.random.choice(TYPES[self.types[column]])

    def change(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            table = self.random.choice("tu")
            values = [str(self.ids) if column == "id" else self.value(column) for column in self.columns[table]]
            self.ids += table == "t"
            self.run(f"INSERT INTO {table} VALUES ({', '.join(values)})")
        low = self.random.randint(0, 20)
        self.run(f"DELETE FROM t WHERE id BETWEEN {low} AND {low + 1}")
        if self.random.random() < 0.5:
            self.run(f"DELETE FROM u WHERE c = {self.random.randint(0, 4)}")

    def alter(self) -> None:
        table = self.random.choice("tu")
        own = [column for column in self.columns[table] if column in self.types]
        if not own or self.random.random() < 0.5:
            name, self.names = f"k{self.names}", self.names + 1
            kind = self.random.choice(list(TYPES))
            self.run(f"ALTER TABLE {table} ADD COLUMN {name} {kind} DEFAULT {self.random.choice(TYPES[kind])}")
            self.types[name] = kind
            self.columns[table].append(name)
            return
        column = self.random.choice(own)
        place = self.columns[table].index(column)
        if self.random.random() < 0.5:
            self.run(f"ALTER TABLE {table} DROP COLUMN {column}")
            del self.columns[table][place]
            return
        new, self.names = f"k{self.names}", self.names + 1
        self.run(f"ALTER TABLE {table} RENAME COLUMN {column} TO {new}")
        self.columns[table][place], self.types[new] = new, self.types[column]

    def restart(self) -> None:
        if self.options["state"] is None:
            return
        tables = {name: self.session.table(name) for name in "tu"}
        self.session.close()
        self.session = Session(**self.options)
        parts = []
        for name, table in tables.items():
            columns = ", ".join(f"{f.name} {f.type.sql}{'' if f.nullable else ' NOT NULL'}" for f in table.schema)
            parts.append(f"CREATE TABLE {name} ({columns}{', PRIMARY KEY (id)' if name == 't' else ''});")
        before = set(self.session._runtime.committed.program.arrangements)
        self.session.sql("".join(parts) + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items()))
        assert arrangements(self.session) == before, "nothing is filled again"

    def check(self) -> None:
        for name, query in {**VIEWS, "t": "SELECT * FROM t", "u": "SELECT * FROM u"}.items():
            found = [tuple(row.values()) for row in (self.session.view(name).rows() if name in VIEWS else self.rows(query))]
            assert sorted(found, key=repr) == sorted(self.peer.execute(query).fetchall(), key=repr), (name, self.columns)

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.session.query(query).rows()


def replay(seed: int, state: Path | None, shards: int | None, spark: Any = None, steps: int = STEPS) -> None:
    random = Random(seed)
    one = Replay(random, state, shards, spark)
    with one.peer:
        for _ in range(steps):
            random.choice((one.change, one.change, one.alter, one.restart))()
            one.check()
        one.session.close()
