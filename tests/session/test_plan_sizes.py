"""Joins are ordered by the sizes that tables have when a view is defined, and planned again by REPLAN only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deltic import Pipeline, Program, Session
from deltic.errors import CatalogError, CorruptState, QueryError, UnknownName, Unsupported
from deltic.pipeline.dry_run import dry_run
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Join, Table
from deltic.plan.walk import nodes
from deltic.storage.program import PLANS, ProgramDescription

TABLES = "".join(f"CREATE TABLE {name} (k BIGINT, v BIGINT);" for name in "abc")
QUERY = "SELECT a.k, c.v FROM a JOIN b ON a.v = b.k JOIN c ON b.v = c.k"
VIEW = f"CREATE MATERIALIZED VIEW v AS {QUERY};"
SIZES = {"a": 600, "b": 30, "c": 30}
GROWN = {"a": 0, "b": 600, "c": 6000}


def rows(count: int) -> list[dict[str, Any]]:
    return [{"k": i % 1009, "v": i % 89, "_op": "insert"} for i in range(count)]


def load(session: Session, sizes: dict[str, int]) -> None:
    session.apply({name: rows(count) for name, count in sizes.items() if count})


def order(session: Session, view: str = "v") -> str:
    """The tables of the innermost join."""
    joins = [node for node in nodes(session._definitions.plans[view]) if isinstance(node, Join)]
    return "".join(sorted(node.table.name for node in nodes(joins[0]) if isinstance(node, Table)))


def arrangement(session: Session, view: str = "v") -> str:
    return session.view(view)._arrangement


def expected(session: Session) -> list[dict[str, Any]]:
    """By hash joins of our own."""
    a, b, c = (session.query(f"SELECT * FROM {name}").rows() for name in "abc")
    by_key: dict[str, dict[int, list[dict[str, Any]]]] = {"b": defaultdict(list), "c": defaultdict(list)}
    for name, content in (("b", b), ("c", c)):
        for row in content:
            by_key[name][row["k"]].append(row)
    return [{"k": x["k"], "v": z["v"]} for x in a for y in by_key["b"][x["v"]] for z in by_key["c"][y["v"]]]


def same(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> bool:
    return sorted(map(repr, left)) == sorted(map(repr, right))


@pytest.fixture
def loaded() -> Iterator[Session]:
    with Session() as session:
        session.sql(TABLES)
        load(session, SIZES)
        session.sql(VIEW)
        yield session


def test_a_view_is_planned_for_the_rows_of_its_tables(loaded: Session) -> None:
    assert order(loaded) == "bc"
    with Session() as session:
        session.sql(TABLES + VIEW)
        load(session, SIZES)
        assert order(session) == "ab", "planned before its tables had rows"
        assert same(session.view("v").rows(), loaded.view("v").rows())


def test_a_plan_stays_while_tables_grow_until_it_is_replanned() -> None:
    with Session() as session:
        session.sql(TABLES + VIEW)
        before = arrangement(session)
        load(session, SIZES)
        session.sql("CREATE MATERIALIZED VIEW other AS SELECT k FROM a")
        assert arrangement(session) == before
        changes: list[Any] = []
        session.view("v").subscribe(changes.append)
        content = session.view("v").rows()
        session.sql("ALTER MATERIALIZED VIEW V REPLAN")
        assert arrangement(session) != before
        assert order(session) == "bc"
        assert same(session.view("v").rows(), content)
        assert not changes
        session.apply({"a": rows(5), "c": rows(7)})
        assert same(session.view("v").rows(), expected(session))
        planned = arrangement(session)
        session.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS " + QUERY)
        assert arrangement(session) == planned


def test_equal_queries_are_planned_alike(loaded: Session) -> None:
    load(loaded, GROWN)
    loaded.sql(f"CREATE MATERIALIZED VIEW again AS {QUERY}")
    assert order(loaded, "again") == order(loaded) == "bc"
    loaded.sql("ALTER VIEW again REPLAN")
    assert order(loaded, "again") == order(loaded) == "ab"


def test_a_plan_stays_over_restarts(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with Session(state=state) as session:
        session.sql(TABLES)
        load(session, SIZES)
        session.sql(VIEW)
        before = arrangement(session)
        load(session, GROWN)
    program = TABLES + VIEW
    assert dry_run(program, state=state).start.reused == ("v",)
    with Session(state=state) as session:
        session.program(program)
        assert arrangement(session) == before
        assert session.last_tick is None or not session.last_tick.changes
        assert same(session.view("v").rows(), expected(session))
        session.program(program + VIEW.replace("VIEW v", "VIEW w"))
        assert order(session, "w") == "bc"
        session.sql("ALTER MATERIALIZED VIEW v REPLAN")
        replanned = arrangement(session)
        assert replanned != before
    with Pipeline(program, state=state) as pipeline:
        assert pipeline.start.reused == ("v",)
        assert arrangement(pipeline.session) == replanned


def test_a_new_view_of_a_state_is_planned_for_the_rows_of_the_state(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with Session(state=state) as session:
        session.sql(TABLES)
        load(session, SIZES)
    with Session(state=state) as session:
        session.program(TABLES + VIEW)
        assert order(session) == "bc"


def test_views_of_a_state_that_names_no_sizes_keep_their_plans(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with Session(state=state) as session:
        session.sql(TABLES + VIEW)
        load(session, SIZES)
        before = arrangement(session)
        session._runtime.tick({}, {PLANS: None})
    with Session(state=state) as session:
        session.program(TABLES + VIEW + VIEW.replace("VIEW v", "VIEW w").replace("c.v", "c.v + 1 AS v"))
        assert arrangement(session) == before
        assert order(session, "w") == "bc"


def test_a_query_is_planned_for_the_rows_of_its_tables(loaded: Session) -> None:
    assert same(loaded.query(QUERY).rows(), loaded.view("v").rows())


def test_errors_have_places(loaded: Session) -> None:
    loaded.sql("CREATE VIEW plain AS SELECT k FROM a")
    for text, error, place, message in (
        ("ALTER MATERIALIZED VIEW w REPLAN", UnknownName, "w", "there is no view 'w'"),
        ("ALTER VIEW plain REPLAN", CatalogError, "plain", "view plain is not materialized: it has no plan of its own"),
        ("ALTER VIEW v RENAME TO w", Unsupported, "RENAME", "ALTER VIEW … RENAME is not supported"),
        ("ALTER SINK s REPLAN", Unsupported, "ALTER SINK", "ALTER SINK is not supported"),
    ):
        with pytest.raises(error) as failure:
            loaded.sql(text)
        span = failure.value.span
        assert span is not None
        assert (failure.value.message, text[span.start : span.end]) == (message, place)
    with pytest.raises(QueryError, match="REPLAN is not a definition"):
        Program(TABLES + VIEW, "ALTER MATERIALIZED VIEW v REPLAN")


@pytest.mark.parametrize("note", [[], {"f": []}, {"f": {"a": 1}}, {"f": {"a": [-1, {}]}}, {"f": {"a": [1, {"k": "x"}]}}])
def test_malformed_sizes_are_refused(note: Any) -> None:
    with pytest.raises(CorruptState):
        ProgramDescription.of({PLANS: note})


def test_sizes_are_noted_by_the_query(loaded: Session) -> None:
    (view,) = loaded._commits.compiler.denotations.values()
    noted = loaded.notes[PLANS]
    assert list(noted) == [fingerprint(view)]
    assert {table: size[0] for table, size in noted[fingerprint(view)].items()} == SIZES
    assert noted[fingerprint(view)]["a"][1] == {"k": 600, "v": 89}


@pytest.mark.parametrize("change", ["DROP COLUMN a", "DROP COLUMN b", "RENAME COLUMN b TO c"])
def test_a_table_is_measured_as_it_was_before_the_script_that_alters_it(change: str) -> None:
    with Session() as session:
        session.sql("CREATE TABLE t (a BIGINT, b BIGINT); CREATE TABLE u (a BIGINT, b BIGINT)")
        for table in ("t", "u"):
            session.insert(table, [{"a": 1, "b": 1}, {"a": 2, "b": 1}])
        column = "b" if change == "DROP COLUMN a" else "a"
        session.sql(
            f"ALTER TABLE t {change}; CREATE MATERIALIZED VIEW v AS "
            f"SELECT u.a FROM u JOIN t ON u.a = t.{column} JOIN u AS w ON w.a = t.{column}"
        )
        (sizes,) = session._runtime.committed.program.plans.values()
        assert sizes["t"] == (2, {"a": 2, "b": 1})
        assert {row["a"] for row in session.view("v").rows()} == ({1} if column == "b" else {1, 2})
