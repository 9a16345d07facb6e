"""Joins of two streams with bounds on their times: pairs of rows of different ticks, and state that forgets."""

from __future__ import annotations

import datetime
from datetime import UTC, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic import Session
from deltic.errors import DelticError
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from parts import slow
from seeds import rotating
from session_rows import touched_rows

DAY = datetime.datetime(2024, 2, 28, tzinfo=UTC)
STREAMS = """
    CREATE STREAM views (at TIMESTAMP LATENESS INTERVAL 1 HOUR, k BIGINT, ad STRING);
    CREATE STREAM clicks (k BIGINT, at TIMESTAMP LATENESS INTERVAL 20 MINUTES, n BIGINT);
    CREATE STREAM days (day DATE LATENESS INTERVAL 1 DAY, k BIGINT);
    CREATE STREAM steps (i INT LATENESS 3, k BIGINT);
    CREATE TABLE names (k BIGINT, name STRING);
"""
PROGRAM = (
    STREAMS
    + """
    CREATE MATERIALIZED VIEW clicked AS
        SELECT v.k, ad, n, v.at, c.at AS clicked_at FROM views v JOIN clicks c
        ON v.k = c.k AND c.at BETWEEN v.at - INTERVAL 10 MINUTES AND v.at + INTERVAL 2 HOURS;
    CREATE MATERIALIZED VIEW listed AS
        SELECT v.at AS at, c.n FROM views v, clicks c WHERE v.k = c.k AND c.at > v.at AND c.at - v.at <= INTERVAL 30 MINUTES AND n > 0;
    CREATE MATERIALIZED VIEW near AS
        SELECT a.ad AS one, b.ad AS other FROM views a JOIN views b ON a.at <= b.at + INTERVAL 5 MINUTES AND b.at <= a.at WHERE a.k <> b.k;
    CREATE MATERIALIZED VIEW same AS SELECT v.ad, c.n FROM views v JOIN clicks c ON v.at = c.at;
    CREATE MATERIALIZED VIEW much_later AS
        SELECT v.k, c.n FROM views v JOIN clicks c ON v.k = c.k AND c.at >= v.at + INTERVAL 2 HOURS AND c.at < v.at + INTERVAL 4 HOURS;
    CREATE MATERIALIZED VIEW of_days AS
        SELECT d.day, v.ad FROM (SELECT day, k + 0 AS k FROM days WHERE k > 0) d
        JOIN (SELECT * FROM views WHERE ad IS NOT NULL) v ON d.k = v.k AND v.at >= d.day AND v.at < d.day + 1;
    CREATE MATERIALIZED VIEW of_steps AS SELECT a.i, b.k FROM steps a JOIN steps b ON b.i - a.i BETWEEN -2 AND 4;
    CREATE MATERIALIZED VIEW named AS
        SELECT name, n FROM views v JOIN clicks c ON v.k = c.k AND c.at BETWEEN v.at AND v.at + INTERVAL 1 HOUR JOIN names t ON t.k = v.k;
    CREATE MATERIALIZED VIEW counts AS
        SELECT v.k, count(*) AS n FROM views v JOIN clicks c ON v.k = c.k AND c.at BETWEEN v.at AND v.at + INTERVAL 1 HOUR GROUP BY v.k;
    CREATE MATERIALIZED VIEW ever AS
        SELECT v.k, count(*) AS n, max(c.at) AS last FROM integrate(views) v JOIN integrate(clicks) c
        ON v.k = c.k AND c.at BETWEEN v.at - INTERVAL 10 MINUTES AND v.at + INTERVAL 2 HOURS GROUP BY v.k;
    CREATE MATERIALIZED VIEW ever_near AS
        SELECT a.k AS one, b.k AS other FROM (SELECT * FROM integrate(views) WHERE k > 0) a, integrate(views) b
        WHERE a.at BETWEEN b.at AND b.at + INTERVAL 15 MINUTES;
"""
)


def opened(options: dict[str, Any], script: str = PROGRAM) -> Session:
    session = Session(**options)
    session.program(deltic.Program(script))
    return session


