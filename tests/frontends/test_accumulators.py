"""Accumulators by init, step and retract, with sets, maps and objects: equal to the oracle, in proportion to what changes, and atomic."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import CircuitError, DelticError, EvaluationError
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from interruptions import raising
from parts import slow
from seeds import rotating
from session_rows import touched_rows

EVENT = {"k": int, "page": str, "v": float}
PAGES = ("", "a", "b", "ü", "a long page that has more than twenty-three characters")
VALUES = (0.0, -0.0, 1.5, float("nan"), 9.0)


class Best:
    """An object that is stored as text: the two greatest values so far."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def add(self, value: float) -> None:
        self.values = sorted({*self.values, value})[-2:]


def encoded(best: Best) -> str:
    return json.dumps(best.values)


def decoded(text: str) -> Best:
    return Best(json.loads(text))


def visited(pages: Any, row: Any) -> Any:
    """The set of pages; a value of 9 drops the key, and one of 1.5 removes the page."""
    if row.v == 9:
        return None
    if row.v == 1.5:
        pages.discard(row.page)
    else:
        pages.add(row.page)
    return pages


def visits(held: Any, row: Any) -> Any:
    """Sets and maps beside other columns, read in every way."""
    if row.page in held.pages:
        held.last[row.page] = row.v if row.v == row.v else None
    else:
        held.pages.add(row.page)
    held.values.add(row.v)
    if len(held.pages) == 4:
        held.last.pop(min(held.pages), None)
        held.pages.remove(row.page)
    if row.v == 1.5 and held.last:
        held.last.clear()
    if row.page == "b" and row.v == 9:
        return None
    text = ",".join(f"{page}={held.last.get(page, 0)}" for page in held.last)
    return held.n + 1, held.pages, held.last, f"{len(held.pages)} {len(held.last)} {text}", held.values


def in_ticks(pages: Any, rows: tuple[tuple[Any, int], ...]) -> Any:
    """A function of a tick's rows: the pages of the last tick that has some."""
    pages.clear()
    pages.update(row.page for row, _ in rows)
    return None if len(rows) > 2 else pages


def best(held: Best, row: Any) -> Best | None:
    held.add(row.v if row.v == row.v else 0.0)
    return held if row.v != 9 else None


def counted(pages: Any, row: Any) -> Any:
    pages[row.page] = pages.get(row.page, 0) + 1
    return pages


def uncounted(pages: Any, row: Any) -> Any:
    pages[row.page] = pages.get(row.page, 0) - 1
    if not pages[row.page]:
        del pages[row.page]
    return pages or None


def circuit() -> deltic.Circuit:
    made = deltic.Circuit()
    events = made.stream("events", schema=EVENT)
    by_key = events.index_with("k")
    seen = by_key.stream_aggregate(step=visited, init={"a", "home"}, schema={"pages": deltic.SetOf(str)})
    made.output("keys", seen)
    made.output("seen", seen.elements("pages"))
    made.output("sizes", seen.elements("pages").index_with("k").aggregate(n="count(*)"))
    columns = {
        "n": int,
        "pages": deltic.SetOf(str),
        "last": deltic.MapOf(str, float | None),
        "text": str | None,
        "values": deltic.SetOf(float),
    }
    mixed = by_key.stream_aggregate(step=visits, init=(0, None, {"a": None}, None, None), schema=columns, every=2)
    made.output("mixed", mixed)
    for name in ("pages", "last", "values"):
        made.output(f"mixed_{name}", mixed.elements(name))
    made.output("ticks", by_key.stream_aggregate(in_ticks, schema={"pages": deltic.SetOf(str)}).elements("pages"))
    made.output("best", by_key.stream_aggregate(step=best, init=Best([]), schema={"best": deltic.Encoded(encoded, decoded, str)}))
    everything = events.index_with().stream_aggregate(step=visited, schema={"pages": deltic.SetOf(str)})
    made.output("all", everything.elements("pages"))
    signed = events.explode(lambda row: [(row.k, row.page, -1 if row.v == 0 else 1)], schema={"k": int, "page": str})
    both = signed.index_with("k").stream_aggregate(step=counted, retract=uncounted, schema={"pages": deltic.MapOf(str, int)})
    made.output("counted", both.elements("pages"))
    made.output("counted_keys", both)
    return made


def random_events(rng: Random, most: int) -> Relation:
    def event() -> tuple[int, str, float]:
        return rng.randrange(3), rng.choice(PAGES), rng.choices(VALUES, (3, 3, 2, 2, 1))[0]

    return Relation((event(), rng.choice((1, 1, 2))) for _ in range(rng.randrange(most)))


