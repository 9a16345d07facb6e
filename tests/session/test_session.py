"""Sessions as users see them: transactions, definitions, subscribers, threads."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltic
from deltic import errors
from deltic.session.collector import without_collector
from deltic.session.precedence import LONGEST_S, TURN_S, Precedence
from interruptions import interrupted_everywhere
from session_rows import rows_of_view

TABLES = """
CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, PRIMARY KEY (id));
CREATE TABLE log (line STRING);
"""
SPEND = "CREATE MATERIALIZED VIEW spend AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.sql(TABLES)
        session.sql(SPEND)
        yield session


def insert(session: deltic.Session, *orders: tuple[int, int, int]) -> None:
    with session.transaction() as tx:
        tx.insert("orders", [{"id": i, "customer": c, "amount": a} for i, c, a in orders])


@pytest.mark.parametrize(
    "frame",
    [
        [{"id": 1, "customer": 7, "amount": 5}],
        pa.table({"amount": [5], "id": [1], "customer": [7]}),
        pd.DataFrame({"id": [1], "customer": [7], "amount": [5]}),
        pl.DataFrame({"ID": [1], "customer": [7], "amount": [5]}),
    ],
    ids=["dicts", "pyarrow", "pandas", "polars"],
)
def test_frames_of_every_kind(session: deltic.Session, frame: Any) -> None:
    with session.transaction() as tx:
        tx.insert("orders", frame)
    view = session.view("spend")
    assert view.rows() == [{"customer": 7, "total": 5}]
    assert view.to_arrow().schema == pa.schema([("customer", pa.int64()), ("total", pa.int64())])
    assert view.to_pandas()["total"].tolist() == [5]
    assert view.to_polars()["total"].to_list() == [5]


@pytest.mark.parametrize("kind", ["changes", "rows"])
def test_memory_of_a_frame_may_be_written_to_after_the_tick(kind: str) -> None:
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE t (k BIGINT NOT NULL, v BIGINT NOT NULL, PRIMARY KEY (k)); CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t"
        )
        keys, values, weights = (np.array(words, np.int64) for words in ([1, 2], [10, 20], [1, 1]))
        if kind == "changes":
            session.apply({"t": pa.table([keys, values, weights], names=["k", "v", "_weight"])})
        else:
            with session.transaction() as tx:
                tx.insert("t", pa.table([keys, values], names=["k", "v"]))
        keys[:], values[:], weights[:] = 7, 70, 5
        assert rows_of_view(session, "v") == [(1, 10), (2, 20)]
        with session.transaction() as tx:
            tx.delete("t", [1])
        assert rows_of_view(session, "v") == [(2, 20)]


def test_operations_apply_in_the_order_of_the_calls(session: deltic.Session) -> None:
    with session.transaction() as tx:
        tx.insert("orders", [{"id": 1, "customer": 7, "amount": 5}])
        tx.upsert("orders", [{"id": 1, "customer": 7, "amount": 6}, {"id": 2, "customer": 8, "amount": 1}])
        tx.delete("orders", [1])
        tx.insert("orders", [{"id": 1, "customer": 9, "amount": 2}])
        tx.delete("orders", [{"id": 2, "customer": 8, "amount": 1}])
    assert rows_of_view(session, "spend") == [(9, 2)]
    assert session.view("spend").changes().to_pylist() == [{"customer": 9, "total": 2, "_weight": 1}]


def test_one_frame_is_a_tick_without_a_block(session: deltic.Session) -> None:
    epoch = session.epoch
    session.insert("orders", [{"id": 1, "customer": 7, "amount": 5}, {"id": 2, "customer": 8, "amount": 1}])
    session.upsert("Orders", pd.DataFrame({"id": [1, 3], "customer": [7, 9], "amount": [6, 2]}))
    session.update("orders", [{"id": 3, "customer": 9, "amount": 4}])
    session.delete("orders", [2])
    assert (rows_of_view(session, "spend"), session.epoch) == ([(7, 6), (9, 4)], epoch + 4)
    with pytest.raises(errors.DuplicateKey):
        session.insert("orders", [{"id": 4, "customer": 7, "amount": 5}, {"id": 3, "customer": 7, "amount": 5}])
    assert (rows_of_view(session, "spend"), session.epoch) == ([(7, 6), (9, 4)], epoch + 4)


def test_a_block_that_raises_changes_nothing(session: deltic.Session) -> None:
    with pytest.raises(ZeroDivisionError), session.transaction() as tx:
        tx.insert("orders", [{"id": 1, "customer": 7, "amount": 5}])
        raise ZeroDivisionError
    assert rows_of_view(session, "spend") == []


def test_change_frames(session: deltic.Session) -> None:
    insert(session, (1, 7, 5), (2, 7, 1), (3, 8, 2))
    session.apply(
        {"orders": pa.table({"id": [1, 2, 4, 3], "customer": [7, None, 9, 8], "amount": [6, None, 1, 2], "_op": ["u", "d", "c", "delete"]})}
    )
    assert rows_of_view(session, "spend") == [(7, 6), (9, 1)]
    session.apply({"orders": [{"id": 4, "customer": 9, "amount": 1, "_weight": -1}, {"id": 4, "customer": 9, "amount": 3, "_weight": 1}]})
    assert rows_of_view(session, "spend") == [(7, 6), (9, 3)]


def test_a_sequence_orders_the_changes_of_a_key(session: deltic.Session) -> None:
    frame = pa.table({"id": [1, 1, 1], "customer": [7, 8, 9], "amount": [1, 2, 3], "_op": ["upsert"] * 3, "at": [5, 9, 2]})
    session.apply({"orders": frame}, sequence="at")
    assert rows_of_view(session, "spend") == [(8, 2)]


def test_a_table_without_key_is_a_multiset(session: deltic.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW lines AS SELECT line FROM log")
    with session.transaction() as tx:
        tx.insert("log", [{"line": "a"}, {"line": "a"}, {"line": None}])
    with session.transaction() as tx:
        tx.delete("log", [{"line": "a"}])
    assert rows_of_view(session, "lines") == [("a",), (None,)]


def test_views_after_data_are_filled_in_one_tick(session: deltic.Session) -> None:
    insert(session, (1, 7, 5), (2, 7, 1), (3, 8, 2))
    epoch = session.epoch
    session.sql("""
        CREATE MATERIALIZED VIEW rich AS SELECT customer FROM spend WHERE total > 5;
        CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM log;
    """)
    assert session.epoch == epoch + 1
    assert rows_of_view(session, "rich") == [(7,)]
    assert rows_of_view(session, "n") == [(0,)]
    insert(session, (4, 8, 10))
    assert rows_of_view(session, "rich") == [(7,), (8,)]


def test_a_view_is_replaced_and_its_readers_follow(session: deltic.Session) -> None:
    insert(session, (1, 7, 5), (2, 8, 1))
    session.sql("CREATE MATERIALIZED VIEW rich AS SELECT customer, total FROM spend WHERE total > 2")
    session.sql("CREATE OR REPLACE MATERIALIZED VIEW spend AS SELECT customer, 10 * sum(amount) AS total FROM orders GROUP BY customer")
    assert rows_of_view(session, "spend") == [(7, 50), (8, 10)]
    assert rows_of_view(session, "rich") == [(7, 50), (8, 10)]
    with pytest.raises(errors.CatalogError):
        session.sql("CREATE OR REPLACE MATERIALIZED VIEW spend AS SELECT customer FROM orders")
    with pytest.raises(errors.CatalogError):
        session.sql("CREATE OR REPLACE MATERIALIZED VIEW spend AS SELECT customer, total FROM rich")
    assert rows_of_view(session, "rich") == [(7, 50), (8, 10)]


def test_dropping_a_view_keeps_what_others_share(session: deltic.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW twice AS SELECT customer, 2 * sum(amount) AS total FROM orders GROUP BY customer")
    insert(session, (1, 7, 5))
    held = session.view("spend")
    session.sql("DROP VIEW spend")
    assert rows_of_view(session, "twice") == [(7, 10)]
    with pytest.raises(errors.UnknownName):
        held.rows()
    with pytest.raises(errors.UnknownName):
        session.view("spend")
    insert(session, (2, 7, 1))
    assert rows_of_view(session, "twice") == [(7, 12)]


def test_equal_work_is_done_once(session: deltic.Session) -> None:
    before = len(session.explain().json()["operators"])
    session.sql("CREATE MATERIALIZED VIEW again AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    assert len(session.explain().json()["operators"]) == before + 1
    assert "shared by again, spend" in str(session.explain())


def test_lookup(session: deltic.Session) -> None:
    insert(session, (1, 7, 5), (2, 8, 1))
    view = session.view("spend")
    assert view.lookup(7) == view.lookup((7,)) == view.lookup({"customer": 7}) == [{"customer": 7, "total": 5}]
    assert view.lookup(9) == []
    with pytest.raises(errors.DataError):
        view.lookup({"colour": 7})
    with pytest.raises(errors.DataError):
        view.lookup((7, 8))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_tick_without_rows_runs_no_operator(threads: int) -> None:
    """Unless something follows time or ticks."""
    with deltic.Session(shards=threads, threads=threads) as made:
        made.sql(TABLES + SPEND + "; CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, max(amount) AS most FROM orders")
        made.sql("INSERT INTO orders VALUES (1, 2, 3)")
        epoch = made.epoch
        with made.transaction():
            pass
        assert made.epoch == epoch + 1 and made.last_tick is not None and not made.last_tick.counters
        assert [made.view(name).changes().num_rows for name in ("spend", "n")] == [0, 0]
        made.sql("INSERT INTO orders VALUES (4, 2, 5)")
        assert made.view("n").changes().to_pylist() == [
            {"n": 1, "most": 3, "_weight": -1},
            {"n": 2, "most": 5, "_weight": 1},
        ]
        made.advance_to(datetime(2026, 1, 1, tzinfo=UTC))
        made.sql("CREATE MATERIALIZED VIEW late AS SELECT id FROM orders WHERE timestamp_millis(amount) > now() - INTERVAL 1 SECOND")
        with made.transaction():
            pass
        assert made.last_tick.counters


def test_changes_are_those_of_the_last_tick(session: deltic.Session) -> None:
    insert(session, (1, 7, 5))
    with session.transaction() as tx:
        tx.insert("log", [{"line": "x"}])
    assert session.view("spend").changes().num_rows == 0


def test_subscribers_are_called_after_commits(session: deltic.Session) -> None:
    heard: list[list[dict[str, Any]]] = []
    stop = session.view("spend").subscribe(lambda change: heard.append(change.to_pylist()))
    insert(session, (1, 7, 5))
    with session.transaction() as tx:
        tx.insert("log", [{"line": "x"}])
    stop()
    insert(session, (2, 7, 5))
    assert heard == [[{"customer": 7, "total": 5, "_weight": 1}]]


def test_a_subscriber_that_raises_does_not_undo_the_tick(session: deltic.Session) -> None:
    heard = []

    def fails(change: pa.Table) -> None:
        raise RuntimeError("no disk")

    session.view("spend").subscribe(fails)
    session.view("spend").subscribe(heard.append)
    with pytest.raises(
        errors.SubscriberError, match="1 of 2 subscribers raised, the first RuntimeError: no disk; the tick is committed"
    ) as caught:
        insert(session, (1, 7, 5))
    assert [type(cause) for cause in caught.value.causes] == [RuntimeError]
    assert len(heard) == 1
    assert rows_of_view(session, "spend") == [(7, 5)]


def test_a_subscriber_may_use_the_session(session: deltic.Session) -> None:
    def log(change: pa.Table) -> None:
        with session.transaction() as tx:
            tx.insert("log", [{"line": "changed"}])

    session.sql("CREATE MATERIALIZED VIEW lines AS SELECT count(*) AS n FROM log")
    session.view("spend").subscribe(log)
    insert(session, (1, 7, 5))
    assert rows_of_view(session, "lines") == [(1,)]


def test_readers_see_whole_epochs_while_others_write(session: deltic.Session) -> None:
    """Two customers always have the same total; a reader on another thread never sees them differ."""
    session.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM orders")
    done = threading.Event()
    seen: list[list[tuple[Any, ...]]] = []
    failed: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                seen.append(rows_of_view(session, "spend"))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(200):
        insert(session, (2 * i, 7, i), (2 * i + 1, 8, i))
    done.set()
    thread.join()
    assert not failed
    assert all(len({total for _, total in content}) <= 1 for content in seen)


def test_two_threads_write_through_one_session(session: deltic.Session) -> None:
    def write(start: int) -> None:
        for i in range(100):
            insert(session, (start + i, 7, 1))

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows_of_view(session, "spend") == [(7, 200)]


def test_a_table_that_is_created_again_is_empty() -> None:
    table, view = "CREATE TABLE t (a INT PRIMARY KEY)", "CREATE MATERIALIZED VIEW v AS SELECT a FROM t"
    with deltic.Session() as session:
        session.sql(f"DROP TABLE IF EXISTS t; {table}; {view}")
        with session.transaction() as tx:
            tx.insert("t", [{"a": 1}])
        with pytest.raises(errors.CatalogError, match="table t is dropped and created again in one script"):
            session.sql(f"DROP VIEW v; DROP TABLE t; {table}; {view}")
        assert session.view("v").rows() == [{"a": 1}]
        session.sql("DROP VIEW v; DROP TABLE t")
        session.sql(f"{table}; {view}")
        assert session.view("v").rows() == []


def test_a_transaction_whose_table_was_dropped_or_created_again_is_refused() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT)")
        with pytest.raises(errors.UnknownName, match="there is no table t"), session.transaction() as tx:
            tx.insert("t", [{"a": 1}])
            session.sql("DROP TABLE t")
        session.sql("CREATE TABLE t (a INT)")
        with pytest.raises(errors.CatalogError, match="table t was altered, or dropped and created again"), session.transaction() as tx:
            tx.insert("t", [{"a": 1}])
            session.sql("DROP TABLE t")
            session.sql("CREATE TABLE t (a STRING); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        assert session.view("v").rows() == []


def test_changes_outside_the_block_are_refused() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT)")
        tx = session.transaction()
        with pytest.raises(errors.ClosedError, match="the transaction is not open"):
            tx.insert("t", [{"a": 1}])
        with tx:
            tx.insert("t", [{"a": 1}])
        with pytest.raises(errors.ClosedError, match="the transaction is not open"):
            tx.insert("t", [{"a": 2}])
        with pytest.raises(errors.ClosedError, match="the transaction has ended"):
            tx.__enter__()


def test_weights_and_operations_do_not_mix_in_one_tick() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        with pytest.raises(errors.DataError, match="by weights and by operations in one tick"), session.transaction() as tx:
            tx.apply("t", [{"a": 1, "_weight": 2}])
            tx.insert("t", [{"a": 1}])
        assert session.view("v").rows() == []


def test_reads_do_not_wait_for_a_tick_and_see_the_last_committed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def tick_read_meanwhile(changes: Any, notes: Any, **options: Any) -> Any:
        reader = threading.Thread(target=lambda: seen.extend([view.rows(), view.changes().to_pylist(), session.epoch]))
        reader.start()
        reader.join(10)
        return tick(changes, notes, **options)

    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        view = session.view("v")
        with session.transaction() as tx:
            tx.insert("t", [{"a": 1}])
        tick = session._runtime.tick
        monkeypatch.setattr(session._runtime, "tick", tick_read_meanwhile)
        with session.transaction() as tx:
            tx.insert("t", [{"a": 2}])
        assert seen == [[{"a": 1}], [{"a": 1, "_weight": 1}], 2]
        assert view.changes().to_pylist() == [{"a": 2, "_weight": 1}]


def test_a_closed_session_says_so(session: deltic.Session) -> None:
    view = session.view(session.views[0])
    session.close()
    with pytest.raises(errors.ClosedError, match="the session is closed"):
        insert(session, (1, 1, 1))
    for read in (session.explain, lambda: session.explain(view.name), view.errors, view.rows):
        with pytest.raises(errors.ClosedError, match="the session is closed"):
            read()


def test_a_view_that_is_not_materialized_can_be_read_by_others_only(session: deltic.Session) -> None:
    session.sql(
        "CREATE TEMPORARY VIEW big AS SELECT * FROM orders WHERE amount > 3; CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM big"
    )
    insert(session, (1, 7, 5), (2, 7, 1))
    assert rows_of_view(session, "n") == [(1,)]
    with pytest.raises(errors.CatalogError, match="not materialized"):
        session.view("big")


def test_the_public_names() -> None:
    assert sorted(deltic.__all__) == [
        "Answer",
        "Circuit",
        "Datalog",
        "EdnStore",
        "EdnView",
        "Encoded",
        "IndexedStream",
        "Keyword",
        "LoadProgress",
        "MapOf",
        "Pipeline",
        "Program",
        "ReadOnlyState",
        "Session",
        "SetOf",
        "StoredView",
        "Stream",
        "Transaction",
        "UDF",
        "Variant",
        "View",
        "Watermark",
        "__version__",
        "errors",
        "open",
        "view",
    ]


def test_the_public_attributes_of_a_session(session: deltic.Session) -> None:
    assert [name for name in dir(session) if not name.startswith("_")] == [
        "advance_to",
        "apply",
        "circuit",
        "clock",
        "close",
        "datalog",
        "delete",
        "edn",
        "edn_store",
        "edn_transact",
        "epoch",
        "explain",
        "failing",
        "frame",
        "insert",
        "install",
        "last_tick",
        "load",
        "next_due",
        "notes",
        "now",
        "program",
        "query",
        "register",
        "sinks",
        "sources",
        "spark",
        "sql",
        "stream",
        "table",
        "table_from",
        "tables",
        "transaction",
        "update",
        "upsert",
        "view",
        "view_of",
        "views",
    ]


READS = ["changes", "errors", "key_columns", "lookup", "name", "rows", "schema", "to_arrow", "to_pandas", "to_polars"]


def public(value: object) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_")]


def test_the_public_attributes_of_views(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        assert public(session.view("v")) == sorted([*READS, "subscribe", "to_spark"])
        with deltic.open(tmp_path) as handle:
            assert public(handle) == ["close", "epoch", "epochs", "program", "root", "tables", "view", "views"]
            assert public(handle.view("v")) == sorted([*READS, "epoch"])


@pytest.mark.parametrize("shards", [1, 3])
def test_the_length_of_a_view_is_the_number_of_its_rows(shards: int, tmp_path: Path) -> None:
    """Equal rows count as often as they are listed; of a stream those of the last tick."""
    with deltic.Session(state=tmp_path, shards=shards) as session:
        session.sql("CREATE TABLE t (a BIGINT, s STRING); CREATE STREAM e (a BIGINT); CREATE MATERIALIZED VIEW last AS SELECT a FROM e")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT a, s FROM t WHERE a > 0")
        assert len(session.view("v")) == 0 and not session.view("v")
        session.sql("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, 'y'), (3, NULL), (0, 'z')")
        session.sql("DELETE FROM t WHERE a = 2")
        assert len(session.view("v")) == 3 and list(session.view("v")) == session.view("v").rows()
        with deltic.open(tmp_path) as handle:
            assert len(handle.view("v")) == 3 and list(handle.view("v")) == handle.view("v").rows()
        session.insert("e", [{"a": 7}] * 5)
        assert len(session.view("last")) == 5
        session.insert("e", [{"a": 8}])
        with deltic.open(tmp_path) as handle:
            assert len(session.view("last")) == len(handle.view("last")) == 1
    with pytest.raises(errors.ClosedError):
        len(session.view("v"))


def test_a_view_of_more_rows_than_can_be_listed_is_counted() -> None:
    """As a plan has them: repeated rows are weights."""
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t, LATERAL repeat_row(a)")
        session.sql("INSERT INTO t VALUES (9000000000), (5)")
        assert len(session.view("v")) == 9_000_000_005


def test_a_view_of_more_rows_than_a_length_can_say_is_true(tmp_path: Path) -> None:
    most = 2**63 - 1
    with deltic.Session(state=tmp_path) as session:
        session.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t, LATERAL repeat_row(a)")
        session.insert("t", [{"a": most}])
        assert len(session.view("v")) == most
        session.insert("t", [{"a": 5}])
        with deltic.open(tmp_path) as handle:
            for view in (session.view("v"), handle.view("v")):
                assert view
                with pytest.raises(errors.TooManyRows, match="v has 9,223,372,036,854,775,812 rows"):
                    len(view)


def test_a_view_that_fails_has_neither_length_nor_truth() -> None:
    with deltic.Session(on_view_error="isolate") as session:
        session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT 1 / a AS b FROM t")
        session.sql("INSERT INTO t VALUES (0), (1)")
        for read in (len, bool):
            with pytest.raises(errors.FailedView):
                read(session.view("v"))


@pytest.mark.parametrize("name", [name for name in deltic.__all__ if isinstance(getattr(deltic, name), type)])
def test_public_attributes_are_documented(name: str) -> None:
    """docs/api.md is generated from docstrings."""
    kind = getattr(deltic, name)
    members = {member: getattr(kind, member) for member in public(kind)}
    assert kind.__doc__
    assert not [member for member, value in members.items() if (callable(value) or isinstance(value, property)) and not value.__doc__]


def test_a_primary_key_ignores_the_sign_of_zero(session: deltic.Session) -> None:
    session.sql("CREATE TABLE points (x DOUBLE, y DOUBLE, PRIMARY KEY (x)); CREATE MATERIALIZED VIEW p AS SELECT x, y FROM points")
    with session.transaction() as tx:
        tx.insert("points", [{"x": -0.0, "y": -0.0}])
    assert repr(rows_of_view(session, "p")) == "[(0.0, -0.0)]"
    with session.transaction() as tx:
        tx.upsert("points", [{"x": 0.0, "y": 1.0}])
    assert rows_of_view(session, "p") == [(0.0, 1.0)]
    with pytest.raises(errors.DuplicateKey):
        session.apply({"points": pa.table({"x": [-0.0], "y": [2.0], "_weight": [1]})})
    with session.transaction() as tx:
        tx.delete("points", [-0.0])
    assert rows_of_view(session, "p") == []


@pytest.mark.parametrize("few", [10, 9])
def test_a_tick_of_few_changes_over_many_views_collects_no_cycles(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's collector would walk all nodes of the program again and again; ticks of many changes leave it on."""
    views = "".join(f"CREATE MATERIALIZED VIEW v{i} AS SELECT a, count(*) AS n FROM e WHERE b > {i} GROUP BY a;" for i in range(100))
    collected: list[int] = []
    monkeypatch.setattr("deltic.session.commits.FEW", few)

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            collected.append(info["generation"])

    with deltic.Session() as session:
        session.sql(f"CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL); {views}")
        changes = [{"a": i, "b": i, "_op": "insert"} for i in range(10)]
        gc.collect()
        thresholds = gc.get_threshold()
        gc.callbacks.append(count)
        gc.set_threshold(50)
        try:
            session.apply({"e": changes})
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(count)
        assert gc.isenabled()
        assert len(collected) < 10 if few == 10 else len(collected) > 10, len(collected)


