"""Test support: random programs with negative weights: those of programs.py, over tables with some negated rows.

What refuses negative weights gets distinct rows, and a view has its weights in a column, so that nothing fails.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from deltic.expr.functions import resolve
from deltic.expr.nodes import Literal
from deltic.plan.columns import reference
from deltic.plan.nodes import Aggregate, Distinct, Filter, FlatMap, Join, Plan, Table, TopK, Union, Weighted, Window, references
from deltic.plan.signs import as_view, may_be_negative
from deltic.plan.walk import transform
from deltic.schema import BIGINT
from programs import Case, mixed


def signed(seed: int) -> Case:
    """The program `mixed(seed)` with negative weights; some have a recursion."""
    program, rng = mixed(seed), Random(f"signed {seed}")
    views = {name: Weighted(transform(plan, lambda node: _node(rng, node)), "w") for name, plan in program.views.items()}
    assert all(as_view(plan) == plan for plan in views.values()), "nothing refuses negative weights"
    return replace(program, views=views)


def _node(rng: Random, node: Plan) -> Plan:
    match node:
        case Table():
            return _signed_table(rng, node)
        case TopK() | Window():
            return replace(node, input=Distinct(node.input))
        case Aggregate() if not all(call.definition.takes_negative for _, call in node.aggregates) and may_be_negative(node.input, None):
            return replace(node, input=Distinct(node.input))
        case Join() if references(node):
            both = all(map(references, (node.left, node.right))) or node.residual is not None
            left, right = (Distinct(side) if both or not references(side) else side for side in (node.left, node.right))
            return replace(node, left=left, right=right)
        case _:
            return node


def _signed_table(rng: Random, table: Table) -> Plan:
    """The table itself, with some or all of its weights negated, or twice the table minus the table."""
    columns = [reference(table.schema, i) for i in range(len(table.schema))]
    predicate = resolve(rng.choice(("is_null", "is_not_null")), [rng.choice(columns)])
    if (pairs := [(a, b) for a in columns for b in columns if a.index < b.index and a.type == b.type]) and rng.random() < 0.5:
        predicate = resolve("less_equal", list(rng.choice(pairs)))
    match rng.randrange(5):
        case 0:
            return table
        case 1:
            return repeated(table, -1)
        case 2:
            return Union((table, repeated(Filter(table, predicate), -2)))
        case 3:
            return Union((repeated(table, 2), repeated(Filter(table, predicate), -3), repeated(table, -1)))
        case _:
            return Union((table, repeated(Filter(table, predicate), -1)))


def repeated(plan: Plan, times: int) -> Plan:
    return FlatMap(plan, "repeat_row", (Literal(times, BIGINT),), ())
