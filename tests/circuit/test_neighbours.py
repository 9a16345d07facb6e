"""lag, lead, frames of rows and positions among many rows: changes near each other and far apart, copies of rows, long strings that tie."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.expr.nodes import Column
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Order, Plan, Table
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.window_nodes import Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT, INT, STRING, Field, Schema, TableSchema
from engines import embedded
from parts import slow
from seeds import rotating
from session_rows import touched_rows

T = TableSchema("t", Schema((Field("g", INT, False), Field("o", INT, False), Field("s", STRING), Field("n", BIGINT))))
TABLE = Table(T)
G, PLACE, S, N = (Column(i, field.type, field.nullable, field.name) for i, field in enumerate(T.schema))
STEM = "https://example.com/a/page/"
TEXTS = (None, "", "short", *(f"{STEM}{i}" for i in range(6)), *(f"{i} is followed by a long string" for i in range(4)))
AGGREGATES = (AggregateCall("sum", (N,), BIGINT, True), AggregateCall("max", (S,), STRING, True))


def row(rng: Random, texts: int) -> tuple[object, ...]:
    """texts: among how many strings; the first ones are short."""
    return (rng.choice([1, 1, 1, 2]), rng.randrange(40), rng.choice(TEXTS[:texts]), rng.choice([None, *range(5)]))


def changed(rng: Random, content: Relation, texts: int) -> Relation:
    """Changes of rows beside each other, and of others."""
    change = Relation()
    for _ in range(rng.choice([1, 2, 5, 12])):
        left = sorted(((row, copies) for row, copies in (content + change).pairs() if copies > 0), key=repr)
        if left and rng.random() < 0.5:
            start = rng.randrange(len(left))
            change += Relation((gone, -rng.randint(1, copies)) for gone, copies in left[start : start + rng.choice([1, 1, 4])])
        else:
            change += Relation([(row(rng, texts), rng.choice([1, 1, 1, 4]))])
    return change


def window(rng: Random) -> Window:
    start = rng.randint(-6, 5)
    frame = WindowFrame(Edge("rows", start), Edge("rows", rng.randint(start, 6)))
    value = rng.choice([PLACE, S, N])
    calls = [WindowCall(rng.choice(["lag", "lead"]), value.type, True, (value,), rng.randint(0, 7)) for _ in range(rng.randint(0, 2))]
    function = rng.choice(["first_value", "last_value", "nth_value"])
    calls.append(WindowCall(function, value.type, True, (value,), rng.randint(1, 4), rng.random() < 0.5, frame))
    calls.append(WindowCall(rng.choice(["row_number", "rank", "dense_rank"]), INT, False))
    aggregate = rng.choice(AGGREGATES)
    calls.append(WindowCall("aggregate", aggregate.type, True, frame=frame, aggregate=aggregate))
    calls = rng.sample(calls, rng.randint(1, len(calls)))
    terms = rng.choice([(PLACE,), (S,), (PLACE, S), (S, N)])
    order = tuple(Order(term, rng.random() < 0.5, rng.random() < 0.5) for term in terms)
    return Window(TABLE, rng.choice([(), (G,)]), order, tuple((f"c{i}", call) for i, call in enumerate(calls)))


@pytest.mark.parametrize("seeds", [range(10, 18), *slow(rotating(400))], ids=len)
def test_rows_near_changes_equal_the_oracle(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as few rows at once as there can be, and as many; sums of whole partitions, and of rows near changes."""
    for seed in seeds:
        rng = Random(f"neighbours {seed}")
        monkeypatch.setattr("deltic.circuit.operators.neighbours.AT_ONCE", rng.choice([1, 512]))
        monkeypatch.setattr("deltic.circuit.operators.row_frame_sums.MANY", rng.choice([0, 0, 1]))
        texts = rng.choice([3, len(TEXTS)])
        views: dict[str, Plan] = {f"v{i}": window(rng) for i in range(2)}
        engine = embedded({"t": T}, views, 1 + 2 * (seed % 2))
        content = Relation()
        for number in range(5):
            change = Relation((row(rng, texts), rng.choice([1, 1, 3])) for _ in range(60)) if not number else changed(rng, content, texts)
            content += change
            engine.tick({"t": change.pairs()})
            for name, plan in views.items():
                assert engine.view(name) == evaluate(plan, {"t": content}), f"seed {seed}, tick {number}: {show(plan)}"


def touched(rows: int, changes: int, query: str) -> int:
    """Of a tick that inserts so many rows, one after the other in order, into a table of `rows` rows."""
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, o BIGINT NOT NULL, v BIGINT, PRIMARY KEY (id))")
        session.sql(f"CREATE MATERIALIZED VIEW r AS SELECT id, {query} AS r FROM a")
        for first, n in ((0, rows), (rows // 2, changes)):
            ids = np.arange(first, first + n)
            with session.transaction() as tx:
                tx.insert("a", pa.table({"id": 2 * ids + int(first > 0), "o": 2 * ids + int(first > 0), "v": ids}))
        assert session.last_tick is not None
        return touched_rows(session)


@pytest.mark.parametrize(
    "query",
    [
        "lag(v, 100) OVER (ORDER BY o, id)",
        "lead(v, 100) OVER (ORDER BY o, id)",
        "last_value(v) IGNORE NULLS OVER (ORDER BY o, id ROWS BETWEEN 50 PRECEDING AND 50 FOLLOWING)",
    ],
)
def test_rows_near_several_changes_are_read_once(query: str) -> None:
    """Each of 1,000 changes is among the 100 rows before or after 100 others; log n for each is to find it."""
    assert touched(4_000, 1_000, query) < 100 * (1_000 + 2 * 100)


@pytest.mark.parametrize("rows", [4_000, *slow(400_000)])
@pytest.mark.parametrize(
    ("columns", "query"),
    [
        ("id, u, s", "lag(v) OVER (ORDER BY o)"),
        ("id, u, s", "lag(v) OVER (ORDER BY u)"),
        ("id, u, s", "last_value(u) OVER (ORDER BY o DESC ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING)"),
        ("id, u, s", "sum(v) OVER (ORDER BY o ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)"),
        ("id, u, s", "row_number() OVER (ORDER BY o)"),
        ("id", "lag(v) IGNORE NULLS OVER (ORDER BY o, id)"),
        ("id", "sum(v) OVER (ORDER BY o, id ROWS UNBOUNDED PRECEDING)"),
    ],
)
def test_long_strings_that_decide_no_order_cost_nothing(rows: int, columns: str, query: str) -> None:
    """The words before the strings order the rows; in the last two cases they are a unique key. Of row_number the last ten rows change."""
    rng = Random(7)
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (u STRING NOT NULL, s STRING NOT NULL, o BIGINT NOT NULL, v BIGINT, id BIGINT PRIMARY KEY)")
        session.sql(f"CREATE MATERIALIZED VIEW r AS SELECT {columns}, {query} AS r FROM a")
        ids = np.arange(rows)
        texts = [f"{rng.getrandbits(64):016x} {'-' * 20}" for _ in range(rows)]
        with session.transaction() as tx:
            tx.insert("a", pa.table({"u": texts, "s": [f"{STEM}{i}" for i in range(rows)], "o": 2 * ids, "v": ids, "id": ids}))
        with session.transaction() as tx:
            tx.insert("a", [{"u": f"8 {'-' * 30}", "s": f"{STEM}new", "o": 2 * rows - 19, "v": None, "id": rows}])
        assert session.last_tick is not None
        work = touched_rows(session)
        assert work < 2_500, work
