"""Joins of streams, and of all rows of streams, that bound the difference of times keep only the rows that later rows can join."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.expr.nodes import Expr, calls_python
from deltic.optimizer.forget_closed_windows import rows_of_ticks
from deltic.plan.columns import conjuncts
from deltic.plan.nodes import Filter, Join, OverTicks, Plan
from deltic.plan.time_joins import is_pairing, paired
from deltic.plan.walk import expressions, map_inputs, transform


def forget_unjoinable_rows(plan: Plan) -> Plan:
    """A row is kept until the watermark of the other side has passed all times with which it can be joined.

    >>> from deltic.expr.nodes import Call, Column, Literal
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, BOOLEAN, TIMESTAMP, Field, Lateness, Schema, StreamSchema
    >>> at = Schema((Field("at", TIMESTAMP, False),))
    >>> a, b = (Table(StreamSchema(name, at, lateness=Lateness(0, 0))) for name in "ab")
    >>> first, second = Column(0, TIMESTAMP, False, "at"), Column(1, TIMESTAMP, False, "at")
    >>> later = Call("add_microseconds", (first, Literal(5, BIGINT)), TIMESTAMP, False)
    >>> least = Call("greater_equal", (second, first), BOOLEAN, False)
    >>> near = Call("and", (least, Call("less_equal", (second, later), BOOLEAN, False)), BOOLEAN, False)
    >>> print(show(Join(a, b, "inner", (), near)))
    Join inner where ((at#1 >= at#0) and (at#1 <= add_microseconds(at#0, 5)))
      Stream a (at)
      Stream b (at)
    >>> print(show(forget_unjoinable_rows(Join(a, b, "inner", (), near))))
    Union
      Join inner where ((at#1 >= at#0) and (at#1 <= add_microseconds(at#0, 5)))
        Stream a (at)
        Union
          Delay
            Joinable until the watermark of a reaches at#0 + 1 µs
              Stream b (at)
          Current
            Stream b (at)
      Join inner where ((at#1 >= at#0) and (at#1 <= add_microseconds(at#0, 5)))
        Delay
          Joinable until the watermark of b reaches at#0 + 6 µs
            Stream a (at)
        Stream b (at)
    """
    return transform(plan, _forget)


def _forget(plan: Plan) -> Plan:
    match plan:
        case Join():
            return _joined(plan, ()) or plan
        case Filter(input=Join() as join):
            below = _joined(join, conjuncts(plan.predicate))
            return plan if below is None else map_inputs(plan, lambda _: below)
        case _:
            return plan


def _joined(join: Join, above: Sequence[Expr]) -> Plan | None:
    """None if it is no such join, or does not bound how long rows are kept."""
    if is_pairing(join):
        return paired(join, above)
    left, right = rows_of_ticks(join.left), rows_of_ticks(join.right)
    if join.kind != "inner" or left is None or right is None or any(map(calls_python, (*expressions(join), *above))):
        return None
    of_ticks = paired(Join(left, right, "inner", join.keys, join.residual, hint=join.hint), above)
    return None if of_ticks is None else OverTicks(of_ticks, "integrate")
