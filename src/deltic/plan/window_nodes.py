"""Window functions as a plan node: columns that are computed from the rows around each row, in its partition.

A partition is ordered by its terms, then by the whole row; peers are rows that are equal in all terms. A row of weight w is w rows, one
after the other. Without terms all rows of a partition are peers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.nodes import Expr
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.node import PlanNode, computed
from deltic.plan.sort_terms import Order
from deltic.schema import Field, Schema, Type

if TYPE_CHECKING:
    from deltic.plan.nodes import Plan

RankFunction = OneOf["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"]
OffsetFunction = OneOf["lag", "lead"]
FrameFunction = OneOf["first_value", "last_value", "nth_value", "aggregate"]
SessionFunction = OneOf["session_start"]
WindowFunction = RankFunction | OffsetFunction | FrameFunction | SessionFunction

BY_PEERS: Final = ("rank", "dense_rank", "percent_rank", "cume_dist", "session_start")
"""Functions whose values are equal for peers."""
FRAMED: Final = ("first_value", "last_value", "nth_value", "aggregate")
"""Functions of the rows of a frame."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a frame begins or ends.

    kind "rows": `rows` rows after the current one, before it if negative. "range": the last peer of the value `limit`, or the first one at
    the start; `limit` is computed from the current row, and compares with the only term of the order. "peers": the last peer of the current
    row, or the first. "unbounded": the end of the partition, or its start.
    """

    kind: OneOf["unbounded", "peers", "rows", "range"]
    rows: int = 0
    limit: Expr | None = None

    def __post_init__(self) -> None:
        assert (self.limit is not None) == (self.kind == "range")


UNBOUNDED: Final = Edge("unbounded")


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The rows from `start` to `end`, none if the end is before the start."""

    start: Edge = UNBOUNDED
    end: Edge = UNBOUNDED

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole partition."""
        return self.start.kind == self.end.kind == "unbounded"


WHOLE: Final = WindowFrame()


@dataclass(frozen=True, slots=True)
class WindowCall:
    """One window function. type: the result's type (Spark's); nullable: whether it can be NULL.

    arguments: the value of lag, lead, first_value, last_value and nth_value; for lag and lead the default after it, which is that of the
    current row; of session_start the start and the end of the row's own session, where rows are ordered by the start: its value is the
    start of the first in the chain of those that overlap or touch. number: the buckets of ntile, the rows that lag goes back or lead
    forward, the n of nth_value. ignore_nulls: rows with a NULL value are passed over; with a second argument of first_value or last_value
    those in which this is NULL. frame: of frame functions. aggregate: the call of an aggregate, over the frame.
    """

    function: WindowFunction
    type: Type
    nullable: bool
    arguments: tuple[Expr, ...] = ()
    number: int = 1
    ignore_nulls: bool = False
    frame: WindowFrame = WHOLE
    aggregate: AggregateCall | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert (self.function == "aggregate") == (self.aggregate is not None)

    @property
    def is_of_partition(self) -> bool:
        """Whether the value is the same for all rows of a partition, whatever their order."""
        return self.function == "aggregate" and self.frame.is_whole

    @property
    def is_by_rows(self) -> bool:
        """Whether the value depends on the order of peers, which is that of whole rows."""
        edges = {self.frame.start.kind, self.frame.end.kind}
        return self.function not in BY_PEERS and not (self.function == "aggregate" and "rows" not in edges)


@dataclass(frozen=True, slots=True, eq=False)
class Window(PlanNode):
    """The columns of each row, then the value of each call in the row's partition: the rows with equal `keys`, equal as in Aggregate.

    Floats order as Spark's: -inf < … < inf < NaN; -0.0 equals 0.0.
    """

    input: Plan
    keys: tuple[Expr, ...]
    order: tuple[Order, ...]
    calls: tuple[tuple[str, WindowCall], ...]

    @computed
    def schema(self) -> Schema:
        return Schema((*self.input.schema, *(Field(name, call.type, call.nullable) for name, call in self.calls)))
