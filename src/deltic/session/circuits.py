"""A circuit made in Python as statements, so that a session defines what it has as it does what a script has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltic.errors import CircuitError, Span
from deltic.frontends.python import Circuit, check_unchanged
from deltic.frontends.statements import Catalog, CreateTable, CreateView, Rebind, Statement
from deltic.plan.nodes import Plan, Table
from deltic.plan.walk import nodes, tables
from deltic.schema import TableSchema


def circuit_statements(circuit: Circuit, known: Mapping[str, TableSchema]) -> Iterator[Statement]:
    """A table for each input that is not just so in `known`, by names in lower case, and a materialized view for each output.

    Raises CircuitError where an output reads the input of a circuit that is not there, or by a function that is not what it was.
    """
    check_unchanged(circuit.outputs.values())
    for name, table in circuit.inputs.items():
        if known.get(name.lower()) != table:
            yield CreateTable(table, False, _place(name))
    there = {**known, **{name.lower(): table for name, table in circuit.inputs.items()}}
    for name, plan in circuit.outputs.items():
        for table in (node.table for node in nodes(plan) if isinstance(node, Table)):
            if there.get(table.name.lower()) != table:
                raise CircuitError(
                    f"output {name} reads the input {table.name} of another circuit, which is not installed",
                    remedy=f"make the input here too, or install the circuit of {table.name} first",
                )
        yield CreateView(name, plan, True, False, False, _constant(plan), _place(name), tuple(sorted(tables(plan))))


def _constant(plan: Plan) -> Rebind:
    """An output reads tables alone, so its plan does not depend on what views are."""

    def rebind(catalog: Catalog) -> Plan:
        return plan

    return rebind


def _place(name: str) -> Span:
    return Span(name, 0, len(name), "<circuit>")
