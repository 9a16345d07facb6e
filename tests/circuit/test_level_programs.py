"""Programs of levels: equal to the operators' steps in rows, counters and errors, on random programs."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest

import deltic
from cores import Compared, both_cores
from deltic.circuit import stage
from deltic.circuit.programs import program
from deltic.errors import AbsentRow, DataError, DuplicateKey
from deltic.trace import workers
from engines import embedded, run
from programs import expected, mixed
from recursive_plans import TABLES, plans
from seeds import rotating
from session_rows import touched_rows

PLANS = plans()
SLOW = 2_000
SLICES = 9

SHOP = """
    CREATE TABLE orders (id BIGINT, customer BIGINT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE customers (id BIGINT, region BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS
        SELECT c.region, count(*) AS orders, sum(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region;
    CREATE MATERIALIZED VIEW without_orders AS SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders);
    CREATE MATERIALIZED VIEW ids AS SELECT customer AS id FROM orders UNION SELECT id FROM customers;
"""


@pytest.fixture
def small_arenas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arenas that are full after few rows."""
    monkeypatch.setattr("deltic.circuit.programs.runner.LEAST_ARENA", 16)
    monkeypatch.setattr("deltic.circuit.programs.runner.LARGEST_KEPT", 0)
    monkeypatch.setattr("deltic.circuit.programs.runner._FREE_ARENAS", [])


def changed(session: deltic.Session) -> None:
    session.apply({"customers": [{"id": i, "region": i % 3, "_weight": 1} for i in range(20)]})
    for tick in range(8):
        old = [{"id": i, "customer": i % 23, "amount": i << 33, "_weight": -1} for i in range(5 * tick)]
        new = [{"id": i, "customer": i % 23, "amount": i << 33, "_weight": 1} for i in range(5 * tick + 5)]
        session.apply({"orders": [*old, *new]})
        moved = {"id": tick, "region": tick % 3}
        session.apply({"customers": [{**moved, "_weight": -1}, {"id": tick, "region": 7, "_weight": 1}]})
        session.apply({"customers": [{**moved, "_weight": 1}, {"id": tick, "region": 7, "_weight": -1}]})


def test_a_program_that_outlives_its_level_is_no_other_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an interrupt can leave it: two levels with one identity, one after the other."""
    circuits = [embedded(TABLES, {"v": plan}).runtime.committed.circuit for plan in (PLANS["closure"], PLANS["reachable"])]
    first, second = (circuit.whole for circuit in circuits)
    of_first = program.program_of(first)
    monkeypatch.setitem(program._PROGRAMS, id(second), program._PROGRAMS[id(first)])
    assert program.program_of(second) is not of_first and program.program_of(second).nodes == second.nodes
    assert program.program_of(second) is program.program_of(second) and program.program_of(first) is of_first


def test_programs_end_with_their_levels() -> None:
    with deltic.Session() as session:
        session.sql(SHOP)
        changed(session)
        held = len(program._PROGRAMS)
        session.sql("DROP MATERIALIZED VIEW ids; DROP MATERIALIZED VIEW without_orders")
    del session
    gc.collect()
    assert len(program._PROGRAMS) < held


@pytest.mark.parametrize("shards", [1, 3])
def test_a_program_equals_the_steps(shards: int, small_arenas: None) -> None:
    with both_cores() as compared, deltic.Session(shards=shards) as session:
        session.sql(SHOP)
        changed(session)
        total = sum(row["amount"] for row in session.view("spend").rows())
        assert total == sum(i << 33 for i in range(40) if i % 23 < 20)
        assert {"TableInput", "JoinOperator", "AggregateOperator", "Arrange", "Map", "SemiJoin", "Reweigh"} <= compared.native.keys()
        assert not compared.stepped and compared.passes >= 4


def test_large_batches_have_blocks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.circuit.programs.runner.LARGE_TICK", 3)
    with both_cores(), deltic.Session() as session:
        session.sql(SHOP)
        changed(session)
        assert sum(row["orders"] for row in session.view("spend").rows()) == sum(i % 23 < 20 for i in range(40))


def test_errors_of_a_program_are_those_of_the_steps() -> None:
    with both_cores(), deltic.Session() as session:
        session.sql(SHOP)
        changed(session)
        epoch = session.epoch
        with pytest.raises(AbsentRow, match="no row id=999, customer=1"):
            session.apply({"orders": [{"id": 999, "customer": 1, "amount": 1, "_weight": -1}]})
        with pytest.raises(DuplicateKey, match="id=3"):
            session.apply({"orders": [{"id": 3, "customer": 1, "amount": 1, "_weight": 1}]})
        assert session.epoch == epoch


def operations(choose: random.Random, keyed: bool) -> list[dict[str, Any]]:
    """A tick of operations on few keys, most of which can be applied."""
    allowed = ("insert", "delete", "upsert", "update", "key") if keyed else ("insert", "delete")
    made = []
    for _ in range(choose.choice((1, 2, 5, 30))):
        op, k, v = choose.choice(allowed), choose.randrange(40), choose.randrange(3)
        row = {"k": k, "v": None if v == 2 else v, "s": "ab"[v % 2]}
        made.append({"_op": "delete", "k": k} if op == "key" else {"_op": op, **row})
    return made


def test_operations_are_applied_in_order() -> None:
    choose, failed, applied = random.Random(3), 0, 0
    for keyed in (True, False):
        with both_cores() as compared, deltic.Session() as session:
            session.sql(f"CREATE TABLE t (k BIGINT, v BIGINT, s STRING{', PRIMARY KEY (k)' if keyed else ''})")
            session.sql("CREATE MATERIALIZED VIEW sums AS SELECT s, count(*) AS n, sum(v) AS v FROM t GROUP BY s")
            for _ in range(150):
                try:
                    session.apply({"t": operations(choose, keyed)})
                    applied += 1
                except DataError:
                    failed += 1
            assert "TableInput" not in compared.stepped
    assert failed > 50 and applied > 50


def test_inserts_alone_seek_nothing_in_a_table_without_key() -> None:
    with both_cores() as compared, deltic.Session() as session:
        session.sql("CREATE TABLE t (k BIGINT, v BIGINT)")
        for rows in ([{"k": k, "v": 1} for k in range(1000)], [{"k": 5, "v": 1}, {"k": 5, "v": 1}]):
            with session.transaction() as changes:
                changes.insert("t", rows)
            assert touched_rows(session) == 0
        with session.transaction() as changes:
            changes.insert("t", [{"k": 6, "v": 1}])
            changes.delete("t", [{"k": 5, "v": 1}] * 3)
        assert touched_rows(session) > 0
        with pytest.raises(AbsentRow), session.transaction() as changes:
            changes.delete("t", [{"k": 5, "v": 1}])
            changes.insert("t", [{"k": 5, "v": 1}])
        assert session.query("SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > 1").rows() == [{"k": 6, "n": 2}]
        assert "TableInput" in compared.native


def compare(seeds: range, *, row_by_row: bool = False) -> Compared:
    """Half of the programs on one shard, half on three; two thirds on threads, which divide every tick."""
    with both_cores() as compared, pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "DIVIDED_ROWS", 1)
        for number, seed in enumerate(seeds):
            program, shards, threads = mixed(seed), 1 + 2 * (number % 2), 1 + number // 2 % 3
            if not (row_by_row and program.fails):
                run(embedded(program.tables, program.views, shards, threads), program, expected(program), row_by_row=row_by_row)
    return compared


def test_random_programs_on_both_cores() -> None:
    compared = compare(range(60_000, 60_004))
    assert compared.native and compared.passes


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(SLICES))
def test_many_random_programs_on_both_cores(slice_: int) -> None:
    compared = compare(rotating(SLOW)[slice_::SLICES], row_by_row=slice_ % 4 == 3)
    assert sum(compared.native.values()) > sum(compared.stepped.values())


def test_the_core_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "CORE", "python")
    with deltic.Session() as session:
        session.sql(SHOP)
        changed(session)
        assert session.last_tick is not None and isinstance(session.last_tick.counters, dict)


def test_explain_lists_the_program() -> None:
    with deltic.Session() as session:
        session.sql(SHOP)
        text = str(session.explain("spend", level=True))
        assert "operator 0, source: r0 → r" in text and "r0 holds the changes of orders" in text
        assert all(name in text for name in ("check_keys", "match ", "aggregate ", "append ", "total of w1"))
        assert "program of level 0" not in str(session.explain("spend"))
