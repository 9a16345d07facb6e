"""Functions that make rows in SQL: their plans, and their meaning against DuckDB's unnest on random data."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pytest

from deltic.errors import EvaluationError
from deltic.frontends.sql import bind_query
from deltic.frontends.statements import DefinedFunction
from deltic.optimizer import optimize
from deltic.plan.columns import agrees
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.schema import BIGINT, STRING, Field, Schema, TableSchema
from goldens import Goldens
from linear_queries import linear_queries
from sql_data import ROWS, bound, weighted

SHOWN = {
    "a select item": "SELECT id, explode(array(k, id)) AS n FROM t WHERE k > 0",
    "a lateral view": "SELECT id, p, part FROM t LATERAL VIEW OUTER posexplode(split(s, ',')) v AS p, part WHERE id > 3 AND part > 'a'",
    "counted": "SELECT k, count(*) FROM t LATERAL VIEW explode(sequence(1, k)) v GROUP BY k",
    "a series": "SELECT k, n FROM w, LATERAL generate_series(k, z, 2) AS g(n) WHERE z > 0",
    "a range": "SELECT t.id FROM range(1, 3) r JOIN t ON t.id = r.id",
    "rows away": "SELECT k, count(*) FROM (SELECT k FROM w UNION ALL SELECT k FROM e LATERAL VIEW repeat_row(-1)) r GROUP BY k",
    "elements for a time": "SELECT id, w FROM t LATERAL VIEW explode(split(s, ',')) e AS w WHERE ts <= now() AND id > 4 AND w <> 'a'",
    "what can fail stays above": "SELECT t.id FROM t JOIN u ON t.k = u.k WHERE t.id / u.id > 3 AND ts < now() AND s > now()",
    "the last week": "SELECT id FROM t JOIN u USING (id) WHERE ts >= now() - INTERVAL 7 DAYS AND d < now() AND y > 1",
}
DUCK = {
    "SELECT a, unnest(generate_series(a, b)) AS n FROM r": "SELECT a, n FROM r LATERAL VIEW generate_series(a, b) g AS n",
    "SELECT a, unnest(generate_series(b, a, -2)) AS n FROM r": "SELECT a, explode(generate_series(b, a, -2L)) FROM r",
    "SELECT a, unnest([a, b, 7]) AS n FROM r": "SELECT a, explode(array(a, b, 7)) FROM r",
    "SELECT n, count(*) FROM (SELECT unnest([a, b]) AS n FROM r) GROUP BY n": "SELECT n, count(*) FROM r, LATERAL "
    "explode(array(a, b)) v(n) GROUP BY n",
    "SELECT b, unnest(string_split(s, ', ')) AS n FROM r": "SELECT b, explode(split(s, ', ')) FROM r",
    "SELECT a FROM (SELECT a, unnest(generate_series(1, b)) FROM r)": "SELECT a FROM r LATERAL VIEW repeat_row(greatest(b, 0))",
    "SELECT a, b, s FROM r EXCEPT ALL SELECT a, b, s FROM r WHERE a < 0": "SELECT a, b, s FROM r UNION ALL SELECT a, b, s FROM r "
    "LATERAL VIEW repeat_row(-1) WHERE a < 0",
    "SELECT d.a, m FROM (SELECT a, unnest(generate_series(0, 3)) AS n FROM r) d, unnest(generate_series(n, 2)) AS _(m)": "SELECT a, m "
    "FROM r LATERAL VIEW generate_series(0, 3) g AS n LATERAL VIEW generate_series(n, 2) g2 AS m",
}


class Lists:
    """A catalog of one table."""

    def relation(self, name: str) -> TableSchema | None:
        fields = (Field("a", BIGINT), Field("b", BIGINT), Field("s", STRING))
        return TableSchema("r", Schema(fields)) if name.lower() == "r" else None

    def names(self) -> list[str]:
        return ["r"]

    def functions(self) -> dict[str, DefinedFunction]:
        return {}


@pytest.mark.parametrize("name", SHOWN)
def test_plans(name: str, goldens: Goldens) -> None:
    plan = bound(SHOWN[name])
    goldens.check(name, f"{show(plan)}\n-->\n{show(optimize(plan))}")


def test_goldens_are_those_of_the_queries(goldens: Goldens) -> None:
    goldens.check_names(list(SHOWN))


@pytest.mark.parametrize("sql", linear_queries())
def test_optimized_plans_mean_the_same(sql: str) -> None:
    plan = bound(sql)
    assert agrees(plan) and agrees(optimize(plan))
    tables = {name: weighted(rows) for name, rows in ROWS.items()}
    assert evaluate(optimize(plan), tables) == evaluate(plan, tables)


@pytest.mark.parametrize("duck", DUCK)
def test_duckdb_agrees_on_random_data(duck: str) -> None:
    plan, rng = bind_query(DUCK[duck], "test", Lists()), Random(duck)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE r (a BIGINT, b BIGINT, s VARCHAR)")
        for _ in range(12):
            rows = [_row(rng) for _ in range(rng.randint(1, 9))]
            database.execute("DELETE FROM r")
            database.executemany("INSERT INTO r VALUES (?, ?, ?)", rows)
            wanted = Relation((row, 1) for row in database.execute(duck).fetchall())
            assert evaluate(plan, {"r": Relation((row, 1) for row in rows)}) == wanted


def _row(rng: Random) -> tuple[Any, ...]:
    return rng.choice((None, *range(-2, 5))), rng.choice((None, *range(-3, 4))), rng.choice((None, "", "x", "x, y", ", ", "a,b, c, "))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT explode(sequence(3, id, 1)) FROM t", "a sequence from 3 to 1 by 1 never ends"),
        ("SELECT explode(sequence(1, id, 0)) FROM t", "from 1 to 2 by 0"),
        ("SELECT k FROM w LATERAL VIEW generate_series(1, 2, k - k)", "the step of generate_series is 0"),
        ("SELECT explode(sequence(0, 20000000 * k)) FROM t", "there are more than 10,000,000 elements"),
        ("SELECT k FROM w LATERAL VIEW repeat_row(-1)", "would have the weight -"),
    ],
)
def test_errors_on_rows(sql: str, message: str) -> None:
    tables = {name: weighted(rows) for name, rows in ROWS.items()}
    with pytest.raises(EvaluationError, match=message) as raised:
        evaluate(bound(sql), tables)
    assert raised.value.span is not None
