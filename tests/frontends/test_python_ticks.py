"""Operators over ticks, by formulas written down for each, and random circuits of them by the oracle."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import CircuitError, EvaluationError, ImpureFunction, NegativeWeight, Unsupported
from deltic.plan.relation import Relation, Row
from parts import slow
from python_ticks import PAIR, Build, Ticking, random_stream
from session_rows import touched_rows

EMPTY = Relation()
History = list[Relation]
"""A stream: its content after each tick."""


def positive(weight: int) -> int:
    return 1 if weight > 0 else 0


def changed(s: History, t: int) -> Relation:
    return s[t] - (s[t - 1] if t else EMPTY)


def total(s: History, t: int) -> Relation:
    return sum((s[u] for u in range(t + 1)), EMPTY)


def distinct_change(delta: Relation, trace: Relation) -> Relation:
    return Relation((row, positive(trace.get(row, 0) + w) - positive(trace.get(row, 0))) for row, w in delta.pairs())


def joined(a: Relation, b: Relation) -> Relation:
    """a's second column with b's first."""
    return Relation(((x, y), v * w) for (x, key), v in a.pairs() for (other, y), w in b.pairs() if key == other)


def ends(a: deltic.Stream, b: deltic.Stream) -> tuple[deltic.IndexedStream, deltic.IndexedStream]:
    return a.index_with("dst"), b.index_with("src")


def outer(key: int, a: Any, b: Any) -> Any:
    return (a.src, b.dst)


Formula = Callable[[History, History, int], Relation]
FORMULAS: dict[str, tuple[Build, Formula]] = {
    "delay": (lambda e, m: e.delay(), lambda e, m, t: e[t - 1] if t else EMPTY),
    "delay_twice": (lambda e, m: e.delay().delay(), lambda e, m, t: e[t - 2] if t > 1 else EMPTY),
    "integrate": (lambda e, m: e.integrate(), lambda e, m, t: total(e, t)),
    "differentiate": (lambda e, m: e.differentiate(), lambda e, m, t: changed(e, t)),
    "integral of changes": (lambda e, m: e.differentiate().integrate(), lambda e, m, t: e[t]),
    "change of the integral": (lambda e, m: e.integrate().differentiate(), lambda e, m, t: e[t]),
    "delta0": (lambda e, m: e.delta0(), lambda e, m, t: EMPTY if t else e[0]),
    "delta0 of the changes": (lambda e, m: e.delay().differentiate().delta0(), lambda e, m, t: EMPTY),
    "minus": (lambda e, m: e.minus(m), lambda e, m, t: e[t] - m[t]),
    "consolidate": (lambda e, m: e.plus(m).consolidate(), lambda e, m, t: e[t] + m[t]),
    "distinct_incremental": (
        lambda e, m: e.differentiate().distinct_incremental(e.differentiate().integrate().delay_trace()),
        lambda e, m, t: distinct_change(changed(e, t), e[t - 1] if t else EMPTY),
    ),
    "distinct_trace": (
        lambda e, m: e.differentiate().distinct_trace(e.differentiate().trace_append()),
        lambda e, m, t: distinct_change(changed(e, t), e[t - 1] if t else EMPTY),
    ),
    "distinct_trace of a delayed trace": (
        lambda e, m: e.differentiate().distinct_trace(e.differentiate().trace_append().delay_trace()),
        lambda e, m, t: distinct_change(changed(e, t), e[t - 1] if t else EMPTY),
    ),
    "join_stream": (
        lambda e, m: ends(e.differentiate(), m.differentiate())[0].join_stream(m.differentiate().index_with("src"), outer),
        lambda e, m, t: joined(changed(e, t), changed(m, t)),
    ),
    "join_trace": (
        lambda e, m: e.differentiate().index_with("dst").join_trace(m.differentiate().index_with("src").trace_append(), outer),
        lambda e, m, t: joined(changed(e, t), m[t]),
    ),
    "join_trace of a delayed trace": (
        lambda e, m: (
            e.differentiate().index_with("dst").join_trace(m.index_with("src").differentiate().trace_append().delay_trace(), outer)
        ),
        lambda e, m, t: joined(changed(e, t), m[t - 1] if t else EMPTY),
    ),
    "untimed_trace_append": (
        lambda e, m: m.untimed_trace_append(e.differentiate().untimed_trace_append()),
        lambda e, m, t: e[t] + m[t],
    ),
}


def raw(formula: Build) -> Build:
    """With the weights as a column, so that negative ones can be looked at."""
    return lambda e, m: formula(e, m).weighted("w")


def weights(relation: Relation) -> set[Row]:
    return {(*row, weight) for row, weight in relation.pairs()}


def contents(ticking: Ticking, table: str) -> History:
    return [Relation(moment.tables[table].items()) for moment in ticking.moments]


@pytest.mark.parametrize("shards", [1, 3])
def test_each_operator_is_its_formula(shards: int) -> None:
    builds = {name.replace(" ", "_"): raw(build) for name, (build, _) in FORMULAS.items()}
    rng = random.Random(shards)
    with deltic.Session(shards=shards) as session:
        ticking = Ticking(builds, session)
        actual: list[dict[str, set[Row]]] = []
        for _ in range(6):
            ticking.random_tick(rng)
            actual.append({name: {tuple(row.values()) for row in session.view(name).rows()} for name in builds})
    edges, marks = contents(ticking, "edges"), contents(ticking, "marks")
    for t, views in enumerate(actual, 1):
        for name, (_, formula) in FORMULAS.items():
            assert views[name.replace(" ", "_")] == weights(formula(edges, marks, t)), (name, t)
    assert ticking.seen > 100 and ticking.retracted > 30


def test_the_incremental_join_of_the_notes_is_the_change_of_the_join() -> None:
    """join_stream(a, b) + join_trace(a, z⁻¹ b's trace) + join_trace(b, z⁻¹ a's trace), the last one flipped."""

    def incremental(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        a, b = edges.differentiate().index_with("dst"), marks.differentiate().index_with("src")
        flipped = b.join_trace(a.trace_append().delay_trace(), lambda key, y, x: (x.src, y.dst))
        both = a.join_stream(b, outer).plus(a.join_trace(b.trace_append().delay_trace(), outer), flipped)
        return both.minus(edges.index_with("dst").join(marks.index_with("src"), outer).differentiate())

    def recovered(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        change = edges.differentiate()
        return change.distinct_trace(change.trace_append()).integrate().minus(edges.distinct())

    rng = random.Random(5)
    with deltic.Session() as session:
        ticking = Ticking({"nothing": raw(incremental), "nor": raw(recovered)}, session)
        for _ in range(8):
            ticking.random_tick(rng)
            assert session.view("nothing").rows() == session.view("nor").rows() == []


def test_a_trace_has_the_epoch_of_each_change() -> None:
    with deltic.Session() as session:
        ticking = Ticking({"trace": lambda e, m: deltic.Stream(e.differentiate().trace_append().plan).weighted()}, session)
        epochs = []
        for weight in (1, 2, -1):
            ticking.tick({"edges": {(1, 2): weight}})
            epochs.append(session.epoch)
        assert [tuple(row.values()) for row in session.view("trace").rows()] == [
            (1, 2, epoch, weight) for epoch, weight in zip(epochs, (1, 2, -1), strict=True)
        ]


def random_build(seed: float) -> Build:
    return lambda edges, marks: random_stream(random.Random(seed), edges, marks).weighted("w")


@pytest.mark.parametrize("shards", [3, *slow(1)])
def test_random_circuits_over_ticks_equal_the_oracle(shards: int, tmp_path: Path) -> None:
    """Restarted from state half way; of negative weights they show what they are."""
    seen = retracted = 0
    for seed in range(4):
        rng = random.Random(100 * shards + seed)
        builds = {f"v{i}": random_build(rng.random()) for i in range(4)}
        with deltic.Session(state=str(tmp_path / str(seed)), shards=shards) as session:
            ticking = Ticking(builds, session)
            for _ in range(3):
                ticking.random_tick(rng)
        with deltic.Session(state=str(tmp_path / str(seed))) as session:
            ticking.open(session)
            for _ in range(3):
                ticking.random_tick(rng)
        seen, retracted = seen + ticking.seen, retracted + ticking.retracted
    assert seen > 70 and retracted > 10


def test_another_number_of_shards_keeps_what_was(tmp_path: Path) -> None:
    """Also where a top-k of each shard before it, which is filled again, is not where it was."""
    builds: dict[str, Build] = {
        "all": lambda e, m: e.top_k(3, "src, dst").integrate(),
        "last": lambda e, m: e.top_k(3, "dst DESC").delay(),
        "stamped": lambda e, m: deltic.Stream(e.trace_append().plan).weighted(),
    }
    rng = random.Random(3)
    with deltic.Session(state=str(tmp_path / "state"), shards=2) as session:
        ticking = Ticking(builds, session)
        for _ in range(4):
            ticking.random_tick(rng)
    for shards in (3, 1):
        with deltic.Session(state=str(tmp_path / "state"), shards=shards) as session:
            ticking.open(session)
            for _ in range(2):
                ticking.random_tick(rng)


def test_a_new_view_of_old_streams_sees_what_they_hold() -> None:
    rng = random.Random(8)
    with deltic.Session() as session:
        ticking = Ticking({"last": lambda e, m: e.delay(), "sum": lambda e, m: e.integrate()}, session)
        for _ in range(3):
            ticking.random_tick(rng)
        edges = deltic.Stream(next(iter(ticking.circuit.outputs.values()))).plan.input
        later = deltic.Circuit()
        later.output("both", deltic.Stream(edges).delay().plus(deltic.Stream(edges).integrate()))
        session.install(later)
        ticking.circuit.outputs["both"] = later.outputs["both"]
        ticking.moments.pop()
        ticking.check()
        for _ in range(3):
            ticking.random_tick(rng)


def test_delay_in_a_recursion_is_of_the_iteration_before() -> None:
    def build(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        circuit = deltic.Circuit()

        @circuit.recursive("paths", schema=PAIR)
        def paths(paths: deltic.Stream) -> deltic.Stream:
            late = paths.delay().index_with("dst")
            return edges.plus(late.join(paths.index_with("src"), outer)).distinct()

        return paths

    rng = random.Random(4)
    with deltic.Session() as session:
        ticking = Ticking({"paths": build}, session)
        for _ in range(8):
            ticking.random_tick(rng)
    assert ticking.retracted


@pytest.mark.parametrize(
    ("operator", "named"),
    [
        (lambda s: s.integrate(), "by integrate"),
        (lambda s: s.delta0(), "by delta0"),
        (lambda s: s.differentiate(), "repeat_row"),
        (lambda s: deltic.Stream(s.trace_append().consolidate().plan), "by integrate"),
        (lambda s: s.weighted().map(lambda row: (row.src, row.dst)), "with its weights"),
        (lambda s: s.index_with("src").top_k(1, "dst"), "ORDER BY"),
        (lambda s: s.index_with("src").aggregate(len, schema={"dst": int}), "by a function of whole groups"),
    ],
)
def test_a_recursion_that_is_not_monotone_is_refused(operator: Callable[[deltic.Stream], deltic.Stream], named: str) -> None:
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)
    with pytest.raises(Unsupported, match=named):
        circuit.recursive("paths", schema=PAIR)(lambda paths: edges.plus(operator(paths)).distinct())


def test_rows_of_negative_weight_are_no_content_of_an_output() -> None:
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)
    circuit.output("changes", edges.differentiate())
    with deltic.Session() as session:
        session.install(circuit)
        with session.transaction() as tx:
            tx.insert("edges", [{"src": 1, "dst": 2}])
        with pytest.raises(NegativeWeight, match=r"\(1, 2\) would have the weight -1[\s\S]*weighted"), session.transaction() as tx:
            tx.delete("edges", [{"src": 1, "dst": 2}])
        assert session.view("changes").rows() == [{"src": 1, "dst": 2}]


def spread(group: Any) -> tuple[int, int]:
    values = [row.dst for row, times in group for _ in range(times)]
    return max(values) - min(values), len(values)


def middle(group: Any) -> Any:
    for row, times in group:
        if times > 1 or row.dst % 2:
            yield row.dst, times


GROUPS: dict[str, Build] = {
    "spread": lambda e, m: e.index_with("src").aggregate(spread, schema={"spread": int, "n": int}),
    "rows": lambda e, m: e.index_with("src").aggregate(middle, schema={"dst": int, "times": int}),
    "all": lambda e, m: e.index_with().aggregate(lambda g: f"{[tuple(r) for r, _ in g]}", schema={"text": str | None}),
    "by_function": lambda e, m: e.index_with(lambda r: r.src % 2, schema={"odd": int}).aggregate(len, schema={"n": int}),
    "top": lambda e, m: e.index_with("src").top_k(2, "dst DESC"),
    "top_of_texts": lambda e, m: e.map({"k": "src", "s": "repeat(concat(dst, 'x'), 1 + dst * 40)"}).index_with("k").top_k(2, "s DESC"),
    "top_of_ties": lambda e, m: e.plus(m).index_with("dst").top_k(3, "src % 2"),
    "top_by_text": lambda e, m: e.map({"k": "concat('key', src)", "d": "dst"}).index_with("k").top_k(1, "d"),
    "top_zero": lambda e, m: e.index_with("src").top_k(0, "dst"),
}


@pytest.mark.parametrize("shards", [1, 3])
def test_groups_equal_the_oracle(shards: int) -> None:
    rng = random.Random(shards)
    with deltic.Session(shards=shards) as session:
        ticking = Ticking(GROUPS, session)
        for _ in range(10):
            ticking.random_tick(rng, 5, 6)
    assert ticking.seen > 200 and ticking.retracted > 40


def test_the_first_of_long_texts_with_one_beginning() -> None:
    """Whose order words are alike: the bytes decide, group by group."""
    rng = random.Random(2)
    circuit = deltic.Circuit()
    notes = circuit.input("notes", schema={"k": int, "s": str})
    circuit.output("top", notes.index_with("k").top_k(2, "s DESC"))
    rows: set[tuple[int, str]] = set()
    with deltic.Session() as session:
        session.install(circuit)
        for _ in range(12):
            chosen = {(rng.randrange(3), "a" * 200 + rng.choice("bcdefg")) for _ in range(3)}
            session.apply({"notes": [{"k": k, "s": s, "_weight": -1 if (k, s) in rows else 1} for k, s in chosen]})
            rows ^= chosen
            actual = {(row["k"], row["s"]) for row in session.view("top").rows()}
            assert actual == {(k, s) for k in range(3) for s in sorted((s for j, s in rows if j == k), reverse=True)[:2]}


def test_only_the_groups_that_change_are_computed_again() -> None:
    calls: list[int] = []

    class Counting:
        def __call__(self, group: Any) -> int:
            calls.append(group[0][0].src)
            return len(group)

    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)
    circuit.output("sizes", edges.index_with("src").aggregate(Counting(), schema={"n": int}))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"edges": [{"src": i, "dst": j, "_weight": 1} for i in range(40) for j in range(5)]})
        calls.clear()
        session.apply({"edges": [{"src": 7, "dst": 9, "_weight": 1}]})
        assert set(calls) == {7} and session.last_tick is not None
        assert touched_rows(session) < 40
        assert {"src": 7, "n": 6} in session.view("sizes").rows()


def failing(function: Callable[[Any], Any], **schema: Any) -> None:
    with deltic.Session() as session:
        ticking = Ticking({"out": lambda e, m: e.index_with("src").aggregate(function, schema=schema or {"n": int})}, session)
        session.apply({"edges": [{"src": 1, "dst": 2, "_weight": 1}]})
        raise AssertionError(ticking.session.view("out").rows())


@pytest.mark.usefixtures("repeated_calls")
def test_errors_of_a_function_of_groups_name_it() -> None:
    state: list[int] = []
    with pytest.raises(EvaluationError, match="raised ZeroDivisionError"):
        failing(lambda group: 1 // 0)
    with pytest.raises(EvaluationError, match=r"returned 'x'[\s\S]*BIGINT NOT NULL"):
        failing(lambda group: "x")
    with pytest.raises(EvaluationError, match="a tuple of 2 values"):
        failing(lambda group: [(1, 2), 3], a=int, b=int)
    with pytest.raises(ImpureFunction, match="returned 1 and then 2"):
        failing(lambda group: state.append(1) or len(state))
    with pytest.raises(CircuitError, match="with a function and SQL"):
        Ticking({"out": lambda e, m: e.index_with("src").aggregate(spread, n="count(*)")}, deltic.Session())


def test_inspect_sees_each_change_and_changes_nothing(tmp_path: Path) -> None:
    seen: list[Any] = []
    other: list[Any] = []

    def build(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        watched = edges.inspect(seen.append).inspect(other.append)
        return watched.index_with("src").inspect(lambda change: None).join(marks.index_with("src"), outer)

    with deltic.Session(state=str(tmp_path)) as session:
        ticking = Ticking({"out": build, "all": lambda e, m: e.differentiate().inspect(seen.append).weighted()}, session)
        ticking.tick({"edges": {(2, 1): 1, (1, 2): 2}})
        assert other == [(((1, 2), 2), ((2, 1), 1))] and seen == [other[0], other[0]]
        assert seen[0][0][0].dst == 2
        seen.clear()
        ticking.tick({"edges": {(1, 2): -1}})
        assert seen == [(((1, 2), -1),), (((1, 2), -3), ((2, 1), -1))]
        seen.clear()
        ticking.tick({"marks": {(1, 1): 1}})
        assert seen == [(((1, 2), 1),)] and len(other) == 2
        arrangements = set(session.notes["arrangements"])
    with deltic.Session(state=str(tmp_path)) as session:
        epoch = session.epoch
        ticking.open(session)
        assert session.epoch == epoch and set(session.notes["arrangements"]) == arrangements


def test_inspect_in_a_recursion_sees_each_iteration() -> None:
    seen: list[Any] = []

    def build(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        circuit = deltic.Circuit()

        @circuit.recursive("paths", schema=PAIR)
        def paths(paths: deltic.Stream) -> deltic.Stream:
            step = paths.index_with("dst").join(edges.index_with("src"), outer)
            return edges.plus(step.inspect(seen.append)).distinct()

        return paths

    with deltic.Session() as session:
        ticking = Ticking({"paths": build}, session)
        ticking.tick({"edges": {(1, 2): 1, (2, 3): 1, (3, 4): 1}})
    assert [sorted(tuple(row) for row, _ in change) for change in seen] == [[(1, 3), (2, 4)], [(1, 4)]]


def test_an_inspector_that_raises_fails_the_tick() -> None:
    with deltic.Session() as session:
        ticking = Ticking({"out": lambda e, m: e.inspect(lambda change: 1 // 0)}, session)
        with pytest.raises(EvaluationError, match="raised ZeroDivisionError"):
            ticking.tick({"edges": {(1, 2): 1}})
        assert session.view("out").rows() == []
