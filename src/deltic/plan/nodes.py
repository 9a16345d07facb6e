"""What is asked: relational algebra over whole relations, as frozen data-only nodes.

A relation is a Z-set: rows with weights. They are positive, but for what rests on a repeat_row, up to the next Multiset (plan/signs.py).
Linear nodes add negative weights up like others; nodes that ask whether a row is there ask whether its weight is above 0.

Every node computes its `schema` when it is made and asserts that its parts fit; frontends report users' errors before they make nodes.
Positions, not names, refer to columns: an expression of a node reads the columns of its input, and of (left, right) laid side by side in
a join.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final
from typing import Literal as OneOf

from deltic.aggregates import AggregateFunction, aggregate_function
from deltic.errors import Span
from deltic.expr.nodes import Expr, Literal, UserFunction, Value
from deltic.plan.node import PlanNode, computed, once_per_node
from deltic.schema import BIGINT, BOOLEAN, DATE, INT, NULL, STRING, TIMESTAMP, Field, Schema, TableSchema, Type

JoinKind = OneOf["inner", "left", "right", "full", "semi", "anti", "not_in"]
HintKind = OneOf["multiway", "binary"]
SetKind = OneOf["except", "except_all", "intersect", "intersect_all"]
TableFunction = OneOf["array", "sequence", "generate_series", "split", "repeat_row"]
TickFunction = OneOf["delay", "integrate", "delta0", "stamp"]

WORD_DIGITS: Final = 18
"""Digits of the widest DECIMAL that is one word."""


@dataclass(frozen=True, slots=True, eq=False)
class Table(PlanNode):
    """A base table."""

    table: TableSchema
    span: Span | None = field(default=None, compare=False, repr=False)

    @computed
    def schema(self) -> Schema:
        return self.table.schema


@dataclass(frozen=True, slots=True, eq=False)
class Values(PlanNode):
    """A constant relation; SELECT without FROM is one row without columns. 0.0 and -0.0 are different values here, NaN is one."""

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
    """How an inner join is to be computed: together with those around it as one multiway join, or by itself."""

    kind: HintKind
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Join(PlanNode):
    """An equality join with an optional residual condition over (left, right).

    keys: pairs (expression over left, expression over right) of equal types; a NULL key matches nothing. () is a cross join.
    residual: must be TRUE as well for two rows to match.
    kind: semi and anti keep left rows with, or without, a match and have left's schema. `not_in` is NOT IN: `value` is the pair
    (left value, right value), and a left row stays iff, among the right rows with its keys, there is none at all, or its
    value is not NULL and none of these has a NULL or an equal value.
    A row has a match, and there is a row, if the weights of those in question add up to more than 0.
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
    """The inner join of several relations by shared variables, read over their columns laid side by side. Weights multiply.

    variables: for each input, for each of its columns, the number of its variable, counted from 0 in order of appearance. Columns with
    one number must be equal, and none of them NULL or -0.0; a column whose number no other has may be. In one input they all differ.
    output: the columns that the result has, ascending. condition: over all columns; must be TRUE as well. It cannot fail.
    """

    inputs: tuple[Plan, ...]
    variables: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    condition: Expr | None = None

    def __post_init__(self) -> None:
        assert [len(part.schema) for part in self.inputs] == [len(mine) for mine in self.variables]
        assert all(len(set(mine)) == len(mine) for mine in self.variables)
        flat = [variable for mine in self.variables for variable in mine]
        assert list(dict.fromkeys(flat)) == list(range(len(set(flat))))
        types: dict[int, set[Type]] = {}
        for variable, column in zip(flat, self.columns, strict=True):
            types.setdefault(variable, set()).add(column.type)
        assert all(len(types[variable]) == 1 and all(map(is_word, types[variable])) for variable in self.shared)
        assert list(self.output) == sorted(set(self.output))
        assert self.condition is None or self.condition.type == BOOLEAN

    @computed
    def columns(self) -> Schema:
        """The inputs' columns side by side."""
        return Schema(tuple(column for part in self.inputs for column in part.schema))

    @computed
    def flat(self) -> tuple[int, ...]:
        """The variable of each column."""
        return tuple(variable for mine in self.variables for variable in mine)

    @computed
    def shared(self) -> tuple[int, ...]:
        """The variables that stand in several inputs, ascending."""
        return tuple(sorted(variable for variable, count in Counter(self.flat).items() if count > 1))

    @computed
    def starts(self) -> tuple[int, ...]:
        """Of each input, the position of its first column."""
        return (0, *accumulate(len(mine) for mine in self.variables[:-1]))

    @computed
    def schema(self) -> Schema:
        columns = self.columns
        return Schema(tuple(columns[i] for i in self.output))


