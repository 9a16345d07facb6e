"""Queries of a single row: projections and a condition over the row of a table or a view that a key determines.

They need no circuit: the expressions are evaluated on the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from deltic.circuit.nodes import ArrangementSpec
from deltic.errors import EvaluationError
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import calls_python
from deltic.lowering.streams import table_spec
from deltic.plan.nodes import Filter, Plan, Project, Table
from deltic.plan.walk import expressions
from deltic.schema import TableSchema
from deltic.session.constant_rows import table_of_rows
from deltic.session.keyed import condition_keys, sought_rows
from deltic.stacks import roomy
from deltic.trace.encoding import decode_rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

TABLES: Final = 256
"""Those whose specification is kept, by their definitions."""


@roomy
def single_row(plan: Plan, spines: Sequence[Spine], strings: StringTable) -> pa.Table | None:
    """The rows of an optimized plan that reads at most one different row of its only table. O(log rows).

    spines: the content of that table. None for other plans; if an expression fails, whose error the circuit raises; and if one calls a
    function in Python.
    """
    projection = plan if isinstance(plan, Project) else None
    condition = plan if projection is None else projection.input
    if not isinstance(condition, Filter) or not isinstance(table := condition.input, Table):
        return None
    if any(map(calls_python, (condition.predicate, *(expressions(projection) if projection else ())))):
        return None
    keys = condition_keys(condition.predicate)
    if not table.table.key or any(len(keys.get(column, ())) != 1 for column in table.table.key):
        return None
    spec = _spec(table.table)
    found = sought_rows(table.table.name, spines, keys, spec, strings)
    if found is None or len(found) > 1:
        return None
    rows = []
    try:
        for stored in decode_rows(found.columns, spec.shape.schema, strings, len(found)):
            row = tuple(value for _, value in sorted(zip(spec.order, stored, strict=True), key=lambda each: each[0]))
            if evaluate(condition.predicate, row) is True:
                values = row if projection is None else tuple(evaluate(expr, row) for _, expr in projection.columns)
                rows += [values] * int(found.weights[0][0])
    except EvaluationError:
        return None
    return table_of_rows(rows, plan.schema)


@lru_cache(TABLES)
def _spec(table: TableSchema) -> ArrangementSpec:
    return table_spec(table, table.name)
