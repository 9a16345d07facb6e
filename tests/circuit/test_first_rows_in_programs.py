"""MIN, MAX and their kin in programs of levels: as the operators' steps compute them, and as they are by definition."""

from __future__ import annotations

import datetime
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import deltic
from cores import both_cores
from deltic.errors import ArithmeticOverflow
from parts import slow
from seeds import rotating

TYPES: Mapping[str, Sequence[Any]] = {
    "BIGINT": (0, -1, 7, 1 << 40, -(2**63), 2**63 - 1),
    "INT": (0, 5, 30, -(2**31), 2**31 - 1),
    "BOOLEAN": (True, False),
    "DATE": (datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)),
    "DOUBLE": (-math.inf, -1.5, 0.0, 1e-300, math.inf, math.nan),
    "DECIMAL(15,2)": (Decimal("0.00"), Decimal("-0.01"), Decimal("9999999999999.99")),
    "DECIMAL(30,2)": (
        Decimal("0.00"),
        Decimal("-99999999999999999999.99"),
        Decimal("99999999999999999999.98"),
        Decimal("99999999999999999999.99"),
    ),
}
COLUMNS = {f"c{i}": name for i, name in enumerate(TYPES)}
TABLE = f"CREATE TABLE t (k BIGINT PRIMARY KEY, g INT, h BIGINT NOT NULL, {', '.join(f'{c} {type}' for c, type in COLUMNS.items())});"
EVERY = ", ".join(f"min({c}) AS least_{c}, max({c}) AS most_{c}" for c in COLUMNS)
PAIRS = [(a, b) for i, a in enumerate(COLUMNS) for b in list(COLUMNS)[i + 1 :: 3]]
BY = ", ".join(f"min_by({a}, {b}) AS l{i}, max_by({a}, {b}) AS m{i}" for i, (a, b) in enumerate(PAIRS))
VIEWS = f"""
    CREATE MATERIALIZED VIEW grouped AS SELECT g, h, {EVERY} FROM t GROUP BY g, h;
    CREATE MATERIALIZED VIEW whole AS SELECT {EVERY}, count(*) AS n FROM t;
    CREATE MATERIALIZED VIEW pairs AS SELECT g, {BY} FROM t GROUP BY g;
    CREATE MATERIALIZED VIEW sums AS SELECT h, max(h) AS same, min(k) AS first, sum(c1) AS total, avg(c5) AS mean, count(c0) AS n
        FROM t GROUP BY h;
    CREATE MATERIALIZED VIEW filtered AS SELECT g, min(c0) FILTER (WHERE c1 > 0) AS m, max(h) AS h FROM t GROUP BY g;
"""
Row = dict[str, Any]


def change(choose: random.Random) -> list[Row]:
    """Operations on few keys and groups."""
    made: list[Row] = []
    for _ in range(choose.choice((1, 1, 2, 5, 40))):
        k = choose.randrange(50)
        if choose.random() < 0.4:
            made.append({"_op": "delete", "k": k})
        else:
            row = {c: None if choose.random() < 0.2 else choose.choice(TYPES[type]) for c, type in COLUMNS.items()}
            made.append({"_op": "upsert", "k": k, "g": choose.choice((None, 1, 2)), "h": choose.randrange(-1, 2), **row})
    return made


def apply(session: deltic.Session, live: dict[int, Row], rows: Sequence[Row]) -> None:
    """One tick, of the operations that can be applied, on the session and on the rows by key."""
    kept = {**live}
    valid = []
    for row in rows:
        if row["_op"] == "upsert":
            kept[row["k"]] = row
        elif kept.pop(row["k"], None) is None:
            continue
        valid.append(row)
    session.apply({"t": valid})
    live.clear()
    live.update(kept)