@pytest.mark.parametrize("seed", [0, 1, *slow(*rotating(58))])
def test_random_ticks_equal_the_oracle_over_shards_and_restarts(seed: int, tmp_path: Path) -> None:
    rng, made = Random(f"accumulators with sets {seed}"), circuit()
    options: dict[str, Any] = [{"state": tmp_path / "s", "shards": 2}, {}, {"shards": 3}, {"state": tmp_path / "s"}][seed % 4]
    moments = [Moment({"events": Relation()})]
    session = deltic.Session(**options)
    session.install(made)
    before = {name: Relation() for name in made.outputs}
    last = session.epoch
    for number in range(10):
        if "state" in options and rng.random() < 0.3:
            session.close()
            session = deltic.Session(**{**options, "shards": rng.choice((1, 2, 3))})
            opened = session.epoch
            session.install(made)
            last = last if session.epoch == opened else session.epoch
        events = random_events(rng, 7)
        session.apply({"events": [{**dict(zip(EVENT, row, strict=True)), "_weight": weight} for row, weight in events.pairs()]})
        for name, plan in made.outputs.items():
            expected = evaluate(plan, {"events": events}, past=moments, epoch=session.epoch, since=last + 1)
            assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, (seed, number, name)
            changes = session.view(name).changes().to_pylist()
            assert Relation((tuple(row.values())[:-1], row["_weight"]) for row in changes) == expected - before[name], (seed, number, name)
            before[name] = expected
        moments.append(Moment({"events": events}, epoch=session.epoch, since=last + 1))
        last = session.epoch
    session.close()


def test_a_new_view_begins_with_the_elements_that_there_are() -> None:
    with deltic.Session() as session:
        session.install(circuit())
        session.apply({"events": [{"k": 1, "page": page, "v": 0.0, "_weight": 1} for page in "xyx"]})
        session.sql("CREATE MATERIALIZED VIEW late AS SELECT element FROM seen WHERE k = 1")
        assert sorted(row["element"] for row in session.view("late").rows()) == ["a", "home", "x", "y"]


def adding(values: Any, row: Any) -> Any:
    if row.v in values:
        return values
    values.add(row.v)
    assert len(values) > 0
    return values


def growing(sizes: Iterator[int]) -> list[int]:
    """The rows that a tick that adds one value touches, in a set of each size."""
    touched = []
    made = deltic.Circuit()
    rows = made.stream("rows", schema={"k": int, "v": int})
    made.output("values", rows.index_with("k").stream_aggregate(step=adding, schema={"values": deltic.SetOf(int)}).elements("values"))
    with deltic.Session() as session:
        session.install(made)
        size = 0
        for most in sizes:
            session.apply({"rows": [{"k": 1, "v": value, "_weight": 1} for value in range(size, most)]})
            session.apply({"rows": [{"k": 1, "v": most, "_weight": 1}]})
            assert session.last_tick is not None
            touched.append(touched_rows(session))
            assert session.view("values").changes().to_pylist() == [{"k": 1, "element": most, "_weight": 1}]
            size = most + 1
    return touched


def test_one_more_value_costs_one_value() -> None:
    """It is looked up in the indexes of few batches, and copies no other."""
    assert max(growing(iter((100, 3_000)))) < 400


@pytest.mark.slow
def test_one_more_value_of_a_million_costs_one_value() -> None:
    assert max(growing(iter((1_000, 1_000_000)))) < 2_000


FAILURES: dict[str, type[BaseException]] = {"error": ValueError, "memory": MemoryError, "interrupt": KeyboardInterrupt}


