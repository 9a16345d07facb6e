"""Views over views, CTEs and operators, to a depth that exceeds Python's stack: to split a statement into views helps at any depth."""

from __future__ import annotations

import pytest

import deltic
from deltic.errors import ArithmeticOverflow, SyntaxFailure
from parts import slow


def series(count: int, form: str) -> str:
    return "\n".join(form.format(i=i, below=i - 1) for i in range(1, count + 1))


@pytest.mark.parametrize("count", [200, *slow(1_000)])
def test_a_view_over_many_views(count: int) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE c0 (id BIGINT NOT NULL)")
        session.sql(series(count, "CREATE VIEW c{i} AS SELECT id + 1 AS id FROM c{below} WHERE id > {i};"))
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM c{count}")
        session.apply({"c0": [{"id": 1, "_op": "insert"}, {"id": 2, "_op": "insert"}, {"id": 5, "_op": "insert"}]})
        assert session.view("v").rows() == [{"id": count + 2}, {"id": count + 5}]
        assert str(session.explain()).count("Filter") == count


@pytest.mark.parametrize("count", [200, *slow(1_000)])
def test_materialized_views_over_one_another(count: int) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE c0 (id BIGINT NOT NULL)")
        session.sql(series(count, "CREATE MATERIALIZED VIEW c{i} AS SELECT id + 1 AS id, count(*) AS n FROM c{below} GROUP BY id;"))
        session.apply({"c0": [{"id": 1, "_op": "insert"}, {"id": 1, "_op": "insert"}, {"id": 5, "_op": "insert"}]})
        assert session.view(f"c{count}").rows() == [{"id": count + 1, "n": 1}, {"id": count + 5, "n": 1}]


@pytest.mark.parametrize("count", [100, *slow(1_000)])
def test_many_ctes_over_one_another(count: int) -> None:
    ctes = ", ".join(f"c{i} AS (SELECT id + 1 AS id FROM c{i - 1} WHERE id > {i})" for i in range(1, count + 1))
    with deltic.Session() as session:
        session.sql("CREATE TABLE c0 (id BIGINT NOT NULL)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS WITH {ctes} SELECT id FROM c{count}")
        session.apply({"c0": [{"id": 1, "_op": "insert"}, {"id": 2, "_op": "insert"}]})
        assert session.view("v").rows() == [{"id": count + 2}]


def test_subqueries_are_nested_to_the_limit_and_the_error_beyond_has_a_place() -> None:
    def nested(depth: int) -> str:
        return f"{'SELECT id + 1 AS id FROM (' * depth}SELECT id FROM c0{')' * depth}"

    with deltic.Session() as session:
        session.sql("CREATE TABLE c0 (id BIGINT NOT NULL)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS {nested(200)}")
        session.apply({"c0": [{"id": 1, "_op": "insert"}]})
        assert session.view("v").rows() == [{"id": 201}]
        with pytest.raises(SyntaxFailure, match="nested too deeply") as raised:
            session.sql(f"CREATE MATERIALIZED VIEW w AS {nested(451)}")
        assert raised.value.span is not None


@pytest.mark.parametrize("count", [25, *slow(50)])
@pytest.mark.filterwarnings("ignore::deltic.errors.PlanWarning")
def test_subqueries_correlated_by_inequality_are_nested(count: int) -> None:
    condition = "TRUE"
    for i in range(count, 0, -1):
        condition = f"NOT EXISTS (SELECT 1 FROM t t{i} WHERE t{i}.n > t{i - 1}.n AND {condition})"
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (n INT); CREATE MATERIALIZED VIEW v AS SELECT n FROM t t0 WHERE {condition}")
        session.sql("INSERT INTO t VALUES (1), (3), (2)")
        assert session.view("v").rows() == [{"n": 3}]
        session.sql("DELETE FROM t WHERE n = 3")
        assert session.view("v").rows() == [{"n": 2}]


@pytest.mark.parametrize("frames", [0, 300, 800])
@pytest.mark.parametrize("form", ["(n + (n - {}))", "CASE WHEN id > 1 THEN n ELSE {} END", "CASE WHEN n > 1 THEN {} ELSE n END", "abs({})"])
def test_expressions_are_nested_200_deep_however_deep_the_caller_is(form: str, frames: int) -> None:
    if frames:
        test_expressions_are_nested_200_deep_however_deep_the_caller_is(form, frames - 1)
        return
    text = "id"
    for _ in range(100 if form.startswith("(n") else 200):  # which is two levels
        text = form.format(text)
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT NOT NULL, n BIGINT NOT NULL)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {text} AS c FROM t")
        session.apply({"t": [{"id": 1, "n": 7, "_op": "insert"}]})
        assert session.view("v").rows() == session.query(f"SELECT {text} AS c FROM t").rows()
        assert str(session.explain("v"))
        with pytest.raises(SyntaxFailure, match="nested too deeply"):
            session.sql(f"CREATE MATERIALIZED VIEW w AS SELECT {'abs(' * 211}id{')' * 211} AS c FROM t")


