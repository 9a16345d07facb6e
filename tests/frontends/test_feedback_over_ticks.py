"""Feedback over ticks: a relation that reads itself as of the previous tick, equal to the oracle over shards and restarts."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import CircuitError, DelticError, Unsupported
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from parts import slow
from seeds import rotating

PAIR = {"k": int, "v": int}


def circuit() -> deltic.Circuit:
    """The fold of a stream in bounded memory, by key; with keys that bound it; and relations that grow and shrink by feedback."""
    made = deltic.Circuit()
    events, keys = made.stream("events", schema=PAIR), made.input("keys", schema={"k": int})

    @made.feedback("sums", schema=PAIR)
    def sums(before: deltic.Stream) -> deltic.Stream:
        return events.current().plus(before).index_with("k").aggregate(v="sum(v)").map({"k": "k", "v": "CAST(coalesce(v, 0) AS BIGINT)"})

    made.output("sums", sums)

    @made.feedback("kept", schema=PAIR)
    def kept(before: deltic.Stream) -> deltic.Stream:
        folded = events.current().plus(before).index_with("k").aggregate(v="sum(v)").map({"k": "k", "v": "CAST(coalesce(v, 0) AS BIGINT)"})
        return folded.index_with("k").semijoin(keys.index_with("k"))

    made.output("kept", kept)

    @made.feedback("reached", schema=PAIR)
    def reached(before: deltic.Stream) -> deltic.Stream:
        edges = events.integrate().distinct()
        step = before.index_with("v").join(edges.index_with("k"), lambda key, one, other: (one.k, other.v))
        return edges.plus(step).distinct().filter("k <> v")

    made.output("reached", reached)

    @made.recursive("closure", schema=PAIR)
    def closure(paths: deltic.Stream) -> deltic.Stream:
        step = paths.index_with("v").join(reached.index_with("k"), lambda key, one, other: (one.k, other.v))
        return reached.plus(step).distinct()

    made.output("closure", closure)
    return made


def assert_oracle(session: deltic.Session, made: deltic.Circuit, moments: list[Moment], where: Any) -> None:
    for name, plan in made.outputs.items():
        expected = evaluate(plan, moments[-1].tables, past=moments[:-1])
        assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, (where, name)


@pytest.mark.parametrize("seed", [1, 3, *slow(*rotating(56))])
def test_random_ticks_equal_the_oracle(seed: int, tmp_path: Path) -> None:
    run_against_oracle(seed, [{}, {"shards": 3}, {"state": tmp_path / "s"}, {"state": tmp_path / "s", "shards": 2}][seed % 4])


@pytest.mark.slow
@pytest.mark.spark
def test_feedback_on_spark(spark: Any, tmp_path: Path) -> None:
    run_against_oracle(0, {"spark": spark, "state": tmp_path / "s", "shards": 2})


def run_against_oracle(seed: int, options: dict[str, Any]) -> None:
    """Random ticks; a session with a state is closed and opened again between some of them."""
    rng, made, keys = Random(f"feedback {seed}"), circuit(), Relation()
    moments: list[Moment] = [Moment({"events": Relation(), "keys": keys})]
    session = deltic.Session(**options)
    session.install(made)
    for number in range(10):
        if "state" in options and rng.random() < 0.3:
            session.close()
            session = deltic.Session(**options)
            session.install(made)
        events = Relation(((rng.randrange(5), rng.randrange(5)), 1) for _ in range(rng.randrange(3)))
        change = Relation(((k,), -1 if keys.get((k,), 0) else 1) for k in rng.sample(range(5), rng.randrange(3)))
        session.apply(
            {
                "events": [{"k": k, "v": v, "_weight": weight} for (k, v), weight in events.pairs()],
                "keys": [{"k": k, "_weight": weight} for (k,), weight in change.pairs()],
            }
        )
        keys += change
        moments.append(Moment({"events": events, "keys": keys}))
        assert_oracle(session, made, moments, (seed, number))
    session.close()


def test_a_key_that_is_removed_forgets_its_sum() -> None:
    with deltic.Session() as session:
        session.install(circuit())

        def tick(events: list[tuple[int, int]], keys: int = 0) -> list[tuple[Any, ...]]:
            rows = [{"k": k, "v": v, "_weight": 1} for k, v in events]
            session.apply({"events": rows, "keys": [{"k": 1, "_weight": keys}] if keys else []})
            return [tuple(row.values()) for row in session.view("kept").rows()]

        assert tick([(1, 4)], keys=1) == [(1, 4)]
        assert tick([(1, 6)]) == [(1, 10)]
        assert tick([], keys=-1) == []
        assert tick([(1, 300)], keys=1) == [(1, 300)]


def test_a_view_defined_later_reads_what_is_fed_back() -> None:
    with deltic.Session() as session:
        session.install(circuit())
        for v in (4, 6):
            session.apply({"events": [{"k": 1, "v": v, "_weight": 1}]})
        session.sql("CREATE MATERIALIZED VIEW twice AS SELECT k, 2 * v AS v FROM sums")
        assert session.view("twice").rows() == [{"k": 1, "v": 20}]
        session.apply({"events": [{"k": 1, "v": 1, "_weight": 1}]})
        assert session.view("twice").rows() == [{"k": 1, "v": 22}]


def test_the_fold_of_a_stream_keeps_one_row_for_each_key_however_many_ticks_go_by() -> None:
    made = deltic.Circuit()
    events = made.stream("events", schema=PAIR)

    @made.feedback("most", schema=PAIR)
    def most(before: deltic.Stream) -> deltic.Stream:
        return events.current().plus(before).index_with("k").max("v", name="v").map({"k": "k", "v": "coalesce(v, 0)"})

    made.output("most", most)
    with deltic.Session() as session:
        session.install(made)
        sizes = []
        for number in range(600):
            session.apply({"events": [{"k": k, "v": number, "_weight": 1} for k in range(4)]})
            sizes.append(sum(rows for rows, _ in session._runtime.statistics().values()))
        assert max(sizes[300:]) <= 2 * max(sizes[:300]), "rows are merged away"
        assert [row["v"] for row in session.view("most").rows()] == [599] * 4


def test_what_cannot_be_fed_back_is_an_error() -> None:
    made = deltic.Circuit()
    events = made.stream("events", schema=PAIR)
    with pytest.raises(CircuitError, match="reads only itself"):
        made.feedback("nothing", schema=PAIR)(lambda before: before)
    made.output("plain", made.feedback("plain", schema=PAIR)(lambda before: before.plus(events)))
    with deltic.Session() as session, pytest.raises(Unsupported, match="a stream in a feedback"):
        session.install(made)
    late = deltic.Circuit()
    table = late.input("t", schema=PAIR)
    late.output("late", late.feedback("late", schema=PAIR)(lambda before: table.plus(before.delay()).distinct()))
    with deltic.Session() as session, pytest.raises(DelticError, match="read over ticks in its own body"):
        session.install(late)


def test_joins_below_a_feedback_take_negative_weights() -> None:
    made = deltic.Circuit()
    changes, factors = made.input("changes", schema=PAIR), made.input("factors", schema=PAIR)

    @made.feedback("sums", schema=PAIR)
    def sums(before: deltic.Stream) -> deltic.Stream:
        negative = changes.negate().index_with("k")
        step = before.index_with("k").join(negative, lambda key, one, other: (one.k, one.v))
        return step.negate().plus(factors)

    made.output("sums", sums)
    with deltic.Session() as session:
        session.install(made)
        moments = [Moment({"changes": Relation(), "factors": Relation()})]
        for added in ({"factors": (1, 5)}, {"changes": (1, 0)}, {"changes": (1, 1)}, {}):
            session.apply({name: [{"k": row[0], "v": row[1], "_weight": 1}] for name, row in added.items()})
            held = {name: content + Relation([(added[name], 1)] if name in added else []) for name, content in moments[-1].tables.items()}
            moments.append(Moment(held))
            expected = evaluate(made.outputs["sums"], held, past=moments[:-1])
            assert Relation((tuple(row.values()), 1) for row in session.view("sums").rows()) == expected, added
        assert len(session.view("sums").rows()) > 1


def test_a_feedback_stays_when_the_number_of_shards_changes(tmp_path: Path) -> None:
    """It reads an aggregate without keys, whose state on each shard is filled again."""
    made = deltic.Circuit()
    paid = made.stream("paid", schema={"v": int})

    @made.feedback("total", schema={"s": int | None})
    def total(before: deltic.Stream) -> deltic.Stream:
        greatest = paid.current().index_with().aggregate(s="max(v)")
        return greatest.plus(before).index_with().aggregate(s="sum(s)")

    made.output("total", total)
    for shards, value, expected in ((1, 5, 5), (3, 7, 12), (2, 1, 13)):
        with deltic.Session(state=tmp_path / "s", shards=shards) as session:
            session.install(made)
            session.apply({"paid": [{"v": value, "_weight": 1}, {"v": 0, "_weight": 1}]})
            assert session.view("total").rows() == [{"s": expected}]
