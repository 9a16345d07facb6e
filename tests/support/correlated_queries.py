"""Test support: random queries with subqueries in any place, correlated at any depth, over three tables t, u and v of INTs a and b.

The text is the same for Spark, DuckDB and Deltic. A condition is TRUE in all of them on the same rows; where DuckDB has NULL for IN, Spark
has FALSE, so values are selected through coalesce.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from deltic.plan.nodes import Plan
from deltic.schema import INT, Field, Schema, TableSchema

TABLES = {name: TableSchema(name, Schema((Field("a", INT), Field("b", INT)))) for name in "tuv"}
Row = tuple[int | None, int | None]
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class Catalog:
    """The three tables."""

    def relation(self, name: str) -> TableSchema | Plan | None:
        return TABLES.get(name.lower())

    def function(self, name: str) -> None:
        return None

    def functions(self) -> dict[str, object]:
        return {}

    def names(self) -> tuple[str, ...]:
        return tuple(TABLES)


def random_rows(rng: Random) -> dict[str, dict[Row, int]]:
    """A content of the tables, with NULLs, duplicates and empty tables."""
    values = (None, 0, 1, 1, 2, 3)
    return {name: dict(Counter((rng.choice(values), rng.choice(values)) for _ in range(rng.choice((0, 1, 3, 6, 9))))) for name in TABLES}


@dataclass
class Draw:
    """Draws queries. scopes: the aliases in FROM, the innermost query's last. used: the number of aliases so far.

    grouped: of the outermost query its subqueries read the key of its groups and aggregates.
    """

    rng: Random
    used: int = 0
    scopes: list[list[str]] = field(default_factory=list)
    lateral: bool = True
    quantified: bool = True
    grouped: bool = False

    def grouped_query(self) -> str:
        """A query of groups, whose subqueries read aggregates of it."""
        self.grouped, alias = True, self._alias()
        self.scopes.append([alias])
        where = f" WHERE {alias}.b > 0" if self.rng.random() < 0.3 else ""
        having = f" HAVING {self._condition(2)}" if self.rng.random() < 0.7 else ""
        items = f"{alias}.a AS c1, {self._value(2)} AS c2, coalesce({self._condition(1)}, FALSE) AS c3"
        return f"SELECT {items} FROM {self.rng.choice('tuv')} AS {alias}{where} GROUP BY {alias}.a{having}"

    def query(self) -> str:
        """A whole query."""
        shape = self.rng.random()
        alias = self._alias()
        source = f"{self.rng.choice('tuv')} AS {alias}"
        self.scopes.append([alias])
        if self.lateral and shape < 0.2:
            source += self._lateral()
        elif shape < 0.3:
            other = self._alias()
            kind = self.rng.choice(("JOIN", "LEFT JOIN"))
            source += f" {kind} {self.rng.choice('tuv')} AS {other} ON {alias}.a = {other}.b"
            self.scopes[-1].append(other)
        where = f" WHERE {self._condition(2)}" if self.rng.random() < 0.7 else ""
        if shape > 0.8:
            having = f" HAVING {self._grouped_condition(alias)}" if self.rng.random() < 0.7 else ""
            text = f"SELECT {alias}.a AS c1, count(*) AS c2, {self._of_group(alias)} AS c3 FROM {source}{where} GROUP BY {alias}.a{having}"
        else:
            items = [f"{alias}.a", *(f"{one}.b" for one in self.scopes[-1]), self._value(2)]
            if self.rng.random() < 0.3:
                items.append(f"coalesce({self._condition(1)}, FALSE)")
            text = f"SELECT {', '.join(f'{item} AS c{i}' for i, item in enumerate(items))} FROM {source}{where}"
        self.scopes.pop()
        return text

    def _alias(self) -> str:
        self.used += 1
        return f"q{self.used}"

    def _lateral(self) -> str:
        alias = self._alias()
        rows = self._rows(1, "c")
        self.scopes[-1].append(alias)
        return (
            f" CROSS JOIN LATERAL ({rows}) AS {alias}(b)"
            if self.rng.random() < 0.6
            else f" LEFT JOIN LATERAL ({rows}) AS {alias}(b) ON TRUE"
        )

    def _column(self) -> str:
        """A column of the query, or of one around it; the columns of a LATERAL are called b."""
        outermost = len(self.scopes) == 1 or self.rng.random() < 0.6
        scope = self.scopes[-1] if outermost else self.rng.choice(self.scopes[:-1])
        if self.grouped and scope is self.scopes[0]:
            return self.rng.choice((f"{scope[0]}.a", f"max({scope[0]}.b)", f"sum({scope[0]}.b + 1)", f"count({scope[0]}.b)"))
        return f"{self.rng.choice(scope)}.b" if self.rng.random() < 0.5 else f"{scope[0]}.a"

    def _operand(self) -> str:
        shape = self.rng.random()
        return str(self.rng.randrange(4)) if shape < 0.15 else f"{self._column()} + 1" if shape < 0.25 else self._column()

    def _value(self, depth: int) -> str:
        shape = self.rng.random()
        if depth == 0 or shape < 0.2:
            return self._operand()
        if shape < 0.3:
            return f"CASE WHEN {self._condition(depth - 1)} THEN {self._value(depth - 1)} ELSE {self._operand()} END"
        if shape < 0.4:
            return f"coalesce({self._scalar(depth - 1)}, 7)"
        return self._scalar(depth - 1)

    def _condition(self, depth: int) -> str:
        shape = self.rng.random()
        if depth == 0 or shape < 0.25:
            return self._comparison()
        if shape < 0.4:
            return f"({self._condition(depth - 1)} AND {self._condition(depth - 1)})"
        if shape < 0.55:
            return f"({self._condition(depth - 1)} OR {self._condition(depth - 1)})"
        if shape < 0.62:
            return f"NOT {self._condition(depth - 1)}"
        if shape < 0.75:
            return f"{self._operand()} {self.rng.choice(('=', '<', '>=', '<>'))} {self._scalar(depth - 1)}"
        if shape < 0.8 and self.quantified:
            return f"{self._operand()} {self.rng.choice(_COMPARISONS)} {self.rng.choice(('ANY', 'ALL'))} ({self._rows(depth - 1, 'c')})"
        if shape < 0.87:
            return f"{'NOT ' * (self.rng.random() < 0.3)}EXISTS ({self._rows(depth - 1, 'c')})"
        return f"{self._operand()} {'NOT ' * (self.rng.random() < 0.4)}IN ({self._rows(depth - 1, 'c')})"

    def _comparison(self) -> str:
        shape = self.rng.random()
        if shape < 0.1:
            return f"{self._column()} IS {'NOT ' * (self.rng.random() < 0.5)}NULL"
        return f"{self._operand()} {self.rng.choice(('=', '=', '=', '<', '>', '<>', '<='))} {self._operand()}"

    def _source(self, depth: int) -> tuple[str, list[str]]:
        """FROM, and its aliases."""
        alias = self._alias()
        shape = self.rng.random()
        if depth and shape < 0.15:
            return f"({self._rows(depth - 1, 'b', 'a')}) AS {alias}", [alias]
        if shape < 0.35:
            other = self._alias()
            kind = self.rng.choice(("JOIN", "LEFT JOIN", "CROSS JOIN"))
            condition = "" if kind == "CROSS JOIN" else f" ON {alias}.a = {other}.b"
            return f"{self.rng.choice('tuv')} AS {alias} {kind} {self.rng.choice('tuv')} AS {other}{condition}", [alias, other]
        return f"{self.rng.choice('tuv')} AS {alias}", [alias]

    def _scalar(self, depth: int) -> str:
        """A query of at most one row and one column."""
        source, aliases = self._source(depth)
        self.scopes.append(aliases)
        where = f" WHERE {self._condition(depth)}" if self.rng.random() < 0.85 else ""
        shape = self.rng.random()
        if shape < 0.75:
            call = self.rng.choice(
                (f"max({self._column_of(aliases)})", f"sum({self._column_of(aliases)})", "count(*)", f"count({aliases[0]}.a)")
            )
            value = f"{call} + 1" if self.rng.random() < 0.2 else call
            having = " HAVING count(*) > 1" if self.rng.random() < 0.1 else ""
            text = f"(SELECT {value} FROM {source}{where}{having})"
        else:
            value = self._column_of(aliases)
            text = f"(SELECT {value} AS c FROM {source}{where} ORDER BY c NULLS FIRST LIMIT 1)"
        self.scopes.pop()
        return text

    def _column_of(self, aliases: Sequence[str]) -> str:
        return f"{self.rng.choice(aliases)}.b"

    def _rows(self, depth: int, *names: str) -> str:
        """A query of rows with columns of these names."""
        shape = self.rng.random()
        if shape < 0.15:
            operation = self.rng.choice(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
            return f"{self._select(depth, names)} {operation} {self._select(depth, names)}"
        text = self._select(depth, names)
        if shape < 0.3:
            terms = ", ".join(f"{name} NULLS FIRST" for name in names)
            return f"{text} ORDER BY {terms} LIMIT {self.rng.randrange(1, 3)}"
        return text

    def _select(self, depth: int, names: Sequence[str]) -> str:
        source, aliases = self._source(depth)
        self.scopes.append(aliases)
        where = f" WHERE {self._condition(depth)}" if self.rng.random() < 0.85 else ""
        shape = self.rng.random()
        if shape < 0.2:
            values = [f"{aliases[0]}.a", *["count(*)"] * (len(names) - 1)]
            tail = f" GROUP BY {aliases[0]}.a" + (" HAVING count(*) > 1" if self.rng.random() < 0.3 else "")
        elif shape < 0.3 and len(names) == 1:
            values, tail = [f"max({aliases[0]}.b)"], ""
        else:
            values, tail = [self._column_of(aliases) if self.rng.random() < 0.8 else self._operand() for _ in names], ""
        distinct = "DISTINCT " * (self.rng.random() < 0.15)
        items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        text = f"SELECT {distinct}{items} FROM {source}{where}{tail}"
        self.scopes.pop()
        return text

    def _grouped_condition(self, alias: str) -> str:
        """A condition of HAVING."""
        key, operand = f"{alias}.a", self.rng.choice((f"{alias}.a", "count(*)", f"sum({alias}.b)"))
        other = self._alias()
        name = self.rng.choice("tuv")
        return self.rng.choice(
            (
                f"{operand} > (SELECT max({other}.b) FROM {name} AS {other} WHERE {other}.a = {key})",
                f"(EXISTS (SELECT 1 FROM {name} AS {other} WHERE {other}.b > {key}) OR count(*) > 2)",
                f"{operand} NOT IN (SELECT {other}.b FROM {name} AS {other} WHERE {other}.a <> {key})",
                f"{operand} IN (SELECT {other}.a FROM {name} AS {other})",
            )
        )

    def _of_group(self, alias: str) -> str:
        """A value of SELECT with GROUP BY."""
        other, name = self._alias(), self.rng.choice("tuv")
        return self.rng.choice(
            (
                f"(SELECT count(*) FROM {name} AS {other} WHERE {other}.a = {alias}.a)",
                f"(SELECT max({other}.b) FROM {name} AS {other} WHERE {other}.b < {alias}.a)",
                f"sum({alias}.b) + (SELECT count(*) FROM {name} AS {other})",
                f"max((SELECT count(*) FROM {name} AS {other} WHERE {other}.b = {alias}.b))",
            )
        )


def random_query(rng: Random, *, lateral: bool = True) -> str:
    """A query."""
    return Draw(rng, lateral=lateral).query()


def random_grouped_query(rng: Random) -> str:
    """A query of groups with subqueries that read aggregates of it."""
    return Draw(rng).grouped_query()