def order(value: Any) -> Any:
    """NaN is the greatest number."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def extreme(rows: Sequence[Row], column: str, best: Callable[..., Any]) -> Any:
    return best((row[column] for row in rows if row[column] is not None), key=order, default=None)


def check(session: deltic.Session, live: Mapping[int, Row]) -> None:
    """The views are what the rows say."""
    rows = list(live.values())
    groups = {(row["g"], row["h"]): [r for r in rows if (r["g"], r["h"]) == (row["g"], row["h"])] for row in rows}
    expected = [{"g": g, "h": h, **firsts(own)} for (g, h), own in groups.items()]
    assert sorted(map(repr, session.view("grouped").rows())) == sorted(map(repr, expected))
    assert repr(session.view("whole").rows()) == repr([{**firsts(rows), "n": len(rows)}])
    by_h = {row["h"]: [r for r in rows if r["h"] == row["h"]] for row in rows}
    assert {r["h"]: (r["same"], r["first"]) for r in session.view("sums").rows()} == {
        h: (h, min(r["k"] for r in own)) for h, own in by_h.items()
    }
    for row in session.view("pairs").rows():
        own = [r for r in rows if r["g"] == row["g"]]
        for i, (a, b) in enumerate(PAIRS):
            best = [r[a] for r in own if r[b] is not None and order(r[b]) == order(extreme(own, b, min))]
            assert repr(row[f"l{i}"]) in map(repr, best or [None])


def firsts(rows: Sequence[Row]) -> Row:
    return {f"{name}_{c}": extreme(rows, c, best) for c in COLUMNS for name, best in (("least", min), ("most", max))}


@pytest.mark.parametrize(
    ("seed", "shards", "ticks"), [(1, 1, 15), (2, 3, 8), *slow(*((seed, 1 + seed % 2 * 2, 300) for seed in rotating(6)))]
)
def test_first_rows_of_groups_on_both_cores(seed: int, shards: int, ticks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2 == 0:  # arenas that are full after few rows
        monkeypatch.setattr("deltic.circuit.programs.runner.LEAST_ARENA", 16)
        monkeypatch.setattr("deltic.circuit.programs.runner.LARGEST_KEPT", 0)
        monkeypatch.setattr("deltic.circuit.programs.runner._FREE_ARENAS", [])
    choose, live = random.Random(seed), dict[int, Row]()
    with both_cores() as compared, deltic.Session(shards=shards) as session:
        session.sql(TABLE + VIEWS)
        for tick in range(ticks):
            apply(session, live, change(choose))
            if tick % 5 == 0:
                check(session, live)
        check(session, live)
        apply(session, live, [{"_op": "delete", "k": k} for k in list(live)])
        check(session, live)
    assert compared.native["AggregateOperator"] > 50 * compared.stepped.get("AggregateOperator", 0) or shards > 1


def test_first_rows_of_groups_after_a_restart(tmp_path: Path) -> None:
    choose, live = random.Random(5), dict[int, Row]()
    for _ in range(3):
        with both_cores() as compared, deltic.Session(state=tmp_path) as session:
            session.sql(TABLE + VIEWS)
            check(session, live)
            for _ in range(3):
                apply(session, live, change(choose))
            check(session, live)
            assert sum(compared.native.values()) > sum(compared.stepped.values())


def test_a_sum_that_overflows_beside_a_minimum_is_the_error_of_the_step() -> None:
    with both_cores() as compared, deltic.Session() as session:
        session.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT min(v) AS least, sum(v) AS total FROM t")
        session.apply({"t": [{"_op": "insert", "k": 1, "v": 2**63 - 1}]})
        with pytest.raises(ArithmeticOverflow, match="arithmetic overflow: SUM of BIGINT"):
            session.apply({"t": [{"_op": "insert", "k": 2, "v": 1}]})
        session.apply({"t": [{"_op": "insert", "k": 2, "v": -1}]})
        assert session.view("v").rows() == [{"least": -1, "total": 2**63 - 2}]
        assert compared.native["AggregateOperator"] >= 1


def test_a_deleted_minimum_is_replaced_without_reading_the_group() -> None:
    with both_cores() as compared, deltic.Session() as session:
        session.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT NOT NULL, v BIGINT NOT NULL)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT g, min(v) AS least, max(v) AS most FROM t GROUP BY g")
        session.apply({"t": [{"_op": "insert", "k": k, "g": k % 2, "v": k} for k in range(20_000)]})
        for k in range(5):
            session.apply({"t": [{"_op": "delete", "k": k}]})
            assert session.last_tick is not None
            (counters,) = (c for name, c in session.last_tick.counters.items() if aggregated(session, name))
            assert 0 < counters.touched < 120
        assert sorted(r["least"] for r in session.view("v").rows()) == [5, 6]
        assert compared.native["AggregateOperator"] >= 5


def aggregated(session: deltic.Session, node: str) -> bool:
    return f"operator {node}, aggregate" in str(session.explain("v", level=True))


def test_listing_of_first_rows() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT NOT NULL, v BIGINT NOT NULL, s STRING)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT g, min(v) AS least, count(*) AS n FROM t GROUP BY g")
        session.sql("CREATE MATERIALIZED VIEW texts AS SELECT g, min(s) AS least FROM t GROUP BY g")
        lines = str(session.explain("v", level=True)).splitlines()
        (line,) = (line for line in lines if " extremes " in line)
        shown = r" +\d+ +extremes +r16 ← groups r15 in sums-\w+ \+ r10, before as in groups-\w+, and after: first row of extreme-\w+ \+ r11"
        assert re.fullmatch(shown, line)
        assert " extremes " not in str(session.explain("texts", level=True))
