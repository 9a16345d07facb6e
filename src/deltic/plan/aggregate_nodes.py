"""GROUP BY as a plan node, and the calls of aggregates in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltic.aggregates import AggregateFunction, Signature, aggregate_function
from deltic.aggregates.definition import OF_USERS, Direction
from deltic.errors import Span
from deltic.expr.nodes import Expr, UserFunction
from deltic.plan.node import PlanNode, computed
from deltic.schema import Field, Schema, Type

if TYPE_CHECKING:
    from deltic.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of a GROUP BY. COUNT(*) has no `arguments`; COUNT(DISTINCT a, b) has several.

    function: the name of a registered aggregate (deltic.aggregates).
    filter: FILTER (WHERE …): only rows on which it is TRUE count.
    directions: of the terms of WITHIN GROUP (ORDER BY …), which are the last arguments, or the first one.
    user: the function of a user's aggregate, which is called `function`; any of its arguments may be NULL.
    type: the result's type (Spark's); nullable: whether a group can yield NULL.
    """

    function: str
    arguments: tuple[Expr, ...]
    type: Type
    nullable: bool
    distinct: bool = False
    filter: Expr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    directions: tuple[Direction, ...] = ()
    user: UserFunction | None = None

    def __post_init__(self) -> None:
        if self.definition.always_distinct:
            object.__setattr__(self, "distinct", True)

    @property
    def written(self) -> int:
        """The number of arguments without those that sort the rows."""
        if not self.directions:
            return len(self.arguments)
        return len(self.arguments) - (len(self.directions) if self.is_listing else 0)

    @property
    def is_listing(self) -> bool:
        """Whether the value depends on the order of rows: arguments after the others may sort them."""
        return self.user is None and aggregate_function(self.function).within in ("rows", "window")

    @property
    def definition(self) -> AggregateFunction:
        return aggregate_function(self.function).of(self.written) if self.user is None else OF_USERS

    @property
    def signature(self) -> Signature:
        return Signature(tuple(argument.type for argument in self.arguments), self.type, self.nullable, self.directions)

    @property
    def required(self) -> tuple[Expr, ...]:
        """The arguments that must not be NULL for a row to count."""
        if self.user is not None:
            return ()
        optional = self.definition.optional
        return tuple(argument for i, argument in enumerate(self.arguments[: self.written]) if i not in optional)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(PlanNode):
    """GROUP BY: output columns are the keys, then the aggregates. Without keys there is exactly one row.

    A group exists if its weights do not add up to 0. A COUNT may be negative; a SUM or AVG is NULL over a count of 0. MIN and MAX accept no
    negative weights. DISTINCT arguments are those whose weights add up to more than 0.

    NULL is a key like any other; -0.0 and 0.0 are one key, 0.0; all NaN are one key.
    """

    input: Plan
    keys: tuple[tuple[str, Expr], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    @computed
    def schema(self) -> Schema:
        keys = tuple(Field(name, e.type, e.nullable) for name, e in self.keys)
        return Schema(keys + tuple(Field(name, a.type, a.nullable) for name, a in self.aggregates))


@dataclass(frozen=True, slots=True, eq=False)
class TickAggregate(Aggregate):
    """The same relation. Its input only grows: it is all rows so far of a stream, without negative weights (plan/streams.py).

    Each call is a sum or a first row, so that the state of a group and the rows of the next tick determine the next result.
    """
