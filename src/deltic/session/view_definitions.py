"""Views and sinks as a catalog defines them, and what is refused of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deltic.connectors.connector import SinkSpec
from deltic.connectors.frames import OP, WEIGHT
from deltic.connectors.registry import check_columns
from deltic.errors import CatalogError, CircuitError, QueryError, Span
from deltic.frontends.statements import CreateView, Namespace, Rebind, ShownChanges
from deltic.plan.nodes import Plan
from deltic.runtimes.view_errors import is_errors
from deltic.schema import Schema

RESERVED = (OP, WEIGHT)
EPOCH = "_epoch"
"""The column that a sink of changes adds beside the weight."""


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view. `plan` is its query over base tables and views that are declared recursive; other views are inlined.

    depends_on: the relations that it reads. calls: the functions of users that it calls, in lower case. rebind: binds it over another
    catalog. printed: the lines of its changes, if they are printed.
    """

    name: str
    plan: Plan
    materialized: bool
    depends_on: tuple[str, ...]
    calls: tuple[str, ...]
    rebind: Rebind
    printed: ShownChanges | None = None

    @classmethod
    def of(cls, statement: CreateView) -> ViewDefinition:
        parts = (statement.materialized, statement.depends_on, statement.calls, statement.rebind, statement.printed)
        return cls(statement.name, statement.plan, *parts)

    def over(self, namespace: Namespace) -> ViewDefinition:
        """The view bound again. Raises QueryError and CircuitError."""
        bound = self.rebind(namespace)
        return replace(self, plan=bound.plan, depends_on=bound.depends_on, calls=bound.calls)


@dataclass(frozen=True, slots=True)
class SinkDefinition:
    """A sink as it was declared. view: the catalog's name of a materialized view."""

    name: str
    view: str
    sink: SinkSpec


def check_sink(name: str, sink: SinkSpec, view: ViewDefinition, span: Span | None) -> None:
    """Raises QueryError for a view that a sink cannot deliver."""
    if not view.materialized:
        raise CatalogError(
            f"view {view.name} is not materialized, and sink {name} reads it", span=span, remedy=f"CREATE MATERIALIZED VIEW {view.name}"
        )
    if sink.mode == "changes" and view.plan.schema.find(EPOCH):
        raise CatalogError(
            f"view {view.name} has a column {EPOCH}, a name that sink {name} uses for the epoch",
            span=span,
            expected=f"column names other than {EPOCH}",
            remedy="give the column another name",
        )
    check_columns(sink, view.plan.schema, f"sink {name}", lambda _: span)


def check_names(schema: Schema, kind: str, name: str, span: Span | None) -> None:
    """Raises CatalogError for columns with the names that change frames and `changes()` add."""
    if is_errors(name):
        remedy = "give it another name"
        raise CatalogError(f"{kind} {name} has a name reserved for the errors of a view", span=span, remedy=remedy)
    for reserved in RESERVED:
        if schema.find(reserved):
            raise CatalogError(
                f"{kind} {name} has a column {reserved}, a name reserved for changes",
                span=span,
                expected=f"column names other than {' and '.join(RESERVED)}",
                remedy="give the column another name",
            )


def check_has_columns(view: CreateView | ViewDefinition, plan: Plan, span: Span | None) -> None:
    """Raises CatalogError for rows without columns, which no form of reading a view can show."""
    if view.materialized and not plan.schema:
        raise CatalogError(f"view {view.name} has no columns", span=span, expected="at least one column")


def rebound(view: ViewDefinition, namespace: Namespace, cause: str, span: Span | None) -> ViewDefinition:
    """The view over another namespace. cause, span: what was replaced, and where."""
    try:
        bound = view.over(namespace)
        check_has_columns(view, bound.plan, span)
    except (QueryError, CircuitError) as error:
        raise CatalogError(
            f"view {view.name} reads {cause} and would no longer be valid: {error.message}",
            span=span,
            remedy=f"drop {view.name} first, or keep the columns that it reads",
        ) from error
    return bound
