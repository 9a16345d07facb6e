"""Columns that are one of two values by how a row compares with an aggregate: the rows of the oracle, and what a change costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

import deltic
from correlated_queries import Catalog
from deltic.errors import EvaluationError
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.optimizer.split_cases import MOST
from deltic.plan.nodes import Union
from deltic.plan.walk import nodes
from seeds import rotating
from session_rows import touched_rows
from sessions_of_queries import check, fails_or_rows, nested
from tests.support.parts import slow

MEAN, OF_GROUP = "(SELECT avg(a) FROM u)", "(SELECT max(a) FROM u WHERE u.b = t.b)"
SPLIT = {
    "label": f"SELECT a, b, CASE WHEN a > {MEAN} THEN 'above' ELSE 'below' END AS c FROM t",
    "without else": f"SELECT a, CASE WHEN a >= {MEAN} THEN b END AS c, a AS d FROM t",
    "two columns": """SELECT CASE WHEN a < m THEN a ELSE b END AS c, b + if(a < m, 1, 0) AS d FROM t, (SELECT avg(a) AS m FROM u)""",
    "with errors": f"SELECT CASE WHEN a > {MEAN} THEN a + 1 ELSE b END AS c FROM t",
    "errors of others": f"SELECT CASE WHEN a > {MEAN} THEN b ELSE a + 1 END AS c FROM t",
    "with an alternative": f"SELECT a, CASE WHEN a > {MEAN} OR b = 1 THEN 1 ELSE 0 END AS c FROM t",
    "of a group": f"SELECT a, b, CASE WHEN a > {OF_GROUP} THEN 'above' ELSE 'below' END AS c FROM t",
    "of a group with a default": f"SELECT a, b, CASE WHEN a > coalesce({OF_GROUP}, 1) THEN b ELSE -1 END AS c FROM t",
    "joined": "SELECT t.a, CASE WHEN t.a <= q.m THEN t.b END AS c FROM (SELECT b, avg(a) AS m FROM u GROUP BY b) AS q JOIN t ON t.b = q.b",
    "left joined": """SELECT t.a, CASE WHEN t.a <= q.m THEN 1 ELSE 0 END AS c
        FROM t LEFT JOIN (SELECT b, min(a) AS m FROM u GROUP BY b) AS q ON t.b = q.b""",
    "grouped": f"SELECT CASE WHEN a > {MEAN} THEN 'above' ELSE 'below' END AS c, count(*) AS n, sum(b) AS s FROM t GROUP BY 1",
    "with more": f"SELECT a, CASE WHEN a > {MEAN} AND b = 1 THEN 1 ELSE 0 END AS c FROM t",
    "three labels": f"SELECT a, CASE WHEN a > {MEAN} + 1 THEN 'above' WHEN a < {MEAN} THEN 'below' ELSE 'near' END AS c FROM t",
    "a value": f"SELECT a, b, a > {MEAN} AS c, a <= {MEAN} AND b = 1 AS d FROM t",
    "of a computed group": """SELECT t.a, CASE WHEN t.a > q.m THEN 1 ELSE 0 END AS c
        FROM t LEFT JOIN (SELECT b, avg(a) AS m FROM u GROUP BY b) AS q ON t.b = q.b % 2""",
    "grouped by a computed group": """SELECT CASE WHEN t.a > q.m THEN 1 ELSE t.b END AS c, count(*) AS n, max(t.a) AS a
        FROM (SELECT b, avg(a) AS m FROM u GROUP BY b) AS q JOIN t ON t.b = q.b % 2 GROUP BY 1""",
    "two values": f"SELECT CASE WHEN a > {MEAN} AND b >= (SELECT min(b) FROM u) THEN 2 WHEN b < {MEAN} THEN 1 ELSE 0 END AS c, a FROM t",
    "a row of values": """SELECT a, CASE WHEN a > q.hi THEN 2 WHEN a > q.lo THEN 1 ELSE 0 END AS c
        FROM (SELECT max(a) - 1 AS hi, min(a) AS lo FROM u) AS q, t""",
    "a bound of two values": """SELECT t.a, t.a > 0D + p.lo + q.hi AS c
        FROM (SELECT min(b) AS lo FROM u) AS p, t, (SELECT max(b) AS hi FROM v) AS q""",
    "or": f"SELECT a, b FROM t WHERE a > {MEAN} OR b > (SELECT avg(b) FROM u)",
    "or of ands": f"SELECT b FROM t WHERE (a > {MEAN} AND b <= (SELECT max(a) FROM u)) OR (a < {MEAN} AND b = 1) OR a = 2",
    "counted or": f"SELECT b, count(*) AS n FROM t WHERE a > {MEAN} OR b >= (SELECT avg(b) FROM u) GROUP BY b",
    "with a filter": f"SELECT a, a > {MEAN} AS c FROM t WHERE b > (SELECT min(b) FROM u)",
    "grouped by two": f"SELECT a > {MEAN} AS c, CASE WHEN b > {MEAN} THEN 1 END AS d, count(*) AS n FROM t GROUP BY 1, 2",
    "summed labels": f"SELECT b, sum(CASE WHEN a > {MEAN} THEN 3 WHEN a > (SELECT min(a) FROM u) THEN 1 ELSE 0 END) AS s FROM t GROUP BY b",
    "days": """SELECT a, if(b = 1, DATE'2024-01-02', DATE'2024-01-01') < q.m AS c
        FROM t, (SELECT max(if(b = 1, DATE'2024-01-02', DATE'1960-01-01')) AS m FROM u) AS q""",
    "a window": "SELECT a, CASE WHEN a > avg(a) OVER () THEN 'above' ELSE 'below' END AS c FROM t",
    "a window and a value": f"SELECT a, a < max(a) OVER () AS c, b > {MEAN} AS d FROM t",
    "a value or that of a window": f"SELECT a FROM (SELECT a, b, avg(a) OVER () AS m FROM t) WHERE a > m OR b < {MEAN}",
    "beside a window of a partition": f"SELECT CASE WHEN a > {MEAN} AND b < max(b) OVER (PARTITION BY a) THEN 1 ELSE 0 END AS c, a FROM t",
    "beside a group": f"""SELECT CASE WHEN a > {MEAN} THEN 1 ELSE 0 END AS c, q.m
        FROM t JOIN (SELECT b, max(a) AS m FROM u GROUP BY b) AS q ON t.b = q.b""",
    "a condition of five": f"""SELECT a, CASE WHEN {" AND ".join(f"a + 0D > {i} + m" for i in range(5))} THEN 1 ELSE 0 END AS c
        FROM t, (SELECT avg(a) AS m FROM u) AS q""",
    "grouped with another": f"SELECT b, if(a > {MEAN}, 1, NULL) AS c, max(a) AS n FROM t GROUP BY 1, 2",
}
WHOLE = {
    "both": f"SELECT a, CASE WHEN a > {MEAN} THEN 'above' ELSE 'below' END AS c, {MEAN} AS m FROM t",
    "can fail": "SELECT a, CASE WHEN b = 0 THEN 0 WHEN a + 1 > (SELECT max(a) FROM u) THEN 1 ELSE 2 END AS c FROM t",
    "equal": "SELECT a, CASE WHEN a = (SELECT max(a) FROM u) THEN 1 ELSE 2 END AS c FROM t",
    "summed": f"SELECT if(a > {MEAN}, 1, 0) AS c, sum((SELECT max(b) FROM u)) AS s FROM t GROUP BY 1",
    "a value of a group": f"SELECT a, b, a < {OF_GROUP} AS c, coalesce(a >= {OF_GROUP}, FALSE) AS d FROM t",
    "labels of a computed group": """SELECT t.a, CASE WHEN t.a > q.m THEN 2 WHEN t.a >= q.n THEN 1 ELSE 0 END AS c
        FROM t JOIN (SELECT b, avg(a) AS m, min(a) AS n FROM u GROUP BY b) AS q ON t.b = q.b % 2""",
    "a value of a computed group": """SELECT t.a, t.a > q.m AS c, t.a >= q.n AS d
        FROM t LEFT JOIN (SELECT b, avg(a) AS m, min(a) AS n FROM u GROUP BY b) AS q ON t.b = q.b % 2""",
    "two of a computed group": """SELECT t.a, t.b FROM t JOIN (SELECT b, avg(a) AS m, avg(b) AS n FROM u GROUP BY b) AS q ON t.b = q.b % 2
        WHERE t.a > q.m AND t.b >= q.n""",
    "a window of a partition": "SELECT a, b, a < max(a) OVER (PARTITION BY b) AS c FROM t",
    "one of all rows and one of a group": f"SELECT a, a > {MEAN} AS c, a > {OF_GROUP} AS d FROM t",
    "windows of all rows and of a partition": "SELECT a, b, a > avg(a) OVER () AS c, a < max(a) OVER (PARTITION BY b) AS d FROM t",
    "five thresholds": f"SELECT a, {', '.join(f'a > {i} + m AS c{i}' for i in range(5))} FROM t, (SELECT avg(a) AS m FROM u) AS q",
}
QUERIES = {**SPLIT, **WHOLE}
SEEDS = [(1, 1, 3), (4, 3, 3), *slow(*((seed, shards, 8) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.parametrize(("seed", "shards", "ticks"), SEEDS)
def test_queries_have_the_rows_of_the_oracle(seed: int, shards: int, ticks: int, tmp_path: Path) -> None:
    assert False in check(QUERIES, {name: nested(query) for name, query in QUERIES.items()}, seed, shards, ticks, tmp_path)


@pytest.mark.parametrize("name", QUERIES)
def test_the_rows_are_a_union_where_comparisons_alone_read_the_value(name: str) -> None:
    plan = optimize(bind_query(QUERIES[name], "test", Catalog()))
    assert any(isinstance(node, Union) for node in nodes(plan)) == (name in SPLIT)


WORK = {
    "label": "SELECT id, CASE WHEN x > (SELECT avg(x) FROM t) THEN 'above' ELSE 'below' END AS c FROM t",
    "of a group": "SELECT id, if(x > (SELECT avg(x) FROM t AS o WHERE o.g = t.g), id, -id) AS c FROM t",
    "a value": "SELECT id, x > (SELECT avg(x) FROM t) AS c FROM t",
    "labels": """SELECT id, CASE WHEN x > (SELECT avg(x) * 1.5 FROM t) THEN 'high' WHEN x > (SELECT avg(x) FROM t) THEN 'middle'
        ELSE 'low' END AS c FROM t""",
    "summed labels": """SELECT g, sum(CASE WHEN x > m * 1.5 THEN 2 WHEN x > m THEN 1 ELSE 0 END) AS s
        FROM t, (SELECT avg(x) AS m FROM t) AS q GROUP BY g""",
    "a window": "SELECT id, CASE WHEN x > avg(x) OVER () THEN 'above' ELSE 'below' END AS c FROM t",
    "a window and a value": "SELECT id, x > avg(x) OVER () AS c, x > (SELECT avg(x) + 1 FROM t WHERE g = 1) AS d FROM t",
    "or": "SELECT id FROM t WHERE x > (SELECT avg(x) FROM t) OR id / 2 < (SELECT avg(id) - 2300 FROM t)",
    "below both": "SELECT id FROM t WHERE x < (SELECT avg(x) FROM t) AND x < (SELECT avg(x) + 1 FROM t WHERE g = 1)",
    "an interval": "SELECT id, if(x NOT BETWEEN (SELECT avg(x) / 2 FROM t) AND (SELECT avg(x) FROM t), 1, 0) AS c FROM t",
    "a distance": "SELECT id, if(x - (SELECT avg(x) FROM t) > (SELECT stddev(x) / 9 FROM t), 1, 0) AS c FROM t",
    "beside a filter": """SELECT id, x > (SELECT avg(x) FROM t) AS c FROM t
        WHERE (x > (SELECT avg(x) - 9 FROM t) OR id / 2 < (SELECT avg(id) - 2300 FROM t)) AND id / 3 > (SELECT avg(id) / 99 FROM t)""",
    "above both": "SELECT id FROM t WHERE x > (SELECT avg(x) FROM t) AND x > (SELECT avg(x) + 1 FROM t WHERE g = 1)",
    "grouped": "SELECT g, if(x > (SELECT avg(x) FROM t), 1, 0) AS c, count(*) AS n FROM t GROUP BY 1, 2",
}


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("n", [5_000, *slow(1_000_000)])
def test_a_change_of_the_value_touches_the_rows_that_it_passes(name: str, n: int) -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (id INT NOT NULL, g INT, x BIGINT); CREATE MATERIALIZED VIEW v AS {WORK[name]}")
        session.apply({"t": [{"id": i, "g": i % 4, "x": None if i < 3 else i * n, "_weight": 1} for i in range(n)]})
        for step in range(3):
            session.apply({"t": [{"id": n + step, "g": 1, "x": n * n // 3 + step, "_weight": 1}]})
            assert touched_rows(session) < 1000


FORMS = {"labels": ("CASE WHEN ", " THEN a WHEN ", " THEN b END"), "columns": ("", ", ", ""), "or": ("if(", " OR ", ", 1, 0)")}


@pytest.mark.parametrize("form", FORMS)
def test_each_comparison_adds_as_many_nodes(form: str) -> None:
    """With a part for each combination of answers they would double."""
    begin, between, end = FORMS[form]
    sizes = []
    for count in range(1, MOST + 1):
        comparisons = between.join(f"{'ab'[i % 2]} > (SELECT avg(a) + {i} FROM u)" for i in range(count))
        plan = optimize(bind_query(f"SELECT {begin}{comparisons}{end} FROM t", "test", Catalog()))
        assert any(isinstance(node, Union) for node in nodes(plan))
        sizes.append(sum(1 for _ in nodes(plan)))
    assert all(after - before <= sizes[0] for before, after in pairwise(sizes))


VALUES = {
    "d": ("DOUBLE", (0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"))),
    "e": ("DECIMAL(6, 2)", (Decimal("0.00"), Decimal("1.50"), Decimal("-1.25"))),
    "w": ("DECIMAL(30, 2)", (Decimal("0.00"), Decimal("1" + "0" * 25 + ".00"), Decimal("-1.25"))),
    "i": ("INT", (0, 1, 2, -1)),
    "day": ("DATE", (date(2024, 1, 1), date(2024, 1, 2), date(1960, 5, 5))),
    "at": ("TIMESTAMP_NTZ", (datetime(2024, 1, 1), datetime(2024, 1, 1, 12), datetime(1960, 5, 5))),
    "s": ("STRING", ("a", "B", "b", "")),
    "c": ("STRING COLLATE UTF8_LCASE", ("a", "B", "b", "")),
    "k": ("INT", (0, 1)),
}
DEFINED = "".join(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, (kind, _) in VALUES.items())});" for name in "tu")
TYPED = {
    "doubles": "SELECT d, d > (SELECT max(d) FROM u) AS a, (SELECT min(d) FROM u) >= d AS b, d < (SELECT avg(d) FROM u) AS c FROM t",
    "mixed": "SELECT i, i > (SELECT max(e) FROM u) AS a, e <= (SELECT max(i) FROM u) AS b, w > (SELECT max(d) FROM u) AS c FROM t",
    "wide": "SELECT w, w > (SELECT avg(w) FROM u) AS a, e < (SELECT sum(w) FROM u) AS b FROM t",
    "times": "SELECT at, at > (SELECT max(day) FROM u) AS a, day <= (SELECT min(at) FROM u) AS b FROM t",
    "days": "SELECT at, day, day < (SELECT max(day) FROM u) AS a, day >= (SELECT min(day) FROM u) AS b FROM t",
    "texts": "SELECT s, s > (SELECT max(s) FROM u) AS a, c >= (SELECT min(c) FROM u) AS b, i > (SELECT max(i) FROM u) AS d FROM t",
    "null safe": "SELECT i, (i > (SELECT max(i) FROM u)) IS NULL AS a, NOT (d >= (SELECT avg(i) FROM u)) AS b FROM t",
    "with errors": """
        SELECT CASE WHEN i > (SELECT avg(i) FROM u) THEN 1 / i WHEN e < (SELECT min(e) FROM u) THEN i ELSE 1 / k END AS a
        FROM t WHERE i > (SELECT min(i) - 1 FROM u) OR 1 / k > 0""",
    "nested": """
        SELECT CASE WHEN CASE WHEN i > (SELECT max(i) FROM u) THEN d ELSE e END > (SELECT avg(d) FROM u) THEN 1 ELSE k END AS a
        FROM t""",
    "nested answers": """
        SELECT CASE WHEN i > (SELECT avg(i) FROM u) THEN CASE WHEN e > (SELECT avg(e) FROM u) THEN 1 ELSE 1 / k END ELSE i END AS a
        FROM t""",
    "of outer joins": """
        SELECT t.i, u.e, u.e > (SELECT avg(e) FROM t) AS a, t.i < (SELECT max(k) FROM u) AS b FROM t LEFT JOIN u ON u.k = t.k""",
    "united": """
        SELECT i, i > (SELECT avg(i) FROM u) AS a FROM t UNION ALL SELECT k, e > (SELECT max(e) FROM t) FROM u
        UNION ALL SELECT i, i > (SELECT avg(i) FROM u) FROM t""",
    "counted": """
        SELECT k, count_if(a) AS n, sum(if(b, i, -i)) AS m
        FROM (SELECT k, i, i > q.x AS a, e < q.x AS b FROM t, (SELECT avg(i) AS x FROM u) AS q)
        GROUP BY k HAVING count(*) > (SELECT min(k) FROM u)""",
    "ranked": "SELECT a, i, rank() OVER (PARTITION BY a ORDER BY i) AS r FROM (SELECT i, i > (SELECT avg(i) FROM u) AS a FROM t)",
    "a view of a view": "SELECT i, a, i >= (SELECT avg(i) FROM below WHERE a) AS b FROM below",
    "a value of one row": """
        SELECT i, i > (SELECT max(i) FROM u HAVING count(*) > 1) AS a, i > (SELECT i FROM u ORDER BY i LIMIT 1) AS b FROM t""",
    "by key": """
        SELECT i, if(i > (SELECT avg(i) FROM u WHERE u.k = t.k), 1, 1 / k) AS a, i > (SELECT avg(i) FROM u) AS b,
        if(i > (SELECT avg(e) FROM u WHERE u.k = t.i % 2), 1, 0) AS c FROM t""",
}
BELOW = "SELECT i, d > (SELECT avg(d) FROM t) AS a FROM t"


def _drawn(rng: Random, sizes: tuple[int, int]) -> dict[str, Counter[tuple[object, ...]]]:
    def row() -> tuple[object, ...]:
        return tuple(rng.choice((None, *values, *values)) for _, values in VALUES.values())

    return {name: Counter(row() for _ in range(size)) for name, size in zip("tu", sizes, strict=True)}


@pytest.mark.filterwarnings("ignore:.*equality")
@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize(("seed", "shards"), [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))])
def test_values_of_all_types_have_the_answers_of_the_oracle(name: str, seed: int, shards: int, tmp_path: Path) -> None:
    """The values go back and forth between few, so that rows are passed in both directions; every tick fails that fails in the oracle."""
    script = f"{DEFINED} CREATE VIEW below AS {BELOW}; CREATE MATERIALIZED VIEW answer AS {TYPED[name]}"
    rng, contents = Random(seed), [_drawn(Random(seed), sizes) for sizes in ((5, 5), (5, 0), (0, 1), (9, 2))]
    held = {table: Counter[tuple[object, ...]]() for table in "tu"}
    session = deltic.Session(state=tmp_path, shards=shards)
    session.sql(script)
    plan = bind_query(TYPED[name].replace("below", f"({BELOW}) AS below"), "test", session._catalog)
    for tick in range(8):
        if tick == 4:
            session.close()
            session = deltic.Session(state=tmp_path, shards=shards + 1)
            session.sql(script)
        new = {table: rng.choice(contents)[table] for table in "tu"}
        expected = fails_or_rows(plan, new)
        try:
            with session.transaction() as tx:
                for table in "tu":
                    tx.delete(table, [dict(zip(VALUES, row, strict=True)) for row in (held[table] - new[table]).elements()])
                    tx.insert(table, [dict(zip(VALUES, row, strict=True)) for row in (new[table] - held[table]).elements()])
        except EvaluationError:
            assert expected is None, new
        else:
            held = new
            assert _texts(tuple(row.values()) for row in session.view("answer").rows()) == _texts((expected or Counter()).elements()), new
            assert expected is not None, new
    session.close()


def _texts(rows: Iterable[tuple[object, ...]]) -> list[str]:
    """NaN equals itself, and -0.0 equals 0.0."""
    return sorted(repr(tuple(value + 0.0 if isinstance(value, float) else value for value in row)) for row in rows)
