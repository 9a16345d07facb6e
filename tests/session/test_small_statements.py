"""Statements that change or read few rows: what they cost, and that their short ways are those of queries in general."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final
from unittest.mock import patch

import pytest

import deltic
from calls import calls_of
from deltic.errors import ConstraintViolation, DelticError
from deltic.frontends.sql.bind_change import bind_change
from deltic.session.constant_rows import constant_rows
from deltic.session.single_row import single_row

SCRIPT: Final = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, k STRING NOT NULL, v DOUBLE NOT NULL);"
    "CREATE MATERIALIZED VIEW a AS SELECT k, count(*) AS n, sum(v) AS total FROM t GROUP BY k"
)
MERGE: Final = (
    "MERGE INTO t USING (SELECT 7 AS id, 'y' AS k, 2.5 AS v) AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
)
MANY: Final = "INSERT INTO t VALUES " + ", ".join(f"({i}, 'x', {i}.5)" for i in range(-1100, -1000))


def session_of(rows: int) -> deltic.Session:
    session = deltic.Session()
    session.sql(SCRIPT)
    session.insert("t", [{"id": i, "k": "x", "v": 1.5} for i in range(rows)])
    return session


@pytest.mark.parametrize(
    ("run", "most"),
    [
        (lambda session: session.sql("INSERT INTO t VALUES (-7, 'x', 1.5)"), 1_700),
        (lambda session: session.sql("INSERT INTO t VALUES (?, ?, ?)", args=[-7, "x", 1.5]), 1_700),
        (lambda session: session.sql(MANY), 33_000),
        (lambda session: session.sql("UPDATE t SET v = v + 1 WHERE id = 7"), 4_800),
        (lambda session: session.sql("DELETE FROM t WHERE id = 7"), 3_100),
        (lambda session: session.sql(MERGE), 26_000),
        (lambda session: session.query("SELECT * FROM t WHERE id = 7").rows(), 2_700),
    ],
    ids=["insert", "insert with arguments", "insert of 100 rows", "update", "delete", "merge", "query"],
)
def test_a_statement_takes_few_calls_however_many_rows_there_are(run: Callable[[deltic.Session], Any], most: int) -> None:
    run(session_of(10))  # the first one in a process fills caches
    for rows in (300, 30_000):
        session = session_of(rows)
        session.sql("INSERT INTO t VALUES (-1, 'x', 1.5); UPDATE t SET v = v + 2 WHERE id = -1; DELETE FROM t WHERE id = -1")
        calls = calls_of(partial(run, session))
        assert calls < most, (rows, calls)


COLUMNS: Final = {
    "BIGINT": ("1", "2 + 1", "CAST('4' AS INT)", "limit_of", "inc(2)", "2147483648"),
    "SMALLINT": ("1", "-3", "70000", "limit_of"),
    "DOUBLE": ("1.5", "2", "-0.0", "float('nan')", "1 / 4"),
    "DECIMAL(6, 2)": ("1.25", "2.345", "12345.678", "3"),
    "STRING": ("'x'", "upper('y')", "12", "concat('a', 'b')"),
    "VARCHAR(3)": ("'abc'", "'ab   '", "'long'"),
    "DATE": ("DATE '2020-01-02'", "current_date()", "now()"),
    "ARRAY<INT>": ("array(1, 2)", "array()", "array(1, NULL)"),
    "STRUCT<a: INT, b: STRING>": ("struct(1, 'b')", "named_struct('a', 2, 'b', NULL)"),
    "MAP<STRING, INT>": ("map('b', 2, 'a', 1)",),
    "STRING COLLATE UTF8_LCASE": ("'Ab'", "'ab'"),
}
"""Values that columns of these types may get; some do not fit."""
FAILING: Final = ("1 / 0", "CAST('q' AS INT)", "inc(7)", "DEFAULT", "NULL", "(SELECT max(id) FROM t)", "'a'", "t.id", ":given")


def increased(number: int) -> int:
    if number == 7:
        raise ValueError("seven")
    return number + 1


def prepared(random: Random) -> tuple[deltic.Session, list[tuple[str, str]]]:
    """A session with a table t of random columns, and these."""
    session = deltic.Session(shards=random.choice((1, 3)))
    session.advance_to(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    session.register("inc", increased, "BIGINT")
    columns = [("id", "BIGINT"), *((f"c{i}", random.choice(list(COLUMNS))) for i in range(random.randint(1, 3)))]
    parts = [f"{name} {type} {_suffix(name, type, random)}" for name, type in columns]
    key = random.choice((", PRIMARY KEY (id)", ", PRIMARY KEY (id)", ""))
    session.sql(f"DECLARE VARIABLE limit_of = 5; CREATE TABLE t ({', '.join(parts)}{key})")
    session.sql("CREATE MATERIALIZED VIEW g AS SELECT id, count(*) AS n FROM t GROUP BY id")
    return session, columns


def _suffix(name: str, type: str, random: Random) -> str:
    null = "" if name == "id" or random.random() < 0.6 else "NOT NULL "
    return null + (f"DEFAULT {COLUMNS[type][0]}" if name != "id" and random.random() < 0.3 else "")


def statement(columns: list[tuple[str, str]], random: Random) -> str:
    def value(type: str) -> str:
        return random.choice(FAILING if random.random() < 0.08 else COLUMNS[type])

    def condition() -> str:
        start = random.choice(
            ("id = {}", "{} = id", "id = {} AND 1 / (id - 5) > 0", "id = {} OR id = 1", "id IN ({}, 3)", "id = {} AND inc(id) > 2")
        )
        return start.format(random.choice(("1", "3", "5", "7", "limit_of", "NULL", "'4'", "4.0", ":given")))

    some = random.choice((columns, columns, random.sample(columns, random.randint(1, len(columns)))))
    names = ", ".join(name for name, _ in some)
    rows = [", ".join(value(type) for _, type in some) for _ in range(random.choice((1, 1, 2, 4)))]
    name, type = random.choice(columns)
    match random.randrange(10):
        case 0 | 1 | 2:
            return f"INSERT INTO t ({names}) VALUES {', '.join(f'({row})' for row in rows)}"
        case 3:
            return f"INSERT INTO t ({names}) SELECT {rows[0]}"
        case 4:
            return f"INSERT INTO t (id) SELECT one FROM (SELECT {value('BIGINT')} AS one, 1 / 0 AS other)"
        case 5:
            return f"UPDATE t SET {name} = {value(type)} WHERE {condition()}"
        case 6:
            return f"UPDATE t SET id = id + 1 WHERE {condition()}"
        case 7:
            return f"DELETE FROM t WHERE {condition()}"
        case 8:
            return f"BEGIN; INSERT INTO t (id) VALUES ({value('BIGINT')}); UPDATE t SET {name} = {value(type)} WHERE id = 3; COMMIT"
        case _:
            source = f"MERGE INTO t USING (SELECT {value('BIGINT')} AS id, {value(type)} AS c) s ON t.id = s.id"
            return f"{source} WHEN MATCHED THEN UPDATE SET {name} = s.c WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"


def outcomes(seed: int) -> list[object]:
    """What random statements do, and what queries answer after each."""
    random = Random(seed)
    session, columns = prepared(random)

    def tried(run: Callable[[], object]) -> object:
        try:
            return run()
        except DelticError as error:
            return type(error).__name__, str(error).partition(", row ")[0], getattr(error, "__notes__", [])

    def answer(query: str) -> object:
        rows = session.query(query).to_arrow()
        return str(rows.schema), sorted(map(repr, rows.to_pylist()))

    seen: list[object] = []
    for _ in range(15):
        text = statement(columns, random)
        args = {"given": random.choice((3, None, "x", 2.5))} if ":given" in text else None
        seen.append((text, tried(lambda text=text, args=args: session.sql(text, args=args))))
        selected = random.choice(("*", "id + 1, *", "1 / (id - 5)", "count(*)", "id, inc(id)", "now()"))
        query = f"SELECT {selected} FROM {random.choice(('t', 't', 'g'))} WHERE id = {random.choice('1357')}"
        seen += [(one, tried(lambda one=one: answer(one))) for one in ("SELECT * FROM t", query)]
    return [*seen, tried(lambda: answer("SELECT * FROM g"))]


def test_random_statements_do_what_their_queries_do() -> None:
    short = {"constants": 0, "single rows": 0}

    def counted(way: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            rows = function(*args)
            short[way] += rows is not None
            return rows

        return run

    for seed in range(25):
        with (
            patch("deltic.session.row_changes.constant_rows", counted("constants", constant_rows)),
            patch("deltic.session.query.single_row", counted("single rows", single_row)),
        ):
            found = outcomes(seed)
        with (
            patch("deltic.session.row_changes.constant_rows", return_value=None),
            patch("deltic.session.query.single_row", return_value=None),
        ):
            for one, wanted in zip(found, outcomes(seed), strict=True):
                assert one == wanted, seed
    assert min(short.values()) > 20, short


def test_a_refused_row_has_its_number_in_the_text() -> None:
    session = deltic.Session()
    session.sql("CREATE TABLE t (id BIGINT, k STRING NOT NULL)")
    with pytest.raises(ConstraintViolation, match="table t, row 1"):
        session.sql("INSERT INTO t VALUES (9, 'x'), (5, NULL), (7, 'y')")


def test_a_statement_is_bound_once_unless_what_it_reads_changes() -> None:
    bound: list[str] = []

    def seen(node: Any, *others: Any) -> Any:
        bound.append(type(node).__name__)
        return bind_change(node, *others)

    session = session_of(3)
    with patch("deltic.frontends.sql.change_statement.bind_change", seen):
        session.sql("INSERT INTO t VALUES (10, 'x', 1); UPDATE t SET v = 2 WHERE id = 10; DELETE FROM t WHERE id = 2")
        assert bound == ["InsertRows", "UpdateRows", "DeleteRows"]
        del bound[:]
        session.sql("INSERT INTO t SELECT n + 100, k, 1 FROM a")  # a view is a plan where it is defined, and rows where it is read
        assert bound == ["InsertRows"] * 2
        del bound[:]
        session.sql("INSERT INTO t SELECT unix_timestamp(), 'x', 1")  # by the wall clock
        assert bound == ["InsertRows"] * 2
    session.sql("INSERT INTO t VALUES (50, 'x', 1); ALTER TABLE t ADD COLUMN w INT DEFAULT 3; INSERT INTO t VALUES (51, 'x', 1, 4)")
    assert session.query("SELECT id, w FROM t WHERE id >= 50 AND id < 100 ORDER BY id").rows() == [{"id": 50, "w": 3}, {"id": 51, "w": 4}]


def test_a_typed_transaction_binds_again_to_a_table_that_has_changed() -> None:
    session = deltic.Session()
    session.sql("CREATE TABLE t (id BIGINT, v DOUBLE DEFAULT 1)")
    typed = session._typed_transaction()
    typed.add("BEGIN", "<a>")
    typed.add("INSERT INTO t (id) VALUES (1)", "<a>")
    session.sql("ALTER TABLE t ALTER COLUMN v SET DEFAULT 2")
    assert typed.query("SELECT * FROM t", "<a>").rows() == [{"id": 1, "v": 2.0}]


@pytest.mark.parametrize("frames", [0, 750, 820])
@pytest.mark.parametrize("value", ["v" + " + 1" * 150, "abs(" * 90 + "v" + ")" * 90], ids=["sum", "calls"])
def test_a_statement_may_be_called_from_a_deep_stack(frames: int, value: str) -> None:
    session = session_of(10)

    def at(depth: int) -> None:
        if depth:
            at(depth - 1)
        else:
            session.sql(f"UPDATE t SET v = {value} WHERE id = 5; INSERT INTO t SELECT -1, 'x', {value.replace('v', '1')}")

    at(max(0, frames - len(inspect.stack(0))))
    assert len(session.query("SELECT * FROM t WHERE id = -1").rows()) == 1
