"""Commits of notes alone are no ticks: what views over streams show then, also from a folder whose writer goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import StateError
from deltic.runtimes.durable import core
from deltic.runtimes.stored_view import StoredView
from deltic.storage.maintenance import compact
from deltic.storage.reader import StateReader

PROGRAM = "CREATE STREAM s (k BIGINT, t STRING); CREATE MATERIALIZED VIEW v AS SELECT t, k FROM s"


def tick(session: deltic.Session, k: int) -> None:
    session.apply({"s": [{"k": k, "t": f"x{k}", "_weight": 1}]})


def test_a_lease_does_not_name_a_tick_that_is_not_retained(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path, retain=2) as session:
        session.sql(PROGRAM)
        for k in range(19):
            tick(session, k)
        last = session.epoch
        session._note({"a": 1})
        noted = session.epoch
        tick(session, 20)
        tick(session, 21)
        with StateReader.open(tmp_path, noted) as reader:
            assert reader.epochs().start == noted
            reader.share()
            with pytest.raises(StateError, match="not readable"):
                StoredView(reader, "v").rows()
            with pytest.raises(StateError, match="not readable"):
                StateReader.open(tmp_path, last)


def test_a_view_opened_at_a_note_stays_readable(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path, retain=3) as session:
        session.sql(PROGRAM)
        tick(session, 1)
        session._note({"a": 1})
        noted = session.epoch
        tick(session, 2)
        with deltic.open(tmp_path) as reader:
            view = reader.view("v", epoch=noted)
            for k in range(20):
                tick(session, k)
            assert view.rows() == [{"t": "x1", "k": 1}]


@pytest.mark.parametrize("options", [{}, {"state": True}, {"state": True, "commit_log": True}])
def test_strings_of_the_last_tick_are_kept_after_a_note(options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "STRINGS_BYTES", 0)
    with deltic.Session(**options | ({"state": tmp_path} if options else {})) as session:
        session.sql(PROGRAM)
        tick(session, 1)
        session._note({"a": 1})
        session._runtime._collect_bytes = 0  # type: ignore[attr-defined]  # of a session in memory
        assert session._runtime.trim_is_due
        session._runtime.trim()
        assert session.view("v").rows() == session.query("SELECT t, k FROM v").rows() == [{"t": "x1", "k": 1}]


def test_views_over_streams_keep_their_rows_when_a_state_is_compacted_and_gets_other_shards(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql(PROGRAM + "; CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
        for k in range(4):
            session.insert("t", [{"k": k}])
        tick(session, 7)
        epoch = session.epoch
    compact(tmp_path)
    for shards in (None, 3):
        if shards is not None:
            deltic.Session(state=tmp_path, shards=shards).close()
        with deltic.open(tmp_path) as reader:
            assert reader.epoch > epoch
            assert reader.view("v").rows() == [{"t": "x7", "k": 7}]
            assert len(reader.view("w").rows()) == 4
    with deltic.Session(state=tmp_path) as session:
        session.sql(PROGRAM + "; CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
        tick(session, 8)
        assert session.view("v").rows() == [{"t": "x8", "k": 8}]


@pytest.mark.parametrize("options", [{}, {"commit_log": True}, {"shards": 3}])
def test_a_state_that_is_opened_again_shows_its_readers_what_the_session_has(options: dict[str, Any], tmp_path: Path) -> None:
    program = PROGRAM + "; CREATE MATERIALIZED VIEW n AS SELECT t, count(*) AS n FROM s GROUP BY t"
    with deltic.Session(state=tmp_path, **options) as session:
        session.sql(program)
        tick(session, 7)
    with deltic.open(tmp_path) as reader:
        assert reader.view("n").rows() == [{"t": "x7", "n": 1}]
    for _ in range(2):
        with deltic.Session(state=tmp_path, **options) as session:
            session.sql(program)
            with deltic.open(tmp_path) as reader:
                assert session.epoch == reader.epoch
                for view in ("v", "n"):
                    assert session.view(view).rows() == reader.view(view).rows() == []


def test_a_definition_that_is_there_already_empties_streams_for_readers(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql(PROGRAM)
        tick(session, 7)
        session.sql("CREATE VIEW p AS SELECT k FROM s")
        emptied = session.epoch
        with deltic.open(tmp_path) as reader:
            assert session.view("v").rows() == reader.view("v").rows() == []
            assert reader.view("v", epoch=emptied - 1).rows() == [{"t": "x7", "k": 7}]
        session.sql("CREATE VIEW q AS SELECT k FROM s")
        assert session.epoch == emptied, "streams are empty already"


def test_a_note_of_a_user_under_the_reserved_name_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a state that was written before the name was reserved."""
    monkeypatch.setattr("deltic.runtimes.program._RESERVED", frozenset())
    for note in ("mine", [1], [99, "x"]):
        with deltic.Session(state=tmp_path) as session:
            session.sql(PROGRAM)
            session.apply({"s": [{"k": 1, "t": "x", "_weight": 1}]}, notes={"no_tick": note})
        with deltic.open(tmp_path) as reader:
            assert isinstance(reader.view("v").rows(), list)