def is_word(type_: Type) -> bool:
    """Whether a value of the type, if not NULL (nor -0.0), is one word that is equal where the value is, so it can be a shared variable."""
    return not (type_ == NULL or (type_.is_decimal and type_.precision > WORD_DIGITS))


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of a GROUP BY. COUNT(*) has no `arguments`; COUNT(DISTINCT a, b) has several.

    function: the name of a registered aggregate (deltic.aggregates), which says all else about it.
    filter: FILTER (WHERE …): only rows on which it is TRUE count.
    type: the result's type (Spark's); nullable: whether a group can yield NULL.
    """

    function: str
    arguments: tuple[Expr, ...]
    type: Type
    nullable: bool
    distinct: bool = False
    filter: Expr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def definition(self) -> AggregateFunction:
        return aggregate_function(self.function)

    @property
    def required(self) -> tuple[Expr, ...]:
        """The arguments that must not be NULL for a row to count."""
        return tuple(argument for i, argument in enumerate(self.arguments) if i not in self.definition.optional)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(PlanNode):
    """GROUP BY: output columns are the keys, then the aggregates. Without keys there is one row, whatever the input.

    A group is there if its weights add up to anything but 0; a COUNT may be negative, and a SUM or AVG is NULL over a count of 0. MIN and
    MAX take no negative weights. DISTINCT arguments are those whose weights add up to more than 0.

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
    """Each row whose weight is above 0, once. -0.0 and 0.0 are one value here, 0.0; NULL equals NULL."""

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
    """EXCEPT and INTERSECT, with and without ALL. NULL equals NULL, -0.0 equals 0.0 (and comes out as 0.0).

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
    """A relation of the innermost enclosing Recursion that has one of this name, as the iteration before left it."""

    name: str
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class FlatMap(PlanNode):
    """Each row once for each element that `function` makes of `arguments` on it, the element behind the row.

    array: the arguments, all of one type. sequence (start, stop[, step]): Spark's, of an integer type, or of DATEs with a step in days;
    without a step it is 1 towards the stop. generate_series: the same, but without a step it is 1, and one that leads away from the stop
    gives nothing. split (text, delimiter, limit): these two constant; a limit of 0 or less is none. repeat_row (count): no element, but
    the row's weight times the count, which may be negative. Where an argument is NULL (unless of array) there is no element.

    names: of the output columns behind the input's: the position, where `position` says that it stands there (INT, from 0), and the
    element. outer: a row without an element stays, with NULL for them.
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
            case "sequence" | "generate_series":
                start = types[0]
                assert types[1] == start and (start == DATE or start.is_integer)
                assert types[2:] in ((), (INT if start == DATE else start,))
            case "split":
                assert types == (STRING, STRING, INT) and all(isinstance(argument, Literal) for argument in self.arguments[1:])
            case "repeat_row":
                assert types == (BIGINT,)

    @computed
    def made(self) -> tuple[Field, ...]:
        """The output columns behind the input's."""
        if self.function == "repeat_row":
            return ()
        null = self.outer or (self.function == "array" and any(argument.nullable for argument in self.arguments))
        position = (Field(self.names[0], INT, self.outer),) if self.position else ()
        return (*position, Field(self.names[-1], self.arguments[0].type, null))

    @computed
    def schema(self) -> Schema:
        return Schema(self.input.schema.fields + self.made)


