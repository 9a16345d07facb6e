"""Window functions: the circuit's rows equal the oracle's after every tick, and a change touches what it changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.expr import Literal, resolve
from deltic.expr.nodes import Cast, Column
from deltic.optimizer import optimize
from deltic.optimizer.limit_windows import reads_no_later_rows
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Filter, Order, Plan, Table
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.window_nodes import UNBOUNDED, Edge, Window, WindowCall, WindowFrame
from deltic.runtimes.embedded import DurableEmbedded
from deltic.schema import BIGINT, DOUBLE, INT, STRING, Field, Schema, TableSchema
from engines import Engine, durable, embedded
from parts import slow
from seeds import rotating
from session_rows import touched_rows

LONG = "a string of more than twenty-four bytes: "
T = TableSchema("t", Schema((Field("g", INT), Field("x", DOUBLE), Field("s", STRING), Field("n", BIGINT, False))))
TABLE = Table(T)
G, X, S, N = (Column(i, field.type, field.nullable, field.name) for i, field in enumerate(T.schema))
G_TEXT = Cast(G, STRING, True)
VALUES = (
    (None, 1, 2),
    (None, -0.0, 0.0, 1.5, math.nan, -math.inf),
    (None, "", "a", "ab", "b", LONG + "1", LONG + "2", LONG + "0"),
    (1, 2, 3),
)
COUNT = AggregateCall("count", (), BIGINT, False)
ROWS = WindowFrame(Edge("rows", -2), Edge("rows", 1))
CALLS = (
    WindowCall("lag", BIGINT, True, (N,)),
    WindowCall("lag", STRING, True, (S, G_TEXT), number=2),
    WindowCall("lead", DOUBLE, True, (X,), number=3),
    WindowCall("lead", INT, True, (G,), number=0),
    WindowCall("lag", INT, True, (G,), ignore_nulls=True),
    WindowCall("lag", STRING, True, (S, G_TEXT), 2, True),
    WindowCall("lead", DOUBLE, True, (X,), 3, True),
    WindowCall("lead", INT, True, (G,), 0, True),
    WindowCall("first_value", INT, True, (G,), frame=ROWS),
    WindowCall("last_value", STRING, True, (S,), ignore_nulls=True, frame=WindowFrame(Edge("rows", -3), Edge("rows", -1))),
    WindowCall("first_value", DOUBLE, True, (X,), ignore_nulls=True, frame=ROWS),
    WindowCall("nth_value", BIGINT, True, (N,), number=2, frame=WindowFrame(Edge("rows", 1), Edge("rows", 3))),
    WindowCall("first_value", DOUBLE, True, (X,), frame=WindowFrame(UNBOUNDED, Edge("peers"))),
    WindowCall("last_value", STRING, True, (S,), frame=WindowFrame(Edge("rows", -1), UNBOUNDED)),
    WindowCall("last_value", DOUBLE, True, (X,), ignore_nulls=True),
    WindowCall("first_value", STRING, True, (S,), ignore_nulls=True),
    WindowCall("nth_value", INT, True, (G,), frame=WindowFrame(UNBOUNDED, Edge("rows", 1))),
    WindowCall("row_number", INT, False),
    WindowCall("rank", INT, False),
    WindowCall("dense_rank", INT, False),
    WindowCall("percent_rank", DOUBLE, False),
    WindowCall("cume_dist", DOUBLE, False),
    WindowCall("ntile", INT, False, number=3),
    WindowCall("aggregate", BIGINT, False, frame=WindowFrame(UNBOUNDED, Edge("peers")), aggregate=COUNT),
    WindowCall("aggregate", BIGINT, False, aggregate=COUNT),
    WindowCall("aggregate", BIGINT, True, aggregate=AggregateCall("sum", (N,), BIGINT, True)),
    WindowCall("aggregate", DOUBLE, True, aggregate=AggregateCall("max", (X,), DOUBLE, True)),
)
SUMS = (
    AggregateCall("sum", (N,), BIGINT, True),
    AggregateCall("sum", (X,), DOUBLE, True),
    AggregateCall("count", (S,), BIGINT, False),
    AggregateCall("avg", (G,), DOUBLE, True),
    AggregateCall("count", (), BIGINT, False, filter=resolve(">", [N, Literal(1, BIGINT)])),
)
OTHERS = (
    AggregateCall("max", (X,), DOUBLE, True),
    AggregateCall("min", (S,), STRING, True),
    AggregateCall("min_by", (S, N), STRING, True),
    AggregateCall("max", (N,), BIGINT, True, filter=resolve(">", [G, Literal(1, INT)])),
)
WHOLE_LISTS = (
    AggregateCall("median", (X,), DOUBLE, True),
    AggregateCall("mode", (S,), STRING, True),
    AggregateCall("count", (N,), BIGINT, False, distinct=True),
    AggregateCall("count", (X,), BIGINT, False, distinct=True, filter=resolve(">", [N, Literal(1, BIGINT)])),
)
PEERS, ROW = Edge("peers"), Edge("rows")
OF_PEERS = tuple(
    WindowFrame(*edges) for edges in ((UNBOUNDED, PEERS), (PEERS, UNBOUNDED), (PEERS, PEERS), (UNBOUNDED, ROW), (ROW, UNBOUNDED))
)
OF_ROWS = tuple(WindowFrame(Edge("rows", start), Edge("rows", end)) for start, end in ((-2, 0), (-1, 2), (1, 2), (-3, -2)))
SHIFTED = tuple(
    frame for rows in (-2, -1, 1, 2) for frame in (WindowFrame(UNBOUNDED, Edge("rows", rows)), WindowFrame(Edge("rows", rows), UNBOUNDED))
)


def window(rng: Random) -> Window:
    keys = rng.sample([G, S, X], rng.choice([0, 1, 1, 2]))
    terms = rng.sample([X, S, N, G], rng.choice([1, 1, 2]))
    order = tuple(Order(term, rng.random() < 0.5, rng.random() < 0.5) for term in terms)
    frames = (*OF_PEERS, *OF_ROWS, rng.choice(SHIFTED), *(by_distance(order[0]) if len(terms) == 1 and terms[0] != S else ()))
    calls = [rng.choice(CALLS) if rng.random() < 0.5 else over_frame(rng, frames) for _ in range(rng.choice([1, 2, 3]))]
    return Window(TABLE, tuple(keys), order, tuple((f"c{i}", call) for i, call in enumerate(calls)))


def over_frame(rng: Random, frames: Sequence[WindowFrame]) -> WindowCall:
    frame = rng.choice(frames)
    if rng.random() < 0.4:
        value, function = rng.choice([G, X, S, N]), rng.choice(["first_value", "last_value", "nth_value"])
        return WindowCall(function, value.type, True, (value,), rng.randint(1, 3), rng.random() < 0.5, frame)
    call = rng.choice(SUMS + OTHERS + WHOLE_LISTS)
    return WindowCall("aggregate", call.type, call.nullable, frame=frame, aggregate=call)


def by_distance(term: Order) -> tuple[WindowFrame, ...]:
    """Frames by RANGE with distances."""
    distance = Literal(1.5, DOUBLE) if term.expr == X else Literal(1, term.expr.type)
    back, ahead = (Edge("range", limit=resolve(sign, [term.expr, distance])) for sign in ("+-" if term.descending else "-+"))
    edges = ((back, PEERS), (back, ahead), (UNBOUNDED, back), (ahead, UNBOUNDED), (PEERS, ahead), (UNBOUNDED, ahead))
    return tuple(WindowFrame(*pair) for pair in edges)


def changed(rng: Random, content: Relation) -> Relation:
    """A random change that leaves no negative weight."""
    change = Relation()
    for _ in range(rng.choice([1, 1, 3, 8])):
        present = [row for row, copies in (content + change).pairs() if copies > 0]
        if present and rng.random() < 0.4:
            change += Relation([(rng.choice(present), -1)])
        else:
            change += Relation([(tuple(rng.choice(values) for values in VALUES), rng.choice([1, 1, 2]))])
    return change


def check(seed: int, engine_of: Callable[[dict[str, Plan], int], Engine]) -> None:
    """Two windows over random changes."""
    rng = Random(seed)
    views: dict[str, Plan] = {f"v{i}": window(rng) for i in range(2)}
    engine = engine_of(views, 1 + 2 * (seed % 2))
    content = Relation()
    for number in range(4):
        change = changed(rng, content)
        content += change
        result = engine.tick({"t": change.pairs()})
        for name, plan in views.items():
            where = f"seed {seed}, tick {number}: {show(plan)}"
            before = evaluate(plan, {"t": content - change})
            after = evaluate(plan, {"t": content})
            assert engine.view(name) == after, where
            assert engine.change(name, result) == after - before, where


def test_windows_equal_the_oracle_after_every_tick() -> None:
    for seed in range(30):
        check(seed, lambda views, shards: embedded({"t": T}, views, shards))


@pytest.mark.parametrize("seeds", [range(100, 110), *slow(rotating(400))], ids=len)
def test_windows_of_few_changes(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in large partitions: no partition is added up whole, and skip lists have levels."""
    monkeypatch.setattr("deltic.circuit.key_frames.MANY", 0)
    monkeypatch.setattr("deltic.circuit.operators.frame_sums.FEW", 2)
    monkeypatch.setattr("deltic.circuit.operators.row_frame_sums.MANY", 0)
    monkeypatch.setattr("deltic.circuit.operators.frame_extremes.MANY", 0)
    monkeypatch.setattr("deltic.circuit.operators.frame_extremes.RATIO", 2)
    monkeypatch.setattr("deltic.circuit.skip_list.BITS", 1)
    for seed in seeds:
        check(seed, lambda views, shards: embedded({"t": T}, views, shards))


