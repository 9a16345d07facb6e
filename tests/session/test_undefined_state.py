"""Names that the state has and the session has not defined: errors say so, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import deltic
from deltic.errors import CircuitError, StateError, UnknownName

TABLE = "CREATE TABLE Orders (id BIGINT PRIMARY KEY);"
SCRIPT = TABLE + "CREATE MATERIALIZED VIEW spend AS SELECT count(*) AS n FROM orders;"
USES: dict[str, Callable[[deltic.Session], object]] = {
    "query": lambda session: session.query("SELECT * FROM orders"),
    "query of a view": lambda session: session.query("SELECT * FROM Spend"),
    "view": lambda session: session.view("spend"),
    "table": lambda session: session.table("orders"),
    "insert": lambda session: session.insert("ORDERS", [{"id": 1}]),
    "definition": lambda session: session.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM `orders`"),
    "datalog": lambda session: session.datalog("output relation R(x: s64)\nR(x) :- Orders(x)."),
}


@pytest.mark.parametrize("use", USES)
def test_an_error_names_what_the_state_has(tmp_path: Path, use: str) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql(SCRIPT)
    with deltic.Session(state=tmp_path) as session:
        with pytest.raises(UnknownName, match=r"help: the state has \w+, which this session has not defined: run the whole script"):
            USES[use](session)
        session.sql(SCRIPT)
        if use != "insert":
            USES[use](session)
        with pytest.raises(UnknownName) as caught:
            session.view("nothing")
        assert "the state has" not in str(caught.value)


def test_a_name_that_was_dropped_is_not_in_the_state(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql(SCRIPT)
        session.sql("DROP VIEW spend")
        with pytest.raises(UnknownName) as caught:
            session.view("spend")
        assert "the state has" not in str(caught.value)


def test_names_are_suggested_as_the_dialect_writes_them() -> None:
    with deltic.Session() as session:
        session.sql(TABLE.replace("Orders", "orders"))
        with pytest.raises(UnknownName, match="did you mean 'Orders'"):
            session.datalog("output relation R(x: s64)\nR(x) :- Order(x).")
        with pytest.raises(UnknownName, match="did you mean 'orders'"):
            session.datalog(".decl r(x: number)\n.output r\nr(x) :- order(x).", dialect="souffle")
        with pytest.raises(CircuitError, match="twice: the type of the result is missing"):
            session.register("twice", twice)


def twice(x: int) -> int:
    return 2 * x


def test_functions_that_are_registered_after_the_first_definitions_are_part_of_a_program(tmp_path: Path) -> None:
    view = "CREATE MATERIALIZED VIEW doubled AS SELECT twice(id) AS id FROM orders"
    with deltic.Session(state=tmp_path) as session:
        session.sql(TABLE)
        session.register("twice", twice, int)
        session.sql(view)
        session.insert("orders", [{"id": 4}])
    with deltic.Session(state=tmp_path) as session:
        with pytest.raises(
            StateError, match=r"(?s)expected: views that call it among the first definitions.*session\.program\(deltic\.Program"
        ):
            session.sql(TABLE)
        session.program(deltic.Program(deltic.UDF("twice", twice, int), TABLE, view))
        assert session.view("doubled").rows() == [{"id": 8}]
