"""batched: the rows of several ticks at once, equal to the oracle over shards and restarts; and aggregates of them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import CircuitError
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from deltic.plan.streams import is_stream
from parts import slow
from seeds import rotating
from session_rows import touched_rows

PAIR = {"k": int, "v": int}


def text(before: str | None, group: tuple[tuple[Any, int], ...]) -> str | None:
    """The calls so far, each with its values; a value of 9 drops the key."""
    values = [row.v for row, weight in group for _ in range(weight)]
    return None if 9 in values else f"{before or ''}{values}"


def circuit(size: int) -> deltic.Circuit:
    made = deltic.Circuit()
    events = made.stream("events", schema=PAIR)
    names = made.input("names", schema={"k": int, "name": str}, key=["k"])
    some = events.batched(size)
    made.output("some", some)
    made.output("late", some.delay())
    made.output("ever", some.integrate())
    made.output("twice", events.filter("v > 1").batched(2).batched(size))
    made.output("texts", events.index_with("k").stream_aggregate(text, schema={"text": str}, every=size))
    made.output("sums", some.index_with("k").aggregate(n="sum(v)"))
    made.output("named", some.index_with("k").join(names.index_with("k"), lambda key, one, other: (other.name, one.v)))
    made.output("now", events.index_with("k").batched(size).rows().current())
    return made


@pytest.mark.parametrize("seed", [0, 1, *slow(*rotating(58))])
def test_random_ticks_equal_the_oracle_over_shards_and_restarts(seed: int, tmp_path: Path) -> None:
    """Definitions have epochs, too; the rows of their ticks are none. To open a state commits notes alone: the next tick has its epoch."""
    rng = Random(f"batched {seed}")
    size = rng.randrange(1, 6)
    made = circuit(size)
    options: dict[str, Any] = [{"state": tmp_path / "s", "shards": 2}, {}, {"shards": 3}, {"state": tmp_path / "s"}][seed % 4]
    tables = {"events": Relation(), "names": Relation()}
    moments = [Moment(tables)]
    session = deltic.Session(**options)
    session.install(made)
    last = session.epoch
    before = {name: Relation() for name in made.outputs}
    for number in range(14):
        if "state" in options and rng.random() < 0.3:
            session.close()
            session = deltic.Session(**{**options, "shards": rng.choice((1, 2, 3))})
            opened = session.epoch
            session.install(made)
            last = last if session.epoch == opened else session.epoch
        if rng.random() < 0.2:
            session.sql(f"CREATE TABLE other{number} (x INT); CREATE MATERIALIZED VIEW copy{number} AS SELECT x FROM other{number}")
            last = session.epoch
        events = Relation(((rng.randrange(3), rng.randrange(10)), rng.choice((1, 1, 2))) for _ in range(rng.randrange(4)))
        new = Relation([((number, f"n{number}"), 1)] if number < 3 else [])
        session.apply(
            {
                "events": [{"k": k, "v": v, "_weight": weight} for (k, v), weight in events.pairs()],
                "names": [{"k": k, "name": name, "_weight": weight} for (k, name), weight in new.pairs()],
            }
        )
        tables = {"events": events, "names": tables["names"] + new}
        for name, plan in made.outputs.items():
            expected = evaluate(plan, tables, past=moments, epoch=session.epoch, since=last + 1)
            assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, (seed, number, name)
            changes = session.view(name).changes().to_pylist()
            change = expected if is_stream(plan) else expected - before[name]
            assert Relation((tuple(row.values())[:-1], row["_weight"]) for row in changes) == change, (seed, number, name)
            before[name] = expected
        moments.append(Moment(tables, epoch=session.epoch, since=last + 1))
        last = session.epoch
    session.close()


SUMS = "CREATE STREAM events (k INT, v INT); CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS v FROM batched(events, 3) GROUP BY k"


def restarted(options: dict[str, Any], restarts: tuple[int, ...]) -> list[tuple[int, int, list[dict[str, Any]]]]:
    """Of each tick the first epoch after the tick or definition before it, its own, and what the view has then.

    restarts: before these ticks.
    """
    found = []
    session = deltic.Session(**options)
    session.sql(SUMS)
    last = session.epoch
    for number in range(10):
        if number in restarts:
            session.close()
            session = deltic.Session(**options)
            opened = session.epoch
            session.sql(SUMS)
            last = last if session.epoch == opened else session.epoch
        session.insert("events", [{"k": 1, "v": 1 << number}])
        found.append((last + 1, session.epoch, session.view("sums").rows()))
        last = session.epoch
    session.close()
    return found


@pytest.mark.parametrize(
    "options", [{}, {"commit_log": True}, {"shards": 3}, pytest.param({"spark": True, "shards": 2}, marks=pytest.mark.spark)], ids=str
)
def test_after_a_restart_the_rows_that_wait_are_applied_once(options: dict[str, Any], tmp_path: Path, request: Any) -> None:
    """The epoch that opening a state takes may be the multiple of n: then the first tick after it applies them."""
    if "spark" in options:
        options = {**options, "spark": request.getfixturevalue("spark")}
    for number, restarts in enumerate(((), (1, 3, 4), (2, 5, 8), tuple(range(1, 10)))):
        waiting, early = 0, 0
        for i, (first, epoch, rows) in enumerate(restarted({**options, "state": str(tmp_path / f"{number}")}, restarts)):
            waiting += 1 << i
            applies = any(one % 3 == 0 for one in range(first, epoch + 1))
            assert rows == ([{"k": 1, "v": waiting}] if applies else []), (restarts, epoch)
            waiting, early = 0 if applies else waiting, early + (applies and epoch % 3 > 0)
        assert early > 0 or not restarts


def test_a_batch_in_sql() -> None:
    with deltic.Session() as session:
        session.sql("""
            CREATE STREAM clicks (user INT, amount INT);
            CREATE MATERIALIZED VIEW totals AS SELECT user, sum(amount) AS total FROM batched(clicks, 4) GROUP BY user;
        """)
        seen = []
        for amount in range(1, 10):
            session.apply({"clicks": [{"user": 1, "amount": amount, "_weight": 1}]})
            seen.append((session.epoch % 4 == 0, [row["total"] for row in session.view("totals").rows()]))
        last = 0
        for amount, (applied, totals) in enumerate(seen, 1):
            assert totals == ([sum(range(last + 1, amount + 1))] if applied else [])
            last = amount if applied else last
        assert sum(applied for applied, _ in seen) >= 2
        assert "batched is bounded by the rows that wait for an epoch that is a multiple of 4" in str(session.explain("totals"))
        assert "Batched by 4" in str(session.explain("totals"))


def test_a_tick_between_costs_its_rows_and_a_failed_one_leaves_the_rows_that_wait() -> None:
    made = deltic.Circuit()
    events = made.stream("events", schema=PAIR)
    made.output("sums", events.index_with("k").stream_aggregate(lambda old, rows: old + len(rows), init=0, schema={"n": int}, every=50))
    made.output("inverse", events.batched(50).map({"x": "100 div v"}))
    with deltic.Session() as session:
        session.install(made)
        session.apply({"events": [{"k": k, "v": 1, "_weight": 1} for k in range(5_000)]})
        while session.epoch < 48:
            session.apply({"events": [{"k": 1, "v": 2 + session.epoch, "_weight": 1}]})
            assert session.last_tick is not None
            assert touched_rows(session) < 100
        session.apply({"events": []})
        with pytest.raises(deltic.errors.DelticError, match="zero"):
            session.apply({"events": [{"k": 1, "v": 0, "_weight": 1}]})
        assert session.view("sums").rows() == []
        session.apply({"events": []})
        assert len(session.view("sums").rows()) == 5_000
        assert {"k": 1, "n": 48 - 1} in session.view("sums").rows()


def test_an_invalid_number_of_ticks() -> None:
    events = deltic.Circuit().stream("events", schema=PAIR)
    for size in (0, -1, True, 2.0, 1 << 40):
        with pytest.raises(CircuitError, match="an invalid number of ticks"):
            events.batched(size)  # type: ignore[arg-type]