@dataclass(frozen=True, slots=True, eq=False)
class Generate(PlanNode):
    """The rows that a user's table function gives for each row, each as often as that row.

    function: of a row; or on batches, of a record batch (expr/table_functions.py). It is called once for each row, whatever its weight.
    made: the columns that it gives. weighted: the last of them, a BIGINT NOT NULL, is a factor of the row's weight instead of a column;
    it may be negative.
    """

    input: Plan
    function: UserFunction
    made: Schema
    weighted: bool = False

    def __post_init__(self) -> None:
        (names,) = self.function.parameters
        assert names is not None and len(names) == len(self.input.schema)
        assert not self.weighted or (self.made[-1].type == BIGINT and not self.made[-1].nullable)

    @computed
    def schema(self) -> Schema:
        return Schema(self.made.fields[:-1]) if self.weighted else self.made


@dataclass(frozen=True, slots=True, eq=False)
class Multiset(PlanNode):
    """The same rows; one whose weight is negative is an error. place: what the error calls the relation."""

    input: Plan
    span: Span | None = field(default=None, compare=False, repr=False)
    place: str = field(default="the view", compare=False, repr=False)

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(PlanNode):
    """What a user's function gives for each group of rows with equal keys (equal as in Aggregate): the keys, then what is made.

    function: of a tuple of (row, how often), rows in the order of their columns (ascending, NULLs first, strings by bytes); it gives one
    row, or a list of rows. values: the columns that its rows have.
    """

    input: Plan
    keys: tuple[tuple[str, Expr], ...]
    values: tuple[int, ...]
    function: UserFunction
    made: Schema

    @computed
    def schema(self) -> Schema:
        return Schema((*(Field(name, e.type, e.nullable) for name, e in self.keys), *self.made))


@dataclass(frozen=True, slots=True, eq=False)
class OverTicks(PlanNode):
    """What the relation was in other ticks; the first tick, number 0, is the one in which the node begins.

    With s[t] the input's content after tick t: delay is s[t - 1], empty at 0; integrate is s[0] + … + s[t]; delta0 is s[0] at tick 0 and
    empty later; stamp is s[t] with the number of the tick's epoch behind each row, a BIGINT column called `name`. Weights may be negative.
    Within a recursion, delay of what reads its relations is that of the iteration before; the others are not possible there.
    """

    input: Plan
    function: TickFunction
    name: str = ""

    @computed
    def schema(self) -> Schema:
        return Schema((*self.input.schema, Field(self.name, BIGINT, False))) if self.function == "stamp" else self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Weighted(PlanNode):
    """Each row once, its weight, which may be negative, behind it as a BIGINT column called `name`."""

    input: Plan
    name: str

    @computed
    def schema(self) -> Schema:
        return Schema((*self.input.schema, Field(self.name, BIGINT, False)))


@dataclass(frozen=True, slots=True, eq=False)
class Inspect(PlanNode):
    """The same rows. Where the plan runs, the function sees each change of them: a tuple of (row, weight)."""

    input: Plan
    function: UserFunction

    @computed
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Bound:
    """The instant `moment` + `offset` microseconds; moment: of type TIMESTAMP.

    optional: where the moment is NULL the bound is satisfied, and if it always is, no clock is required. Other bounds of NULL never are.
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

    relations: name and body of each; bodies read the relations by Reference, with exactly the types and nullability of the body.
    result: the relation that the node denotes.
    limit: iterations that may change something; a relation that still changes then is held to diverge.

    Frontends see to it that the bodies are monotone in their References (plan/monotone.py). X = base ⊎ step(X), SQL's UNION ALL, is the
    sum over all derivations.
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
        return next(body for mine, body in self.relations if mine == name)


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
    """The relations that a node reads directly; of a Recursion, its bodies."""
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
    return frozenset(found for below in inputs(plan) for found in references(below) if found[0] not in own)


def _kinds(schema: Schema) -> list[tuple[Type, bool]]:
    return [(field.type, field.nullable) for field in schema]


def _nullable(schema: Schema) -> Schema:
    return Schema(tuple(Field(f.name, f.type, True) for f in schema))
