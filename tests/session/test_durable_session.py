"""Sessions over a state folder: what they resume, keep and refuse, and how they survive interrupts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic import disk, errors
from deltic.runtimes.embedded.logged import LoggedEmbedded
from deltic.runtimes.stored_view import StoredView
from deltic.storage import merging
from deltic.storage.commit_log import CommitLog
from deltic.storage.maintenance import compact
from deltic.storage.reader import StateReader
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.spine import Spine
from interruptions import interrupted

TABLES = """
CREATE TABLE sales (id BIGINT NOT NULL, shop STRING, amount DECIMAL(10, 2), PRIMARY KEY (id));
CREATE TABLE visits (shop STRING, day DATE NOT NULL);
"""
SCRIPT = f"""{TABLES}
CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total, count(*) AS n FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW best AS SELECT id, shop FROM sales ORDER BY amount DESC, id LIMIT 3;
CREATE MATERIALIZED VIEW span AS SELECT min(amount) AS low, max(shop) AS last, count(*) AS n FROM sales;
"""


def sale(i: int, amount: int | None = None) -> dict[str, Any]:
    return {"id": i, "shop": f"shop {i % 7}" if i % 11 else None, "amount": i if amount is None else amount}


def content(session: deltic.Session) -> dict[str, list[str]]:
    return {view: sorted(map(repr, session.view(view).rows())) for view in session.views}


def insert(session: deltic.Session, *ids: int) -> None:
    with session.transaction() as tx:
        tx.insert("sales", [sale(i) for i in ids])


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A folder with two hundred sales, and their views."""
    with deltic.Session(state=str(tmp_path / "state")) as session:
        session.sql(SCRIPT)
        insert(session, *range(200))
    return str(tmp_path / "state")


@pytest.mark.parametrize("shards", [None, 3])
def test_a_session_resumes_where_the_last_one_left_off(state: str, shards: int | None) -> None:
    with deltic.Session(state=state) as session, deltic.Session() as other:
        session.sql(SCRIPT)
        other.sql(SCRIPT)
        insert(other, *range(200))
        assert content(session) == content(other)
        epoch, known = session.epoch, session._state_id
    with deltic.Session(state=state, shards=shards) as session, deltic.Session() as other:
        session.sql(SCRIPT)
        other.sql(SCRIPT)
        insert(other, *range(200))
        assert session._state_id == known
        assert session.epoch >= epoch
        for one in (session, other):
            with one.transaction() as tx:
                tx.delete("sales", list(range(150, 200)))
                tx.upsert("sales", [sale(3, 1000), sale(500)])
        assert content(session) == content(other)
        assert session.view("totals").changes().sort_by("shop").to_pylist() == other.view("totals").changes().sort_by("shop").to_pylist()
        assert session.view("totals").lookup("shop 3") == other.view("totals").lookup("shop 3")


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (3, 2), (2, 6)])
def test_partial_results_are_exact_after_resharding(tmp_path: Path, before: int, after: int) -> None:
    """Deletes the first rows and the extremes of each shard: their successors must be read from the new shards."""
    with deltic.Session() as expected:
        expected.sql(SCRIPT)
        for shards in (before, after, before):
            with deltic.Session(state=str(tmp_path), shards=shards) as session:
                epoch = session.epoch
                session.sql(SCRIPT)
                assert session.view("best").changes().num_rows == 0
                assert session.epoch == epoch + 1
                for _ in range(4):
                    for one in (session, expected):
                        start = one.view("span").rows()[0]["n"]
                        insert(one, *range(start, start + 40)) if not start else None
                        with one.transaction() as tx:
                            tx.delete("sales", [row["id"] for row in one.view("best").rows()])
                    assert content(session) == content(expected)


def test_nothing_is_filled_again_without_partial_results(tmp_path: Path) -> None:
    script = f"{TABLES} CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"
    with deltic.Session(state=str(tmp_path)) as session:
        session.sql(script)
        insert(session, *range(50))
        before = content(session)
    with deltic.Session(state=str(tmp_path), shards=4) as session:
        session.sql(script)
        assert content(session) == before
        assert session.last_tick is not None and not session.last_tick.counters


