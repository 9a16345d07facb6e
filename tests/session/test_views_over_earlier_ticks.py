"""Views over views whose state depends on earlier ticks begin with the rows that those have, whatever the optimizer could move."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from parts import slow
from seeds import rotating
from session_rows import rows_of_view

BASE = """
    CREATE STREAM readings (at BIGINT LATENESS 10, sensor BIGINT, value BIGINT);
    CREATE STREAM alarms (at BIGINT LATENESS 10, sensor BIGINT);
    CREATE MATERIALIZED VIEW every AS SELECT * FROM integrate(readings);
    CREATE MATERIALIZED VIEW loud AS SELECT * FROM integrate(alarms);
    CREATE MATERIALIZED VIEW hourly AS SELECT at DIV 100 AS h, sensor, count(*) AS n, max(value) AS top, count(DISTINCT value) AS d
        FROM integrate(readings) GROUP BY 1, 2;
    CREATE MATERIALIZED VIEW greatest AS SELECT sensor, max(value) AS most, sum(value) AS total FROM integrate(readings) GROUP BY sensor;
    CREATE MATERIALIZED VIEW pairs AS SELECT a.at AS x, b.at AS y, a.sensor, a.value FROM integrate(readings) a JOIN integrate(alarms) b
        ON a.sensor = b.sensor WHERE b.at BETWEEN a.at AND a.at + 50;
    CREATE MATERIALIZED VIEW wide AS SELECT a.at AS x, b.at AS y, a.sensor FROM integrate(readings) a JOIN integrate(alarms) b
        ON a.sensor = b.sensor;
    CREATE MATERIALIZED VIEW high AS SELECT * FROM hourly WHERE top > 3;
    CREATE VIEW low AS SELECT * FROM hourly WHERE top <= 3;
