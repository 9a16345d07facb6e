"""ALTER TABLE that is interrupted at any step of the disk: afterwards the table has its old columns or its new ones, and all of its rows.

The next session declares the columns that the state has, takes the statements that are left, and ends where an undisturbed one does.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from crashes import CommitRecord, PowerLoss, images_of_a_life, steps_of_a_life, watching
from deltic import Session, disk
from deltic.errors import DelticError
from deltic.storage.program import ProgramDescription
from deltic.storage.verify import VerifyProgress, verify
from parts import slow

TABLES = "CREATE TABLE t (id BIGINT NOT NULL, a BIGINT, b STRING, PRIMARY KEY (id)); CREATE TABLE u (a BIGINT)"
VIEWS = {
    "sums": "SELECT b, sum(a) AS a, count(*) AS n FROM t GROUP BY b",
    "joined": "SELECT t.id, t.b FROM t JOIN u ON t.a = u.a",
}
STATEMENTS = (
    "INSERT INTO u VALUES (1), (2), (2)",
    "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 2, NULL)",
    "ALTER TABLE t ADD COLUMN k STRING DEFAULT 'old'",
    "INSERT INTO t VALUES (4, 1, 'x', 'new')",
    "ALTER TABLE t RENAME COLUMN k TO m",
    "DELETE FROM t WHERE id = 2",
    "ALTER TABLE u ADD COLUMN n INT",
    "ALTER TABLE t ADD COLUMN d DATE DEFAULT DATE '2024-02-29'",
    "INSERT INTO u VALUES (1, 7)",
    "ALTER TABLE t DROP COLUMN m",
    "INSERT INTO t VALUES (5, 2, 'y', NULL)",
)
CREATED = 2
"""The tables, and the views, are created by two statements before these."""


class Content(NamedTuple):
    """The columns of the tables, and all rows of tables and views."""

    columns: dict[str, tuple[str, ...]]
    rows: dict[str, Counter[str]]


def contents() -> list[Content]:
    """What there is after each of the statements, by DuckDB; first that before them."""
    found = []
    with duckdb.connect() as peer:
        peer.execute(TABLES.replace("STRING", "VARCHAR"))
        for statement in ("SELECT 1", *STATEMENTS):
            peer.execute(statement.replace(" STRING", " VARCHAR"))
            columns = {name: tuple(column[0] for column in peer.execute(f"SELECT * FROM {name}").description) for name in "tu"}
            queries = {"t": "SELECT * FROM t", "u": "SELECT * FROM u", **VIEWS}
            found.append(Content(columns, {name: Counter(map(repr, peer.execute(query).fetchall())) for name, query in queries.items()}))
    return found


CONTENTS = contents()


def of(session: Session) -> Content:
    columns = {name: session.table(name).schema.names for name in "tu"}
    found = {name: session.query(f"SELECT * FROM {name}").rows() for name in "tu"} | {name: session.view(name).rows() for name in VIEWS}
    return Content(columns, {name: Counter(repr(tuple(row.values())) for row in rows) for name, rows in found.items()})


def define_views(session: Session) -> None:
    session.sql("".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items()))


def started(folder: Path | str, *, log: bool = False) -> Session:
    """A session of a folder, whose tables are those of the state."""
    session = Session(state=folder, commit_log=log)
    for name, table in ProgramDescription.of(session.notes).tables.items():
        columns = ", ".join(f"{field.name} {field.type.sql}{'' if field.nullable else ' NOT NULL'}" for field in table.fields)
        session.sql(f"CREATE TABLE {name} ({columns}{', PRIMARY KEY (id)' if table.key else ''})")
    return session


def life(folder: Path | str, record: CommitRecord, *, log: bool = False) -> None:
    """Runs the statements. record: has the number of each that has returned."""
    session = Session(state=folder, commit_log=log)
    try:
        for number, run in enumerate([lambda: session.sql(TABLES), lambda: define_views(session), *STATEMENTS]):
            record.trying = (number,)
            session.sql(run) if isinstance(run, str) else run()
            record.committed.append(number)
    except PowerLoss:
        runtime: Any = session._runtime
        runtime._merger.stop()
        runtime._merger.close()
        runtime._state.folder.unlock()
        raise
    session.close()


def logged_life(folder: Path | str, record: CommitRecord) -> None:
    life(folder, record, log=True)


def defect_of(folder: Path, record: CommitRecord) -> str | None:
    """Continues after an interruption: None if the state is that before or after the statement, and the rest follows."""
    done = len(record.committed)
    try:
        session = started(folder)
        with session:
            if done < CREATED:
                return None if set(session.tables) in (set(), {"t", "u"}) else f"tables {session.tables}"
            define_views(session)
            found, allowed = of(session), range(done - CREATED, min(done - CREATED + 1, len(STATEMENTS)) + 1)
            at = next((number for number in reversed(allowed) if found == CONTENTS[number]), None)
            if at is None:
                return f"after {done - CREATED} statements: {found}"
            for statement in STATEMENTS[at:]:
                session.sql(statement)
            if of(session) != CONTENTS[-1]:
                return f"in the end {of(session)}"
    except DelticError as error:
        return str(error)
    defects = list(verify(folder, VerifyProgress()))
    return str(defects) if defects else None


@pytest.mark.parametrize("stride", [47, *slow(1)])
def test_a_kill_at_any_step(tmp_path: Path, stride: int) -> None:
    steps = steps_of_a_life(tmp_path / "whole", life)
    assert len(steps) > 100
    for number in range(0, len(steps), stride):
        record = CommitRecord()
        _kill_at(number, tmp_path / str(number), record)
        assert defect_of(tmp_path / str(number), record) is None, f"step {number}, {steps[number]}"


@pytest.mark.parametrize(("one", "stride"), [(life, 41), (logged_life, 41), *slow((life, 1), (logged_life, 3))])
def test_a_power_failure_at_any_step(tmp_path: Path, one: Callable[[Path | str, CommitRecord], None], stride: int) -> None:
    images = images_of_a_life(tmp_path / "state", one)
    assert len(images) > 60
    for number, image in [*enumerate(images)][::stride]:
        image.put(tmp_path / str(number))
        assert defect_of(tmp_path / str(number), image.record) is None, image.step


@pytest.mark.slow
def test_a_missing_sync_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = disk._step

    def without(name: str, path: Path, act: Callable[[], None]) -> None:
        if (name, path.parent.name) != ("sync", "data"):
            step(name, path, act)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_step", without)
        images = images_of_a_life(tmp_path / "state", life)
    for number, image in enumerate(images):
        image.put(tmp_path / str(number))
        if defect_of(tmp_path / str(number), image.record) is not None:
            return
    raise AssertionError("nothing was lost")


def _kill_at(number: int, folder: Path, record: CommitRecord) -> None:
    """Lives until this step; none after it happens."""
    left = count(number, -1)

    def at(step: str, path: str) -> None:
        if next(left) <= 0:
            raise PowerLoss

    with watching(at), pytest.raises(PowerLoss):
        life(folder, record)


@pytest.mark.parametrize(("log", "stride"), [(False, 37), *slow((False, 7), (True, 11))])
def test_a_disk_that_fails_at_any_step(tmp_path: Path, log: bool, stride: int) -> None:
    """The statement fails, or has been committed all the same; the same session can go on, and so can the next one."""
    failed = 0
    for number in count(0, stride):
        with Session(state=tmp_path / str(number), commit_log=log) as session:
            session.sql(TABLES)
            define_views(session)
            left = count(number, -1)
            reached = _with_one_failure(session, left)
            failed += reached
            assert of(session) == CONTENTS[-1], f"step {number}"
        with started(tmp_path / str(number)) as session:
            define_views(session)
            assert of(session) == CONTENTS[-1], f"step {number}"
        if not reached:
            break
    assert failed > 80 // stride


def _with_one_failure(session: Session, left: Any) -> bool:
    """Runs all statements, of which one meets a failing step of the disk and is repeated unless it was committed; whether there was one."""
    at, reached = 0, False

    def fail(step: str, path: str) -> None:
        nonlocal reached
        if next(left) == 0:
            reached = True
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    while at < len(STATEMENTS):
        try:
            with watching(fail):
                session.sql(STATEMENTS[at])
        except (DelticError, OSError):
            found = of(session)
            assert found in (CONTENTS[at], CONTENTS[at + 1]), f"{STATEMENTS[at]}: {found}"
            at += found != CONTENTS[at]
            continue
        at += 1
        assert of(session) == CONTENTS[at], STATEMENTS[at - 1]
    return reached