@pytest.mark.parametrize("frames", [0, 800, 900])
def test_an_overflow_is_an_error_however_deep_the_caller_is(frames: int) -> None:
    """The kernel leaves a sum that overflows to the operator's step."""

    def insert(depth: int) -> None:
        if depth:
            insert(depth - 1)
        else:
            session.insert("t", [{"a": 1}])

    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT {'(' * 60}a{' * 3)' * 60} AS q FROM t")
        with pytest.raises(ArithmeticOverflow):
            insert(frames)


@pytest.mark.parametrize("each", ["", " WHERE n > {i}"])
def test_ctes_that_read_one_another_do_not_multiply(each: str) -> None:
    """As a tree the fiftieth has 10^10 nodes: every rule and the circuit take it as a DAG."""

    def defined(count: int) -> deltic.Session:
        forms = ("SELECT id, n FROM c{}" + each.format(i=f"-{i}") for i in range(2 * count))
        ctes = ", ".join(f"c{i} AS ({next(forms)} UNION ALL {next(forms)})".format(i - 1, max(i - 2, 0)) for i in range(1, count))
        session = deltic.Session()
        session.sql("CREATE TABLE t (id BIGINT NOT NULL, n BIGINT NOT NULL)")
        session.sql(f"""
            CREATE MATERIALIZED VIEW v AS
            WITH c0 AS (SELECT id, n FROM t), {ctes} SELECT id, count(*) AS copies, max(n) AS n FROM c{count - 1} WHERE n > 3 GROUP BY id
        """)
        return session

    with defined(50) as session:
        assert str(session.explain("v")).count("Union") < 500
    with defined(12) as session:
        session.apply({"t": [{"id": 1, "n": 2, "_op": "insert"}, {"id": 2, "n": 5, "_op": "insert"}]})
        assert session.view("v").rows() == [{"id": 2, "copies": 233, "n": 5}]


def test_negations_and_subqueries_are_nested_together() -> None:
    query = "SELECT 1 FROM t AS t200 WHERE t200.id = t199.id"
    for i in range(199, 0, -1):
        query = f"SELECT 1 FROM t AS t{i} WHERE t{i}.id = t{i - 1}.id AND NOT EXISTS ({query})"
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT NOT NULL)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT t0.id FROM t AS t0 WHERE NOT EXISTS ({query})")
        session.apply({"t": [{"id": 1, "_op": "insert"}]})
        assert session.view("v").rows() == [{"id": 1}]


NESTED = {
    "IN": ("SELECT id FROM c0 WHERE id IN (", "SELECT id FROM c0", ")"),
    "scalar": ("SELECT id, (SELECT max(n) FROM (", "SELECT id, id AS n FROM c0", ")) AS n FROM c0"),
    "UNION": ("SELECT id FROM c0 UNION (", "SELECT id FROM c0", ")"),
    "functions": (f"SELECT {'abs(' * 140}id{')' * 140} AS id FROM (", "SELECT id FROM c0", ")"),
    "CASE": (f"SELECT {'CASE WHEN id > 0 THEN ' * 140}id{' END' * 140} AS id FROM (", "SELECT id FROM c0", ")"),
}
"""Text before, within and after a nested query; the last two nest their expressions."""


@pytest.mark.parametrize("form", NESTED)
@pytest.mark.parametrize("frames", [0, 250])
def test_nested_texts_do_not_depend_on_the_stack_of_the_caller(form: str, frames: int) -> None:
    before, within, after = NESTED[form]
    depth = 1 if form in ("functions", "CASE") else 100

    def below(frames: int) -> None:
        if frames:
            return below(frames - 1)
        session.sql(f"CREATE MATERIALIZED VIEW v AS {before * depth}{within}{after * depth}")

    with deltic.Session() as session:
        session.sql("CREATE TABLE c0 (id BIGINT NOT NULL)")
        below(frames)
        session.apply({"c0": [{"id": 1, "_op": "insert"}, {"id": 3, "_op": "insert"}]})
        assert sorted(row["id"] for row in session.view("v").rows()) == [1, 3]


def test_a_circuit_of_many_operators() -> None:
    circuit = deltic.Circuit()
    stream = circuit.input("numbers", schema={"n": int})
    for _ in range(100):
        stream = stream.filter(lambda row: row.n > 0).map(lambda row: row.n + 1, schema={"n": int})
    circuit.output("out", stream)
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"numbers": [{"n": 0, "_op": "insert"}, {"n": 1, "_op": "insert"}]})
        assert session.view("out").rows() == [{"n": 101}]
