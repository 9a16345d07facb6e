"""Streams in sessions: SQL and Python, restarts, errors, and what is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic import Session
from deltic.errors import CatalogError, DataError, DelticError, StateError, Unsupported
from deltic.session.state_query import StateQueries

SCRIPT = """
    CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING);
    CREATE STREAM clicks (user BIGINT, amount BIGINT);
    CREATE MATERIALIZED VIEW named AS SELECT name, amount FROM clicks JOIN users ON id = user;
    CREATE MATERIALIZED VIEW totals AS SELECT user, sum(amount) AS total FROM clicks GROUP BY user;
    CREATE MATERIALIZED VIEW number AS SELECT count(*) AS n FROM clicks;
    CREATE MATERIALIZED VIEW now AS SELECT user, sum(amount) AS total FROM current(clicks) GROUP BY user;
    CREATE MATERIALIZED VIEW ever AS SELECT user, sum(amount) AS total FROM integrate(clicks) GROUP BY user;
    CREATE MATERIALIZED VIEW late AS SELECT user FROM delay(clicks, 2);
    CREATE MATERIALIZED VIEW strangers AS SELECT user FROM clicks LEFT ANTI JOIN users ON id = user;
"""


def tick(session: Session, **rows: list[tuple[Any, ...]]) -> None:
    with session.transaction() as tx:
        for table, values in rows.items():
            names = session.table(table).schema.names
            tx.insert(table, [dict(zip(names, row, strict=True)) for row in values])


def contents(session: Session) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(tuple(row.values()) for row in session.view(name).rows()) for name in session.views}


def scenario(session: Session) -> list[dict[str, list[tuple[Any, ...]]]]:
    seen = []
    tick(session, users=[(1, "ann")], clicks=[(1, 5), (1, 7), (2, 1)])
    seen.append(contents(session))
    tick(session, users=[(2, "bob")])
    seen.append(contents(session))
    tick(session, clicks=[(2, 3)])
    seen.append(contents(session))
    return seen


EXPECTED = [
    {
        "named": [("ann", 5), ("ann", 7)],
        "totals": [(1, 12), (2, 1)],
        "number": [(3,)],
        "now": [(1, 12), (2, 1)],
        "ever": [(1, 12), (2, 1)],
        "late": [],
        "strangers": [(2,)],
    },
    {"named": [], "totals": [], "number": [(0,)], "now": [], "ever": [(1, 12), (2, 1)], "late": [], "strangers": []},
    {
        "named": [("bob", 3)],
        "totals": [(2, 3)],
        "number": [(1,)],
        "now": [(2, 3)],
        "ever": [(1, 12), (2, 4)],
        "late": [(1,), (1,), (2,)],
        "strangers": [],
    },
]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_stream_holds_the_rows_of_one_tick_and_what_reads_it_is_a_stream(shards: int) -> None:
    with Session(shards=shards) as session:
        session.sql(SCRIPT)
        assert scenario(session) == EXPECTED


def test_no_row_of_a_stream_is_retracted() -> None:
    with Session() as session:
        session.sql(SCRIPT)
        heard: list[int] = []
        session.view("totals").subscribe(lambda changes: heard.extend(changes["_weight"].to_pylist()))
        scenario(session)
        assert heard == [1, 1, 1]


def test_a_stream_in_a_state_is_read_by_epoch_and_what_waits_of_it_survives_a_restart(tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql(SCRIPT)
        scenario(session)
        epoch = session.epoch
    with deltic.open(tmp_path) as reader:
        views = {name: reader.view(name, epoch=epoch) for name in EXPECTED[-1]}
        assert {name: sorted(tuple(row.values()) for row in view.rows()) for name, view in views.items()} == EXPECTED[-1]
        assert views["totals"].lookup(2) == [{"user": 2, "total": 3}]
    with Session(state=tmp_path) as session:
        session.sql(SCRIPT)
        assert contents(session) == {**EXPECTED[1], "number": [], "now": [(2, 3)], "ever": [(1, 12), (2, 4)]}
        tick(session)
        assert contents(session)["totals"] == [] and contents(session)["late"] == []
        tick(session)
        assert contents(session)["late"] == [(2,)], "what waits is part of the state"


def test_a_reader_keeps_the_rows_of_the_last_tick(tmp_path: Path) -> None:
    with Session(state=tmp_path, retain=0) as session:
        session.sql("CREATE STREAM s (k BIGINT, t STRING); CREATE MATERIALIZED VIEW v AS SELECT t, k FROM s")
        rows = [{"t": "a text of its own", "k": 1}]
        session.apply({"s": [{**rows[0], "_weight": 1}]})
        for _ in range(3):
            session._note({"of": "a source"})
        with deltic.open(tmp_path) as reader, StateQueries(tmp_path) as queries:
            for k in range(5):
                session.apply({"s": [{"k": k, "t": f"another text {k}", "_weight": 1}]})
            assert reader.view("v", epoch=session.epoch).rows() == [{"t": "another text 4", "k": 4}]
            assert queries.query("SELECT * FROM v").rows() == rows
    with deltic.open(tmp_path) as reader:
        assert reader.view("v").rows() == [{"t": "another text 4", "k": 4}]


def test_many_ticks_of_a_stream_leave_the_state_where_it_was() -> None:
    with Session() as session:
        session.sql(
            """
            CREATE STREAM s (k BIGINT, t STRING);
            CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n, max(t) AS t FROM s GROUP BY k;
            CREATE MATERIALIZED VIEW latest AS SELECT k, count(DISTINCT t) AS n FROM current(s) GROUP BY k;
            """
        )
        sizes = []
        for number in range(800):
            session.apply({"s": [{"k": number % 7, "t": f"text {number} {i}", "_weight": 1} for i in range(5)]})
            if number % 200 == 199:
                sizes.append(sum(rows for rows, _ in session._runtime.statistics().values()))
        assert max(sizes) < 1_000, "of 4,000 rows"
        assert session._runtime.strings.used_bytes < 1 << 21


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a.user FROM clicks a JOIN clicks b ON a.user = b.user", "a join of two streams"),
        ("SELECT name FROM users LEFT ANTI JOIN clicks ON id = user", "a negated stream"),
        ("SELECT name FROM users WHERE id NOT IN (SELECT user FROM clicks)", "a negated stream"),
        ("SELECT name FROM users LEFT JOIN clicks ON id = user", "an outer join"),
        ("SELECT user FROM clicks UNION ALL SELECT id FROM users", "UNION of a stream and a relation"),
        ("SELECT user FROM clicks EXCEPT SELECT id FROM users", "EXCEPT or INTERSECT of a stream"),
        ("SELECT id FROM current(users)", "current() of a relation"),
        (
            "WITH RECURSIVE r(id) AS (SELECT user FROM clicks UNION SELECT id + 1 FROM r WHERE id < 9) SELECT id FROM r",
            "a stream in a recursion",
        ),
        ("SELECT id FROM delay(users, 0)", "an invalid number of ticks"),
        ("SELECT id FROM delay(1)", "delay() of an expression"),
        ("SELECT user FROM batched(clicks, 0)", "an invalid number of ticks"),
        ("SELECT user FROM batched(clicks)", "batched takes 2 arguments"),
        ("SELECT id FROM batched(users, 2)", "batched() of a relation"),
    ],
)
def test_what_has_no_meaning_for_a_stream_is_an_error_with_a_place(query: str, message: str) -> None:
    with Session() as session:
        session.sql(SCRIPT)
        with pytest.raises(DelticError) as error:
            session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert message in str(error.value) and "^" in str(error.value), str(error.value)
        assert "v" not in session.views


def test_rows_of_a_stream_are_only_inserted() -> None:
    with Session() as session:
        session.sql(SCRIPT)
        with pytest.raises(DataError, match="rows of stream clicks can only be inserted"), session.transaction() as tx:
            tx.delete("clicks", [{"user": 1, "amount": 5}])
        with pytest.raises(DataError, match="stream clicks cannot remove user=1, amount=5"):
            session.apply({"clicks": [{"user": 1, "amount": 5, "_weight": -1}]})
        with pytest.raises(Unsupported, match="a stream has no PRIMARY KEY"):
            session.sql("CREATE STREAM keyed (id BIGINT PRIMARY KEY)")


def test_a_stream_and_a_table_are_not_taken_for_each_other(tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql("CREATE STREAM s (k BIGINT); CREATE TABLE t (k BIGINT)")
        with pytest.raises(CatalogError, match="s is a stream"):
            session.sql("DROP TABLE s")
        with pytest.raises(CatalogError, match="t is a table"):
            session.sql("DROP STREAM t")
        session.sql("DROP STREAM IF EXISTS u")
    with Session(state=tmp_path) as session, pytest.raises(StateError, match="it was a stream and is now a table"):
        session.sql("CREATE TABLE s (k BIGINT)")
    with Session(state=tmp_path) as session:
        session.sql("CREATE STREAM s (k BIGINT); CREATE TABLE t (k BIGINT)")
        session.sql("DROP STREAM s")
        assert session.tables == ("t",)


def test_streams_of_circuits_have_the_operators_of_relations() -> None:
    circuit = deltic.Circuit()
    clicks = circuit.stream("clicks", schema={"user": int, "amount": int})
    users = circuit.input("users", schema={"user": int, "name": str}, key=["user"])
    circuit.output("sums", clicks.index_with("user").aggregate(total="sum(amount)"))
    circuit.output("named", clicks.index_with("user").join(users.index_with("user"), lambda _, click, user: (user.name, click.amount)))
    circuit.output("changes", clicks.current().differentiate().weighted())
    with Session() as session:
        session.install(circuit)
        tick(session, users=[(1, "ann")], clicks=[(1, 5), (1, 7)])
        assert contents(session) == {"sums": [(1, 12)], "named": [("ann", 5), ("ann", 7)], "changes": [(1, 5, 1), (1, 7, 1)]}
        tick(session)
        assert contents(session) == {"sums": [], "named": [], "changes": [(1, 5, -1), (1, 7, -1)]}


def test_explain_names_what_is_a_stream_and_shows_no_state_for_it() -> None:
    with Session() as session:
        session.sql(SCRIPT)
        tick(session, users=[(1, "ann")], clicks=[(1, 5), (2, 1)])
        shown = str(session.explain("named"))
        assert "Stream clicks (user, amount)" in shown and "Table users (id, name)" in shown
        streams = [line for line in shown.split("\n") if "; stream" in line]
        assert len(streams) >= 2 and not any("state " in line for line in streams)
        assert "current" in str(session.explain("now")) and "state current-" in str(session.explain("now"))
