"""The catalog takes definitions of any front end: plans and the functions that bind them again, no text."""

from __future__ import annotations

import pytest

from deltic.errors import CatalogError, QueryError, Span
from deltic.frontends.statements import BoundView, CreateTable, CreateView, Namespace
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan, Project, Table
from deltic.schema import BIGINT, Field, Schema, TableSchema
from deltic.session.catalog import Catalog

TABLE = TableSchema("t", Schema((Field("a", BIGINT), Field("b", BIGINT))))


def place(name: str) -> Span:
    return Span(name, 0, len(name), "<test>")


def first_column(relations: Namespace) -> Plan:
    """The plan of view `w`: the column `a` of view `v`."""
    plan = relations.relation("v")
    assert isinstance(plan, Plan)
    positions = plan.schema.find("a")
    if not positions:
        raise QueryError("there is no column 'a'")
    return Project(plan, (("a", reference(plan.schema, positions[0])),))


def view(name: str, plan: Plan, depends_on: tuple[str, ...], *, replaces: bool = False) -> CreateView:
    return CreateView(name, plan, True, replaces, False, lambda names: BoundView(first_column(names), ("v",)), place(name), depends_on)


def renamed(*columns: tuple[str, int]) -> Plan:
    source = Table(TABLE)
    return Project(source, tuple((name, reference(source.schema, i)) for name, i in columns))


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog().apply(CreateTable(TABLE, False, place("t")))
    catalog = catalog.apply(view("v", renamed(("a", 0)), ("t",)))
    return catalog.apply(view("w", first_column(catalog), ("v",)))


def test_a_view_is_bound_again_by_its_own_function(catalog: Catalog) -> None:
    other = renamed(("b", 1), ("a", 1))
    changed = catalog.apply(view("v", other, ("t",), replaces=True))
    assert changed.plans() == {"v": other, "w": first_column(changed)}
    assert changed.plans()["w"] != catalog.plans()["w"]


def test_a_reader_that_is_no_longer_valid_is_an_error_of_the_replacing_definition(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="view w reads v and would no longer be valid: there is no column 'a'") as caught:
        catalog.apply(view("v", renamed(("b", 1)), ("t",), replaces=True))
    assert caught.value.span == place("v")
