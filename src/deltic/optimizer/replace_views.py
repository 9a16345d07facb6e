"""Tables in place of views, so that rules see their columns and not their queries."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from deltic.plan.nodes import Plan, Table
from deltic.plan.streams import is_stream
from deltic.plan.walk import map_inputs, tables
from deltic.schema import StreamSchema, TableSchema
from deltic.stacks import unbounded


def replace_views(plan: Plan, views: Mapping[Plan, Plan]) -> tuple[Plan, dict[Plan, Plan]]:
    """(the plan with a table of its own in place of each of the `views`, what each of these tables stands for).

    >>> from deltic.plan.nodes import Distinct, OverTicks
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema
    >>> every = OverTicks(Table(StreamSchema("s", Schema((Field("k", BIGINT),)))), "integrate")
    >>> above, meanings = replace_views(Distinct(every), {every: every})
    >>> print(show(above))
    Distinct
      Table view 0 (k)
    >>> replaced(above, meanings) == Distinct(every)
    True
    """
    names = (name for name in (f"view {number}" for number in count()) if name not in tables(plan))
    own = {
        view: Table((StreamSchema if is_stream(view) else TableSchema)(name, view.schema)) for view, name in zip(views, names, strict=False)
    }
    return replaced(plan, own), {table: views[view] for view, table in own.items()}


def replaced(plan: Plan, by: Mapping[Plan, Plan]) -> Plan:
    """The plan with other plans in place of some, the outermost first. O(nodes)."""
    done: dict[int, Plan] = {}

    @unbounded
    def changed(node: Plan) -> Plan:
        if id(node) not in done:
            done[id(node)] = by[node] if node in by else map_inputs(node, changed)
        return done[id(node)]

    return changed(plan)
