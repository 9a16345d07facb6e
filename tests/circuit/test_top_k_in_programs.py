"""Top-k by the instructions of programs, beside the step of the operator, and beside sorting all rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import deltic
from cores import Compared, both_cores
from parts import slow
from seeds import rotating

Row = dict[str, Any]
SHORT: Final = ("", "a", "ab", "b", "x" * 23, None)
LONG: Final = ("x" * 23, "x" * 24, "x" * 25, "x" * 24 + "a", "x" * 24 + "b", "y" * 30, "y" * 29, None)
VIEWS: Final = """
    CREATE MATERIALIZED VIEW up AS SELECT * FROM t ORDER BY s, n DESC, k LIMIT 5;
    CREATE MATERIALIZED VIEW down AS SELECT * FROM t ORDER BY s DESC NULLS LAST, n NULLS LAST, k DESC LIMIT 3;
    CREATE MATERIALIZED VIEW of_groups AS
        SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY s, k) <= 2;
    CREATE MATERIALIZED VIEW copies AS SELECT g, s, n FROM t ORDER BY n, s, g LIMIT 4;
"""


def null_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def null_last(value: Any) -> tuple[bool, Any]:
    return (value is None, value)


def sorted_by(rows: list[Row], *keys: tuple[Callable[[Row], Any], bool]) -> list[Row]:
    """keys: (what a row sorts by, whether it descends), the last one first."""
    for key, descending in reversed(keys):
        rows = sorted(rows, key=key, reverse=descending)
    return rows


def expected(rows: list[Row]) -> Mapping[str, list[Row]]:
    up = sorted_by(rows, (lambda r: null_first(r["s"]), False), (lambda r: null_first(r["n"]), True), (lambda r: r["k"], False))
    down = sorted_by(rows, (lambda r: null_first(r["s"]), True), (lambda r: null_last(r["n"]), False), (lambda r: r["k"], True))
    by_name = sorted_by(rows, (lambda r: null_first(r["s"]), False), (lambda r: r["k"], False))
    groups = [r for g in (None, 1, 2) for r in [r for r in by_name if r["g"] == g][:2]]
    copies = sorted_by(rows, *((lambda r, c=c: null_first(r[c]), False) for c in "nsg"))
    return {"up": up[:5], "down": down[:3], "of_groups": groups, "copies": [{c: r[c] for c in "gsn"} for r in copies[:4]]}


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def run(seed: int, texts: tuple[str | None, ...], ticks: int = 14) -> Compared:
    choose, kept = random.Random(seed), list[Row]()
    with both_cores() as compared, deltic.Session() as session:
        session.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g INT, s STRING, n BIGINT);" + VIEWS)
        for tick in range(ticks):
            added = [
                {"k": 100 * tick + i, "g": choose.choice((None, 1, 2)), "s": choose.choice(texts), "n": choose.choice((None, 1, 2))}
                for i in range(choose.choice((1, 2, 40)))
            ]
            removed = [kept.pop(choose.randrange(len(kept))) for _ in range(min(len(kept), choose.choice((0, 1, 30))))]
            session.apply({"t": [*({**one, "_weight": 1} for one in added), *({**one, "_weight": -1} for one in removed)]})
            kept += added
            for view, rows in expected(kept).items():
                assert ordered(session.view(view).rows()) == ordered(rows), (seed, tick, view)
        session.apply({"t": [{**one, "_weight": -1} for one in kept]})
        assert all(session.view(view).rows() == [] for view in expected([]))
    return compared


@pytest.mark.parametrize("seeds", [range(3), *slow(rotating(77))], ids=len)
def test_short_strings_need_no_step(seeds: range) -> None:
    for seed in seeds:
        compared = run(seed, SHORT)
        assert compared.native["TopKOperator"] > 40 and not compared.stepped.keys() & {"TopKOperator", "Sort"}


@pytest.mark.parametrize("seeds", [range(3), *slow(rotating(77))], ids=len)
def test_bytes_of_long_strings_decide(seeds: range) -> None:
    for seed in seeds:
        compared = run(seed, LONG)
        assert compared.native["TopKOperator"] and compared.stepped["TopKOperator"] and "Sort" not in compared.stepped


def test_changes_after_the_end_read_no_row() -> None:
    """A group that has its first rows is not searched for rows that sort after them, and others are."""
    with both_cores() as compared, deltic.Session() as session:
        session.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g INT NOT NULL)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY k) <= 3")
        session.apply({"t": [{"k": 10 * k + g, "g": g, "_weight": 1} for k in range(200) for g in range(5)]})
        session.apply({"t": [{"k": k, "g": k % 5, "_weight": 1} for k in [*range(5_000, 5_100), -1]]})
        assert compared.native["TopKOperator"] >= 2 and 0 < touched(session) < 80
        assert sorted(row["k"] for row in session.view("v").rows() if row["g"] == 4) == [-1, 4, 14]


@pytest.mark.parametrize("limit", [1, 30, 100])
def test_results_of_many_rows_are_read_once(limit: int) -> None:
    """One group, and nine; most rows of which are among the first."""
    with both_cores() as compared, deltic.Session() as session:
        session.sql(f"""
            CREATE TABLE t (k BIGINT PRIMARY KEY, g INT NOT NULL, s STRING);
            CREATE MATERIALIZED VIEW whole AS SELECT * FROM t ORDER BY k LIMIT {limit};
            CREATE MATERIALIZED VIEW groups AS SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY k) <= {limit};
        """)
        rows = [{"k": 2 * k, "g": k % 9, "s": f"a string of more than 24 bytes: {k % 7}"} for k in range(200)]
        session.apply({"t": [{**row, "_weight": 1} for row in rows]})
        for k in (-1, 11, 1_000):
            session.apply({"t": [{"k": k, "g": 2, "s": None, "_weight": 1}]})
            session.apply({"t": [{**rows.pop(3), "_weight": -1}]})
            rows.append({"k": k, "g": 2, "s": None})
        first = sorted(rows, key=lambda row: row["k"])
        assert ordered(session.view("whole").rows()) == ordered(first[:limit])
        assert ordered(session.view("groups").rows()) == ordered([r for g in range(9) for r in [r for r in first if r["g"] == g][:limit]])
        assert compared.native["TopKOperator"] > 10 and "TopKOperator" not in compared.stepped


def touched(session: deltic.Session) -> int:
    """The rows that top-k has touched in the last tick."""
    assert session.last_tick is not None
    program = str(session.explain("v", level=True))
    return sum(c.touched for name, c in session.last_tick.counters.items() if f"operator {name}, top_k" in program)


def test_an_arena_that_is_full_and_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.circuit.programs.runner.LEAST_ARENA", 16)
    monkeypatch.setattr("deltic.circuit.programs.runner.LARGEST_KEPT", 0)
    monkeypatch.setattr("deltic.circuit.programs.runner._FREE_ARENAS", [])
    kept = list[Row]()
    for part in range(3):
        with both_cores() as compared, deltic.Session(state=tmp_path) as session:
            session.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g INT, s STRING, n BIGINT);" + VIEWS)
            start = len(kept)
            kept += [{"k": 50 * part + i, "g": i % 3 or None, "s": SHORT[i % 6], "n": part} for i in range(50)]
            session.apply({"t": [{**row, "_weight": 1} for row in kept[start:]]})
            session.apply({"t": [{**row, "_weight": -1} for row in (kept.pop(0), kept.pop(3))]})
            for view, rows in expected(kept).items():
                assert ordered(session.view(view).rows()) == ordered(rows), (part, view)
            session.apply({"t": [{**kept[0], "_weight": -1}, {**kept[0], "_weight": 1, "n": 7}]})
            kept[0] = {**kept[0], "n": 7}
        assert compared.native["TopKOperator"] > 5
