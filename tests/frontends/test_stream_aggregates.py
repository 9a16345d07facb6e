"""stream_aggregate: accumulators folded over the ticks of a stream, equal to the oracle, kept over restarts, and dropped on request."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import EvaluationError, Unsupported
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from parts import slow
from seeds import rotating
from session_rows import touched_rows

PAIR = {"k": int, "v": int}


def total(before: int, group: tuple[tuple[Any, int], ...]) -> int | None:
    """The sum of all values so far; a value of 9 drops the key."""
    if any(row.v == 9 for row, _ in group):
        return None
    return before + sum(row.v * weight for row, weight in group)


def spread(before: Any, group: tuple[tuple[Any, int], ...]) -> tuple[int, str]:
    """The greatest value so far, and all values as text."""
    seen = "" if before is None else before.seen
    values = [row.v for row, _ in group]
    return max(values if before is None else [before.most, *values]), seen + "".join(f"{value}," for value in sorted(values))


def circuit() -> deltic.Circuit:
    made = deltic.Circuit()
    events = made.stream("events", schema=PAIR)
    names = made.input("names", schema={"k": int, "name": str}, key=["k"])
    totals = events.index_with("k").stream_aggregate(total, init=0, schema={"total": int})
    made.output("totals", totals)
    made.output("spread", events.filter("v > 0").index_with("k").stream_aggregate(spread, schema={"most": int, "seen": str}))
    made.output("all", events.index_with().stream_aggregate(total, init=100, schema={"total": int}))
    named = totals.index_with("k").join(names.index_with("k"), lambda key, one, other: (other.name, one.total))
    made.output("named", named)
    made.output("large", totals.filter("total > 10").aggregate(n="count(*)"))
    return made


@pytest.mark.parametrize("seed", [0, 1, *slow(*rotating(58))])
def test_random_ticks_equal_the_oracle_over_shards_and_restarts(seed: int, tmp_path: Path) -> None:
    rng, made = Random(f"accumulators {seed}"), circuit()
    options: dict[str, Any] = [{}, {"shards": 3}, {"state": tmp_path / "s"}, {"state": tmp_path / "s", "shards": 2}][seed % 4]
    moments: list[Moment] = [Moment({"events": Relation(), "names": Relation()})]
    names = Relation()
    session = deltic.Session(**options)
    session.install(made)
    for number in range(12):
        if "state" in options and rng.random() < 0.3:
            session.close()
            session = deltic.Session(**options)
            session.install(made)
        events = Relation(((rng.randrange(4), rng.randrange(10)), rng.choice((1, 1, 2))) for _ in range(rng.randrange(5)))
        new = Relation([((number, f"n{number}"), 1)] if number < 4 else [])
        frames = {
            "events": [{"k": k, "v": v, "_weight": weight} for (k, v), weight in events.pairs()],
            "names": [{"k": k, "name": name, "_weight": weight} for (k, name), weight in new.pairs()],
        }
        session.apply(frames)
        names += new
        moment = Moment({"events": events, "names": names})
        for name, plan in made.outputs.items():
            expected = evaluate(plan, moment.tables, past=moments)
            assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, (seed, number, name)
        moments.append(moment)
    session.close()


def test_a_new_view_over_accumulators_begins_with_those_that_there_are() -> None:
    with deltic.Session() as session:
        session.install(circuit())
        session.apply({"events": [{"k": 1, "v": 5, "_weight": 1}, {"k": 2, "v": 7, "_weight": 1}]})
        session.apply({"events": [{"k": 1, "v": 6, "_weight": 1}]})
        session.sql("CREATE MATERIALIZED VIEW more AS SELECT k, total FROM totals WHERE total > 6")
        assert sorted(tuple(row.values()) for row in session.view("more").rows()) == [(1, 11), (2, 7)]
        session.apply({"events": [{"k": 2, "v": 9, "_weight": 1}]})
        assert session.view("more").rows() == [{"k": 1, "total": 11}]
        session.apply({"events": [{"k": 2, "v": 300, "_weight": 1}]})
        assert {"k": 2, "total": 300} in session.view("more").rows(), "a dropped key starts from init"


def test_accumulators_stay_when_the_number_of_shards_changes(tmp_path: Path) -> None:
    """They read an aggregate without keys, whose state on each shard is filled again."""
    tables = "CREATE STREAM s (v BIGINT NOT NULL); CREATE MATERIALIZED VIEW top AS SELECT max(v) AS v FROM s"
    made = deltic.Circuit(deltic.Program(tables))
    tops = made.view("top").filter("v IS NOT NULL").index_with()
    made.output("total", tops.stream_aggregate(lambda held, rows: (held or 0) + rows[0][0].v, schema={"total": int}))
    for shards, value, expected in ((1, 5, 5), (3, 7, 12), (2, 1, 13)):
        with deltic.Session(state=tmp_path / "s", shards=shards) as session:
            session.program(deltic.Program(tables, made))
            session.apply({"s": [{"v": value, "_weight": 1}, {"v": 0, "_weight": 1}]})
            assert session.view("total").rows() == [{"total": expected}]


def test_a_tick_touches_the_rows_of_the_tick_and_their_accumulators() -> None:
    with deltic.Session() as session:
        session.install(circuit())
        session.apply({"events": [{"k": k, "v": 1, "_weight": 1} for k in range(20_000)]})
        session.apply({"events": [{"k": 7, "v": 2, "_weight": 1}]})
        assert session.last_tick is not None
        assert touched_rows(session) < 200


def test_a_function_that_fails_leaves_the_accumulators_as_they_were() -> None:
    made = deltic.Circuit()
    events = made.stream("events", schema=PAIR)
    made.output("halves", events.index_with("k").stream_aggregate(lambda old, group: 100 // group[0][0].v, schema={"half": int}))
    with deltic.Session() as session:
        session.install(made)
        session.apply({"events": [{"k": 1, "v": 5, "_weight": 1}]})
        with pytest.raises(EvaluationError, match="ZeroDivisionError"):
            session.apply({"events": [{"k": 1, "v": 0, "_weight": 1}, {"k": 2, "v": 1, "_weight": 1}]})
        assert session.view("halves").rows() == [{"k": 1, "half": 20}]


def test_a_relation_has_no_stream_aggregate() -> None:
    made = deltic.Circuit()
    table = made.input("t", schema=PAIR)
    made.output("totals", table.index_with("k").stream_aggregate(total, init=0, schema={"total": int}))
    with deltic.Session() as session, pytest.raises(Unsupported, match="stream_aggregate of a relation"):
        session.install(made)
