"""Circuits in Python as statements for the catalog, like those of a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltic.errors import CircuitError, Span
from deltic.frontends.python import Circuit, check_unchanged, described
from deltic.frontends.statements import BoundView, CreateTable, CreateView, Namespace, Rebind, Statement
from deltic.plan.nodes import Plan, Table, references
from deltic.plan.recursion import bound_to
from deltic.plan.walk import nodes, tables
from deltic.schema import Schema, TableSchema


def circuit_statements(circuit: Circuit, existing: Mapping[str, TableSchema], catalog: Namespace) -> Iterator[Statement]:
    """A table for each input that is not in `existing`, and a materialized view for each output. existing: tables by name in lower case.

    Raises CircuitError if an input differs from the table of its name, if an output reads the input of a circuit that is not installed, or
    a view that does not exist or has other columns, or if a function has changed since it was given to a stream.
    """
    check_unchanged(circuit.outputs.values())
    for name, schema in circuit.views.items():
        _view(catalog, name, schema)
    for name, table in circuit.inputs.items():
        if name.lower() in existing:
            _check_same(name, table, existing[name.lower()])
        else:
            yield CreateTable(table, False, _place(name))
    all_tables = {**existing, **{name.lower(): table for name, table in circuit.inputs.items()}}
    for name, plan in circuit.outputs.items():
        for table in (node.table for node in nodes(plan) if isinstance(node, Table)):
            if all_tables.get(table.name.lower()) != table:
                raise CircuitError(
                    f"output {name} reads the input {table.name} of another circuit, which is not installed",
                    remedy=f"add the input {table.name} to this circuit, or install the other circuit first",
                )
        rebind = _rebinding(plan, circuit.views)
        bound = rebind(catalog)
        yield CreateView(name, bound.plan, True, False, False, rebind, _place(name), bound.depends_on)


def _rebinding(plan: Plan, views: Mapping[str, Schema]) -> Rebind:
    """Returns the function that binds an output again. views: of the circuit, with the columns that it declares."""
    reads = tuple(sorted({*tables(plan), *(read for read, _ in references(plan))}))

    def rebind(catalog: Namespace) -> BoundView:
        return BoundView(bound_to(plan, {name: _view(catalog, name, views[name]) for name in reads if name in views}), reads)

    return rebind


def _view(catalog: Namespace, name: str, schema: Schema) -> Plan:
    """The plan of a view. Raises CircuitError."""
    plan = catalog.relation(name)
    if plan is None or isinstance(plan, TableSchema):
        remedy = f"declare it by circuit.input({name!r}, …)" if plan is not None else "define the view first"
        raise CircuitError(f"the circuit reads the view {name}, {'which is a table' if plan else 'which does not exist'}", remedy=remedy)
    if plan.schema != schema:
        raise CircuitError(
            f"the circuit reads the view {name} with the columns ({described(schema)})", expected=f"its columns: ({described(plan.schema)})"
        )
    return plan


def _check_same(name: str, table: TableSchema, existing: TableSchema) -> None:
    if table != existing or (table.lateness is not None and table.lateness != existing.lateness):
        raise CircuitError(
            f"the input {name} has the columns ({_columns(table)}), and table {existing.name} has ({_columns(existing)})",
            expected="the columns and the key of the table",
            remedy=f"deltic.Circuit(program) or deltic.Circuit(session) has the columns of {existing.name}: leave out the schema",
        )


def _columns(table: TableSchema) -> str:
    key = ", ".join(table.schema[i].name for i in table.key)
    return described(table.schema) + (f", PRIMARY KEY ({key})" if key else "")


def _place(name: str) -> Span:
    return Span(name, 0, len(name), "<circuit>")
