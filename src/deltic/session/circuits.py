"""A circuit made in Python as statements, so that a session defines what it has as it does what a script has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltic.errors import CircuitError, Span
from deltic.frontends.python import Circuit, check_unchanged, described
from deltic.frontends.statements import CreateTable, CreateView, Namespace, Rebind, Statement
from deltic.plan.nodes import Plan, Table, references
from deltic.plan.recursion import bound_to
from deltic.plan.walk import nodes, tables
from deltic.schema import Schema, TableSchema


def circuit_statements(circuit: Circuit, known: Mapping[str, TableSchema], catalog: Namespace) -> Iterator[Statement]:
    """A table for each input that is not just so in `known`, by names in lower case, and a materialized view for each output.

    Raises CircuitError where an output reads the input of a circuit that is not installed, a view that is missing or has other columns, or
    by a function that has changed.
    """
    check_unchanged(circuit.outputs.values())
    for name, schema in circuit.views.items():
        _view(catalog, name, schema)
    for name, table in circuit.inputs.items():
        if name.lower() in known:
            _check_same(name, table, known[name.lower()])
        else:
            yield CreateTable(table, False, _place(name))
    there = {**known, **{name.lower(): table for name, table in circuit.inputs.items()}}
    for name, plan in circuit.outputs.items():
        for table in (node.table for node in nodes(plan) if isinstance(node, Table)):
            if there.get(table.name.lower()) != table:
                raise CircuitError(
                    f"output {name} reads the input {table.name} of another circuit, which is not installed",
                    remedy=f"make the input here too, or install the circuit of {table.name} first",
                )
        reads = sorted({*tables(plan), *(read for read, _ in references(plan))})
        rebind = _rebinding(plan, {name: circuit.views[name] for name in reads if name in circuit.views})
        yield CreateView(name, rebind(catalog), True, False, False, rebind, _place(name), tuple(reads))


def _rebinding(plan: Plan, views: Mapping[str, Schema]) -> Rebind:
    """What gives an output's plan over a catalog. views: those that it reads, with the columns that the circuit declares."""

    def rebind(catalog: Namespace) -> Plan:
        return bound_to(plan, {name: _view(catalog, name, schema) for name, schema in views.items()})

    return rebind


def _view(catalog: Namespace, name: str, schema: Schema) -> Plan:
    """What the view means. Raises CircuitError."""
    plan = catalog.relation(name)
    if plan is None or isinstance(plan, TableSchema):
        remedy = f"declare it by circuit.input({name!r}, …)" if plan is not None else "define the view first"
        raise CircuitError(f"the circuit reads the view {name}, and {'that is a table' if plan else 'there is none'}", remedy=remedy)
    if plan.schema != schema:
        raise CircuitError(
            f"the circuit reads the view {name} with the columns ({described(schema)})", expected=f"({described(plan.schema)}), as it has"
        )
    return plan


def _check_same(name: str, table: TableSchema, known: TableSchema) -> None:
    if table != known:
        raise CircuitError(
            f"the input {name} has the columns ({_columns(table)}), and table {known.name} has ({_columns(known)})",
            expected="the columns and the key of the table",
            remedy=f"make the circuit by deltic.Circuit(program), of the program that defines {known.name}, and leave out the schema",
        )


def _columns(table: TableSchema) -> str:
    key = ", ".join(table.schema[i].name for i in table.key)
    return described(table.schema) + (f", PRIMARY KEY ({key})" if key else "")


def _place(name: str) -> Span:
    return Span(name, 0, len(name), "<circuit>")