CHANGED = {
    "type": ("sales", "amount DECIMAL(10, 2)", "amount DOUBLE", "column amount was DECIMAL(10,2) and is now DOUBLE"),
    "not null": ("sales", "shop STRING, amount", "shop STRING NOT NULL, amount", "column shop was STRING and is now STRING NOT NULL"),
    "name": ("sales", "amount DECIMAL", "price DECIMAL", "the column amount is now price"),
    "missing": ("sales", ", amount DECIMAL(10, 2)", "", "column amount is missing"),
    "new": ("sales", "amount DECIMAL(10, 2)", "amount DECIMAL(10, 2), at DATE", "column at is new"),
    "key": ("visits", "day DATE NOT NULL", "day DATE NOT NULL, PRIMARY KEY (day)", "its primary key was none and is now (day)"),
    "no key": ("sales", ", PRIMARY KEY (id)", "", "its primary key was (id) and is now none"),
    "case": ("Sales", "TABLE sales", "TABLE Sales", "its name was sales and is now Sales"),
}


@pytest.mark.parametrize("how", ["sql", "program"])
@pytest.mark.parametrize("kind", CHANGED)
def test_a_table_that_changed_is_refused_and_nothing_happens(state: str, kind: str, how: str) -> None:
    table, old, new, difference = CHANGED[kind]
    with deltic.Session(state=state) as session:
        epoch = session.epoch
        with pytest.raises(errors.StateError) as caught:
            getattr(session, how)(f"{TABLES.replace(old, new)} CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM sales")
        assert str(caught.value) == (
            f"[DELTIC-5000] table {table} differs from the table in the state: {difference}\n"
            "expected: the columns, types, NOT NULL constraints and primary key that the table was created with\n"
            "help: declare the table as it was, and ALTER TABLE to add, drop or rename columns; or rename the table; "
            f"or drop {table.lower()} first, in a separate step, and load it again"
        )
        assert (session.epoch, session.tables) == (epoch, ())
        session.sql(SCRIPT)
        assert session.view("span").rows()[0]["n"] == 200


def test_tables_that_are_not_declared_are_kept_until_they_are_dropped(state: str) -> None:
    count = "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM sales"
    with deltic.Session(state=state) as session:
        session.sql("CREATE TABLE other (a INT); CREATE MATERIALIZED VIEW o AS SELECT a FROM other")
    with deltic.Session(state=state) as session:
        session.sql(f"{TABLES} {count}")
        assert session.view("n").rows() == [{"n": 200}]
    with deltic.Session(state=state) as session:
        with pytest.raises(errors.CatalogError, match="dropped and created again"):
            session.sql(f"DROP TABLE sales; {TABLES}")
        session.sql("DROP TABLE sales")
        session.sql(f"{TABLES.replace('DECIMAL(10, 2)', 'DOUBLE')} {count}")
        assert session.view("n").rows() == [{"n": 0}]


def test_a_program_drops_what_it_does_not_define(state: str) -> None:
    with deltic.Session(state=state) as session:
        session.program(SCRIPT)
        epoch = session.epoch
        session.program(SCRIPT)
        assert session.epoch == epoch
        session.program("CREATE TABLE visits (shop STRING, day DATE NOT NULL)")
        assert (session.tables, session.views) == (("visits",), ())
        assert set(session.notes["tables"]) == {"visits"}
        session.program(SCRIPT)
        assert session.view("span").rows()[0]["n"] == 0


def test_a_changed_view_is_filled_from_the_stored_tables(state: str) -> None:
    with deltic.Session(state=state) as session:
        session.program(SCRIPT.replace("count(*) AS n FROM sales GROUP", "max(id) AS n FROM sales GROUP"))
        assert sum(row["n"] is not None for row in session.view("totals").rows()) == 8
        assert session.view("best").changes().num_rows == 0
        with pytest.raises(errors.DivisionByZero):
            session.program(f"{TABLES} CREATE MATERIALIZED VIEW bad AS SELECT 1 / id AS x FROM sales")
        assert session.views == ("totals", "best", "span")
        assert session.view("span").rows()[0]["n"] == 200


def test_notes_are_committed_with_their_tick_or_not_at_all(state: str) -> None:
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        session.apply({"sales": [{**sale(1000), "_op": "insert"}]}, notes={"a": [1, "x"], "b": 1})
        with pytest.raises(errors.DuplicateKey):
            session.apply({"sales": [{**sale(1000), "_op": "insert"}]}, notes={"a": 2})
        assert session.notes["a"] == [1, "x"]
        session.apply({}, notes={"b": None})
    with deltic.Session(state=state) as session:
        assert session.notes["a"] == [1, "x"]
        assert "b" not in session.notes


