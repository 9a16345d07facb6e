"""Programs: SQL and circuits bound together, without a session."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import deltic
from deltic.errors import CatalogError, CircuitError, QueryError, SyntaxFailure, UnknownName
from deltic.frontends.sql import parse_script
from deltic.session.draft import Draft

TABLES = """
CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT, amount INT, PRIMARY KEY (id));
CREATE VIEW large AS SELECT id, amount FROM orders WHERE amount > 10;
"""
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(amount) AS amount FROM doubled"


def doubled(tables: deltic.Program) -> deltic.Circuit:
    circuit = deltic.Circuit(tables)
    circuit.output("doubled", circuit.view("large").map({"id": "id", "amount": "amount * 2"}))
    return circuit


def test_sql_reads_a_circuit_that_reads_sql() -> None:
    tables = deltic.Program(TABLES)
    program = deltic.Program(tables, doubled(tables), TOTALS)
    with deltic.Session() as session:
        session.program(program)
        session.apply(
            {"orders": [{"id": 1, "customer": 1, "amount": 7, "_weight": 1}, {"id": 2, "customer": 1, "amount": 20, "_weight": 1}]}
        )
        assert session.views == ("doubled", "totals")
        assert session.view("totals").rows() == [{"n": 1, "amount": 40}]


def test_an_input_without_a_schema_is_the_table_of_the_program() -> None:
    tables = deltic.Program(TABLES)
    circuit = deltic.Circuit(tables)
    circuit.output("copied", circuit.input("ORDERS"))
    program = deltic.Program(tables, circuit)
    assert program.catalog.tables == tables.catalog.tables and list(circuit.inputs) == ["orders"]
    with pytest.raises(CircuitError, match="orders is already in use"):
        circuit.input("orders")


@pytest.mark.parametrize(
    ("over", "name", "kind", "error", "match"),
    [
        (True, "order", "input", UnknownName, r"there is no table order\nhelp: did you mean 'orders'\?"),
        (True, "large", "input", CircuitError, r"large is not a table\nhelp: circuit.view\('large'\)"),
        (True, "orders", "view", CircuitError, r"orders is not a view\nhelp: circuit.input\('orders'\)"),
        (False, "orders", "input", CircuitError, r"table orders has no schema\nexpected: schema="),
    ],
)
def test_relations_that_the_program_lacks_need_a_schema(over: bool, name: str, kind: str, error: type[Exception], match: str) -> None:
    circuit = deltic.Circuit(deltic.Program(TABLES) if over else None)
    with pytest.raises(error, match=match):
        getattr(circuit, kind)(name)


def test_a_circuit_over_a_session_reads_its_tables_and_views() -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        circuit = deltic.Circuit(session)
        assert circuit.input("orders").schema == session.table("orders").schema
        circuit.output("doubled", circuit.view("large").map({"id": "id", "amount": "amount * 2"}))
        session.install(circuit)
        session.apply({"orders": [{"id": 2, "customer": 1, "amount": 20, "_weight": 1}]})
        assert session.view("doubled").rows() == [{"id": 2, "amount": 40}]
        program = deltic.Program(TABLES, circuit)
    assert pickle.loads(pickle.dumps(program)).catalog.plans() == program.catalog.plans(), "a program does not hold the session"


def test_an_input_with_other_columns_than_its_table_is_refused() -> None:
    circuit = deltic.Circuit()
    circuit.output("copied", circuit.input("orders", schema={"id": int, "amount": int}))
    columns = r"the input orders has the columns \(id BIGINT NOT NULL, amount BIGINT NOT NULL\), and table orders has "
    with pytest.raises(CircuitError, match=columns + r"\(id BIGINT NOT NULL, customer BIGINT, amount INT, PRIMARY KEY \(id\)\)"):
        deltic.Program(TABLES, circuit)


def test_a_program_does_not_change_with_its_circuits() -> None:
    tables = deltic.Program(TABLES)
    circuit = doubled(tables)
    program = deltic.Program(tables, circuit)
    circuit.output("more", circuit.input("orders"))
    assert list(program.catalog.views) == ["large", "doubled"]
    assert list(deltic.Program(program).catalog.views) == ["large", "doubled"]
    assert list(deltic.Program(tables, circuit).catalog.views) == ["large", "doubled", "more"]


def test_a_program_is_pickled_by_its_parts() -> None:
    tables = deltic.Program(TABLES)
    program = deltic.Program(tables, TOTALS.replace("doubled", "large"))
    copied = pickle.loads(pickle.dumps(program))
    assert copied == program and hash(copied) == hash(program) and copied != tables
    assert copied.catalog.plans() == program.catalog.plans()
    assert deltic.Program.of(TABLES, "a") == deltic.Program.of(TABLES, "a") != deltic.Program.of(TABLES, "b")


def test_files_of_sql_are_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "shop.sql"
    path.write_text(TABLES + "CREATE VIEW bad AS SELECT idd FROM orders;")
    with pytest.raises(UnknownName, match=rf"{path}:4:27: there is no column 'idd'"):
        deltic.Program(path)
    with pytest.raises(QueryError, match=rf"cannot read {tmp_path}: Is a directory"):
        deltic.Program(tmp_path)
    path.write_bytes(b"\xff")
    with pytest.raises(SyntaxFailure, match=r"shop\.sql: byte 0 is not UTF-8"):
        deltic.Program(path)


@pytest.mark.parametrize("part", [None, 5, b"CREATE TABLE t (n INT)", deltic.Circuit])
def test_parts_of_other_classes_are_refused(part: object) -> None:
    with pytest.raises(CircuitError, match="cannot be part of a program"):
        deltic.Program(TABLES, part)  # type: ignore[arg-type]


def test_a_name_is_defined_once_in_all_parts() -> None:
    tables = deltic.Program(TABLES)
    with pytest.raises(CatalogError, match="view doubled is defined already"):
        deltic.Program(tables, doubled(tables), doubled(tables))


def test_a_function_whose_outside_values_changed_after_it_was_declared_is_refused() -> None:
    factor = [2]
    circuit = deltic.Circuit()
    orders = circuit.input("orders", schema={"id": int})
    circuit.output("out", orders.map(lambda order: order.id * factor[0], schema={"id": int}))
    program = deltic.Program(circuit)
    with deltic.Session() as session:
        session.program(program)
    factor[0] = 3
    with deltic.Session() as session, pytest.raises(CircuitError, match="has changed since the function was passed to a stream"):
        session.program(program)


def test_a_program_binds_as_a_session_does() -> None:
    script = TABLES + TOTALS.replace("doubled", "large")
    draft = Draft(deltic.Program().catalog)
    for statement in parse_script(script, "<sql>", draft):
        draft.apply(statement)
    assert deltic.Program(script).catalog.plans() == draft.catalog.plans()
