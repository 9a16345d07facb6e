"""Relational algebra over whole relations, as frozen data-only nodes.

A relation is a Z-set: rows with weights. Weights are positive, except between operators that can make them negative and the next Multiset
(plan/signs.py). Linear nodes add negative weights like others; nodes that test whether a row exists test whether its weight is above 0.

Every node asserts that its parts fit; front ends report users' errors before they create nodes. Columns are referred to by position, not by
name: an expression of a node reads the columns of its input and, in a join, the columns of (left, right) concatenated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final
from typing import Literal as OneOf

from deltic.aggregates import AggregateFunction, Signature, aggregate_function
from deltic.aggregates.definition import Direction
from deltic.errors import Span
from deltic.expr.nodes import Expr, Literal, UserFunction, Value
from deltic.plan.node import PlanNode, computed, once_per_node
from deltic.schema import BIGINT, BOOLEAN, DATE, INT, NULL, STRING, TIMESTAMP, Field, Schema, TableSchema, Type

JoinKind = OneOf["inner", "left", "right", "full", "semi", "anti", "not_in"]
HintKind = OneOf["multiway", "binary"]
SetKind = OneOf["except", "except_all", "intersect", "intersect_all"]
TableFunction = OneOf["array", "elements", "sequence", "generate_series", "split", "repeat_row"]
TickFunction = OneOf["delay", "integrate", "delta0", "stamp", "current"]

WORD_DIGITS: Final = 18
"""Digits of the widest DECIMAL that is one word."""


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


@dataclass(frozen=True, slots=True)
class Hint:
    """Requests that an inner join be computed as part of one multiway join with those around it, or as a binary join."""

    kind: HintKind
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Join(PlanNode):
    """An equality join with an optional residual condition over (left, right).

    keys: pairs (expression over left, expression over right) of equal types; a NULL key matches nothing. () is a cross join.
    residual: must also be TRUE for two rows to match.
    kind: semi and anti keep left rows with, or without, a match and have left's schema. `not_in` is NOT IN: `value` is the pair
    (left value, right value), and a left row stays iff no right row has its keys, or its value is not NULL and none of the right rows with
    its keys has a NULL or an equal value.
    A left row has a match if the weights of the matching right rows add up to more than 0.
    """

    left: Plan
    right: Plan
    kind: JoinKind
    keys: tuple[tuple[Expr, Expr], ...] = ()
    residual: Expr | None = None
    value: tuple[Expr, Expr] | None = None
    hint: Hint | None = None

    def __post_init__(self) -> None:
        assert all(a.type == b.type for a, b in self.keys)
        assert self.residual is None or self.residual.type == BOOLEAN
        assert (self.value is not None) == (self.kind == "not_in")
        assert self.hint is None or self.kind == "inner"

    @computed
    def schema(self) -> Schema:
        if self.kind in ("semi", "anti", "not_in"):
            return self.left.schema
        left = _nullable(self.left.schema) if self.kind in ("right", "full") else self.left.schema
        right = _nullable(self.right.schema) if self.kind in ("left", "full") else self.right.schema
        return Schema(left.fields + right.fields)


@dataclass(frozen=True, slots=True, eq=False)
class MultiwayJoin(PlanNode):
    """The inner join of several relations by shared variables, over their concatenated columns. Weights multiply.

    variables: for each input, the number of the variable of each column, from 0 in order of appearance. Columns of one variable must be
    equal, and if there are several, not NULL and not -0.0. The columns of one input have different variables.
    output: the columns of the result, ascending. condition: over all columns; must also be TRUE. It cannot fail.
    """

    inputs: tuple[Plan, ...]
    variables: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    condition: Expr | None = None

    def __post_init__(self) -> None:
        assert [len(part.schema) for part in self.inputs] == [len(numbers) for numbers in self.variables]
        assert all(len(set(numbers)) == len(numbers) for numbers in self.variables)
        flat = [variable for numbers in self.variables for variable in numbers]
        assert list(dict.fromkeys(flat)) == list(range(len(set(flat))))
        types: dict[int, set[Type]] = {}
        for variable, column in zip(flat, self.columns, strict=True):
            types.setdefault(variable, set()).add(column.type)
        assert all(len(types[variable]) == 1 and all(map(is_word, types[variable])) for variable in self.shared)
        assert list(self.output) == sorted(set(self.output))
        assert self.condition is None or self.condition.type == BOOLEAN

    @computed
    def columns(self) -> Schema:
        """The columns of all inputs, concatenated."""
        return Schema(tuple(column for part in self.inputs for column in part.schema))

    @computed
    def flat(self) -> tuple[int, ...]:
        """The variable of each column."""
        return tuple(variable for numbers in self.variables for variable in numbers)

    @computed
    def shared(self) -> tuple[int, ...]:
        """The variables that occur in several inputs, ascending."""
        return tuple(sorted(variable for variable, count in Counter(self.flat).items() if count > 1))

    @computed
    def starts(self) -> tuple[int, ...]:
        """For each input the position of its first column."""
        return (0, *accumulate(len(numbers) for numbers in self.variables[:-1]))

    @computed
    def schema(self) -> Schema:
        columns = self.columns
        return Schema(tuple(columns[i] for i in self.output))


def is_word(type_: Type) -> bool:
    """Whether values of the type, except NULL and -0.0, are single words, equal iff the values are: required of shared variables."""
    return not (type_ == NULL or (type_.is_decimal and type_.precision > WORD_DIGITS))


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of a GROUP BY. COUNT(*) has no `arguments`; COUNT(DISTINCT a, b) has several.

    function: the name of a registered aggregate (deltic.aggregates).
    filter: FILTER (WHERE …): only rows on which it is TRUE count.
    directions: of the terms of WITHIN GROUP (ORDER BY …), which are the last arguments, or the first one.
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

    def __post_init__(self) -> None:
        if self.definition.always_distinct:
            object.__setattr__(self, "distinct", True)

    @property
    def written(self) -> int:
        """The number of arguments without those that sort the rows."""
        within = aggregate_function(self.function).within
        return len(self.arguments) - (len(self.directions) if within == "rows" else 0)

    @property
    def definition(self) -> AggregateFunction:
        return aggregate_function(self.function).of(self.written)

    @property
    def signature(self) -> Signature:
        return Signature(tuple(argument.type for argument in self.arguments), self.type, self.nullable, self.directions)

    @property
    def required(self) -> tuple[Expr, ...]:
        """The arguments that must not be NULL for a row to count."""
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


@dataclass(frozen=True, slots=True)
class Order:
    """One term of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class TopK(PlanNode):
    """The first `limit` rows by `order`, ties by the whole row in column order (ascending, NULLs first, strings by bytes).

    A row of weight w counts as w rows. Floats order as Spark's: -inf < … < inf < NaN; -0.0 equals 0.0.
    keys: the first rows of each group of equal keys (equal as in Aggregate); without any, of all rows.
    """

    input: Plan
    order: tuple[Order, ...]
    limit: int
    keys: tuple[Expr, ...] = ()

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Reference(PlanNode):
    """The relation of this name of the innermost enclosing Recursion that has one, as of the previous iteration."""

    name: str
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class FlatMap(PlanNode):
    """Each row once for each element that `function` returns for `arguments` on it, followed by the element.

    array: the arguments, all of one type. sequence (start, stop[, step]): Spark's, of an integer type, or of DATEs with a step in days;
    the default step is 1 towards the stop. generate_series: the same, but the default step is 1, and a step that leads away from the stop
    returns nothing. split (text, delimiter, limit): the last two constant; a limit of 0 or less is none. repeat_row (count): no element;
    multiplies the row's weight by the count, which may be negative. If an argument is NULL (except for array) there is no element.

    names: those of the output columns after the input's: the position (INT, from 0) if `position`, and the element. outer: a row without an
    element stays, with NULL in these columns.
    """

    input: Plan
    function: TableFunction
    arguments: tuple[Expr, ...]
    names: tuple[str, ...]
    position: bool = False
    outer: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        elements = self.function != "repeat_row"
        assert len(self.names) == elements + self.position
        assert elements or not (self.position or self.outer)
        types = tuple(argument.type for argument in self.arguments)
        match self.function:
            case "array":
                assert types and len(set(types)) == 1
            case "elements":
                assert len(types) == 1 and types[0].name in ("ARRAY", "MAP")
            case "sequence" | "generate_series":
                start = types[0]
                assert types[1] == start and (start == DATE or start.is_integer)
                assert types[2:] in ((), (INT if start == DATE else start,))
            case "split":
                assert types == (STRING, STRING, INT) and all(isinstance(argument, Literal) for argument in self.arguments[1:])
            case "repeat_row":
                assert types == (BIGINT,)

    @computed
    def returned(self) -> tuple[Field, ...]:
        """The output columns after the input's."""
        if self.function == "repeat_row":
            return ()
        null = self.outer or (self.function == "array" and any(argument.nullable for argument in self.arguments))
        null = null or (self.function == "elements" and self.arguments[0].type.name == "ARRAY")
        position = (Field(self.names[0], INT, self.outer),) if self.position else ()
        type = self.arguments[0].type.entries.parts[0].type if self.function == "elements" else self.arguments[0].type
        return (*position, Field(self.names[-1], type, null))

    @computed
    def schema(self) -> Schema:
        return Schema(self.input.schema.fields + self.returned)


