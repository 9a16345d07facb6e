"""Changes that a join does not read: updates of other columns look nothing up."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from cores import both_cores
from deltic.circuit import stage
from deltic.trace.cancelling import uncancelled

TABLES = """
    CREATE TABLE customers (id BIGINT, region STRING, login BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE TABLE visits (customer BIGINT, page BIGINT NOT NULL);
"""
VIEWS = {
    "inner": "SELECT o.id, o.amount, c.region FROM orders o JOIN customers c ON o.customer = c.id WHERE o.amount > 3",
    "outer": "SELECT o.id, o.amount, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    "whole": "SELECT o.id, v.page, c.id AS customer, c.region FROM orders o FULL JOIN customers c ON o.customer = c.id "
    "JOIN visits v ON v.customer = c.id",
    "sums": "SELECT c.region, v.page, count(*) AS n, sum(o.amount) AS a FROM orders o JOIN customers c ON o.customer = c.id "
    "JOIN visits v ON v.customer = c.id GROUP BY c.region, v.page",
}


@pytest.mark.parametrize("view", ["inner", "outer"])
@pytest.mark.parametrize("native", [True, False])
def test_an_update_of_a_column_that_a_join_does_not_read_touches_no_matches(
    view: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """native: whether the level's program runs, or the operators' steps."""
    if not native:
        monkeypatch.setattr(stage, "LARGE_TICK", 0)
    with deltic.Session() as session:
        session.sql(TABLES)
        session.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS[view]}")
        session.insert("customers", [{"id": i, "region": f"r{i % 3}", "login": 0} for i in range(10)])
        ids = np.arange(50_000)
        session.insert("orders", pa.table({"id": ids, "customer": ids % 10, "amount": ids % 7}))
        assert [_touched(session, {"id": 3, "region": region, "login": 5}) > 4_000 for region in ("r0", "new")] == [False, True]
        assert _touched(session, {"id": 3, "region": "new", "login": 6}) < 20
        assert not session.view("v").changes().num_rows


def test_where_all_rows_cancel_no_batch_is_read() -> None:
    with both_cores(), deltic.Session() as session:
        session.sql(TABLES)
        session.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS['inner']}")
        session.insert("customers", [{"id": 1, "region": "r", "login": 0}])
        session.insert("orders", [{"id": 1, "customer": 1, "amount": 7}])
        session.update("customers", [{"id": 1, "region": "r", "login": 5}])
        assert session.last_tick is not None
        (join,) = (node.name for node in session._definitions.circuit.nodes if node.operator.name.startswith("join_trace"))
        counters = session.last_tick.counters[join]
        assert (counters.rows_in, counters.touched, counters.batches) == (2, 0, 0)


def _touched(session: deltic.Session, customer: dict[str, Any]) -> int:
    session.update("customers", [customer])
    assert session.last_tick is not None
    return sum(each.touched for each in session.last_tick.counters.values())


@pytest.mark.parametrize(("shards", "native"), [(1, True), (1, False), (3, True)])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_updates(shards: int, native: bool, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views are those of a session that is given the rows at once, after ticks in which most updates change one column alone."""
    if not native:
        monkeypatch.setattr(stage, "LARGE_TICK", 0)
    rng = random.Random(seed)
    rows: dict[str, dict[int, dict[str, Any]]] = {"customers": {}, "orders": {}}
    visits: list[dict[str, Any]] = []
    state = tmp_path / "state" if seed == 2 else None
    session = _defined(shards, state)
    for tick in range(25):
        with session.transaction() as tx:
            for _ in range(rng.choice((1, 1, 4, 12))):
                name, id = rng.choice(("customers", "customers", "orders")), rng.randrange(8)
                old = rows[name].get(id)
                if old is not None and rng.random() < 0.2:
                    tx.delete(name, [rows[name].pop(id)["id"]])
                    continue
                new = dict(old) if old is not None else {c: _value(rng, c) for c in ("region", "login", "customer", "amount")}
                changed = rng.choice(("login", "region") if name == "customers" else ("amount", "customer"))
                new[changed] = _value(rng, changed)
                kept = ("region", "login") if name == "customers" else ("customer", "amount")
                rows[name][id] = {"id": id, **{column: new[column] for column in kept}}
                tx.upsert(name, [rows[name][id]])
            if rng.random() < 0.5:
                visits.append({"customer": _value(rng, "customer"), "page": rng.randrange(2)})
                tx.insert("visits", visits[-1:])
            elif visits and rng.random() < 0.5:
                tx.delete("visits", [visits.pop(rng.randrange(len(visits)))])
        if state is not None and tick == 12:
            session.close()
            session = _defined(shards, state)
        with _defined(1) as fresh:
            with fresh.transaction() as tx:
                for name, held in rows.items():
                    tx.insert(name, [*held.values()])
                tx.insert("visits", visits)
            for name in VIEWS:
                assert _sorted(session, name) == _sorted(fresh, name), f"seed {seed}, tick {tick}, view {name}"
    session.close()


def _defined(shards: int, state: Path | None = None) -> deltic.Session:
    session = deltic.Session(shards=shards, state=state)
    session.sql(TABLES + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items()))
    return session


def _value(rng: random.Random, column: str) -> Any:
    if column == "region":
        return rng.choice(("north", "south", None))
    return None if column == "customer" and rng.random() < 0.1 else rng.randrange(8)


def _sorted(session: deltic.Session, view: str) -> list[str]:
    return sorted(map(repr, session.view(view).rows()))


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_that_cancel_are_left_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    words = [np.sort(rng.integers(0, 3, n)), rng.integers(0, 2, n)]
    weights = [rng.choice([-(2**63), -1, 1, 2**63 - 1], n), rng.choice([-1, 1], n)]
    expected, i = [], 0
    rows = list(zip(*(column.tolist() for column in (*words, *weights)), strict=True))
    while i < n:
        pair = rows[i : i + 2]
        if len(pair) == 2 and pair[0][:2] == pair[1][:2] and all(x == -y for x, y in zip(pair[0][2:], pair[1][2:], strict=True)):
            i += 2
            continue
        expected.append(i)
        i += 1
    kept = uncancelled(words, weights)
    assert (list(range(n)) if kept is None else kept.tolist()) == expected
