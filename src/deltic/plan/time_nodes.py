"""Rows by their time: while the time of the tick, or the watermark of a table, is within bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from deltic.expr.nodes import Expr
from deltic.plan.node import PlanNode, computed
from deltic.schema import BIGINT, TIMESTAMP, Schema, TableSchema

if TYPE_CHECKING:
    from deltic.plan.nodes import Plan

Phase = OneOf["open", "closed", "joinable"]


@dataclass(frozen=True, slots=True)
class Bound:
    """The instant `moment` + `offset` microseconds. moment: an expression of type TIMESTAMP.

    Of windows of whole numbers, `moment` is a BIGINT that is not NULL, and `offset` is one too.
    optional: a NULL moment satisfies the bound, and no clock is required if it is always NULL. Other bounds of NULL are not satisfied.
    """

    moment: Expr
    offset: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        assert self.moment.type == TIMESTAMP or (self.moment.type == BIGINT and not self.moment.nullable)


@dataclass(frozen=True, slots=True, eq=False)
class TemporalFilter(PlanNode):
    """The rows on which `lower` ≤ now < `upper`, for each of the lower and the upper bounds."""

    input: Plan
    lower: tuple[Bound, ...] = ()
    upper: tuple[Bound, ...] = ()

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class ByWatermark(PlanNode):
    """Rows of windows, by the watermark of `table`: the greatest value so far of its column with LATENESS, less the lateness.

    end: the end of the row's window, which is open until the watermark reaches it; one whose end is NULL, or past the values of its type,
    never closes.
    With w[t] the watermark after tick t, and the rows of all ticks up to t if the input is a stream, or else its rows in t:
    open, joinable: a relation of the rows with w[t] < end; joinable are those with which a later row of the table can be joined.
    closed: a stream of the rows with w[t - 1] < end <= w[t], the windows that this tick closes, as a whole; none at tick 0, in which the
    node was created.
    """

    input: Plan
    table: TableSchema
    end: Bound
    phase: Phase

    def __post_init__(self) -> None:
        assert self.table.lateness is not None

    @computed
    def schema(self) -> Schema:
        return self.input.schema
