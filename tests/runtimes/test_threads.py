"""Shards, and the operators of a single shard, on several threads: answers, changes, counters and errors are those of one thread."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.circuit import stage
from deltic.circuit.operators.table import TableInput
from deltic.circuit.programs import passes
from deltic.circuit.stage import run_level
from deltic.errors import AbsentRow, DelticError, SetupError
from deltic.runtimes.embedded import DurableEmbedded, LoggedEmbedded, levels
from deltic.trace import fixpoint, workers
from engines import Engine, embedded, run
from programs import Case, Outcome, case, expected, mixed
from seeds import rotating
from shrink import shrinking

SCRIPT = """
    CREATE TABLE orders (id BIGINT, customer BIGINT NOT NULL, name STRING, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE customers (id BIGINT, region STRING NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS
        SELECT c.region, count(*) AS orders, sum(o.amount) AS amount, max(o.name) AS name
        FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region;
    CREATE MATERIALIZED VIEW best AS SELECT id, name FROM orders ORDER BY amount DESC, id LIMIT 5;
"""


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tick with rows is divided."""
    monkeypatch.setattr(workers, "DIVIDED_ROWS", 1)


@contextmanager
def large() -> Iterator[None]:
    """Every tick with rows is a large one, whose operators run by their steps, and passes are of three rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "LARGE_TICK", 0)
        patch.setattr(passes, "LEAST_ROWS", 1)
        patch.setattr(passes, "BLOCK_ROWS", 3)
        patch.setattr(passes, "STRETCH_ROWS", 7)
        yield


def check(program: Case, folder: Path) -> None:
    def checked(program: Case) -> list[Outcome]:
        outcomes = expected(program)
        run(embedded(program.tables, program.views, 3, threads=2), program, outcomes)
        with large():
            run(embedded(program.tables, program.views, 1, threads=3), program, outcomes)
        state = folder / f"state{time.monotonic_ns()}"
        kind = LoggedEmbedded if program.seed % 2 else DurableEmbedded
        engine = Engine(kind(str(state), 2, threads=2), program.tables, program.views)
        run(engine, program, outcomes, restarts={1: lambda: kind(str(state), 3, threads=3)})
        engine.runtime.close()
        return outcomes

    shrinking(checked, program)


@pytest.mark.usefixtures("divided")
def test_random_programs_on_threads(tmp_path: Path) -> None:
    for seed in range(41_000, 41_006):
        check(case(seed), tmp_path)
        check(mixed(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("divided")
def test_many_random_programs_on_threads(tmp_path: Path) -> None:
    for seed in rotating(300):
        check(case(seed), tmp_path)
        check(mixed(seed), tmp_path)


def loaded(rows: int, **options: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    ids = rng.permutation(rows)
    names = pa.array([f"name {i % 97}" for i in range(rows)])
    orders = pa.table({"id": ids, "customer": ids % 50, "name": names, "amount": rng.integers(1, 1000, rows)})
    with deltic.Session(**options) as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("customers", [{"id": i, "region": f"region {i % 7}"} for i in range(50)])
            tx.insert("orders", orders)
        tick = session.last_tick
        assert tick is not None
        answers = [session.view(name).rows() for name in ("spend", "best")]
        return answers, [session.view(name).changes().to_pylist() for name in ("spend", "best")], without_times(tick.counters)


def without_times(counters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: replace(each, seconds=0.0) for name, each in counters.items()}


def test_a_large_tick_is_that_of_one_thread() -> None:
    rows = 2 * workers.DIVIDED_ROWS
    answers = [loaded(rows, shards=3, threads=threads) for threads in (1, 2, 5)]
    assert answers[0] == answers[1] == answers[2]
    alone = [loaded(rows, threads=threads) for threads in (1, 2, 5)]
    assert alone[0] == alone[1] == alone[2]
    assert alone[0][0] == answers[0][0]


@pytest.mark.parametrize("threads", [1, 3])
def test_changes_are_held_as_long_as_they_are_read(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_nodes, runs = stage._run_nodes, 0

    def recorded(circuit: Any, level: Any, *rest: Any) -> Any:
        nonlocal runs
        changes = run_nodes(circuit, level, *rest)
        read = {i for node in level.nodes for i in node.inputs}
        assert len(read) > 5 and not read & changes._by_node.keys()
        assert read & {node.id for node in level.nodes if node.id in level.shared}
        runs += 1
        return changes

    with large(), deltic.Session(threads=threads) as session:
        session.sql(SCRIPT)
        monkeypatch.setattr(stage, "_run_nodes", recorded)
        session.apply({"customers": [{"id": 1, "region": "r", "_op": "insert"}]})
        session.apply({"orders": [{"id": i, "customer": 1, "name": "n", "amount": i, "_op": "insert"} for i in range(20)]})
        assert session.view("spend").rows() == [{"region": "r", "orders": 20, "amount": 190, "name": "n"}]
    assert runs == 2


def test_a_small_tick_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def recorded(*arguments: Any, **options: Any) -> Any:
        seen.add(threading.current_thread().name)
        return run_level(*arguments, **options)

    monkeypatch.setattr(levels, "run_level", recorded)
    with deltic.Session(shards=2, threads=2) as session:
        session.sql("CREATE TABLE t (a BIGINT NOT NULL, PRIMARY KEY (a))")
        seen.clear()
        session.apply({"t": pa.table({"a": range(1000), "_weight": [1] * 1000})})
        assert seen == {threading.main_thread().name}
        seen.clear()
        session.apply({"t": pa.table({"a": range(1000, 1000 + 3 * workers.DIVIDED_ROWS), "_weight": [1] * 3 * workers.DIVIDED_ROWS})})
        assert seen == {workers.THREAD}
        seen.clear()
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT a % 10 AS b, count(*) AS n FROM t GROUP BY a % 10")
        assert seen == {workers.THREAD}


@pytest.mark.usefixtures("divided")
def test_the_error_is_that_of_one_thread() -> None:
    """The first by table and row, whichever shard fails first; nothing is applied."""
    messages = set()
    for shards, threads in ((4, 1), (4, 2), (1, 1), (1, 2)):
        with large(), deltic.Session(shards=shards, threads=threads) as session:
            session.sql(SCRIPT)
            with pytest.raises(AbsentRow) as error, session.transaction() as tx:
                tx.insert("customers", [{"id": i, "region": "r"} for i in range(20)])
                for id in range(20):
                    tx.delete("orders", [id])
            messages.add(str(error.value))
            assert session.view("spend").rows() == []
            assert session.epoch == session.last_tick.epoch
    assert len(messages) == 1


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.usefixtures("divided")
def test_ctrl_c_ends_the_work_of_all_shards(shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    main, started, steps = threading.main_thread().ident, threading.Event(), []
    step = TableInput.step

    def slow_step(self: TableInput, *arguments: Any) -> Any:
        steps.append(self.table.name)
        if threading.current_thread().name == workers.THREAD and not started.is_set():
            started.set()
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.2)
        return step(self, *arguments)

    monkeypatch.setattr(stage, "CORE", "python")
    with large(), deltic.Session(shards=shards, threads=2) as session:
        session.sql(SCRIPT)
        monkeypatch.setattr(TableInput, "step", slow_step)
        epoch = session.epoch
        row = {"id": 1, "customer": 1, "name": "a", "amount": 1}
        with pytest.raises(KeyboardInterrupt):
            session.apply({"orders": [{**row, "_op": "insert"}], "customers": [{"id": 1, "region": "r", "_op": "insert"}]})
        assert session.epoch == epoch
        assert len(steps) < 6  # of two tables on three shards
        before = len(steps)
        time.sleep(0.3)
        assert len(steps) == before
        session.apply({"orders": [{**row, "_op": "insert"}], "customers": [{"id": 1, "region": "r", "_op": "insert"}]})
        assert session.view("spend").rows() == [{"region": "r", "orders": 1, "amount": 1, "name": "a"}]


@pytest.mark.parametrize("threads", [0, -1, 2.0, True, 1 << 20])
def test_an_invalid_number_of_threads(threads: Any) -> None:
    with pytest.raises(SetupError, match="invalid option threads="):
        deltic.Session(threads=threads)


def test_a_function_of_users_fails_as_on_one_thread(divided: None) -> None:
    def fails(a: int) -> int:
        raise ValueError(f"no {a % 1}")

    messages = set()
    for shards, threads in ((3, 1), (3, 2), (1, 1), (1, 2)):
        with large(), deltic.Session(shards=shards, threads=threads) as session:
            session.sql("CREATE TABLE t (a BIGINT NOT NULL, PRIMARY KEY (a))")
            session.register("fails", fails, returns="BIGINT")
            session.sql("CREATE MATERIALIZED VIEW v AS SELECT fails(a) AS b FROM t")
            with pytest.raises(DelticError) as error:
                session.apply({"t": [{"a": i, "_op": "insert"} for i in range(30)]})
            messages.add(str(error.value))
    assert len(messages) == 1


def test_ctrl_c_ends_a_recursion_between_iterations() -> None:
    with deltic.Session(shards=2, threads=2) as session:
        session.sql("CREATE TABLE e (a BIGINT, s STRING, PRIMARY KEY (a)); INSERT INTO e VALUES (1, 'x')")
        timer = threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            session.sql("""CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r(n, t) MAX RECURSION LEVEL 100000 AS (
                SELECT a, s FROM e UNION ALL SELECT n + 1, upper(concat(t, '')) FROM r WHERE n < 100000)
                SELECT max(n) AS n, max(t) AS t FROM r""")
        assert time.monotonic() - start < 10
        assert session.query("SELECT * FROM e").rows() == [{"a": 1, "s": "x"}]


@pytest.mark.parametrize("kind", ["BIGINT", "BIGINT NOT NULL", "INT", "DECIMAL(38, 2)", "STRING"])
def test_rows_of_a_recursion_are_divided_by_the_values_that_it_passes_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by flags of NULLs, or words that are the same in all values."""
    derived: list[int] = []
    run = fixpoint.interrupts.run

    def noted(kernel: Any, *given: Any) -> Any:
        result = run(kernel, *given)
        derived.append(int(given[-1][fixpoint.seen.DERIVED]))
        return result

    monkeypatch.setattr(stage, "CORE", "python")  # the instruction of few rows does not divide them
    monkeypatch.setattr(fixpoint, "DIVIDED_ROWS", 10)
    monkeypatch.setattr(fixpoint.interrupts, "run", noted)
    with deltic.Session(threads=2) as session:
        session.sql(
            f"""CREATE TABLE starts (s {kind}, node BIGINT NOT NULL); CREATE TABLE edges (a BIGINT NOT NULL, b BIGINT NOT NULL);
            CREATE MATERIALIZED VIEW v AS
                WITH RECURSIVE p AS (SELECT s, node FROM starts UNION SELECT p.s, e.b FROM p JOIN edges e ON p.node = e.a)
                SELECT s, node FROM p"""
        )
        session.apply({"edges": [{"a": i, "b": i + 1, "_weight": 1} for i in range(20)]})
        derived.clear()
        starts = pa.table({"s": pa.array([str(i) for i in range(60)]), "node": [0] * 60, "_weight": [1] * 60})
        arrow = session.table("starts").schema[0].type.arrow
        session.apply({"starts": starts.set_column(0, "s", starts["s"].cast(arrow))})
        assert len(session.view("v").rows()) == 60 * 21
    _, *shares = derived
    assert len(shares) == 2 * fixpoint.SHARES and sum(shares) == 60 * 21 and max(shares) < 600