def test_changes_of_retained_epochs(tmp_path: Path) -> None:
    with deltic.Session(state=str(tmp_path), retain=5) as session:
        session.sql(SCRIPT)
        seen = {}
        for i in range(30):
            insert(session, i)
            seen[session.epoch] = session.view("best").changes().sort_by("id").to_pylist()
        assert session.view("best").changes(session.epoch).num_rows == 2
        for epoch in range(session.epoch - 5, session.epoch + 1):
            assert session.view("best").changes(epoch).sort_by("id").to_pylist() == seen[epoch]
        with pytest.raises(errors.StateError) as caught:
            session.view("best").changes(session.epoch - 6)
        assert str(caught.value) == (
            f"[DELTIC-5000] the changes of epoch {session.epoch - 6} are not retained\n"
            f"expected: epochs {session.epoch - 5} to {session.epoch} are readable\n"
            "help: read one of these; retain= sets how many epochs a session retains"
        )
        with pytest.raises(errors.StateError, match="are not retained"):
            session.view("best").changes(session.epoch + 1)


MOVED = (
    *("percentile(amount, 0.5)", "median(amount)", "approx_percentile(amount, 0.5)", "percentile(amount, array(0.1, 0.9))"),
    *("percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY amount)"),
    *("mode(amount)", "max_by(id, amount)", "listagg(shop)", "array_agg(id)", "sum(1 DIV id)", "stddev(amount)", "count(DISTINCT id)"),
)


def test_views_keep_their_state_when_the_text_of_their_script_moves(tmp_path: Path) -> None:
    views = [f"CREATE MATERIALIZED VIEW v{i} AS SELECT shop, {call} AS x FROM sales GROUP BY shop;" for i, call in enumerate(MOVED)]
    views.append("CREATE MATERIALIZED VIEW ranks AS SELECT id, percent_rank() OVER (PARTITION BY shop ORDER BY amount) AS r FROM sales;")
    with deltic.Session(state=str(tmp_path)) as session:
        session.sql("\n".join([TABLES, *views]))
        insert(session, *range(1, 20))
        epoch, arrangements = session.epoch, set(session._definitions.circuit.arrangements)
    with deltic.Session(state=str(tmp_path)) as session:
        session.sql("\n\n  ".join(["-- a comment", TABLES, *views]))
        assert set(session._definitions.circuit.arrangements) == arrangements
        assert session.epoch <= epoch + 1, "a session's own epoch at most"
        assert session.view("v1").changes(epoch).num_rows > 0


@pytest.mark.parametrize("ticks", [0, 1])
def test_changes_of_epochs_in_which_a_view_was_another_are_refused(tmp_path: Path, ticks: int) -> None:
    view = "CREATE MATERIALIZED VIEW shops AS SELECT shop, count(*) AS n FROM sales {} GROUP BY shop"
    with deltic.Session(state=str(tmp_path)) as session:
        session.sql(TABLES + view.format(""))
        first = session.epoch
        insert(session, 1)
        session.sql("DROP VIEW shops")
        dropped = session.epoch
        for i in range(ticks):
            insert(session, 2 + i)
        session.sql(view.format("WHERE amount > 0"))
        other = session.epoch
        session.sql("DROP VIEW shops;" + view.format(""))
        again = session.epoch
        insert(session, 22)
        assert session.view("shops").changes(first + 1).to_pylist() == [{"shop": "shop 1", "n": 1, "_weight": 1}]
        assert session.view("shops").changes(again).num_rows == session.view("shops").changes(session.epoch - 1).num_rows > 0
        for epoch in range(dropped, other):
            with pytest.raises(errors.StateError, match=f"view shops did not exist at epoch {epoch}"):
                session.view("shops").changes(epoch)
        with pytest.raises(errors.StateError) as caught:
            session.view("shops").changes(other)
        assert str(caught.value) == (
            f"[DELTIC-5000] view shops had another definition at epoch {other}\n"
            "expected: an epoch at which it had its present definition\n"
            "help: read later epochs, or its content"
        )


