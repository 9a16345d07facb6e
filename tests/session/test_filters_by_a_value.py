"""Aggregates whose FILTER or CASE compares rows with the value of a subquery: a change of the value touches the rows that it passes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import pytest

import deltic
from deltic.errors import DivisionByZero
from session_rows import touched_rows

Row = tuple[int, int | None, int | None, int]

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, g INT, x INT, y INT);"
MEAN = "(SELECT avg(x) FROM t)"
VIEWS = {
    "counted": f"SELECT g, count(*) AS n, count(*) FILTER (WHERE x > {MEAN}) AS above FROM t GROUP BY g",
    "two": f"""
        SELECT g, sum(y) FILTER (WHERE x > {MEAN}) AS above, sum(y) FILTER (WHERE x <= {MEAN} AND y > 2) AS below, max(y) AS most,
            count(*) FILTER (WHERE y > 2) AS n
        FROM t GROUP BY g
    """,
    "cases": f"SELECT g, sum(CASE WHEN x > {MEAN} THEN y END) AS above, count(CASE WHEN x < {MEAN} THEN 1 END) AS below FROM t GROUP BY g",
    "otherwise": f"""
        SELECT g, sum(CASE WHEN x > {MEAN} THEN y ELSE 0 END) AS above, count_if(x < {MEAN}) AS below,
            max(IF(x > {MEAN} AND y > 2, y, x)) AS most, sum(CASE WHEN y = 0 THEN 7 WHEN x > {MEAN} THEN x END) AS s
        FROM t GROUP BY g
    """,
    "all": f"SELECT count(*) AS n, max(y) FILTER (WHERE x > {MEAN}) AS most, count(DISTINCT CASE WHEN x >= {MEAN} THEN y END) AS k FROM t",
    "values": f"""
        SELECT g, count(*) FILTER (WHERE x > {MEAN}) AS above, count(*) FILTER (WHERE y < (SELECT max(id) FROM t)) AS below
        FROM t GROUP BY g
    """,
    "strings": f"""
        SELECT g, count(*) FILTER (WHERE x > {MEAN}) AS above, count(*) FILTER (WHERE string(x) < (SELECT max(string(x)) FROM t)) AS below
        FROM t GROUP BY g
    """,
    "joined": """
        SELECT a.g, count(*) AS n, max(a.y) FILTER (WHERE a.x >= m.least AND a.x <= m.most - 2) AS most
        FROM t AS a CROSS JOIN (SELECT min(x) AS least, max(x) AS most FROM t) AS m GROUP BY a.g
    """,
}


def expected(name: str, rows: Sequence[Row]) -> list[tuple[int | None, ...]]:
    xs = [x for _, _, x, _ in rows if x is not None]
    mean, least, most = (fmean(xs), min(xs), max(xs)) if xs else (0.0, 0, 0)

    def above(rows: Sequence[Row]) -> list[int]:
        return [y for _, _, x, y in rows if x is not None and x > mean]

    def total(values: Sequence[int]) -> int | None:
        return sum(values) if values else None

    def two(g: int | None, of: Sequence[Row]) -> tuple[int | None, ...]:
        below = [y for _, _, x, y in of if x is not None and x <= mean and y > 2]
        return g, total(above(of)), total(below), max(y for *_, y in of), sum(y > 2 for *_, y in of)

    def joined(g: int | None, of: Sequence[Row]) -> tuple[int | None, ...]:
        return g, len(of), max((y for _, _, x, y in of if x is not None and least <= x <= most - 2), default=None)

    def cases(g: int | None, of: Sequence[Row]) -> tuple[int | None, ...]:
        return g, total(above(of)), sum(x is not None and x < mean for _, _, x, _ in of)

    def otherwise(g: int | None, of: Sequence[Row]) -> tuple[int | None, ...]:
        kept = [(x, y, x is not None and x > mean) for _, _, x, y in of]
        most = [y if high and y > 2 else x for x, y, high in kept]
        some = [7 if y == 0 else x for x, y, high in kept if y == 0 or high]
        return (
            g,
            sum(y for _, y, high in kept if high),
            sum(x is not None and x < mean for x, _, _ in kept),
            max((value for value in most if value is not None), default=None),
            total([value for value in some if value is not None]),
        )

    if name == "all":
        return [(len(rows), max(above(rows), default=None), len({y for _, _, x, y in rows if x is not None and x >= mean}))]
    groups: dict[int | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[1], []).append(row)
    by_group: dict[str, Callable[[int | None, Sequence[Row]], tuple[int | None, ...]]] = {
        "counted": lambda g, of: (g, len(of), len(above(of))),
        "two": two,
        "values": lambda g, of: (g, len(above(of)), sum(y < max(row[0] for row in rows) for *_, y in of)),
        "strings": lambda g, of: (g, len(above(of)), sum(x is not None and x < most for _, _, x, _ in of)),
        "cases": cases,
        "otherwise": otherwise,
        "joined": joined,
    }
    return [by_group[name](g, of) for g, of in groups.items()]


def put(session: deltic.Session, rows: Sequence[Row]) -> None:
    session.apply({"t": [dict(zip(("id", "g", "x", "y", "_op"), (*row, "upsert"), strict=True)) for row in rows]})


@pytest.mark.parametrize("shards", [1, 3])
def test_filters_are_exact_after_every_change(tmp_path: Path, shards: int) -> None:
    script = TABLE + ";".join(f"CREATE MATERIALIZED VIEW {name}_ AS {text}" for name, text in VIEWS.items())
    random_ = random.Random(shards)
    rows: dict[int, Row] = {}
    session = deltic.Session(state=tmp_path, shards=shards)
    session.sql(script)
    for step in range(24):
        if step == 12:
            session.close()
            session = deltic.Session(state=tmp_path, shards=shards)
            session.sql(script)
        if step % 6 == 5:
            gone = list(rows) if step == 17 else random_.sample(list(rows), len(rows) // 2)
            with session.transaction() as tx:
                tx.delete("t", gone)
            rows = {id: row for id, row in rows.items() if id not in gone}
        else:
            drawn = [(random_.randrange(20), *(random_.choice((None, *range(6))) for _ in "gx"), random_.randrange(6)) for _ in range(4)]
            changed = {row[0]: row for row in drawn}
            put(session, list(changed.values()))
            rows |= changed
        for name in VIEWS:
            found = [tuple(row.values()) for row in session.view(f"{name}_").rows()]
            assert sorted(found, key=repr) == sorted(expected(name, list(rows.values())), key=repr), (step, name)
    session.close()


@pytest.mark.parametrize("name", ["counted", "two", "values", "cases", "otherwise", "all"])
def test_a_change_of_the_value_touches_few_rows(name: str) -> None:
    with deltic.Session() as session:
        session.sql(TABLE)
        put(session, [(i, i % 5, i, i % 7) for i in range(3_000)])
        session.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}")
        put(session, [(3_000, 1, 1_700, 3)])
        assert touched_rows(session) < 600


def test_arguments_are_evaluated_where_the_filter_is_true() -> None:
    with deltic.Session() as session:
        session.sql(TABLE + f"CREATE MATERIALIZED VIEW v AS SELECT sum(10 % y) FILTER (WHERE x > {MEAN}) AS s FROM t")
        put(session, [(1, 1, 0, 0), (2, 1, 10, 3)])
        assert session.view("v").rows() == [{"s": 1}]
        with pytest.raises(DivisionByZero):
            put(session, [(3, 1, 9, 0)])
        assert session.view("v").rows() == [{"s": 1}]


def test_other_values_are_evaluated_where_the_condition_is_not_true() -> None:
    with deltic.Session() as session:
        session.sql(TABLE + f"CREATE MATERIALIZED VIEW v AS SELECT sum(CASE WHEN x > {MEAN} THEN 1 ELSE 10 % y END) AS s FROM t")
        put(session, [(1, 1, 0, 3), (2, 1, 10, 0)])
        assert session.view("v").rows() == [{"s": 2}]
        with pytest.raises(DivisionByZero):
            put(session, [(3, 1, 1, 0)])
        assert session.view("v").rows() == [{"s": 2}]


def test_negative_weights_count_once() -> None:
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE t (id INT PRIMARY KEY, g INT, x INT, n INT);
            CREATE MATERIALIZED VIEW v AS
                SELECT g, count(*) AS k, count(*) FILTER (WHERE x > (SELECT avg(x) FROM t)) AS above
                FROM t LATERAL VIEW repeat_row(n) GROUP BY g;
        """)
        session.sql("INSERT INTO t VALUES (1, 1, 0, -1), (2, 1, 10, 1), (3, 2, 10, 2)")
        assert session.view("v").rows() == [{"g": 2, "k": 2, "above": 2}]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_maximum_of_all_rows_by_a_value_on_several_shards(shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        session.sql(TABLE)
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT max(CASE WHEN x > {MEAN} THEN -y ELSE x END) AS most FROM t")
        rows = [{"id": i, "g": None, "x": i, "y": 1} for i in range(20)]
        for row in rows:
            session.insert("t", [row])
            seen = rows[: row["id"] + 1]
            mean = fmean(each["x"] for each in seen)
            assert session.view("v").rows() == [{"most": max(-1 if each["x"] > mean else each["x"] for each in seen)}]
        session.delete("t", [row["id"] for row in rows[:10]])
        assert session.view("v").rows() == [{"most": 14}]
