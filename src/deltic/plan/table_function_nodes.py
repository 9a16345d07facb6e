"""Table functions as plan nodes: builtin ones, and those of users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.nodes import Expr, Literal, UserFunction
from deltic.plan.node import PlanNode, computed
from deltic.schema import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Field, Schema

if TYPE_CHECKING:
    from deltic.plan.nodes import Plan

TableFunction = OneOf["array", "elements", "sequence", "generate_series", "split", "repeat_row", "window_starts"]


@dataclass(frozen=True, slots=True, eq=False)
class FlatMap(PlanNode):
    """Each row once for each element that `function` returns for `arguments` on it, followed by the element.

    array: the arguments, all of one type. sequence (start, stop[, step]): Spark's, of an integer type, or of DATEs with a step in days;
    the default step is 1 towards the stop. generate_series: the same, but the default step is 1, and a step that leads away from the stop
    returns nothing. split (text, delimiter, limit): the last two constant; a limit of 0 or less is none. repeat_row (count): no element;
    multiplies the row's weight by the count, which may be negative. window_starts (time, size, slide, origin), constant but for the time:
    the starts of the sliding windows that contain it, the last one first; the three are microseconds, and windows start at the origin,
    counted from 1970, plus multiples of the slide. If an argument is NULL (except for array) there is no element.

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
            case "window_starts":
                assert types[0] in (TIMESTAMP, TIMESTAMP_NTZ) and types[1:] == (BIGINT, BIGINT, BIGINT)

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