def test_changes_of_retained_epochs_contain_strings_that_the_state_has_dropped(state: str) -> None:
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        session.apply({"sales": [{**sale(1000, 1000), "shop": "short-lived", "_op": "insert"}]})
        came = session.epoch
        with session.transaction() as tx:
            tx.delete("sales", [1000])
    compact(state)
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        assert {"id": 1000, "shop": "short-lived", "_weight": 1} in session.view("best").changes(came).to_pylist()
        assert {"id": 1000, "shop": "short-lived", "_weight": -1} in session.view("best").changes(came + 1).to_pylist()


def test_a_view_is_read_again_if_a_commit_removes_what_is_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"{TABLES} CREATE MATERIALIZED VIEW shops AS SELECT id, shop FROM sales"
    with deltic.Session(state=str(tmp_path), retain=0) as session:
        session.sql(script)
        insert(session, 2)
    with deltic.Session(state=str(tmp_path), retain=0) as session:
        session.sql(script)
        scan = Spine.scan

        def slow_scan(spine: Spine, counters: Counters) -> Batch:
            """As if ticks were made between the reading of the rows and that of their strings."""
            monkeypatch.setattr(Spine, "scan", scan)
            rows = scan(spine, counters)
            with session.transaction() as tx:
                tx.delete("sales", [2])
            for i in range(2 * merging.RATIO):
                insert(session, 7 * i + 1)
            return rows

        monkeypatch.setattr("deltic.runtimes.durable.core.STRINGS_BYTES", 0)
        monkeypatch.setattr(Spine, "scan", slow_scan)
        assert sorted(row["id"] for row in session.view("shops").rows()) == [7 * i + 1 for i in range(2 * merging.RATIO)]


def test_in_memory_the_last_changes_are_readable() -> None:
    with deltic.Session() as session:
        session.sql(SCRIPT)
        insert(session, 1)
        assert session.view("totals").changes(session.epoch).num_rows == 1
        with pytest.raises(errors.StateError, match="the changes of epoch 1 are not retained"):
            session.view("totals").changes(1)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_stored_view_is_read_without_a_session(tmp_path: Path, shards: int) -> None:
    with deltic.Session(state=str(tmp_path), shards=2) as session:
        session.sql(SCRIPT)
        insert(session, *range(100))
    with deltic.Session(state=str(tmp_path), shards=shards) as session:
        session.sql(SCRIPT)
        insert(session, 100)
        for view in session.views:
            with StateReader.open(tmp_path) as reader:
                stored = StoredView(reader, view.upper())
                order = [(name, "ascending") for name in stored.schema.names]
                whole = session.view(view).to_arrow().sort_by(order)
                assert stored.schema == session.view(view).schema
                assert stored.to_arrow().sort_by(order).equals(whole)
                parts = [weights for home in stored._layout.homes(None, shards) for _, weights, _ in stored._scan(home)]
                assert sum(int(weights.sum()) for weights in parts) == whole.num_rows
                assert stored.changes().sort_by(order).equals(session.view(view).changes().sort_by(order))
                assert stored.changes(session.epoch - 1).num_rows == 0
        with StateReader.open(tmp_path) as reader, pytest.raises(errors.UnknownName, match="the state has no view nothing"):
            StoredView(reader, "nothing")


def test_readers_see_whole_epochs_while_ticks_run(state: str) -> None:
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        done = threading.Event()

        def read() -> int:
            seen = 0
            while not done.is_set():
                assert sum(row["n"] for row in session.view("totals").rows()) % 10 == 0
                seen += len(session.view("best").rows())
            return seen

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            for i in range(30):
                insert(session, *range(1000 + 10 * i, 1010 + 10 * i))
            done.set()
            assert all(reader.result() for reader in readers)


def test_strings_in_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.durable.core.STRINGS_BYTES", 1 << 15)
    with deltic.Session(state=str(tmp_path)) as session:
        session.sql(SCRIPT)
        for tick in range(10):
            with session.transaction() as tx:
                tx.insert("sales", [{"id": 100 * tick + i, "shop": f"shop {tick} {i}", "amount": i} for i in range(100)])
        assert len(session._runtime.strings) < 600
        with session.transaction() as late:
            late.insert("sales", [{"id": 5000, "shop": "of the late one", "amount": 10**6}])
            for tick in range(10, 20):
                session.apply(
                    {"sales": [{"id": 100 * tick + i, "shop": f"shop {tick} {i}", "amount": i, "_op": "insert"} for i in range(100)]}
                )
        assert {"id": 5000, "shop": "of the late one"} in session.view("best").rows()
        assert {row["shop"] for row in session.view("totals").rows()} == {
            "of the late one",
            *(f"shop {t} {i}" for t in range(20) for i in range(100)),
        }
        insert(session, 9000)
        assert session.view("totals").lookup("shop 3 7") == [{"shop": "shop 3 7", "total": 7, "n": 1}]