def test_a_read_waits_for_a_tick_but_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    precedence = Precedence()
    begun, may_end, order = threading.Event(), threading.Event(), list[str]()

    def tick() -> None:
        precedence.begin()
        with precedence.reading():  # a function that reads during its own tick
            begun.set()
        may_end.wait(10)
        order.append("tick")
        precedence.end()

    thread = threading.Thread(target=tick)
    thread.start()
    begun.wait(10)
    start = time.perf_counter()
    with precedence.reading():
        assert LONGEST_S <= time.perf_counter() - start < 5 and order == []
    may_end.set()
    thread.join()
    assert order == ["tick"]
    monkeypatch.setattr("deltic.session.precedence.monotonic", lambda: pytest.fail("a read waits while no tick runs"))
    with precedence.reading():
        pass


def test_an_interrupted_read_lets_others_tick_and_an_interrupted_tick_lets_others_read() -> None:
    precedence = Precedence()

    def read() -> None:
        precedence._ticking = -1  # another thread
        with precedence.reading():
            pass

    def tick() -> None:
        precedence._reading.add(-1)
        try:
            precedence.begin()
        finally:
            precedence.end()

    def check() -> None:
        for action in (tick, read):
            thread = threading.Thread(target=action, daemon=True)
            thread.start()
            thread.join(20)
            assert not thread.is_alive()
        tick()

    for action in (read, tick):
        assert interrupted_everywhere(action, check) > 5


