"""Relational algebra over whole relations, as frozen data-only nodes.

A relation is a Z-set: rows with weights. Weights are positive, except between operators that can make them negative and the next Multiset
(plan/signs.py). Linear nodes add negative weights like others; nodes that test whether a row exists test whether its weight is above 0.

Every node asserts that its parts fit; front ends report users' errors before they create nodes. Columns are referred to by position, not by
name: an expression of a node reads the columns of its input and, in a join, the columns of (left, right) concatenated.

Joins, aggregates, subqueries, window and table functions have modules of their own (plan/join_nodes.py and the like), exported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.nodes import Expr, UserFunction, Value
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall, TickAggregate
from deltic.plan.grouping_nodes import Expand
from deltic.plan.join_nodes import Hint, HintKind, Join, JoinKind, MultiwayJoin, is_word
from deltic.plan.node import PlanNode, computed, once_per_node
from deltic.plan.sort_terms import Order
from deltic.plan.subquery_nodes import DependentJoin
from deltic.plan.table_function_nodes import FlatMap, Generate, TableFunction
from deltic.plan.time_nodes import Bound, ByWatermark, Phase, TemporalFilter
from deltic.plan.window_nodes import Window, WindowCall
from deltic.schema import BIGINT, BOOLEAN, Field, Schema, TableSchema

__all__ = [
    "ITERATION_LIMIT",
    "MOST_BATCHED",
    "Aggregate",
    "AggregateCall",
    "Bound",
    "ByWatermark",
    "DependentJoin",
    "Distinct",
    "Expand",
    "Filter",
    "FlatMap",
    "Generate",
    "Hint",
    "HintKind",
    "Inspect",
    "Join",
    "JoinKind",
    "Multiset",
    "MultiwayJoin",
    "Order",
    "OverTicks",
    "Phase",
    "Plan",
    "Project",
    "Recursion",
    "Reduce",
    "Reference",
    "SetKind",
    "SetOperation",
    "Table",
    "TableFunction",
    "TemporalFilter",
    "TickAggregate",
    "TickFunction",
    "TickTopK",
    "TopK",
    "Union",
    "Values",
    "Weighted",
    "Window",
    "WindowCall",
    "inputs",
    "is_word",
    "references",
]

SetKind = OneOf["except", "except_all", "intersect", "intersect_all"]
MOST_BATCHED: Final = 1_000_000_000
"""The greatest number of ticks whose rows are batched."""
MOST_DELAY: Final = 1_000
"""The greatest delay in the text of a program: a node for each tick."""
TickFunction = OneOf["delay", "integrate", "delta0", "stamp", "current", "batched"]


@dataclass(frozen=True, slots=True, eq=False)
class Table(PlanNode):
    """A base table."""

    table: TableSchema
    span: Span | None = field(default=None, compare=False, repr=False)

    @computed
    def schema(self) -> Schema:
        return self.table.schema.read


@dataclass(frozen=True, slots=True, eq=False)
class Values(PlanNode):
    """A constant relation; SELECT without FROM is one row without columns. 0.0 and -0.0 are different values, all NaN are equal."""

    rows: tuple[tuple[Value, ...], ...] = field(compare=False)
    schema: Schema
    identity: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", repr(self.rows))


@dataclass(frozen=True, slots=True, eq=False)
class Project(PlanNode):
    """One output column for each (name, expression)."""

    input: Plan
    columns: tuple[tuple[str, Expr], ...]

    @computed
    def schema(self) -> Schema:
        return Schema(tuple(Field(name, e.type, e.nullable) for name, e in self.columns))


@dataclass(frozen=True, slots=True, eq=False)
class Filter(PlanNode):
    """The rows on which `predicate` is TRUE (not NULL)."""

    input: Plan
    predicate: Expr

    def __post_init__(self) -> None:
        assert self.predicate.type == BOOLEAN

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Distinct(PlanNode):
    """Each row whose weight is above 0, once. -0.0 and 0.0 are one value, 0.0; NULL equals NULL."""

    input: Plan

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Union(PlanNode):
    """UNION ALL of inputs with equal types; names come from the first."""

    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        assert self.inputs
        assert len({tuple(f.type for f in i.schema) for i in self.inputs}) == 1

    @computed
    def schema(self) -> Schema:
        first, *rest = (i.schema for i in self.inputs)
        return Schema(tuple(Field(f.name, f.type, f.nullable or any(r[i].nullable for r in rest)) for i, f in enumerate(first)))


def union_of(parts: Sequence[Plan]) -> Plan:
    """The UNION ALL of one or more plans with equal types."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


