"""Inspect e in the body of a rule: a view of the values of e, for the rows of the parts before it, whose changes are printed.

The relation of the rule is not altered. In a recursion the rows are those at the end of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltic.errors import Span, Unsupported
from deltic.frontends.datalog.declarations import BoundTerm
from deltic.frontends.datalog.kinds import STRING_KIND, Kind
from deltic.frontends.datalog.rewriting import parts_of_kind
from deltic.frontends.datalog.shown_values import order_of, shown_value
from deltic.frontends.datalog.tree import DatalogRule, InspectTerm, VariableTerm
from deltic.plan.nodes import Plan, Project
from deltic.plan.signs import as_view

if TYPE_CHECKING:
    from deltic.frontends.datalog.bind_term import TermBinder

VALUE: Final = "value"
"""The column of the view."""
OF_DDLOG: Final = ("ddlog_weight", "ddlog_timestamp")
"""Variables that DDlog has in Inspect."""


@dataclass(slots=True)
class Inspection:
    """The Inspect at a place of a rule. view: the name of its view. kind: of its value, as it was last bound."""

    view: str
    rule: DatalogRule
    place: int
    span: Span
    kind: Kind = STRING_KIND

    def plan(self, inspected: list[tuple[InspectTerm, Plan, BoundTerm]]) -> Plan:
        """The view. inspected: of the rule."""
        _, rows, value = inspected[self.place]
        self.kind = value.kind
        return as_view(Project(rows, ((VALUE, value.expr),)), self.view)

    def __call__(self, changes: list[dict[str, Any]], epoch: int) -> list[str]:
        """The lines that are printed for the changes of a tick, in the order of the values."""
        start = f"{self.span.name}:{self.span.line}"
        ordered = sorted(changes, key=lambda row: (order_of(row[VALUE]), row["_weight"]))
        return [f"{start}: {self._text(row)}: {row['_weight']:+} @{epoch}" for row in ordered]

    def _text(self, row: Mapping[str, Any]) -> str:
        return str(row[VALUE]) if self.kind == STRING_KIND else shown_value(self.kind, row[VALUE])


def inspections(name: str, rules: list[DatalogRule]) -> list[Inspection]:
    """Those of the rules whose first head is the relation, in the order of the text."""
    inspects: list[Inspection] = []
    for rule in dict.fromkeys(rules):  # one with several heads of the relation is there several times
        if rule.heads[0].name == name:
            for place, term in enumerate(one for one in rule.body if isinstance(one, InspectTerm)):
                number = f" {len(inspects) + 1}" if inspects else ""
                inspects.append(Inspection(f"inspect {name}{number}", rule, place, term.span))
    return inspects


def inspected_value(term: InspectTerm, binder: TermBinder) -> BoundTerm:
    """The value that is printed. Raises QueryError."""
    for one in parts_of_kind(term.value, VariableTerm, lambda variable: variable.name in OF_DDLOG):
        remedy = "leave it out: Inspect prints the weight and the transaction after each value"
        raise Unsupported(f"{one.name} is not a variable here", span=one.span, remedy=remedy)
    return binder.bind(term.value)
