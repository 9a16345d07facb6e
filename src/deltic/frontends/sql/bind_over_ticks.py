"""Binds FROM delay(t, n), integrate(t), current(s) and batched(s, n): a table, view or stream in other ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from deltic.errors import Unsupported
from deltic.expr.functions.signature import check_count
from deltic.frontends.sql import tree
from deltic.plan.nodes import MOST_BATCHED, MOST_DELAY, OverTicks, Plan, TickFunction

OVER_TICKS: Final = ("delay", "integrate", "current", "batched")


def bind_over_ticks(call: tree.FunctionCall, lookup: Callable[[tree.TableName], Plan]) -> Plan:
    """The relation that the call denotes. lookup: the plan of a relation by its name."""
    batched = call.name == "batched"
    check_count(call.name, call.arguments, 2 if batched else 1, 2 if batched or call.name == "delay" else 1, call.span)
    first = call.arguments[0]
    if not isinstance(first, tree.ColumnName) or len(first.parts) != 1:
        raise Unsupported(f"{call.name}() of an expression", span=first.span, expected=f"{call.name}(the name of a table, view or stream)")
    plan = lookup(tree.TableName(first.parts[0], None, first.span))
    if batched:
        return OverTicks(plan, "batched", size=_ticks(call.arguments[1], MOST_BATCHED))
    ticks = _ticks(call.arguments[1], MOST_DELAY) if len(call.arguments) > 1 else 1
    for _ in range(ticks):
        plan = OverTicks(plan, cast("TickFunction", call.name))
    return plan


def _ticks(node: tree.Expression, most: int) -> int:
    """The number of ticks of a delay, or of a batch."""
    text = node.text if isinstance(node, tree.NumberText) else ""
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise Unsupported("an invalid number of ticks", span=node.span, expected=f"an integer from 1 to {most}")
    return int(text)
