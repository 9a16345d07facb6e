"""The cost of defining a view is that of its new nodes, however many views exist and however often they read one another."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest

import deltic
from calls import calls_of
from deltic.errors import CatalogError, EvaluationError, UnknownName
from deltic.storage.program import ArrangementDescription, ProgramDescription
from parts import slow

SECONDS = 20
"""Many times what a test takes on an idle machine; each took minutes, or did not end, when plans were walked as trees."""


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Work that a process does once, such as compiling kernels, is not measured."""
    session = session_with_edges()
    defined(session, "v", two_hops(0))
    with session.transaction() as tx:
        tx.insert("e", rows((1, 2, 3)))


def session_with_edges() -> deltic.Session:
    session = deltic.Session()
    session.sql("CREATE TABLE e(a BIGINT NOT NULL, b BIGINT NOT NULL, w BIGINT)")
    return session


def rows(*edges: tuple[int, int, int]) -> list[dict[str, int]]:
    return [dict(zip("abw", edge, strict=True)) for edge in edges]


def defined(session: deltic.Session, view: str, query: str) -> tuple[int, int]:
    """(views optimized, nodes lowered) by the definition of a view."""
    session.sql(f"CREATE MATERIALIZED VIEW {view} AS {query}")
    return session._commits.compiler.optimized, session._commits.compiler.lowered


def two_hops(weight: int) -> str:
    return f"SELECT x.a, count(*) AS n, sum(y.w) AS s FROM e x JOIN e y ON x.b = y.a WHERE x.w > {weight} GROUP BY x.a"


def test_a_definition_optimizes_and_lowers_only_what_is_new() -> None:
    session, start = session_with_edges(), time.perf_counter()
    costs = [defined(session, f"v{i}", two_hops(i)) for i in range(30)]
    assert {optimized for optimized, _ in costs} == {1}
    assert 0 < max(nodes for _, nodes in costs[1:]) <= costs[0][1]
    assert time.perf_counter() - start < SECONDS
    with session.transaction() as tx:
        tx.insert("e", rows((1, 2, 10), (2, 3, 7), (3, 1, 50)))
    assert session.view("v5").rows() == [{"a": 1, "n": 1, "s": 7}, {"a": 2, "n": 1, "s": 50}, {"a": 3, "n": 1, "s": 10}]
    assert session.view("v9").rows() == [{"a": 1, "n": 1, "s": 7}, {"a": 3, "n": 1, "s": 10}]


def test_an_equal_view_lowers_no_more_than_its_own_content() -> None:
    session = session_with_edges()
    defined(session, "v", two_hops(3))
    _, nodes = defined(session, "same", two_hops(3))
    assert nodes <= 2


def test_dropping_or_replacing_a_view_leaves_the_others_exact() -> None:
    session = session_with_edges()
    for i in range(3):
        defined(session, f"v{i}", two_hops(i))
    with session.transaction() as tx:
        tx.insert("e", rows((1, 2, 2), (2, 3, 7)))
    session.sql("DROP VIEW v1")
    session.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v0 AS {two_hops(100)}")
    assert defined(session, "v3", two_hops(1))[0] == 1
    assert [session.view(f"v{i}").rows() for i in (0, 2, 3)] == [[], [], [{"a": 1, "n": 1, "s": 7}]]
    with pytest.raises(UnknownName):
        session.view("v1")


def test_replacing_a_view_reaches_readers_that_were_defined_before_it() -> None:
    session = session_with_edges()
    session.sql("""
        CREATE MATERIALIZED VIEW first AS SELECT a AS x FROM e;
        CREATE VIEW second AS SELECT a AS x FROM e;
        CREATE VIEW third AS SELECT a AS x FROM e;
        CREATE OR REPLACE VIEW second AS SELECT x FROM third;
        CREATE OR REPLACE MATERIALIZED VIEW first AS SELECT x FROM second;
    """)
    with session.transaction() as tx:
        tx.insert("e", rows((1, 2, 3)))
    session.sql("CREATE OR REPLACE VIEW third AS SELECT b AS x FROM e")
    assert session.view("first").rows() == session.query("SELECT * FROM second").rows() == [{"x": 2}]
    with pytest.raises(CatalogError, match="view second reads third and would no longer be valid"):
        session.sql("CREATE OR REPLACE VIEW third AS SELECT b AS y FROM e")
    with pytest.raises(CatalogError, match="view third would read itself"):
        session.sql("CREATE OR REPLACE VIEW third AS SELECT x FROM first")


def test_a_definition_that_fails_leaves_nothing_behind() -> None:
    session = session_with_edges()
    defined(session, "v0", two_hops(0))
    with session.transaction() as tx:
        tx.insert("e", rows((1, 2, 2), (2, 3, 7)))
    with pytest.raises(EvaluationError):
        defined(session, "bad", "SELECT 1 DIV (a - 1) AS x FROM e")
    defined(session, "v1", two_hops(1))
    assert session.views == ("v0", "v1")
    assert set(session._definitions.circuit.views) == {"v0", "v1"}
    assert session.view("v1").rows() == session.view("v0").rows() == [{"a": 1, "n": 1, "s": 7}]