def test_windows_resume_from_state(tmp_path: Path) -> None:
    for seed in range(2):
        folder = str(tmp_path / f"state{seed}")
        rng = Random(f"restarts {seed}")
        views: dict[str, Plan] = {f"v{i}": window(rng) for i in range(3)}
        engine = durable({"t": T}, views, Path(folder), 2)
        content = Relation()
        for _ in range(3):
            change = changed(rng, content)
            content += change
            engine.tick({"t": change.pairs()})
            engine.restart(lambda folder=folder: DurableEmbedded(folder, 3))  # type: ignore[misc]
            for name, plan in views.items():
                assert engine.view(name) == evaluate(plan, {"t": content}), f"seed {seed}: {show(plan)}"
        engine.runtime.close()


def test_positions_and_sums_share_no_rows_of_other_layouts() -> None:
    """The words of the sorted rows are the same, and fields are not."""
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, v BIGINT NOT NULL, w DOUBLE, PRIMARY KEY (id))")
        session.sql("CREATE MATERIALIZED VIEW numbers AS SELECT id, row_number() OVER (ORDER BY v) AS r FROM a")
        session.sql("CREATE MATERIALIZED VIEW sums AS SELECT id, sum(w) OVER (ORDER BY v) AS r FROM a")
        session.sql("INSERT INTO a VALUES (1, 2, 0.5), (2, 3, 1.5)")
        assert session.view("sums").rows() == [{"id": 1, "r": 0.5}, {"id": 2, "r": 2.0}]


