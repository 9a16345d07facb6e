"""A circuit made in Python as statements, so that a session defines what it has as it does what a script has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltic.errors import Span
from deltic.frontends.python import Circuit
from deltic.frontends.sql import CreateTable, CreateView, Statement
from deltic.plan.walk import tables
from deltic.schema import TableSchema


def circuit_statements(circuit: Circuit, known: Mapping[str, TableSchema]) -> Iterator[Statement]:
    """A table for each input that is not just so in `known`, by names in lower case, and a materialized view for each output."""
    for name, table in circuit.inputs.items():
        if known.get(name.lower()) != table:
            yield CreateTable(table, False, _place(name))
    for name, plan in circuit.outputs.items():
        yield CreateView(name, plan, True, False, False, f"output {name}", _place(name), tuple(sorted(tables(plan))))


def _place(name: str) -> Span:
    return Span(name, 0, len(name), "<circuit>")
