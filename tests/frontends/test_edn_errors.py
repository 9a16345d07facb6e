"""Every error of queries, schemas and transactions in EDN, with place and remedy: edn_errors.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from deltic.errors import DelticError
from deltic.frontends.edn.read import read
from deltic.frontends.edn.schema import schema_of
from deltic.session.catalog import Catalog
from deltic.session.draft import Draft
from deltic.session.edn import store_statements
from deltic.session.edn_view import EdnDefinition
from error_pages import cases_of, update

PAGE = Path(__file__).with_name("edn_errors.txt")
SCHEMA = """
{:name {:db/valueType :db.type/string :db/unique :db.unique/identity}
 :age {:db/valueType :db.type/long}
 :size {:db/valueType :db.type/double}
 :kind {:db/valueType :db.type/keyword}
 :friend {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}
 :any {}}
"""


def error_of(text: str) -> str:
    """The error of a query, with rules after a line %; of a schema after a line `schema`; of a transaction after a line `transaction`."""
    kind, _, rest = text.partition("\n")
    try:
        schema = schema_of("facts", read(rest if kind == "schema" else SCHEMA, "test"))
        if kind == "transaction":
            with deltic.Session() as session:
                session.edn_store("facts", schema=SCHEMA).transact(rest, name="test")
        elif kind != "schema":
            draft = Draft(Catalog())
            for statement in store_statements(schema, draft):
                draft.apply(statement)
            query, _, rules = text.partition("\n%\n")
            definition = EdnDefinition.of("v", read(query, "test"), read(rules, "rules") if rules else None, schema, {})
            for statement in definition.statements(lambda: draft):
                draft.apply(statement)
    except DelticError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


@pytest.mark.parametrize(("program", "text"), cases_of(PAGE), ids=lambda value: None)
def test_error(program: str, text: str) -> None:
    assert error_of(program) == text


def test_update(pytestconfig: pytest.Config) -> None:
    update(PAGE, error_of, pytestconfig)