def failing(kind: str, calls: list[int]) -> Any:
    """`visits` that fails at the call whose number is in `calls`, after it has changed its accumulator."""

    def step(held: Any, row: Any) -> Any:
        result = visits(held, row)
        calls[0] -= 1
        if not calls[0]:
            raise FAILURES[kind]("at a call")
        return result

    return step


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("state", [False, True])
def test_a_failed_tick_leaves_nothing(kind: str, state: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.purity.REPEATED", False)
    calls = [0]
    made = deltic.Circuit()
    columns = {"n": int, "pages": deltic.SetOf(str), "last": deltic.MapOf(str, float | None), "text": str, "values": deltic.SetOf(float)}
    by_key = made.stream("events", schema=EVENT).index_with("k")
    held = by_key.stream_aggregate(step=failing(kind, calls), init=(0, None, None, "", None), schema=columns)
    made.output("plain", held)
    made.output("pages", held.elements("pages"))
    made.output("values", held.elements("values"))
    ticks = [
        [{"k": k, "page": PAGES[(k + i) % 5], "v": VALUES[i % 3], "_weight": 1} for k in range(3) for i in range(3)],
        [{"k": k, "page": PAGES[k], "v": 9.0, "_weight": 1} for k in range(3)],
    ]
    with deltic.Session() as untouched, deltic.Session(**({"state": tmp_path / "s"} if state else {})) as session:
        for one in (untouched, session):
            one.install(made)
        for tick in ticks:
            untouched.apply({"events": tick})
            for call in range(1, len(tick) + 1, 2):
                before, calls[0] = [session.view(name).rows() for name in made.outputs], call
                with pytest.raises((DelticError, KeyboardInterrupt)):
                    session.apply({"events": tick})
                assert [session.view(name).rows() for name in made.outputs] == before
            calls[0] = 0
            session.apply({"events": tick})
            for name in made.outputs:
                assert repr(session.view(name).rows()) == repr(untouched.view(name).rows())


@pytest.mark.parametrize(
    ("kind", "stride"),
    [(KeyboardInterrupt, 701), *(pytest.param(kind, 97, marks=pytest.mark.slow) for kind in (KeyboardInterrupt, MemoryError))],
)
def test_a_tick_interrupted_at_any_line_happens_as_a_whole_or_not(
    kind: type[BaseException], stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltic.purity.REPEATED", False)
    made, rng, interrupted = circuit(), Random(1), 0

    def contents(session: deltic.Session) -> dict[str, str]:
        return {name: repr(session.view(name).rows()) for name in made.outputs}

    with deltic.Session() as untouched, deltic.Session() as session:
        for one in (untouched, session):
            one.install(made)
        for _ in range(3):
            rows = [{**dict(zip(EVENT, row, strict=True)), "_weight": weight} for row, weight in random_events(rng, 8).pairs()]
            before = contents(untouched)
            untouched.apply({"events": rows})
            after, line = contents(untouched), stride
            while contents(session) != after or session.epoch < untouched.epoch:
                assert contents(session) == before
                try:
                    with raising(kind, line):
                        session.apply({"events": rows})
                except (kind, DelticError):
                    interrupted += 1
                line += stride
    assert interrupted > 5


def test_rows_of_negative_weight_require_retract() -> None:
    made = deltic.Circuit()
    signed = made.stream("s", schema={"k": int}).negate()
    made.output("n", signed.index_with("k").stream_aggregate(step=lambda n, row: n + 1, init=0, schema={"n": int}))
    with deltic.Session() as session:
        session.install(made)
        with pytest.raises(EvaluationError, match=r"reads Row\(k=1\) with weight -1") as error:
            session.apply({"s": [{"k": 1, "_weight": 1}]})
        assert "retract=" in str(error.value)


@pytest.mark.parametrize(
    ("step", "schema", "message"),
    [
        (lambda held, row: {1}, {"a": deltic.SetOf(int)}, "for a; expected: the accumulator's set"),
        (lambda held, row: held.add("x") or held, {"a": deltic.SetOf(int)}, "has 'x' as an element of a; expected: BIGINT NOT NULL"),
        (lambda held, row: held.update({1: "x"}) or held, {"a": deltic.MapOf(int, float)}, "has 'x' as a value of a; expected: DOUBLE"),
        (lambda held, row: held.update({None: 1}) or held, {"a": deltic.MapOf(int, float)}, "has None as a key of a"),
        (lambda held, row: held, {"a": deltic.SetOf(int), "n": int}, "returned None; expected: BIGINT NOT NULL"),
        (lambda held, row: held.a, {"a": deltic.SetOf(int), "n": int}, "expected: a tuple of 2 values"),
        (lambda held, row: held[5], {"a": deltic.MapOf(int, int)}, "raised KeyError: 5"),
    ],
)
def test_what_a_step_must_return(step: Any, schema: Any, message: str) -> None:
    made = deltic.Circuit()
    made.output("n", made.stream("s", schema={"k": int}).index_with("k").stream_aggregate(step=step, schema=schema))
    with deltic.Session() as session:
        session.install(made)
        with pytest.raises(EvaluationError) as error:
            session.apply({"s": [{"k": 1, "_weight": 1}]})
        assert message in str(error.value).replace("\n", "; ")


def same(held: Any, row: Any) -> Any:
    return held


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": {"n": int}}, "without one function"),
        ({"function": same, "step": same, "schema": {"n": int}}, "without one function"),
        ({"function": same, "retract": same, "schema": {"n": int}}, "without one function"),
        ({"step": lambda one: one, "schema": {"n": int}}, "cannot be called with"),
        ({"step": same, "schema": {"n": deltic.SetOf("MAP<INT, INT>")}}, "column n: MAP<INT, INT> as element of a set or map"),
        ({"step": same, "schema": {"n": deltic.MapOf(int | None, int)}}, "column n: NULL as key of a set or map"),
        ({"step": same, "schema": {"n": deltic.SetOf(list)}}, "column n: invalid type"),
        ({"step": same, "schema": {"n": deltic.Encoded(pickle.dumps, pickle.loads)}}, "could run code from the state"),
        ({"step": same, "schema": {"n": int}, "init": "x"}, "init has 'x' for column n"),
        ({"step": same, "schema": {"n": int, "m": int}, "init": 0}, "init is 0"),
        ({"step": same, "schema": {"n": deltic.SetOf(int)}, "init": {1: 2}}, "init has {1: 2} for column n"),
        ({"step": same, "schema": {}}, "a schema without columns"),
    ],
)
def test_invalid_accumulators(options: dict[str, Any], message: str) -> None:
    events = deltic.Circuit().stream("s", schema={"k": int})
    with pytest.raises(CircuitError) as error:
        events.index_with("k").stream_aggregate(**options)
    assert message in str(error.value)


def test_elements_of_what_is_no_set() -> None:
    events = deltic.Circuit().stream("s", schema={"k": int}).index_with("k")
    held = events.stream_aggregate(step=same, schema={"n": int, "a": deltic.SetOf(int)})
    with pytest.raises(CircuitError, match="the accumulators have no set or map n") as error:
        held.elements("n")
    assert "expected: a" in str(error.value)
