"""Test support: random queries of groups that are joined by their keys with some rows of another table, correlated and derived.

`items` has the rows that are grouped, `parts` the keys, `more` further columns of them. The text is the same for DuckDB and Deltic.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation
from deltic.schema import BIGINT, DOUBLE, STRING, Field, Schema, TableSchema, Type

NUMBERS = (None, 0, 1, 1, 2, 3, 4)
VALUES: dict[Type, tuple[object, ...]] = {
    BIGINT: NUMBERS,
    DOUBLE: (None, 0.0, -0.0, 1.5, 1.5, float("nan"), 2.0),
    STRING: (None, "", "a", "a", "b", "B"),
}
AGGREGATES = ("count(*)", "sum({0}v)", "avg({0}v)", "max({0}v)", "min({0}w)", "count(DISTINCT {0}v)", "count({0}w) FILTER (WHERE {0}v > 1)")
COMPARISONS = ("<", "<=", "=", "<>", ">")


def schemas(key: Type, *, numbered: bool = False) -> dict[str, TableSchema]:
    """The tables, with keys of this type. numbered: whether the items of a part are, which is their primary key."""
    columns = Field("k", key, not numbered), Field("g", BIGINT), Field("v", BIGINT), Field("w", BIGINT), Field("n", BIGINT, False)
    items = TableSchema("items", Schema(columns), (0, 4) if numbered else ())
    parts = Schema((Field("id", key, False), Field("f", BIGINT), Field("h", BIGINT)))
    more = Schema((Field("id", key), Field("c", BIGINT), Field("g", BIGINT)))
    return {"items": items, "parts": TableSchema("parts", parts, (0,)), "more": TableSchema("more", more)}


@dataclass
class Catalog:
    """The three tables."""

    tables: dict[str, TableSchema]

    def relation(self, name: str) -> TableSchema | Plan | None:
        return self.tables.get(name.lower())

    def function(self, name: str) -> None:
        return None

    def functions(self) -> dict[str, object]:
        return {}

    def names(self) -> tuple[str, ...]:
        return tuple(self.tables)


def random_contents(rng: Random, key: Type, *, numbered: bool = False) -> dict[str, Relation]:
    """Rows of all tables, with NULL keys, duplicates, and keys that one table has."""
    values = VALUES[key]

    def drawn() -> int | None:
        return rng.choice(NUMBERS)

    items = [(rng.choice(values), drawn(), drawn(), drawn(), i if numbered else 0) for i in range(rng.choice((0, 3, 8, 16)))]
    identified = {str(id): (id, drawn(), drawn()) for id in values if id is not None and str(id) != "-0.0"}
    more = [(rng.choice(values), drawn(), drawn()) for _ in range(rng.choice((0, 3, 8)))]
    return {
        "items": Relation(Counter(item for item in items if item[0] is not None or not numbered).items()),
        "parts": Relation((row, 1) for row in identified.values() if rng.random() < 0.8),
        "more": Relation(Counter(more).items()),
    }


def random_group_query(rng: Random) -> str:
    """A query of columns c0, c1, …"""
    few = rng.choice(("p.f = 1", "p.f = 1", "p.f = 1 AND p.h > 1", "p.id IS NOT NULL", "p.f > 0 AND p.f < 3"))
    shape = rng.choice((correlated, correlated, derived, lateral, existing, of_groups))
    return shape(rng, few)


def value(rng: Random, alias: str = "") -> str:
    return rng.choice(AGGREGATES).format(alias)


def correlated(rng: Random, few: str) -> str:
    """A comparison with an aggregate of the item's part."""
    more = rng.random() < 0.3
    inner = "".join(f" AND {part}" for part in ("j.g = i.g", "j.v > 0", "j.w IS NOT NULL") if rng.random() < 0.2)
    scalar = f"(SELECT {value(rng, 'j.')} FROM items AS j WHERE j.k = {rng.choice(('i.k', 'p.id'))}{inner})"
    tables = ["items AS i", "parts AS p", *(["more AS m"] if more else [])]
    rng.shuffle(tables)
    where = f"i.k = p.id AND {few}" + (" AND m.id = p.id" if more else "")
    columns = f"i.k AS c0, i.v AS c1, {'m.c' if more else 'i.g'} AS c2"
    if rng.random() < 0.3:
        return f"SELECT {columns}, {scalar} AS c3 FROM {', '.join(tables)} WHERE {where}"
    return f"SELECT {columns} FROM {', '.join(tables)} WHERE {where} AND i.{rng.choice('vw')} {rng.choice(COMPARISONS)} {scalar}"


def derived(rng: Random, few: str) -> str:
    """Groups in FROM, beside the items that they are of."""
    keys, second = ("k, g", " AND i.g = q.g") if rng.random() < 0.4 else ("k", "")
    having = f" HAVING {value(rng)} > 1" if rng.random() < 0.3 else ""
    rows = rng.choice(("items", "(SELECT k, g, v, w FROM items WHERE v > 0) AS r", "(SELECT DISTINCT k, g, v, w FROM items) AS r"))
    groups = f"(SELECT {keys}, {value(rng)} AS n, {value(rng)} AS o FROM {rows} GROUP BY {keys}{having}) AS q"
    kind = rng.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"))
    rest = f" JOIN items AS i ON i.k = {rng.choice(('p.id', 'q.k'))}{second}"
    return f"SELECT p.id AS c0, q.n AS c1, q.o AS c2, i.v AS c3, i.w AS c4 FROM parts AS p {kind} {groups} ON q.k = p.id{rest} WHERE {few}"


def lateral(rng: Random, few: str) -> str:
    groups = f"LATERAL (SELECT {value(rng, 'j.')} AS n FROM items AS j WHERE j.k = p.id) AS q"
    return f"SELECT p.id AS c0, q.n AS c1, i.v AS c2, i.w AS c3 FROM parts AS p JOIN items AS i ON i.k = p.id, {groups} WHERE {few}"


def existing(rng: Random, few: str) -> str:
    """Parts with groups that have, or lack, something."""
    groups = f"(SELECT j.k FROM items AS j GROUP BY j.k HAVING {value(rng, 'j.')} > 1)"
    condition = rng.choice((f"p.id IN {groups}", f"EXISTS (SELECT 1 FROM {groups} AS q WHERE q.k = p.id)"))
    condition = f"NOT {condition}" if rng.random() < 0.3 else condition
    return f"SELECT p.id AS c0, i.v AS c1, i.w AS c2 FROM parts AS p JOIN items AS i ON i.k = p.id WHERE {few} AND {condition}"


def of_groups(rng: Random, few: str) -> str:
    """Groups of groups, as in TPC-DS's query 1."""
    totals = f"WITH totals AS (SELECT k, g, {value(rng)} AS n FROM items GROUP BY k, g) "
    average = f"(SELECT avg(n) FROM totals AS u WHERE u.k = t.k{' AND u.n > 0' if rng.random() < 0.2 else ''})"
    condition = f"t.k = p.id AND {few} AND t.n {rng.choice(COMPARISONS)} {average}"
    return f"{totals}SELECT t.k AS c0, t.g AS c1, t.n AS c2 FROM totals AS t, parts AS p WHERE {condition}"