"""
READERS = {
    "by_hour": "SELECT at DIV 100 AS h, count(*) AS n, max(value) AS top FROM every GROUP BY 1",
    "users_by_hour": "SELECT at DIV 100 AS h, count(DISTINCT sensor) AS n FROM every WHERE value > 1 GROUP BY 1",
    "hours": "SELECT DISTINCT at DIV 100 AS h FROM every",
    "joined": "SELECT a.at AS x, b.at AS y FROM every a JOIN loud b ON a.sensor = b.sensor AND b.at BETWEEN a.at AND a.at + 20",
    "filtered": "SELECT h, n FROM hourly WHERE sensor = 1",
    "narrow": "SELECT h, n FROM hourly",
    "summed": "SELECT h, sum(n) AS n FROM hourly GROUP BY h",
    "of_one": "SELECT most FROM greatest WHERE sensor = 1",
    "near": "SELECT x, y FROM pairs WHERE y <= x + 10 AND sensor = 1",
    "close": "SELECT x FROM wide WHERE y BETWEEN x AND x + 10",
    "higher": "SELECT h, sensor FROM high WHERE sensor = 1",
    "lower": "SELECT sensor, count(*) AS n FROM low WHERE sensor = 1 GROUP BY sensor",
    "top": "SELECT sensor, max(value) AS most FROM every WHERE value <> 5 GROUP BY sensor",
    "all_of_it": "SELECT * FROM hourly",
}
RELATIONS = ("every", "loud", "hourly", "greatest", "pairs", "wide", "high", "low")


def expected(session: deltic.Session) -> dict[str, list[tuple[Any, ...]]]:
    """The readers over tables with the rows that the views have."""
    contents = {name: session.view(name).rows() for name in RELATIONS if name != "low"}
    contents["low"] = [row for row in contents["hourly"] if row["top"] <= 3]
    names = {"hourly": "h, sensor, n, top, d", "every": "at, sensor, value", "loud": "at, sensor", "greatest": "sensor, most, total"}
    names |= {"pairs": "x, y, sensor, value", "wide": "x, y, sensor", "high": names["hourly"], "low": names["hourly"]}
    with deltic.Session() as plain:
        for name, columns in names.items():
            plain.sql(f"CREATE TABLE {name} ({', '.join(f'{column} BIGINT' for column in columns.split(', '))})")
        plain.sql("".join(f"CREATE MATERIALIZED VIEW v_{name} AS {query};" for name, query in READERS.items()))
        plain.apply({name: [{**row, "_weight": 1} for row in content] for name, content in contents.items()})
        return {name: rows_of_view(plain, f"v_{name}") for name in READERS}


@pytest.mark.parametrize("seed", [0, *slow(*rotating(15))])
def test_readers_that_are_defined_later_have_all_rows(seed: int, tmp_path: Path) -> None:
    choices: list[dict[str, Any]] = [{}, {"state": tmp_path / "s", "shards": 2}, {"shards": 3}, {"state": tmp_path / "s"}]
    check(seed, choices[seed % 4])


@pytest.mark.slow
@pytest.mark.spark
def test_readers_that_are_defined_later_on_spark(spark: Any, tmp_path: Path) -> None:
    check(20, {"spark": spark, "state": tmp_path / "s", "shards": 2})


def check(seed: int, options: dict[str, Any]) -> None:
    rng, now = Random(seed), 0
    defined: list[str] = []

    def script() -> str:
        return BASE + "".join(f"CREATE MATERIALIZED VIEW {name} AS {READERS[name]};" for name in defined)

    session = deltic.Session(**options)
    try:
        session.sql(BASE)
        for number in range(4):
            for _ in range(3):
                now += rng.randrange(60)
                alarms = [{"at": now + rng.randrange(-4, 5), "sensor": rng.randrange(3), "_weight": 1} for _ in range(4)]
                readings = [{**alarm, "value": rng.randrange(7)} for alarm in alarms[:3]]
                session.apply({"readings": readings, "alarms": [{**row, "at": now + rng.randrange(-4, 5)} for row in alarms]})
            if number in (1, 2):
                added = sorted(READERS)[number - 1 :: 2]
                session.sql("".join(f"CREATE MATERIALIZED VIEW {name} AS {READERS[name]};" for name in added))
                defined += added
            if "state" in options and number > 1:
                session.close()
                session = deltic.Session(**options | ({"shards": rng.choice((1, 2, 3))} if "shards" in options else {}))
                session.sql(script())
            if number % 2 == 0:
                continue
            answers = expected(session)
            assert {name: rows_of_view(session, name) for name in defined} == {name: answers[name] for name in defined}, number
    finally:
        session.close()


def test_a_reader_is_exact_after_the_view_is_replaced() -> None:
    with deltic.Session() as session:
        session.sql(BASE + "CREATE MATERIALIZED VIEW one AS SELECT h, n FROM hourly WHERE sensor = 1;")
        session.apply({"readings": [{"at": 5, "sensor": 1, "value": 2, "_weight": 1}]})
        session.sql("CREATE OR REPLACE MATERIALIZED VIEW hourly AS SELECT at AS h, sensor, 1L AS n, value AS top, 1L AS d FROM every")
        assert rows_of_view(session, "one") == [(5, 1)]
        session.sql("CREATE MATERIALIZED VIEW later AS SELECT h FROM hourly WHERE n = 1")
        session.apply({"readings": [{"at": 7, "sensor": 1, "value": 2, "_weight": 1}]})
        assert rows_of_view(session, "one") == [(5, 1), (7, 1)] and rows_of_view(session, "later") == [(5,), (7,)]


def test_circuits_and_datalog_over_such_views() -> None:
    with deltic.Session() as session:
        session.sql(BASE)
        session.apply({"readings": [{"at": 5, "sensor": sensor, "value": 4, "_weight": 1} for sensor in (1, 2)]})
        circuit = deltic.Circuit(session)
        circuit.output("in_python", circuit.view("hourly").filter("sensor = 1").map({"h": "h"}))
        session.install(circuit)
        session.datalog("output relation InDatalog(h: s64)\nInDatalog(h) :- Hourly(.h = h, .sensor = Some{1}).")
        assert rows_of_view(session, "in_python") == rows_of_view(session, "InDatalog") == [(0,)]