def drawn(rng: Random, hour: float, moments: list[Moment]) -> dict[str, Relation]:
    """Changes that are not late, of times around the hour."""
    times = [DAY + timedelta(hours=hour) - timedelta(minutes=10 * rng.randrange(9)) for _ in range(rng.randrange(6))]
    k = [rng.choice([None, 0, 1, 2]) for _ in times]
    day = (DAY + timedelta(hours=hour)).date()
    rows: dict[str, list[tuple[Any, ...]]] = {
        "views": [(at, one, rng.choice([None, "x", "y"])) for at, one in zip(times, k, strict=True) if rng.random() < 0.6],
        "clicks": [(one, at, rng.randrange(-1, 3)) for at, one in zip(times, k, strict=True) if rng.random() < 0.6],
        "days": [(day - timedelta(days=rng.randrange(2)), rng.randrange(3)) for _ in range(rng.randrange(2))],
        "steps": [(int(hour) - rng.randrange(4), rng.randrange(3)) for _ in range(rng.randrange(3))],
    }
    kept = {name: Relation((row, 1) for row in some if not is_late(name, row, moments)) for name, some in rows.items()}
    present = dict(moments[-1].tables["names"])
    chosen = [(one, f"n{one % 2}") for one in rng.sample(range(3), rng.randrange(2))]
    return {**kept, "names": Relation((row, -1 if row in present else 1) for row in chosen)}


def is_late(name: str, row: tuple[Any, ...], moments: list[Moment]) -> bool:
    column = 1 if name == "clicks" else 0
    delay = {"views": timedelta(hours=1), "clicks": timedelta(minutes=20), "days": timedelta(days=1), "steps": 3}[name]
    known = [one[column] for moment in moments for one in moment.tables[name]]
    return bool(known) and row[column] < max(known) - delay


@pytest.mark.parametrize("seed", [1, *slow(*rotating(39))])
def test_random_ticks_equal_the_oracle(seed: int, tmp_path: Path) -> None:
    run_against_oracle(seed, [{}, {"shards": 3}, {"state": tmp_path / "s"}, {"state": tmp_path / "s", "shards": 2}][seed % 4])


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    run_against_oracle(0, {"spark": spark, "state": tmp_path / "s", "shards": 2}, ticks=6)


def run_against_oracle(seed: int, options: dict[str, Any], ticks: int = 16) -> None:
    """The oracle joins the rows of all ticks; the plans are those before they are optimized."""
    rng, session, hour, found = Random(f"joins {seed}"), opened(options), 0.0, 0
    names = {name: session.table(name).schema.names for name in session.tables}
    moments = [Moment({name: Relation() for name in names})]
    for number in range(ticks):
        if "state" in options and rng.random() < 0.3:
            session.close()
            session = opened({**options, "shards": rng.randrange(1, 4)} if "spark" not in options else options)
        hour += rng.choice([0, 0.25, 0.5, 1, 3])
        changes = drawn(rng, hour, moments)
        frames = {
            name: [dict(zip(names[name], row, strict=True)) | {"_weight": weight} for row, weight in change.pairs()]
            for name, change in changes.items()
        }
        session.apply({name: frame for name, frame in frames.items() if frame})
        moments.append(Moment({**changes, "names": moments[-1].tables["names"] + changes["names"]}))
        for view in session._definitions.catalog.views.values():
            expected = evaluate(view.plan, moments[-1].tables, past=moments[:-1])
            found += len(expected)
            assert Relation((tuple(row.values()), 1) for row in session.view(view.name).rows()) == expected, (seed, number, view.name)
    assert found > 20
    session.close()


def test_a_pair_comes_once_in_the_tick_of_its_later_row() -> None:
    with opened({}) as session:
        noon = DAY + timedelta(hours=12)
        session.apply({"views": [{"at": noon, "k": 1, "ad": "x", "_weight": 2}]})
        assert session.view("clicked").rows() == []
        session.apply({"clicks": [{"k": 1, "at": noon + timedelta(hours=2), "n": 7, "_weight": 1}]})
        assert len(session.view("clicked").rows()) == 2
        session.apply({"views": [{"at": noon + timedelta(hours=3), "k": 2, "ad": "x", "_weight": 1}]})
        assert session.view("clicked").rows() == []