def test_a_view_without_columns_is_refused() -> None:
    session = session_with_edges()
    session.sql("CREATE VIEW none AS SELECT * EXCEPT (a, b, w) FROM e; CREATE VIEW some AS SELECT a, b FROM e")
    session.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM none; CREATE MATERIALIZED VIEW m AS SELECT * EXCEPT (a) FROM some")
    with pytest.raises(CatalogError, match=r"(?s)1:26: view z has no columns\n.*\^\nexpected: at least one column"):
        session.sql("CREATE MATERIALIZED VIEW z AS SELECT * EXCEPT (a, b) FROM some")
    with pytest.raises(CatalogError, match="view m reads some and would no longer be valid: view m has no columns"):
        session.sql("CREATE OR REPLACE VIEW some AS SELECT a FROM e")
    assert session.views == ("n", "m")


def test_views_over_views_with_self_joins_cost_alike_at_each_level() -> None:
    session, start = session_with_edges(), time.perf_counter()
    below, costs = "e", []
    for level in range(14):
        costs.append(defined(session, f"v{level}", f"SELECT x.a, y.b, x.w FROM {below} x JOIN {below} y ON x.b = y.a"))
        below = f"v{level}"
    assert time.perf_counter() - start < SECONDS
    assert max(nodes for _, nodes in costs) <= 300
    assert costs[-1][1] <= costs[-3][1]
    with session.transaction() as tx:
        tx.insert("e", rows(*((i, (i + 1) % 5, i) for i in range(5))))
    assert any("more than 64 relations are joined" in note for note in session.explain("v7").notes)
    steps = 2**14
    assert sorted((r["a"], r["b"], r["w"]) for r in session.view("v13").rows()) == [(i, (i + steps) % 5, i) for i in range(5)]


@pytest.mark.parametrize("levels", [7, *slow(9)])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {0} UNION ALL SELECT * FROM {0} WHERE w > {1}",
        "SELECT a, b, max(w) AS w FROM (SELECT * FROM {0} UNION ALL SELECT b, a, w FROM {0}) GROUP BY a, b",
        "SELECT x.* FROM {0} x LEFT JOIN {0} y ON x.b = y.a AND x.w < y.w",
        "SELECT * FROM {0} WHERE a IN (SELECT b FROM {0})",
        "SELECT * FROM {0} INTERSECT SELECT * FROM {0} WHERE w < {1}",
    ],
)
def test_views_that_read_another_twice_are_defined_in_time_that_grows_with_their_number(query: str, levels: int) -> None:
    session, below, start = session_with_edges(), "e", time.perf_counter()
    for level in range(levels):
        defined(session, f"v{level}", query.format(below, level))
        below = f"v{level}"
    assert time.perf_counter() - start < SECONDS


def test_views_of_constants_that_are_equal_in_python_are_distinct() -> None:
    session = deltic.Session()
    session.sql(
        """CREATE MATERIALIZED VIEW zero AS SELECT CAST(x AS STRING) AS x FROM VALUES (0.0D) AS t(x);
        CREATE MATERIALIZED VIEW negative AS SELECT CAST(x AS STRING) AS x FROM VALUES (-0.0D) AS t(x)"""
    )
    assert [session.view(v).rows() for v in ("zero", "negative")] == [[{"x": "0.0"}], [{"x": "-0.0"}]]


def test_a_definition_parses_no_description_and_makes_only_new_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_with_edges()
    parsed: list[object] = []
    plain = ArrangementDescription.parse
    monkeypatch.setattr(ArrangementDescription, "parse", staticmethod(lambda entry: parsed.append(entry) or plain(entry)))
    made = []
    for i in range(30):
        defined(session, f"v{i}", two_hops(i))
        made.append(session._commits.compiler.fused)
    assert parsed == []
    assert max(made[1:]) <= made[0], f"new nodes of each definition: {made}"
    assert session._runtime.committed.program == ProgramDescription.of(session._runtime.notes)
    session.apply({"e": [{"a": 1, "b": 2, "w": 3, "_op": "insert"}]})
    assert session._runtime.committed.program == ProgramDescription.of(session._runtime.notes)


def beside(tables: int) -> deltic.Session:
    session = deltic.Session()
    session.sql(
        ";".join(f"CREATE TABLE t{i} (a INT PRIMARY KEY, b INT, c STRING)" for i in range(tables))
        + "".join(f"; CREATE MATERIALIZED VIEW v{i} AS SELECT b, count(*) AS n FROM t{i} WHERE c = 'x' GROUP BY b" for i in range(tables))
    )
    session.sql("CREATE MATERIALIZED VIEW w0 AS SELECT b, max(a) AS m FROM t0 GROUP BY b")
    return session


def by_tables(work: Callable[[deltic.Session], object]) -> list[int]:
    """The calls of Python functions that work makes beside 10, 20 and 40 tables and views."""
    return [calls_of(partial(work, beside(tables))) for tables in (10, 20, 40)]


@pytest.mark.parametrize(
    ("statement", "each"),
    [
        ("CREATE MATERIALIZED VIEW w AS SELECT b, min(a) AS m FROM t1 GROUP BY b", 400),
        ("CREATE TABLE w (a INT)", 400),
        ("DROP VIEW v5", 500),
        ("CREATE OR REPLACE MATERIALIZED VIEW v5 AS SELECT b, max(a) AS n FROM t5 GROUP BY b", 650),
    ],
)
def test_a_definition_makes_few_calls_for_each_of_the_others(statement: str, each: int) -> None:
    few, some, many = by_tables(lambda session: session.sql(statement))
    assert many - some <= 20 * each, (many - some) / 20
    assert some - few <= 10 * each


def test_an_explanation_takes_time_in_proportion_to_the_program() -> None:
    few, some, many = by_tables(lambda session: session.explain("v5"))
    assert many - some <= 2.2 * (some - few)
    assert many - some <= 20 * 120