@dataclass(frozen=True, slots=True, eq=False)
class Generate(PlanNode):
    """The rows that a user's table function returns for each row, with the weight of that row.

    function: takes a row or, on batches, a record batch (expr/table_functions.py). It is called once for each row, whatever its weight.
    returned: its columns. weighted: the last of them, a BIGINT NOT NULL, is a factor of the row's weight instead of a column;
    it may be negative.
    """

    input: Plan
    function: UserFunction
    returned: Schema
    weighted: bool = False

    def __post_init__(self) -> None:
        (names,) = self.function.parameters
        assert names is not None and len(names) == len(self.input.schema)
        assert not self.weighted or (self.returned[-1].type == BIGINT and not self.returned[-1].nullable)

    @computed
    def schema(self) -> Schema:
        return Schema(self.returned.fields[:-1]) if self.weighted else self.returned


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
    empty later; stamp is s[t] with the tick's epoch after each row, as a BIGINT column `name`; current is s[t], of a stream as a relation.
    Weights may be negative. Integrate and current of a stream are relations (plan/streams.py), its delay is a stream.
    In a recursion, the delay of a plan that reads its relations is the plan in the previous iteration; the other functions are not allowed.
    """

    input: Plan
    function: TickFunction
    name: str = ""

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


@dataclass(frozen=True, slots=True)
class Bound:
    """The instant `moment` + `offset` microseconds. moment: an expression of type TIMESTAMP.

    optional: a NULL moment satisfies the bound, and no clock is required if it is always NULL. Other bounds of NULL are not satisfied.
    """

    moment: Expr
    offset: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        assert self.moment.type == TIMESTAMP


@dataclass(frozen=True, slots=True, eq=False)
class TemporalFilter(PlanNode):
    """The rows on which `lower` ≤ now < `upper`, for each of the lower and the upper bounds."""

    input: Plan
    lower: tuple[Bound, ...] = ()
    upper: tuple[Bound, ...] = ()

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
        schemas = {name: _kinds(body.schema) for name, body in self.relations}
        assert len(schemas) == len(self.relations)
        assert self.result in schemas
        assert self.limit >= 0
        assert all(_kinds(schema) == schemas[name] for _, body in self.relations for name, schema in references(body) if name in schemas), (
            self
        )

    @computed
    def schema(self) -> Schema:
        return self.body(self.result).schema

    def body(self, name: str) -> Plan:
        """The body of the relation `name`."""
        return next(body for relation, body in self.relations if relation == name)


Plan = (
    Table
    | Values
    | Project
    | Filter
    | Join
    | MultiwayJoin
    | Aggregate
    | Distinct
    | Union
    | SetOperation
    | TopK
    | FlatMap
    | Generate
    | Multiset
    | TemporalFilter
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
        case Join() | SetOperation():
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


def _kinds(schema: Schema) -> list[tuple[Type, bool]]:
    return [(field.type, field.nullable) for field in schema]


def _nullable(schema: Schema) -> Schema:
    return Schema(tuple(Field(f.name, f.type, True) for f in schema))
