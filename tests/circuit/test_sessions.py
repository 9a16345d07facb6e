"""Windows of event time: the circuit's rows equal the oracle's after every tick, and a change touches its session."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from test_windows import LONG

import deltic
from deltic.expr import resolve
from deltic.expr.nodes import Column
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Order, Plan, Table
from deltic.plan.relation import Relation
from deltic.plan.window_nodes import Window, WindowCall
from deltic.runtimes.embedded import DurableEmbedded
from deltic.schema import BIGINT, STRING, Field, Schema, TableSchema
from engines import Engine, durable, embedded
from parts import slow
from seeds import rotating
from session_rows import touched_rows
from sql_data import TABLES, TestCatalog

T = TableSchema("t", Schema((Field("g", STRING), Field("start", BIGINT, False), Field("gap", BIGINT, False), Field("n", BIGINT))))
TABLE = Table(T)
G, START, GAP, _ = (Column(i, field.type, field.nullable, field.name) for i, field in enumerate(T.schema))


def sessions(keys: tuple[Column, ...]) -> Plan:
    """The rows with the start of their session among those with equal keys."""
    call = WindowCall("session_start", BIGINT, False, (START, resolve("+", [START, GAP])))
    return Window(TABLE, keys, (Order(START, False, True),), (("session", call),))


def changed(rng: Random, content: Relation) -> Relation:
    """A random change that leaves no negative weight."""
    change = Relation()
    for _ in range(rng.choice([1, 1, 2, 12])):
        present = [row for row, copies in (content + change).pairs() if copies > 0]
        if present and rng.random() < 0.45:
            change += Relation([(rng.choice(present), -1)])
        else:
            row = (
                rng.choice([None, "a", LONG + "1", LONG + "2"]),
                rng.randint(-30, 30),
                rng.choice([1, 2, 3, 3, 15]),
                rng.choice([None, 1]),
            )
            change += Relation([(row, rng.choice([1, 1, 2]))])
    return change


def check(
    seed: int, engine_of: Callable[[dict[str, Plan]], Engine], reopened: Callable[[Engine], None] | None = None, ticks: int = 8
) -> None:
    rng = Random(seed)
    views = {"keyed": sessions((G,)), "whole": sessions(())}
    engine, content = engine_of(views), Relation()
    for number in range(ticks):
        change = changed(rng, content)
        content += change
        result = engine.tick({"t": change.pairs()})
        if reopened is not None:
            reopened(engine)
        for name, plan in views.items():
            before, after = evaluate(plan, {"t": content - change}), evaluate(plan, {"t": content})
            assert engine.view(name) == after, f"seed {seed}, tick {number}, {name}"
            assert engine.change(name, result) == after - before, f"seed {seed}, tick {number}, {name}"


@pytest.mark.parametrize("seeds", [range(6), *slow(rotating(300))], ids=len)
def test_sessions_equal_the_oracle_after_every_tick(seeds: range) -> None:
    for seed in seeds:
        check(seed, lambda views, seed=seed: embedded({"t": T}, views, 1 + 2 * (seed % 2)))  # type: ignore[misc]


def test_sessions_resume_from_state(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    check(77, lambda views: durable({"t": T}, views, folder, 2), lambda engine: engine.restart(lambda: DurableEmbedded(str(folder), 3)), 3)


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
QUERIES = {
    "sliding": "SELECT window.start, window.end, k, sum(id) FROM t GROUP BY k, window(ts, '10 minutes', '4 minutes')",
    "tumbling": "SELECT window.end, count(*) FROM t WHERE id > 1 GROUP BY window(ts, '10 minutes', '10 minutes', '-1 minute')",
    "rows": "SELECT id, window(ts, '10 minutes', '3 minutes').end FROM t",
    "merged": "SELECT session_window.start, k, sum(id) FROM t GROUP BY session_window(ts, '5 minutes'), k",
    "by gap": "SELECT session_window.end, max(id) FROM t GROUP BY session_window(ts, CASE WHEN id % 3 = 1 THEN s ELSE '1 minute' END)",
}


def test_groups_of_windows_equal_the_oracle() -> None:
    """Through SQL, with NULLs among the times and gaps."""
    rng, ids = Random("windows"), count()
    views = {name: bind_query(query, name, TestCatalog()) for name, query in QUERIES.items()}
    engine, content = embedded({"t": TABLES["t"]}, views, 3), Relation()
    for number in range(6):
        change = Relation()
        for _ in range(rng.choice([1, 4])):
            present = [row for row, copies in (content + change).pairs() if copies > 0]
            time = None if rng.random() < 0.1 else DAY + datetime.timedelta(minutes=rng.randint(0, 60))
            gap = rng.choice([None, "7 minutes", "-1 minute", "now", "1 month"])
            row = (next(ids), rng.choice([None, 1]), None, gap, None, time, None, None)
            gone = bool(present) and rng.random() < 0.4
            change += Relation([(rng.choice(present), -1) if gone else (row, 1)])
        content += change
        engine.tick({"t": change.pairs()})
        for name, plan in views.items():
            assert engine.view(name) == evaluate(plan, {"t": content}), f"tick {number}, {name}"


GAP_S = 5


def in_sessions(content: dict[int, tuple[str, int]]) -> list[tuple[str, int, int, int, int]]:
    """(k, start, end, rows, sum of ids) of each session, in order. content: id → (k, second)."""
    found: list[tuple[str, int, int, int, int]] = []
    for k, second, number in sorted((k, second, number) for number, (k, second) in content.items()):
        if found and found[-1][0] == k and second <= found[-1][2]:
            _, start, _, rows, total = found.pop()
            found.append((k, start, second + GAP_S, rows + 1, total + number))
        else:
            found.append((k, second, second + GAP_S, 1, number))
    return found


@pytest.mark.parametrize("seeds", [range(4), *slow(rotating(200))], ids=len)
def test_sessions_of_one_gap_equal_a_computation_in_python(seeds: range) -> None:
    """Rows come and go one by one and in stretches, which takes sessions apart at several places in one tick."""
    for seed in seeds:
        rng, ids, content = Random(seed), count(), dict[int, tuple[str, int]]()
        with deltic.Session(shards=1 + 2 * (seed % 2)) as session:
            session.sql("CREATE TABLE a (id BIGINT, k STRING, at TIMESTAMP NOT NULL, PRIMARY KEY (id))")
            session.sql(
                "CREATE MATERIALIZED VIEW w AS SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n, sum(id) AS v"
                f" FROM a GROUP BY k, session_window(at, '{GAP_S} seconds')"
            )
            for tick in range(12):
                gone = {number for number in content if rng.random() < rng.choice([0, 0, 0.1])}
                for _ in range(rng.choice([0, 1, 3])):
                    low = rng.randint(0, 200)
                    gone |= {number for number, (_, second) in content.items() if low <= second <= low + rng.choice([0, 3, 20])}
                added = {next(ids): (rng.choice("ab"), rng.randint(0, 200)) for _ in range(rng.choice([0, 1, 2, 40]))}
                with session.transaction() as tx:
                    tx.delete("a", sorted(gone))
                    tx.insert("a", [{"id": i, "k": k, "at": EPOCH + datetime.timedelta(seconds=s)} for i, (k, s) in added.items()])
                content = {number: row for number, row in content.items() if number not in gone} | added
                seconds = [(r["k"], *((r[c] - EPOCH).total_seconds() for c in "se"), r["n"], r["v"]) for r in session.view("w").rows()]
                assert sorted(seconds) == in_sessions(content), f"seed {seed}, tick {tick}"


@pytest.mark.parametrize("rows", [10_000, *slow(1_000_000)])
def test_a_change_touches_its_session(rows: int) -> None:
    """Sessions of 10 rows, and one of the rest."""
    log = math.log2(rows)
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (id BIGINT, at TIMESTAMP NOT NULL, v BIGINT, PRIMARY KEY (id))")
        session.sql(
            "CREATE MATERIALIZED VIEW w AS SELECT session_window.start AS s, sum(v) AS v FROM a GROUP BY session_window(at, '10 seconds')"
        )
        session.sql(
            "CREATE MATERIALIZED VIEW h AS SELECT window.end AS e, sum(v) AS v FROM a GROUP BY window(at, '1 minute', '20 seconds')"
        )
        ids = np.arange(rows)
        seconds = np.where(ids < rows // 2, ids, 10 * rows + ids // 10 * 100 + ids % 10)
        with session.transaction() as tx:
            tx.insert("a", pa.table({"id": ids, "at": seconds.astype("M8[s]").astype("M8[us]"), "v": ids}))
        assert session.view("w").to_arrow().num_rows == 1 + (rows - rows // 2) // 10

        def tick(removed: list[int], added: list[tuple[int, int]]) -> None:
            with session.transaction() as tx:
                tx.delete("a", [{"id": id} for id in removed])
                tx.insert("a", [{"id": id, "at": EPOCH + datetime.timedelta(seconds=second), "v": 1} for id, second in added])

        last = int(seconds[-1])
        tick([], [(rows, last + 50)])  # between sessions
        assert touched_rows(session, "w") < 60 * log and touched_rows(session, "h") < 60 * log
        tick([], [(rows + 1, rows // 2 + 5)])  # at the end of the long session, which is not read
        assert touched_rows(session, "w") < 60 * log
        tick([], [(rows + 2, 17)])  # inside it
        assert touched_rows(session, "w") < 60 * log
        tick([100], [])  # out of the middle of the long session
        assert touched_rows(session, "w") < 100 * log
        tick([rows // 2 - 1], [])  # out of its end, where another one stays
        assert touched_rows(session, "w") < 100 * log
        tick([rows + 1], [])  # its last one, and so it ends earlier
        assert touched_rows(session, "w") < 100 * log
        tick(list(range(rows // 2 - 40, rows // 2 - 20)), [])  # so many that the rest of 19 is a session of its own
        assert touched_rows(session, "w") < 600 * log
        tick([rows - 5], [])  # out of a short session, which stays one
        assert touched_rows(session, "w") < 100 * log
        tick([], [(rows + 3, last - 100 + 15), (rows + 4, last - 100 + 25)])  # two sessions come nearer
        assert touched_rows(session, "w") < 200 * log