def test_the_collector_of_cycles_goes_on_after_an_interrupt() -> None:
    @without_collector
    def pause() -> None:
        assert not gc.isenabled()

    def check() -> None:
        gc.isenabled() or pytest.fail("the collector stays disabled")

    assert interrupted_everywhere(pause, check) >= 5


def test_a_tick_waits_once_for_a_read_that_has_begun() -> None:
    precedence = Precedence()
    begun, may_end = threading.Event(), threading.Event()

    def read() -> None:
        with precedence.reading():
            begun.set()
            may_end.wait(10)

    thread = threading.Thread(target=read)
    thread.start()
    begun.wait(10)
    start = time.perf_counter()
    precedence.begin()
    assert time.perf_counter() - start >= TURN_S
    precedence.end()
    start = time.perf_counter()
    for _ in range(1000):
        precedence.begin()
        precedence.end()
    assert time.perf_counter() - start < 1000 * TURN_S / 2
    may_end.set()
    thread.join()


def test_reads_have_their_turns_between_ticks_that_follow_one_another() -> None:
    precedence = Precedence()
    stopped, log = threading.Event(), list[tuple[str, float]]()

    def read() -> None:
        while not stopped.is_set():
            start = time.perf_counter()
            with precedence.reading():
                log.append(("read", time.perf_counter() - start))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    end = time.perf_counter() + 0.3
    log.clear()
    while time.perf_counter() < end:
        precedence.begin()
        log.append(("tick", 0.0))
        precedence.end()
    stopped.set()
    for thread in threads:
        thread.join()
    kinds = [kind for kind, _ in log]
    last = len(kinds) - kinds[::-1].index("tick")
    assert 5 < kinds[:last].count("read") < kinds.count("tick")
    assert max(waited for _, waited in log) < 1


def test_a_stopped_session_of_spark_is_refused() -> None:
    """Classic, by its context, and Connect."""
    classic = {"_jsparkSession": None, "_sc": SimpleNamespace(_jsc=None)}
    ended = {"_jsparkSession": None, "_sc": SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: True)))}
    for attributes in (classic, ended, {"is_stopped": True}):
        stopped = type("SparkSession", (), {"__module__": "pyspark.sql.session", **attributes})()
        with pytest.raises(errors.SetupError, match=r"invalid option spark=.*\nexpected: a SparkSession that has not been stopped"):
            deltic.Session(spark=stopped)


def test_changes_name_each_table_once(session: deltic.Session) -> None:
    session.sql("CREATE TABLE once (a INT)")
    with pytest.raises(errors.FrameError, match="table once has two frames, as 'once' and as 'ONCE'"):
        session.apply({"once": [{"a": 1, "_op": "insert"}], "ONCE": [{"a": 2, "_op": "insert"}]})
    assert session.query("SELECT a FROM once").rows() == []
