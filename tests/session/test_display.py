"""What a REPL and a notebook show of sessions, views and answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from deltic.errors import TypeMismatch

SCRIPT = """
    CREATE TABLE t (k INT PRIMARY KEY, v STRING, a ARRAY<INT>);
    CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v;
    INSERT INTO t SELECT id, concat('<', id % 2, '>'), array(id) FROM range(30);
"""


def test_a_session_and_a_view_say_what_they_are(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql(SCRIPT)
        view, answer = session.view("m"), session.query("SELECT * FROM t ORDER BY k")
        assert repr(session) == f"<session: 1 table, 1 materialized view, epoch {session.epoch}>"
        assert repr(view) == "<view m (v STRING, n BIGINT)>"
        assert view._repr_html_() == (
            "<table><tr><th>v</th><th>n</th></tr><tr><td>&lt;0&gt;</td><td>15</td></tr><tr><td>&lt;1&gt;</td><td>15</td></tr></table>"
            "<p>2 rows</p>"
        )
        lines = repr(answer).splitlines()
        assert (lines[0], lines[2], lines[-1]) == ("k   v    a", "1   <1>  [1]", "30 rows, the first 20 are shown")
        assert len(lines) == 22
        assert len(repr(session.last_tick)) < 200
    with deltic.open(tmp_path) as state:
        assert repr(state.view("m")) == "<view m (v STRING, n BIGINT)>"
    assert (repr(session), repr(view)) == ("<session, closed>", "<view m>")
    assert view._repr_html_() == "<p>the session is closed</p>"


def test_a_view_that_was_dropped_has_its_name_left() -> None:
    with deltic.Session() as session:
        session.sql(SCRIPT)
        view = session.view("m")
        session.sql("DROP VIEW m")
        assert repr(view) == "<view m>"


def test_an_answer_gives_its_rows_and_a_schema_is_that_of_create_table() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9)); INSERT INTO t VALUES (1, 'a'), (2, NULL)")
        assert [row["name"] for row in session.query("SELECT name FROM t ORDER BY id")] == ["a", None]
        assert str(session.table("t").schema) == "(id INT NOT NULL, name VARCHAR(9))"
        assert "Counters(rows_in=" in repr(session.last_tick.counters)
        with pytest.raises(TypeMismatch) as caught:
            session.query("SELECT id FROM t WHERE name IN (:names)", args={"names": ["a"]})
        assert caught.value.remedy == "array_contains(list, x)"
