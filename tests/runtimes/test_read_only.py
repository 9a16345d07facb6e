"""deltic.open: views without a session equal those of a session."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path

import pytest

import deltic
from deltic.errors import CorruptState, DataError, StateError, UnknownName
from deltic.storage.leases import LEASE_THREAD
from deltic.storage.manifest import Change
from deltic.storage.program import EMPTY, ProgramDescription
from deltic.storage.state import State

SCRIPT = """
    CREATE TABLE orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(10,2), PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS SELECT sum(amount) AS total, customer FROM orders GROUP BY customer;
    CREATE MATERIALIZED VIEW Pairs AS SELECT customer, id % 3 AS m, count(*) AS n FROM orders GROUP BY customer, id % 3;
"""


def fill(session: deltic.Session, start: int, rows: int) -> None:
    with session.transaction() as change:
        change.insert("orders", [{"id": i, "customer": f"c{i % 7}", "amount": Decimal(i)} for i in range(start, start + rows)])


@pytest.fixture(params=[1, 3])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    with deltic.Session(state=str(tmp_path), shards=request.param) as session:
        session.sql(SCRIPT)
        fill(session, 0, 30)
        fill(session, 30, 3)
    return str(tmp_path)


def test_it_equals_the_session(state: str) -> None:
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        fill(session, 100, 5)
        with deltic.open(state) as opened:
            assert (opened.epoch, opened.views, opened.tables) == (session.epoch, ("spend", "Pairs"), ("orders",))
            assert opened.program.tables["orders"].key == ("id",)
            for name in session.views:
                ours, theirs = session.view(name), opened.view(name.upper())
                assert (theirs.name, theirs.schema, theirs.key_columns) == (ours.name, ours.schema, ours.key_columns)
                assert sorted(theirs.rows(), key=repr) == sorted(ours.rows(), key=repr)
                assert sorted(theirs.changes().to_pylist(), key=repr) == sorted(ours.changes().to_pylist(), key=repr)
                assert theirs.to_pandas().shape == ours.to_pandas().shape
            for key in ("c3", ("c3",), {"customer": "c3"}, "nobody", None):
                assert opened.view("spend").lookup(key) == session.view("spend").lookup(key), key
            for pair in (("c3", 1), {"CUSTOMER": "c3", "m": 1}):
                assert opened.view("pairs").lookup(pair) == session.view("pairs").lookup(pair) != []
            assert sorted(r["n"] for r in opened.view("pairs").lookup("c3")) == sorted(r["n"] for r in session.view("pairs").lookup("c3"))
            with pytest.raises(DataError, match="view Pairs has no key of 3 columns"):
                opened.view("pairs").lookup((1, 2, 3))


def test_earlier_epochs_are_kept_as_long_as_it_is_open(state: str) -> None:
    with deltic.open(state) as opened:
        earlier = opened.view("spend", opened.epoch - 1)
        before = sorted(earlier.rows(), key=repr)
        with deltic.Session(state=state, retain=0) as session:
            session.program("CREATE TABLE orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(10,2), PRIMARY KEY (id))")
            for start in range(100, 130):
                fill(session, start, 1)
            assert session.epoch in opened.epochs
        assert sorted(earlier.rows(), key=repr) == before and earlier.epoch == opened.epoch - 1
        assert sum(row["total"] for row in before) == sum(range(30))
        with pytest.raises(UnknownName, match="the state has no view spend\nexpected: a state with a materialized view"):
            opened.view("spend", opened.epochs[-1])
        with pytest.raises(StateError, match=rf"epoch {opened.epochs[-1] + 1} of the state folder .* is not readable"):
            opened.view("spend", opened.epochs[-1] + 1)
    with pytest.raises(StateError, match="is closed"):
        opened.view("spend")
    with pytest.raises(StateError, match=r"epoch 1 of the state folder .* is not readable"):
        deltic.open(state, epoch=1)


def test_following_the_newest_epoch_takes_one_thread_and_one_lease(state: str) -> None:
    def leases() -> int:
        return [thread.name for thread in threading.enumerate()].count(LEASE_THREAD)

    before = leases()
    with deltic.Session(state=state, retain=1) as session, deltic.open(state) as opened:
        session.sql(SCRIPT)
        views = []
        for start in range(100, 120):
            fill(session, start, 1)
            views.append(opened.view("spend", opened.epochs[-1]))
            opened.view("pairs", session.epoch - 1)  # is not kept
            assert leases() == before + 1
            assert len(list((Path(state) / "leases").iterdir())) == 1
        totals = [sum(row["total"] for row in view.rows()) for view in views]
        assert totals == [sum(range(33)) + sum(range(100, end)) for end in range(101, 121)]
        assert len(opened._readers) <= len(views) + 2
    assert not list((Path(state) / "leases").iterdir())


def test_nothing_is_written_without_a_lease(state: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(state).rglob("*")}
    with deltic.open(state, lease=False) as opened:
        assert len(opened.view("spend").rows()) == 7
        assert len(opened.view("spend", opened.epoch - 1).rows()) == 7
    assert {path: path.stat().st_mtime_ns for path in Path(state).rglob("*")} == before


def test_a_similar_name_is_suggested(state: str) -> None:
    with deltic.open(state) as opened, pytest.raises(UnknownName, match=r"expected: one of spend, Pairs\nhelp: did you mean spend\?"):
        opened.view("spent")


def test_a_description_equals_its_notes(state: str) -> None:
    with deltic.open(state) as opened:
        program = opened.program
    assert ProgramDescription.of(program.notes()).notes() == program.notes()
    assert program.after({"views": {}, "unknown": 3}).views == {} and program.after({"other": 1}) is program
    assert ProgramDescription.of(EMPTY) == ProgramDescription()


FIELDS = [["k", "BIGINT", False]]
ARRANGEMENT = {"columns": 1, "weights": 1, "partition": [0], "view": None, "table": None}


@pytest.mark.parametrize(
    "notes",
    [
        {"arrangements": []},
        {"arrangements": {"a": {**ARRANGEMENT, "columns": -1}}},
        {"arrangements": {"a": {**ARRANGEMENT, "partition": [1]}}},
        {"arrangements": {"a": {**ARRANGEMENT, "replicated": 1}}},
        {"arrangements": {"a": [1]}},
        {"tables": {"t": {"arrangement": "a", "fields": FIELDS, "key": ["k"]}}},
        {"arrangements": {"a": ARRANGEMENT}, "tables": {"t": {"arrangement": "a", "fields": FIELDS, "key": ["x"]}}},
        {"arrangements": {"a": ARRANGEMENT}, "tables": {"t": {"arrangement": "a", "fields": [["k", "INTEGERS", False]], "key": []}}},
        {"arrangements": {"a": ARRANGEMENT}, "tables": {"t": {"arrangement": "a", "fields": [*FIELDS, *FIELDS], "key": []}}},
        {"arrangements": {"a": ARRANGEMENT}, "views": {"v": {"arrangement": "a", "fields": FIELDS, "order": [1], "key": 0}}},
        {"arrangements": {"a": ARRANGEMENT}, "views": {"v": {"arrangement": "a", "fields": FIELDS, "order": [0], "key": 2}}},
        {"functions": {"f": "digest"}},
        {"watermarks": {"t": ["at"]}},
        {"now_us": "noon"},
        {"now_us": 10**30},
        {"strings": {"key": "00"}},
        {"id": 5},
        {"hash": None, "spread": -1},
    ],
    ids=str,
)
def test_an_invalid_description_is_rejected_when_the_state_is_opened(tmp_path: Path, notes: dict[str, object]) -> None:
    if "id" not in notes:  # a new state gets its own
        with pytest.raises(CorruptState):
            State.open(tmp_path / "new", facts=notes)
    state = State.open(tmp_path / "state")
    with pytest.raises(CorruptState):
        state.commit(Change(notes=notes))
    state.close()
