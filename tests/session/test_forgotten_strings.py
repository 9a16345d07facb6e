"""Strings that no row has any more are freed: memory is bounded by the live strings."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest

import deltic
from deltic.circuit.nodes import Dataflow
from deltic.plan.nodes import Table
from deltic.plan.relation import Relation
from deltic.runtimes.durable.merges import Merger
from deltic.runtimes.embedded import Embedded
from deltic.schema import BIGINT, STRING, Field, Schema, TableSchema
from engines import Engine
from parts import slow

LIVE = 6_000
ROUNDS = 40
SCRIPT = """
CREATE TABLE users (id BIGINT NOT NULL PRIMARY KEY, name STRING, city STRING);
CREATE TABLE visits (name STRING);
CREATE MATERIALIZED VIEW named AS SELECT id, concat(name, '!') AS name, city FROM users;
CREATE MATERIALIZED VIEW by_city AS SELECT city, min(name) AS first, count(*) AS n FROM users GROUP BY city;
CREATE MATERIALIZED VIEW visitors AS SELECT name FROM visits;
CREATE MATERIALIZED VIEW visited AS SELECT u.id FROM users u JOIN visits v ON u.name = v.name;
"""


@pytest.fixture(params=[3, *slow(1)])
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> deltic.Session:
    monkeypatch.setattr("deltic.runtimes.embedded.runtime.COLLECT_BYTES", 1 << 12)
    made = deltic.Session(shards=request.param)
    made.sql(SCRIPT)
    return made


def users(turn: int, count: int = LIVE) -> pa.Table:
    names = [f"user {turn}.{i}" for i in range(count)]
    return pa.table({"id": range(count), "name": names, "city": [f"city {turn}.{i % 20}" for i in range(count)]})


def upsert(session: deltic.Session, turn: int) -> None:
    with session.transaction() as tx:
        tx.upsert("users", users(turn))


def check(session: deltic.Session, turn: int) -> None:
    assert sorted(row["name"] for row in session.view("named").rows()) == sorted(f"user {turn}.{i}!" for i in range(LIVE))
    assert {row["city"]: row["n"] for row in session.view("by_city").rows()} == {f"city {turn}.{i}": LIVE // 20 for i in range(20)}
    changes = session.view("by_city").changes().to_pylist()
    came, went = ({row["city"] for row in changes if row["_weight"] == sign} for sign in (1, -1))
    assert came == {f"city {turn}.{i}" for i in range(20)}
    assert went == ({f"city {turn - 1}.{i}" for i in range(20)} if turn else set())
    changes = session.view("named").changes().to_pylist()
    assert {row["name"].split(".")[0] for row in changes if row["_weight"] == -1} == ({f"user {turn - 1}"} if turn else set())


def test_memory_is_a_constant_times_the_live_strings(session: deltic.Session) -> None:
    most = 0
    for turn in range(ROUNDS):
        upsert(session, turn)
        check(session, turn)
        most = max(most, len(session._runtime.strings))
    live = 2 * LIVE + 20  # names as they are, and with a mark after them
    # At most twice what was kept: what is live, and what small batches name that are not merged yet, of which each shard has its own; a
    # merge of them ends one tick after it began.
    bound = live * (7 if session._runtime.shards == 1 else 13)
    assert live <= len(session._runtime.strings) <= most < bound
    assert ROUNDS * live > 3 * bound, "the test has too few rounds to show anything"


def test_changes_that_are_being_gathered_keep_their_strings(session: deltic.Session) -> None:
    tx = session.transaction()
    with tx:
        tx.insert("visits", pa.table({"name": ["user 9.7", "stranger"]}))
        for turn in range(10):
            upsert(session, turn)
        check(session, 9)
    assert session.view("visited").rows() == [{"id": 7}]
    assert sorted(row["name"] for row in session.view("visitors").rows()) == ["stranger", "user 9.7"]
    for turn in range(10, 20):
        upsert(session, turn)
    assert session.view("visited").rows() == []
    upsert(session, 9)
    assert session.view("visited").rows() == [{"id": 7}]


def test_strings_of_looked_up_keys_are_not_kept(session: deltic.Session) -> None:
    upsert(session, 0)
    session.sql("CREATE MATERIALIZED VIEW cities AS SELECT DISTINCT city FROM users")
    before = len(session._runtime.strings)
    for i in range(100):
        assert session.view("cities").lookup(f"nowhere {i}") == []
        assert session.view("cities").lookup(f"city 0.{i}") == ([{"city": f"city 0.{i}"}] if i < 20 else [])
    assert len(session._runtime.strings) == before


def test_tables_that_no_view_reads_and_new_views_have_their_strings(session: deltic.Session) -> None:
    with session.transaction() as tx:
        tx.insert("visits", pa.table({"name": ["somebody"]}))
    session.sql("DROP VIEW visited; DROP VIEW visitors")
    for turn in range(10):
        upsert(session, turn)
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT name FROM visits")
    assert session.view("v").rows() == [{"name": "somebody"}]
    session.sql("DROP VIEW named; DROP VIEW by_city")
    for turn in range(10):
        upsert(session, turn)
    session.sql("CREATE MATERIALIZED VIEW w AS SELECT name FROM users")
    assert {row["name"] for row in session.view("w").rows()} == {f"user 9.{i}" for i in range(LIVE)}


def test_tables_that_the_program_does_not_declare_keep_their_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.embedded.runtime.COLLECT_BYTES", 0)
    table = TableSchema("t", Schema((Field("n", BIGINT, False), Field("s", STRING))))
    engine = Engine(Embedded(), {"t": table}, {"v": Table(table)})
    engine.tick({"t": [((1, "kept"), 1)]})
    engine.runtime.install(Dataflow.empty())
    engine.runtime.trim()
    engine.runtime.install(engine.circuit)
    assert engine.view("v") == Relation([((1, "kept"), 1)])


def test_readers_on_other_threads_see_whole_commits(session: deltic.Session) -> None:
    wrong: list[object] = []
    done = False

    def read() -> None:
        while not done:
            for view, column in (("by_city", "city"), ("by_city", "first")):
                table = session.view(view).to_arrow()
                if len({value.split()[1].split(".")[0] for value in table[column].to_pylist()}) > 1:
                    wrong.append(table)

    upsert(session, 0)
    reader = Thread(target=read)
    reader.start()
    try:
        for turn in range(1, 20):
            upsert(session, turn)
    finally:
        done = True
        reader.join()
    assert not wrong


def test_a_state_folder_keeps_no_more_in_memory_or_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.durable.core.STRINGS_BYTES", 1 << 20)
    monkeypatch.setattr(Merger, "take", lambda self, wait=False, take=Merger.take: take(self, True))  # a busy machine may merge late
    sizes = []
    with deltic.Session(state=str(tmp_path), retain=2) as session:
        session.sql(SCRIPT)
        for turn in range(ROUNDS):
            upsert(session, turn)
            assert session._runtime.strings.used_bytes < 1 << 22
            sizes.append(sum(path.stat().st_size for path in (tmp_path / "data").iterdir()))
        check(session, ROUNDS - 1)
    half = ROUNDS // 2
    assert max(sizes[half:]) < 1.2 * max(sizes[:half]), "merges of files drop strings that no row has"