@dataclass(frozen=True, slots=True, eq=False)
class SetOperation(PlanNode):
    """EXCEPT and INTERSECT, with and without ALL. NULL equals NULL, and -0.0 equals 0.0, which is the result.

    A weight below 0 counts as 0.
    """

    left: Plan
    right: Plan
    kind: SetKind

    def __post_init__(self) -> None:
        assert [f.type for f in self.left.schema] == [f.type for f in self.right.schema]

    @computed
    def schema(self) -> Schema:
        if self.kind in ("except", "except_all"):
            return self.left.schema
        fields = zip(self.left.schema, self.right.schema, strict=True)
        return Schema(tuple(Field(f.name, f.type, f.nullable and g.nullable) for f, g in fields))


@dataclass(frozen=True, slots=True, eq=False)
class TopK(PlanNode):
    """The first `limit` rows by `order`, ties by the whole row in column order (ascending, NULLs first, strings by bytes).

    offset: the rows before that are skipped; then a limit of None is all rows after them.

    A row of weight w counts as w rows. Floats order as Spark's: -inf < … < inf < NaN; -0.0 equals 0.0.
    keys: the first rows of each group of equal keys (equal as in Aggregate); without any, of all rows.
    """

    input: Plan
    order: tuple[Order, ...]
    limit: int | None
    keys: tuple[Expr, ...] = ()
    offset: int = 0

    def __post_init__(self) -> None:
        assert self.limit is not None or self.offset
        assert self.offset >= 0

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class TickTopK(TopK):
    """The same relation, of groups, without an offset. Its input only grows: see TickAggregate. So no row comes back that left the first
    ones, and the first rows and those of the next tick determine the next result."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference(PlanNode):
    """The relation of this name of the innermost enclosing Recursion that has one, as of the previous iteration."""

    name: str
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Multiset(PlanNode):
    """The same rows; a negative weight is an error, which names `place` and, if it is not empty, the reason."""

    input: Plan
    span: Span | None = field(default=None, compare=False, repr=False)
    place: str = field(default="the view", compare=False, repr=False)
    reason: str = field(default="", compare=False, repr=False)

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(PlanNode):
    """The rows that a user's function returns for each group of rows with equal keys (equal as in Aggregate), preceded by the keys.

    function: takes a tuple of (row, weight), sorted by the columns (ascending, NULLs first, strings by bytes); returns a row or a list of
    rows. values: the input columns that it sees. returned: its result columns.
    """

    input: Plan
    keys: tuple[tuple[str, Expr], ...]
    values: tuple[int, ...]
    function: UserFunction
    returned: Schema

    @computed
    def schema(self) -> Schema:
        return Schema((*(Field(name, e.type, e.nullable) for name, e in self.keys), *self.returned))


@dataclass(frozen=True, slots=True, eq=False)
class Accumulate(Reduce):
    """A relation of one row for each key: the key and an accumulator, which a user's function folds over the ticks of a stream.

    In each tick it is called for the keys that the stream has, in no order, with the key's accumulator before and a tuple of (row, weight),
    sorted as in Reduce; it returns the new accumulator. An accumulator is a tuple, or a value if `returned` has one column; None is none.
    """


@dataclass(frozen=True, slots=True, eq=False)
class OverTicks(PlanNode):
    """The relation in other ticks. Tick 0 is the one in which the node was created.

    With s[t] the input's content after tick t: delay is s[t - 1], empty at 0; integrate is s[0] + … + s[t]; delta0 is s[0] at tick 0 and
    empty later; stamp is s[t] with the tick's epoch after each row, as a BIGINT column `name`; current is s[t], of a stream as a relation;
    batched is, in ticks whose epoch is a multiple of `size`, the sum of s since the last such tick, and empty in others: of a stream.
    Weights may be negative. Integrate and current of a stream are relations (plan/streams.py), its delay is a stream.
    In a recursion, the delay of a plan that reads its relations is the plan in the previous iteration; the other functions are not allowed.
    """

    input: Plan
    function: TickFunction
    name: str = ""
    size: int = 0

    @computed
    def schema(self) -> Schema:
        return Schema((*self.input.schema, Field(self.name, BIGINT, False))) if self.function == "stamp" else self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Weighted(PlanNode):
    """Each row once, followed by its weight, which may be negative, as a BIGINT column `name`."""

    input: Plan
    name: str

    @computed
    def schema(self) -> Schema:
        return Schema((*self.input.schema, Field(self.name, BIGINT, False)))


@dataclass(frozen=True, slots=True, eq=False)
class Inspect(PlanNode):
    """The same rows. Each engine calls the function with each of their changes: a tuple of (row, weight)."""

    input: Plan
    function: UserFunction

    @computed
    def schema(self) -> Schema:
        return self.input.schema


ITERATION_LIMIT: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Recursion(PlanNode):
    """Mutually recursive relations, as the limit of their synchronous iteration from empty: X(0) = ∅, X(n+1) = bodies(X(n)).

    relations: the name and body of each; bodies read the relations by Reference, with exactly the types and nullability of the body.
    result: the relation that the node denotes.
    limit: the number of iterations; a relation that still changes in the next one is assumed to diverge.

    Front ends check that the bodies are monotone in their References (plan/monotone.py). X = base ⊎ step(X), SQL's UNION ALL, sums over
    all derivations.
    """

    relations: tuple[tuple[str, Plan], ...]
    result: str
    limit: int = ITERATION_LIMIT

    def __post_init__(self) -> None:
        schemas = {name: body.schema.unnamed for name, body in self.relations}
        assert len(schemas) == len(self.relations)
        assert self.result in schemas
        assert self.limit >= 0
        assert all(schema.unnamed == schemas[name] for _, body in self.relations for name, schema in references(body) if name in schemas), (
            self
        )

    @computed
    def schema(self) -> Schema:
        return self.body(self.result).schema

    def body(self, name: str) -> Plan:
        """The body of the relation `name`."""
        return next(body for relation, body in self.relations if relation == name)


@dataclass(frozen=True, slots=True, eq=False)
class TickRecursion(Recursion):
    """Mutually dependent relations over ticks: X[t] = bodies(X[t - 1]), and X is empty before the tick in which the node was created.

    Bodies may read the relations in any way, except by operators over ticks; there is nothing to converge, so `limit` has no effect.
    """


Plan = (
    Table
    | Values
    | Project
    | Filter
    | Join
    | MultiwayJoin
    | DependentJoin
    | Aggregate
    | Distinct
    | Union
    | SetOperation
    | TopK
    | Expand
    | Window
    | FlatMap
    | Generate
    | Multiset
    | TemporalFilter
    | ByWatermark
    | Reduce
    | OverTicks
    | Weighted
    | Inspect
    | Reference
    | Recursion
)


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The relations that a node reads directly; for a Recursion, its bodies."""
    match plan:
        case Table() | Values() | Reference():
            return ()
        case Join() | SetOperation() | DependentJoin():
            return (plan.left, plan.right)
        case Union() | MultiwayJoin():
            return plan.inputs
        case Recursion():
            return tuple(body for _, body in plan.relations)
        case _:
            return (plan.input,)


@once_per_node
def references(plan: Plan) -> frozenset[tuple[str, Schema]]:
    """The relations of enclosing recursions that the plan reads."""
    if isinstance(plan, Reference):
        return frozenset({(plan.name, plan.schema)})
    own = {name for name, _ in plan.relations} if isinstance(plan, Recursion) else set[str]()
    return frozenset((name, schema) for below in inputs(plan) for name, schema in references(below) if name not in own)