@pytest.mark.parametrize("rows", [10_000, *slow(1_000_000)])
def test_a_running_maximum_changes_up_to_the_row_that_restores_it(rows: int) -> None:
    """40 rows change, whatever the direction."""
    allowed = 80 * 40 + 60 * math.log2(rows) ** 2
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, v BIGINT, PRIMARY KEY (id))")
        for name, window in (("up", "id"), ("down", "id DESC RANGE BETWEEN 0 PRECEDING AND UNBOUNDED FOLLOWING")):
            session.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT id, max(v) OVER (ORDER BY {window}) AS r FROM a")
        ids = np.arange(rows)
        with session.transaction() as tx:
            tx.insert("a", pa.table({"id": 10 * ids, "v": 10 * ids}))
        with session.transaction() as tx:
            tx.insert("a", [{"id": 50_001, "v": 50_405}])
        changed = [(row["id"], row["r"]) for row in session.view("up").rows() if row["r"] == 50_405]
        assert changed == [(50_001, 50_405), *((i, 50_405) for i in range(50_010, 50_410, 10))] and changed[1:] == sorted(changed[1:])
        assert all(touched_rows(session, name) < allowed for name in ("up", "down"))
        with session.transaction() as tx:
            tx.delete("a", [{"id": 50_001}])
        assert all(row["r"] == row["id"] for name in ("up", "down") for row in session.view(name).rows())
        assert all(touched_rows(session, name) < allowed for name in ("up", "down"))


def limited(rng: Random) -> Plan:
    """The first rows of a window by a position, beside other functions of earlier rows."""
    plan = window(rng)
    position = WindowCall(rng.choice(["rank", "dense_rank", "row_number"]), INT, False)
    others = [call for _, call in plan.calls if reads_no_later_rows(call, with_peers=True)]
    calls = tuple((f"c{i}", call) for i, call in enumerate([position, *others]))
    number = Column(len(T.schema), INT, False, "c0")
    limit = Literal(rng.randint(0, 4), INT)
    part = resolve(rng.choice(["<", "<=", "="]), [number, limit]) if rng.random() < 0.7 else resolve(">=", [limit, number])
    return Filter(replace(plan, calls=calls), part)


@pytest.mark.parametrize("seeds", [range(15), *slow(rotating(400))], ids=len)
def test_first_positions_equal_the_oracle(seeds: range) -> None:
    changed_plans = 0
    for seed in seeds:
        rng = Random(f"first {seed}")
        plan = limited(rng)
        optimized = optimize(plan)
        changed_plans += show(optimized).count("TopK")
        engine, content = embedded({"t": T}, {"v": optimized}, 1 + 2 * (seed % 2)), Relation()
        for number in range(4):
            change = changed(rng, content)
            content += change
            engine.tick({"t": change.pairs()})
            assert engine.view("v") == evaluate(plan, {"t": content}), f"seed {seed}, tick {number}: {show(plan)}"
    assert changed_plans > len(seeds) / 2


