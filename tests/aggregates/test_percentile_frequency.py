"""PERCENTILE with frequencies: equal to PERCENTILE of the rows written as often, after each tick."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import ArithmeticOverflow, DelticError, EvaluationError, TypeMismatch

CALLS = (
    "percentile(x, 0.5{f})",
    "percentile(x, array(0.1, 1){f})",
    "percentile(DISTINCT x, 0.25{f})",
    "percentile(x, 0.7{f}) FILTER (WHERE f <> 3)",
)
TABLE = "CREATE TABLE t (id INT PRIMARY KEY, g INT, x DOUBLE, f INT)"
DISTINCT = "SELECT g, percentile(x, 0.25) AS c2 FROM (SELECT DISTINCT g, x, f, copy FROM t) GROUP BY g"


def row(rng: Random, number: int) -> dict[str, Any]:
    return {"id": number, "g": rng.randrange(2), "x": rng.choice((None, 1.0, 2.0, rng.random())), "f": rng.choice((0, 0, 1, 2, 3, None, 9))}


def query(table: str, *, frequency: bool) -> str:
    calls = ", ".join(f"{call.format(f=', f' if frequency else '')} AS c{i}" for i, call in enumerate(CALLS))
    return f"SELECT g, {calls}, count(*) > 0 AS n FROM {table} GROUP BY g"


def repeated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each row as often as its frequency says; with another one to tell (x, f) and (x, f') apart."""
    return [each | {"copy": i} for each in rows for i in range(each["f"] or 0)]


def test_a_row_counts_as_often_as_its_frequency_says() -> None:
    rng = Random(7)
    rows: dict[int, dict[str, Any]] = {}
    with deltic.Session(shards=2) as session, deltic.Session() as plain:
        session.sql(f"{TABLE}; CREATE MATERIALIZED VIEW v AS {query('t', frequency=True)}")
        plain.sql("CREATE TABLE t (id INT, g INT, x DOUBLE, f INT, copy INT, PRIMARY KEY (id, copy))")
        plain.sql(f"CREATE MATERIALIZED VIEW v AS {query('t', frequency=False).replace('DISTINCT ', '')}")
        plain.sql(f"CREATE MATERIALIZED VIEW d AS {DISTINCT}")
        for _ in range(12):
            before = repeated(list(rows.values()))
            with session.transaction() as tx:
                for number in rng.sample(range(8), 2):
                    if rng.random() < 0.3 and number in rows:
                        tx.delete("t", [number])
                        del rows[number]
                    else:
                        rows[number] = row(rng, number)
                        tx.upsert("t", [rows[number]])
            with plain.transaction() as tx:
                tx.delete("t", [(each["id"], each["copy"]) for each in before])
                tx.insert("t", repeated(list(rows.values())))
            expected = {each["g"]: each for each in plain.view("v").rows()}
            distinct = {each["g"]: each["c2"] for each in plain.view("d").rows()}
            for each in session.view("v").rows():
                group = each["g"]
                theirs = {"g": group, "c0": None, "c1": None, "c3": None, "n": True} | expected.get(group, {}) | {"c2": distinct.get(group)}
                assert each == theirs


@pytest.mark.parametrize(
    ("frequency", "error", "words"),
    [
        ("1.5", TypeMismatch, "argument 3 of PERCENTILE does not accept DECIMAL"),
        ("'2'", TypeMismatch, "argument 3 of PERCENTILE does not accept STRING"),
        ("-1", EvaluationError, "the frequency -1 is negative"),
        ("9223372036854775807", ArithmeticOverflow, "the sum of the frequencies of a group"),
    ],
)
def test_frequencies_are_integers_of_at_least_zero(frequency: str, error: type[DelticError], words: str) -> None:
    with deltic.Session() as session, pytest.raises(error, match=words):
        session.sql(f"""
            CREATE TABLE t (x INT);
            CREATE MATERIALIZED VIEW v AS SELECT percentile(x, 0.5, {frequency}) AS p FROM t
        """)
        with session.transaction() as tx:
            tx.insert("t", [{"x": 1}, {"x": 2}])