STEPS = ("write:before", "write:after", "sync:after", "link:before", "link:after", "folder-sync:before", "folder-sync:after")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("folder", ["data", "manifests"])
def test_an_interrupt_leaves_a_whole_epoch_and_a_usable_session(
    state: str, monkeypatch: pytest.MonkeyPatch, folder: str, step: str
) -> None:
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        epoch = session.epoch
        monkeypatch.setattr(disk, "at", _once(step, folder, lambda: os.kill(os.getpid(), signal.SIGINT)))
        try:
            insert(session, 1000)
        except KeyboardInterrupt:
            came = True
        else:
            came = False
        assert came == (folder == "manifests" or not step.startswith("link"))
        there = session.epoch - epoch
        assert there == (folder == "manifests" or not came)
        assert session.view("span").rows()[0]["n"] == 200 + there
        insert(session, 1001)
        expected = content(session)
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        assert content(session) == expected


def _once(step: str, folder: str, act: Callable[[], None]) -> Callable[[str, str], None]:
    left = [act]

    def at(name: str, path: str) -> None:
        if name == step and f"/{folder}" in path and left:
            left.pop()()

    return at


def test_a_failed_commit_changes_nothing(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        before = content(session), session.epoch
        for folder in ("data", "manifests"):
            monkeypatch.setattr(disk, "at", _once("write:after", folder, fail))
            with pytest.raises(errors.StateError, match="No space left on device"):
                insert(session, 1000)
            assert (content(session), session.epoch) == before
        insert(session, 1000)
        assert session.view("span").rows()[0]["n"] == 201


def test_reserved_and_invalid_notes_are_refused_and_nothing_happens(tmp_path: Path) -> None:
    with deltic.Session(state=str(tmp_path / "state")) as session:
        session.sql("CREATE TABLE t (a BIGINT)")
        before = session.epoch
        for notes, message in (
            ({"tables": {}}, "the note name 'tables' is reserved"),
            ({"at": {1, 2}}, "the note 'at' is not valid JSON: Object of type set is not JSON serializable"),
            ({"at": float("nan")}, "the note 'at' is not valid JSON"),
        ):
            with pytest.raises(errors.DataError, match=message):
                session.apply({"t": [{"a": 1, "_op": "insert"}]}, notes=notes)
        assert session.epoch == before
        session.apply({}, notes={"at": [1, None, "x"]})
        assert session.notes["at"] == [1, None, "x"]


def test_a_negative_number_of_retained_epochs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.SetupError, match="invalid option retain=-1"):
        deltic.Session(state=str(tmp_path / "state"), retain=-1)


@pytest.mark.parametrize(("commit_log", "stride"), [(False, 1), (True, 113)])
def test_a_session_whose_close_is_interrupted_at_any_step_can_be_closed_again(tmp_path: Path, commit_log: bool, stride: int) -> None:
    at, came = 1, True
    while came:
        session = deltic.Session(state=tmp_path, commit_log=commit_log)
        session.sql("CREATE TABLE t (a BIGINT NOT NULL PRIMARY KEY)")
        session.apply({"t": [{"_op": "insert", "a": at}]})
        try:
            came = interrupted(at, session.close)
        except KeyboardInterrupt:
            came = True
        session.close()
        with pytest.raises(errors.ClosedError):
            session.apply({"t": [{"_op": "insert", "a": -at}]})
        at += stride
    assert at > 5


def test_a_close_that_is_interrupted_says_nothing_alarming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log is whole, and the next writer folds it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    script = "CREATE TABLE t (a BIGINT NOT NULL PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t"
    session = deltic.Session(state=tmp_path, commit_log=True)
    session.sql(script)
    session.apply({"t": [{"_op": "insert", "a": 1}]})
    with monkeypatch.context() as patched:
        patched.setattr(LoggedEmbedded, "_end_folding", interrupt)
        patched.setattr(CommitLog, "fold", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.close()
    session.close()
    assert caplog.records == []
    with deltic.Session(state=tmp_path) as session:
        session.sql(script)
        assert session.view("v").rows() == [{"n": 1}]