WORK = {
    "whole": "SELECT id, g, max(v) OVER (PARTITION BY g) AS r FROM a",
    "first": "SELECT id, first_value(w) OVER (PARTITION BY g ORDER BY v, id) AS r FROM a",
    "lag": "SELECT id, lag(v, 2) OVER (PARTITION BY g ORDER BY v, id) AS r FROM a",
    "frame": "SELECT id, last_value(v) OVER (PARTITION BY g ORDER BY v, id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS r FROM a",
    "number": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM a",
    "dense": "SELECT id, dense_rank() OVER (PARTITION BY g ORDER BY v) AS r FROM a",
    "sums of rows": "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v, id ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS r FROM a",
    "greatest of rows": "SELECT id, max(v) OVER (PARTITION BY g ORDER BY v, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS r FROM a",
    "range": "SELECT id, sum(w) OVER (PARTITION BY g ORDER BY id - v * 1000000 RANGE 400000000 PRECEDING) AS r FROM a",
    "running": "SELECT id, avg(v) OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM a",
    "running rows": "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v DESC, id ROWS UNBOUNDED PRECEDING) AS r FROM a",
    "running max": "SELECT id, max(w) OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM a",
    "least to come": "SELECT id, min(w) OVER (PARTITION BY g ORDER BY v, id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS r FROM a",
    "range max": "SELECT id, max(w) OVER (PARTITION BY g ORDER BY id - v * 1000000 RANGE 400000000 PRECEDING) AS r FROM a",
    "last value": "SELECT id, lag(w) IGNORE NULLS OVER (PARTITION BY g ORDER BY v, id) AS r FROM a",
    "second last value": "SELECT id, lag(w, 2) IGNORE NULLS OVER (ORDER BY id) AS r FROM a",
    "next value": "SELECT id, first_value(w) IGNORE NULLS OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS r FROM a",
    "median": "SELECT id, median(w) OVER (ORDER BY id RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) AS r FROM a",
    "first ranks": "SELECT id FROM a QUALIFY rank() OVER (PARTITION BY g ORDER BY v DESC, id) <= 3",
    "first dense ranks": "SELECT id FROM a QUALIFY dense_rank() OVER (PARTITION BY g ORDER BY w) < 4",
    "top": "SELECT id FROM a QUALIFY row_number() OVER (PARTITION BY g ORDER BY v DESC, id) <= 3",
}
BY_SKIP_LIST = (
    "range",
    "running",
    "running rows",
    "running max",
    "least to come",
    "range max",
    "last value",
    "second last value",
    "next value",
    "median",
)


@pytest.mark.parametrize("rows", [10_000, *slow(1_000_000)])
def test_a_change_touches_what_it_changes(rows: int) -> None:
    """All rows are one partition, in groups of peers of one row in a thousand."""
    bound, log = 60 * math.ceil(math.log2(rows)), math.log2(rows)
    allowed = {name: 100 * log * log if name in BY_SKIP_LIST else 120 * log for name in WORK}
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, g INT, v BIGINT NOT NULL, w DOUBLE, PRIMARY KEY (id))")
        for name, query in WORK.items():
            session.sql(f"CREATE MATERIALIZED VIEW `{name}` AS {query}")
        ids = np.arange(rows)
        with session.transaction() as tx:
            tx.insert("a", pa.table({"id": ids, "g": np.ones(rows, np.int32), "v": 2 * (ids % 1000), "w": ids / 10}))
        with session.transaction() as tx:
            tx.insert("a", [{"id": rows, "g": 1, "v": 0, "w": 0.1}])
        assert all(touched_rows(session, name) < allowed[name] for name in WORK)
        with session.transaction() as tx:  # the last two rows of row_number
            tx.delete("a", [{"id": rows - 1000}, {"id": rows}])
        assert all(touched_rows(session, name) < allowed[name] for name in WORK)
        with session.transaction() as tx:  # to the other end of its peers, where row_number moves the peers alone
            tx.insert("a", [{"id": -1, "g": 1, "v": 998, "w": 0.5}])
            tx.delete("a", [{"id": rows - 501}])
        assert touched_rows(session, "number") < bound + 20 * rows // 1000


@pytest.mark.slow
def test_many_windows() -> None:
    for seed in rotating(3_000):
        check(seed, lambda views, shards: embedded({"t": T}, views, shards))
