"""ALTER TABLE: old rows are exact, and what does not read the columns keeps its state. DuckDB runs the same statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltic
from altered_tables import TABLES, VIEWS, arrangements, create, replay
from deltic import Session
from deltic.errors import CatalogError, DelticError, StateError, TypeMismatch, UnknownName, Unsupported
from deltic.pipeline.dry_run import dry_run
from parts import slow
from seeds import rotating


def load(session: Session, rows: int = 10) -> None:
    with session.transaction() as tx:
        tx.insert("t", [{"id": i, "a": i % 4, "b": "xyz"[i % 3]} for i in range(rows)])
        tx.insert("u", [{"a": i % 3, "c": i % 5} for i in range(rows)])


def content(session: Session, table: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in session.query(f"SELECT * FROM {table}").rows()), key=repr)


@pytest.fixture
def loaded() -> Iterator[Session]:
    with Session() as session:
        create(session)
        load(session)
        yield session


def test_old_rows_have_the_default(loaded: Session) -> None:
    loaded.sql("ALTER TABLE t ADD COLUMNS (k INT, note STRING NOT NULL DEFAULT concat('o', 'ld'))")
    assert content(loaded, "t")[0] == (0, 0, "x", None, "old")
    loaded.sql("INSERT INTO t VALUES (10, 1, 'x', 5, 'new')")
    assert content(loaded, "t")[2] == (10, 1, "x", 5, "new")
    assert [str(field.type.sql) for field in loaded.table("t").schema][3:] == ["INT", "STRING"]


@pytest.mark.parametrize("column", ["extra INT DEFAULT 7", "extra STRING"])
def test_views_keep_their_state(loaded: Session, column: str) -> None:
    before = arrangements(loaded)
    loaded.sql(f"ALTER TABLE t ADD COLUMN {column}; ALTER TABLE u ADD COLUMN {column}")
    after = arrangements(loaded)
    assert {name.partition("-")[0] for name in after - before} <= {"table", "trace"}, "only what is a table's own arrangement is new"
    views = {loaded.view(name)._arrangement for name in VIEWS}
    assert views <= before & after
    loaded.sql("ALTER TABLE t RENAME COLUMN extra TO other; ALTER TABLE t DROP COLUMN other; ALTER TABLE u DROP COLUMN extra")
    assert arrangements(loaded) == before


def test_a_tick_after_it_touches_few_rows() -> None:
    with Session() as session:
        create(session)
        load(session, 20_000)
        session.sql("ALTER TABLE t ADD COLUMN extra INT DEFAULT 7")
        filled = session.last_tick
        assert filled is not None
        session.sql("DELETE FROM t WHERE id = 77")
        tick = session.last_tick
        assert tick is not None
        assert sum(counter.touched for counter in tick.counters.values()) < 2_000  # those of NOT IN and of the join
        session.sql("INSERT INTO t VALUES (77, NULL, 'x', NULL)")
        tick = session.last_tick
        assert tick is not None
        assert sum(counter.touched for counter in tick.counters.values()) < 200


def test_a_star_has_the_new_column(loaded: Session) -> None:
    loaded.sql("CREATE MATERIALIZED VIEW whole AS SELECT * FROM t; CREATE MATERIALIZED VIEW above AS SELECT * FROM whole")
    loaded.sql("ALTER TABLE t ADD COLUMN k INT DEFAULT 3")
    assert loaded.view("above").rows()[0] == {"id": 0, "a": 0, "b": "x", "k": 3}
    with pytest.raises(CatalogError, match="column k of table t is read by views whole, above") as raised:
        loaded.sql("ALTER TABLE t DROP COLUMN k")
    assert raised.value.remedy == "drop whole, above first, or replace them"


@pytest.mark.parametrize("statement", ["DROP COLUMN a", "RENAME COLUMN a TO z"])
def test_columns_that_views_read_stay(loaded: Session, statement: str) -> None:
    before = loaded.view("sums").rows()
    with pytest.raises(CatalogError, match="column a of table t is read by views sums, joined, first, unmatched"):
        loaded.sql(f"ALTER TABLE t {statement}")
    assert loaded.view("sums").rows() == before
    load_more = "INSERT INTO t VALUES (50, 1, 'x')"
    loaded.sql(load_more)


@pytest.mark.parametrize("statement", ["ADD COLUMN x INT DEFAULT 2", "DROP COLUMN c"])
def test_extremes_of_a_table_without_a_key_follow_its_rows_to_other_shards(statement: str) -> None:
    with Session(shards=3) as session:
        session.sql("CREATE TABLE r (a INT, c INT); CREATE MATERIALIZED VIEW most AS SELECT max(a) AS a FROM r")
        session.sql(f"INSERT INTO r VALUES {', '.join(f'({i}, {i % 3})' for i in range(12))}")
        session.sql(f"ALTER TABLE r {statement}")
        for i in range(11, 0, -1):
            session.sql(f"DELETE FROM r WHERE a = {i}")
            assert session.view("most").rows() == [{"a": i - 1}]


def test_a_view_may_read_one_that_was_defined_after_it(loaded: Session) -> None:
    loaded.sql("CREATE MATERIALIZED VIEW few AS SELECT id FROM t; CREATE VIEW earliest AS SELECT * FROM t WHERE id < 1")
    loaded.sql("CREATE OR REPLACE MATERIALIZED VIEW few AS SELECT * FROM earliest")
    loaded.sql("ALTER TABLE t ADD COLUMN k INT DEFAULT 7")
    loaded.sql("ALTER TABLE t ADD COLUMN m INT")
    assert loaded.view("few").rows() == [{"id": 0, "a": 0, "b": "x", "k": 7, "m": None}]
    loaded.sql("UPDATE t SET m = 5 WHERE id = 0")
    assert loaded.view("few").rows() == [{"id": 0, "a": 0, "b": "x", "k": 7, "m": 5}]
    with pytest.raises(CatalogError, match="column k of table t is read by views few, earliest"):
        loaded.sql("ALTER TABLE t DROP COLUMN k")


def test_a_view_that_counts_distinct_rows_reads_all_columns(loaded: Session) -> None:
    loaded.sql("ALTER TABLE u ADD COLUMN k INT; CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM (SELECT DISTINCT * FROM u)")
    with pytest.raises(CatalogError, match="read by view n"):
        loaded.sql("ALTER TABLE u DROP COLUMN k")


def test_a_name_that_would_mean_another_column_is_refused(loaded: Session) -> None:
    loaded.sql("CREATE MATERIALIZED VIEW both AS SELECT id, c FROM t JOIN u ON t.a = u.a")
    with pytest.raises(CatalogError, match="view both reads t and would no longer be valid"):
        loaded.sql("ALTER TABLE t ADD COLUMN c INT")
    assert loaded.table("t").schema.names == ("id", "a", "b")


def test_another_name_is_no_remedy_for_what_reads_columns_by_position(loaded: Session) -> None:
    loaded.sql("CREATE TABLE Pair (a INT NOT NULL, b INT NOT NULL)")
    loaded.datalog("output relation Reader(x: s32)\nReader(x) :- Pair(x, _).")
    with pytest.raises(CatalogError, match="view Reader reads Pair and would no longer be valid") as caught:
        loaded.sql("ALTER TABLE pair ADD COLUMN c INT")
    assert caught.value.remedy == "drop Reader first"


MISUSES = {
    "ALTER TABLE x ADD COLUMN c INT": (UnknownName, "there is no table 'x'"),
    "ALTER TABLE sums ADD COLUMN c INT": (UnknownName, "sums is a view, not a table"),
    "ALTER TABLE t ADD COLUMN A INT": (CatalogError, "table t has a column A already"),
    "ALTER TABLE t ADD COLUMN c INT, c INT": (CatalogError, "table t has a column c already"),
    "ALTER TABLE t ADD COLUMN c INT NOT NULL": (TypeMismatch, "column c is NOT NULL, and the rows of table t have no value for it"),
    "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT NULL": (TypeMismatch, "column c is NOT NULL, and its DEFAULT is NULL"),
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 'no'": (TypeMismatch, "column c of table t is INT"),
    "ALTER TABLE t ADD COLUMN c INT DEFAULT a": (TypeMismatch, "a DEFAULT reads no columns and no variables"),
    "ALTER TABLE t ADD COLUMN c INT FIRST": (Unsupported, "the place of a new column is not supported"),
    "ALTER TABLE t ADD COLUMN c": (Unsupported, "a column requires a type"),
    "ALTER TABLE t DROP COLUMN z": (UnknownName, "table t has no column 'z'"),
    "ALTER TABLE t DROP COLUMN id": (CatalogError, "column id is in the primary key of table t"),
    "ALTER TABLE t RENAME COLUMN b TO A": (CatalogError, "table t has a column A already"),
    "ALTER TABLE t ADD COLUMN c INT, _weight INT": (CatalogError, "table t has a column _weight, a name reserved for changes"),
    "ALTER TABLE t RENAME COLUMN b TO _OP": (CatalogError, "table t has a column _op, a name reserved for changes"),
    "ALTER TABLE t RENAME COLUMN z TO y": (UnknownName, "table t has no column 'z'"),
    "ALTER TABLE t SET TBLPROPERTIES ('x' = 'y')": (Unsupported, "ALTER TABLE … SET is not supported"),
    "ALTER TABLE u ADD COLUMN k INT; ALTER TABLE u DROP COLUMN k; ALTER TABLE u ADD COLUMN k INT DEFAULT 1": (
        CatalogError,
        "column k of table u is dropped and added again in one script",
    ),
    "CREATE STREAM s (x INT); ALTER TABLE s ADD COLUMN y INT": (Unsupported, "s is a stream, which keeps no rows"),
    "CREATE TABLE l (x TIMESTAMP LATENESS INTERVAL 1 HOUR); ALTER TABLE l ADD COLUMN y INT": (
        Unsupported,
        "ALTER TABLE of l, which has LATENESS, is not supported",
    ),
}


@pytest.mark.parametrize("script", MISUSES)
def test_misuse(loaded: Session, script: str) -> None:
    kind, message = MISUSES[script]
    epoch, before = loaded.epoch, content(loaded, "t")
    with pytest.raises(DelticError) as raised:
        loaded.sql(script)
    assert type(raised.value) is kind
    assert raised.value.message.startswith(message)
    assert raised.value.span is not None
    assert (loaded.epoch, content(loaded, "t")) == (epoch, before)


def test_a_view_that_fails_leaves_the_table(loaded: Session) -> None:
    with pytest.raises(DelticError):
        loaded.sql("ALTER TABLE t ADD COLUMN k INT DEFAULT 0; CREATE MATERIALIZED VIEW bad AS SELECT 1 / k AS x FROM t")
    assert loaded.table("t").schema.names == ("id", "a", "b")
    loaded.sql("INSERT INTO t VALUES (50, 1, 'x')")
    assert len(loaded.view("first").rows()) == 3
    loaded.sql("ALTER TABLE t ADD COLUMN k INT DEFAULT 5; CREATE MATERIALIZED VIEW good AS SELECT id, 10 / k AS x FROM t")
    assert {row["x"] for row in loaded.view("good").rows()} == {2.0}


def test_changes_gathered_before_it_are_refused(loaded: Session) -> None:
    with pytest.raises(CatalogError, match="was altered"), loaded.transaction() as tx:
        tx.insert("t", [{"id": 90, "a": 1, "b": "x"}])
        loaded.sql("ALTER TABLE t ADD COLUMN k INT")


ALTERED = "ALTER TABLE t ADD COLUMN k INT DEFAULT 7;"
AS_CREATED = TABLES.replace("b STRING NOT NULL,", "b STRING NOT NULL, k INT,")


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("again", [TABLES + ALTERED, AS_CREATED.replace("k INT, PRIMARY KEY (id)", "k INT, PRIMARY KEY (id)")])
def test_a_restart_keeps_it(tmp_path: Path, again: str, log: bool) -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items())
    with Session(state=tmp_path / "state", commit_log=log) as session:
        create(session)
        load(session)
        session.sql(ALTERED)
        kept, rows = arrangements(session), {name: session.view(name).rows() for name in VIEWS}
    with Session(state=tmp_path / "state", commit_log=log) as session:
        session.sql(again + views)
        assert arrangements(session) == kept
        assert {name: session.view(name).rows() for name in VIEWS} == rows
        assert content(session, "t")[0] == (0, 0, "x", 7)


def test_a_column_of_the_key_is_renamed(tmp_path: Path) -> None:
    script = "CREATE TABLE k (id INT PRIMARY KEY, a INT); ALTER TABLE k RENAME COLUMN id TO number"
    for value in (1, 2):
        with Session(state=tmp_path / "state") as session:
            session.sql(script)
            session.sql(f"INSERT INTO k VALUES ({value}, 0)")
            session.sql("UPDATE k SET a = a + 1 WHERE number = 1")
            assert session.table("k").key == (0,)
            assert session.query("SELECT * FROM k WHERE number = 1").rows() == [{"number": 1, "a": value}]


def test_a_script_alters_the_table_of_a_state(tmp_path: Path) -> None:
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in VIEWS.items())
    with Session(state=tmp_path / "state") as session:
        create(session)
        load(session)
        kept = {session.view(name)._arrangement for name in VIEWS}
    changed = TABLES + ALTERED + "ALTER TABLE t RENAME COLUMN k TO k2;" + views
    for _ in range(2):
        with Session(state=tmp_path / "state") as session:
            session.program(deltic.Program(changed))
            assert {session.view(name)._arrangement for name in VIEWS} == kept
            assert {row[3] for row in content(session, "t")} == {7}
            assert session.table("t").schema.names == ("id", "a", "b", "k2")
    with Session(state=tmp_path / "state") as session, pytest.raises(StateError, match="table t differs from the table in the state"):
        session.sql(TABLES)


def test_a_pipeline_alters_a_table_with_a_source(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.json").write_text('{"id": 1, "page": "home"}\n')
    table = "CREATE TABLE visits (id BIGINT, page STRING) USING json OPTIONS (path 'in');"
    view = "CREATE MATERIALIZED VIEW pages AS SELECT page, count(*) AS n FROM visits GROUP BY page;"
    alter, sink = (
        "ALTER TABLE visits ADD COLUMN seconds INT DEFAULT 0;",
        "CREATE SINK s FROM pages USING json OPTIONS (path 'out', mode 'changes');",
    )
    run: Any = {"state": str(tmp_path / "state"), "base": tmp_path}
    with deltic.Pipeline(table + view + sink, **run) as pipeline:
        pipeline.run_once()
        kept = pipeline.session.view("pages")._arrangement
    (tmp_path / "in/2.json").write_text('{"id": 2, "page": "home", "seconds": 5}\n')
    changed = table + alter + view + sink + "CREATE MATERIALIZED VIEW waits AS SELECT page, sum(seconds) AS s FROM visits GROUP BY page;"
    planned = dry_run(changed, state=str(tmp_path / "state"), base=tmp_path)
    assert "pages" in planned.start.reused
    for _ in range(2):
        with deltic.Pipeline(changed, **run) as pipeline:
            pipeline.run_once()
            assert pipeline.session.view("pages").rows() == [{"page": "home", "n": 2}]
            assert pipeline.session.view("waits").rows() == [{"page": "home", "s": 5}]
            assert pipeline.session.view("pages")._arrangement == kept


@pytest.mark.parametrize("seed", [0, *slow(*rotating(23))])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kept", [False, True])
def test_random_alterations(seed: int, shards: int, kept: bool, tmp_path: Path) -> None:
    replay(seed, tmp_path / "state" if kept else None, shards)