def test_the_state_of_both_sides_forgets() -> None:
    """The rows and the work of a tick depend on the rows that can still be joined, not on those that have gone by."""
    wanted = {"clicked", "counts"}
    statements = [one for one in PROGRAM.split(";") if "VIEW" not in one or one.split("VIEW ")[1].split(" ")[0] in wanted]
    with opened({}, ";".join(statements)) as session:
        sizes, touched = [], []
        for number in range(200):
            at = DAY + timedelta(minutes=20 * number)
            session.apply(
                {
                    "views": [{"at": at, "k": number % 3, "ad": "x", "_weight": 1}],
                    "clicks": [{"k": number % 3, "at": at, "n": 1, "_weight": 1}],
                }
            )
            sizes.append(sum(rows for rows, _ in session._runtime.statistics().values()))
            touched.append(touched_rows(session))
        assert max(sizes[-60:]) <= 1.2 * max(sizes[60:120]) < 1_200, (max(sizes[-60:]), max(sizes[60:120]))
        assert max(touched[-60:]) <= 1.5 * max(touched[60:120])
        assert len(session.view("clicked").rows()) == 3


def test_explain_says_by_what_each_side_is_bounded() -> None:
    with opened({}) as session:
        bounds = [str(bound).split(" ", 3)[3] for bound in session.explain("clicked").bounds]
        assert "joinable_rows is bounded by the rows of stream views that later rows of clicks can join" in bounds
        assert "joinable_rows is bounded by the rows of stream clicks that later rows of views can join" in bounds
        assert not any("grows" in bound for bound in bounds), bounds
        assert "Joinable until the watermark of clicks reaches at#0 + 7,200,000,001 µs" in str(session.explain("clicked"))
        shown = str(session.explain("ever"))
        assert "by the rows of stream views that later rows of clicks can join" in shown and "Windows" not in shown
        assert "fold_sums grows with every new key of stream clicks and stream views" in shown, "the groups of the pairs"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT v.k FROM views v JOIN clicks c ON v.k = c.k",
            "a join of two streams without bounds on their times, which would keep all rows",
        ),
        (
            "SELECT v.k FROM views v JOIN clicks c ON c.at >= v.at",
            "a bound of their times on one side: rows of clicks of any time can be joined with one of views",
        ),
        ("SELECT v.k FROM views v JOIN clicks c ON c.at <= v.at", "rows of views of any time can be joined with one of clicks"),
        (
            "SELECT v.k FROM views v JOIN clicks c ON c.at BETWEEN v.at AND v.at + INTERVAL 1 MONTH",
            "rows of clicks of any time can be joined",
        ),
        (
            "SELECT v.k FROM views v LEFT JOIN clicks c ON c.at BETWEEN v.at AND v.at + INTERVAL 1 DAY",
            "a join of two streams that is not an inner one",
        ),
        ("SELECT v.k FROM views v JOIN (SELECT at, k FROM delay(clicks)) c ON c.at = v.at", "a join of two streams without bounds"),
        ("SELECT v.k FROM views v JOIN plain p ON p.at = v.at", "a join of two streams without bounds"),
        (
            "SELECT v.k FROM views v JOIN clicks c ON c.at = v.at JOIN days d ON d.day BETWEEN v.at AND v.at + INTERVAL 1 DAY",
            "a join of two streams without bounds",
        ),
        (
            "SELECT date_trunc('hour', v.at) AS h, count(*) AS n FROM views v JOIN clicks c ON c.at = v.at GROUP BY 1 EMIT ON WINDOW CLOSE",
            "EMIT ON WINDOW CLOSE of a query with a join of two streams",
        ),
    ],
)
def test_joins_that_would_keep_all_rows_are_errors(query: str, message: str) -> None:
    with Session() as session:
        session.sql(STREAMS + "CREATE STREAM plain (at TIMESTAMP NOT NULL)")
        with pytest.raises(DelticError) as error:
            session.sql(f"CREATE MATERIALIZED VIEW refused AS {query}")
        assert message in str(error.value) and "^" in str(error.value), str(error.value)
