"""What plans read of tables whose columns came and went, so that their state stays.

A table that was altered has forms, the columns that it had one after the other. A plan that reads only columns of an earlier form is
written over that form: it then has the fingerprint that it had, and so the state. The rows are those of the table in either form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from deltic.plan.columns import columns_of_all, named_columns, remap
from deltic.plan.nodes import Aggregate, Filter, Plan, Project, Table, TemporalFilter, inputs
from deltic.plan.walk import expressions, map_expressions, map_inputs, nodes
from deltic.schema import Forms, Schema, TableForm


@dataclass(frozen=True, slots=True)
class _Selection:
    """Rows of a table: the filters over it, the last of them first. columns: those that the filters read."""

    table: Table
    filters: tuple[Filter | TemporalFilter, ...]
    columns: frozenset[int]

    @classmethod
    def of(cls, plan: Plan) -> _Selection | None:
        filters: list[Filter | TemporalFilter] = []
        while isinstance(plan, Filter | TemporalFilter):
            filters.append(plan)
            plan = plan.input
        if not isinstance(plan, Table):
            return None
        return cls(plan, tuple(filters), frozenset(i for one in filters for i in columns_of_all(expressions(one))))


def columns_read(plan: Plan, table: str) -> frozenset[int]:
    """The positions of the columns of a table, by its name in lower case, that a plan reads whose unread columns have been pruned."""
    read = frozenset[int]()
    for reader in (None, *nodes(plan)):
        for below in (plan,) if reader is None else inputs(reader):
            selection = None if isinstance(reader, Filter | TemporalFilter) else _Selection.of(below)
            if selection is None or selection.table.table.name.lower() != table:
                continue
            read |= selection.columns
            if isinstance(reader, Project | Aggregate):
                read |= columns_of_all(expressions(reader))
            else:
                read |= frozenset(range(len(selection.table.schema)))
    return read


def in_earliest_forms(plan: Plan, forms: Mapping[str, Forms]) -> Plan:
    """The plan, each read of a table in the earliest form that has the columns read. forms: by table in lower case; others have one."""
    if not any(isinstance(node, Table) and node.table.name.lower() in forms for node in nodes(plan)):
        return plan
    done: dict[int, Plan] = {}
    for node in nodes(plan):
        done[id(node)] = _in_form(map_inputs(node, lambda below: done[id(below)]), forms)
    return done[id(plan)]


def _in_form(node: Plan, forms: Mapping[str, Forms]) -> Plan:
    selection = _Selection.of(node.input) if isinstance(node, Project | Aggregate) else None
    if selection is None or selection.table.table.name.lower() not in forms:
        return node
    *earlier, own = forms[selection.table.table.name.lower()]
    assert own.table == selection.table.table
    read = selection.columns | columns_of_all(expressions(node))
    numbers = {own.numbers[i] for i in read}
    form = next((one for one in earlier if numbers <= set(one.numbers)), None)
    return node if form is None else _over(node, selection, form, {i: form.numbers.index(own.numbers[i]) for i in read})


def _over(node: Plan, selection: _Selection, form: TableForm, places: Mapping[int, int]) -> Plan:
    schema = form.table.schema.read
    below: Plan = replace(selection.table, table=form.table)
    for one in reversed(selection.filters):
        moved = map_expressions(one, lambda expr: remap(expr, places, schema))
        assert isinstance(moved, Filter | TemporalFilter)
        below = replace(moved, input=below)
    node = map_expressions(node, lambda expr: remap(expr, places, schema))
    if isinstance(node, Project) and _is_whole(node, schema):
        return below
    assert isinstance(node, Project | Aggregate)
    return replace(node, input=below)


def _is_whole(node: Project, schema: Schema) -> bool:
    """Whether a projection is the table in that form."""
    return node.columns == named_columns(schema)
