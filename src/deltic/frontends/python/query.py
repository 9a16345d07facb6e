"""SQL over a stream: queries, conditions and expressions whose FROM is the stream, under the name `input`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deltic.errors import CircuitError
from deltic.frontends.sql import Form, bind_query
from deltic.frontends.statements import DefinedFunction
from deltic.plan.nodes import Plan, Reference
from deltic.plan.recursion import bound_to
from deltic.schema import Schema

INPUT: Final = "input"
"""The name of a stream in the SQL over it."""
CONDITION: Final = Form("one condition on a row", frozenset(("source", "where")))
ORDER: Final = Form("terms of ORDER BY, such as amount DESC, id", frozenset(("source", "order", "limit")))


class _Input:
    """A namespace of one relation, the stream."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def relation(self, name: str) -> Plan | None:
        return Reference(INPUT, self.schema) if name.lower() == INPUT else None

    def names(self) -> tuple[str, ...]:
        return (INPUT,)

    def functions(self) -> Mapping[str, DefinedFunction]:
        return {}


def queried(plan: Plan, query: str, form: Form | None = None) -> Plan:
    """The query over the rows of `plan`. Raises CircuitError if it is not a text, QueryError if it is not valid, or not of `form`."""
    if not isinstance(query, str):
        raise CircuitError(f"invalid SQL {query!r}", expected="a str")
    return bound_to(bind_query(query, "<circuit>", _Input(plan.schema), form, final=False), {INPUT: plan})


def selected(plan: Plan, columns: Sequence[str], group: str = "") -> Plan:
    """SELECT of these columns from the rows of `plan`. group: a GROUP BY clause."""
    if not columns:
        raise CircuitError("no columns", expected='{"name": "SQL expression"}')
    form = Form("one expression for each column", frozenset(("source", *(("group",) if group else ()))), len(columns))
    return queried(plan, f"SELECT {', '.join(columns)} FROM {INPUT}{group}", form)


def text_of(expr: object) -> str:
    if not isinstance(expr, str):
        raise CircuitError(f"invalid SQL {expr!r}", expected="an expression, as a str")
    return expr
