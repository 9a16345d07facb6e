"""Expressions of a syntax tree. Operators of one level in a row are one node, so no tree is deeper than its text is nested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltic.errors import Span

if TYPE_CHECKING:
    from deltic.frontends.sql.tree.queries import Query


@dataclass(frozen=True, slots=True)
class Name:
    """A name without its quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class VariableUse:
    """The value of a variable, a typed constant, and the fields of it that are read."""

    value: object
    fields: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column name, with its qualifiers. variable: what it means if there is no such column."""

    parts: tuple[Name, ...]
    span: Span
    variable: VariableUse | None = None


@dataclass(frozen=True, slots=True)
class Star:
    """* or qualifier.*, except some columns.

    path: the names after the qualifier, in `table.struct.*`. excluded: columns, and fields of them.
    replaced: (expression, column) of REPLACE. renamed: (column, name) of RENAME.
    """

    qualifier: Name | None
    excluded: tuple[ColumnName, ...]
    span: Span
    path: tuple[Name, ...] = ()
    replaced: tuple[tuple[Expression, Name], ...] = ()
    renamed: tuple[tuple[Name, Name], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it has columns alone, without fields of a struct and without expressions."""
        return not (self.excluded or self.path or self.replaced or self.renamed)


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """:name or ?, a parameter. value: its constant, a typed expression."""

    value: object
    span: Span


@dataclass(frozen=True, slots=True)
class NumberText:
    """The text of a number, including its sign."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class StringText:
    """The characters of a string."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class KeywordExpression:
    """TRUE, FALSE, NULL, and functions without parentheses; in upper case. now_us: the time of the statement, for a function of it."""

    word: str
    span: Span
    now_us: int | None = None


@dataclass(frozen=True, slots=True)
class TypedText:
    """DATE '…' and the like."""

    type: Name
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class IntervalText:
    """INTERVAL with (amount, unit) pairs; a text without a unit contains its units. to: the second unit of INTERVAL '…' YEAR TO MONTH."""

    parts: tuple[tuple[Expression, Name | None], ...]
    to: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class NamedArgument:
    """name => value, an argument of a call."""

    name: Name
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class NamedValue:
    """value AS name, an argument of struct(…)."""

    value: Expression
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Operation:
    """A chain of n operators of one level, in upper case, and n + 1 operands; grouped from the left."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Prefix:
    """NOT, -, + or ~."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Parenthesised:
    """An expression in parentheses."""

    inner: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class IsTest:
    """IS [NOT] NULL, TRUE, FALSE, JSON [VALUE | OBJECT | ARRAY | SCALAR]."""

    operand: Expression
    state: str
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DistinctTest:
    """IS [NOT] DISTINCT FROM."""

    left: Expression
    right: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class BetweenTest:
    """[NOT] BETWEEN low AND high."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InList:
    """[NOT] IN (value, …)."""

    operand: Expression
    values: tuple[Expression, ...]
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InQuery:
    """[NOT] IN (query)."""

    operand: Expression
    query: Query
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class QuantifiedTest:
    """A comparison with ANY or SOME of the rows of a query, or with ALL (`every`)."""

    operator: str
    every: bool
    operand: Expression
    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class LikeTest:
    """[NOT] LIKE pattern [ESCAPE '…']; ILIKE if `folded`."""

    operand: Expression
    pattern: Expression
    escape: Expression | None
    negated: bool
    folded: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ExistsTest:
    """EXISTS (query)."""

    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class SearchedCase:
    """CASE [subject] WHEN … THEN … [ELSE …] END."""

    subject: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type. word: its words before any bracket, in upper case. parts: the contents of <…>; None without it.

    collation: the name after COLLATE.
    """

    word: str
    parameters: tuple[str, ...]
    parts: tuple[TypePart, ...] | None
    span: Span
    collation: Name | None = None


@dataclass(frozen=True, slots=True)
class TypePart:
    """A part of a nested type: a type, with the field's name in a STRUCT. required: it is NOT NULL."""

    name: Name | None
    type: TypeName
    required: bool
    span: Span
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class FieldOf:
    """value.field, where the value is more than a name."""

    value: Expression
    field: Name
    span: Span


@dataclass(frozen=True, slots=True)
class UpdatedField:
    """A STRUCT with another value of the field at a path of names, or without it (None). No text is one: DataFrames and EXCEPT have it.

    in_null: a STRUCT that is NULL becomes one whose fields are NULL.
    """

    struct: Expression
    path: tuple[str, ...]
    value: Expression | None
    span: Span
    in_null: bool = False


@dataclass(frozen=True, slots=True)
class PathOf:
    """value:path, a part of a VARIANT. path: as variant_get takes it. field: the last name in it, None if there are only indexes."""

    value: Expression
    path: str
    field: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Subscript:
    """value[index]."""

    value: Expression
    index: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class CastCall:
    """CAST, TRY_CAST (lenient) or ::."""

    operand: Expression
    type: TypeName
    lenient: bool
    span: Span


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """A term of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """name([DISTINCT] argument, …) [WITHIN GROUP (ORDER BY term, …)] [FILTER (WHERE condition)].

    name: in lower case. keywords: the call has words between its arguments, which are in the order of the function's parameters.
    within: the terms of WITHIN GROUP. function: the definition of a user's aggregate. now_us: the time of the statement, for
    a function of it.
    """

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool
    condition: Expression | None
    keywords: bool
    span: Span
    within: tuple[OrderTerm, ...] = ()
    function: object = None
    now_us: int | None = None


@dataclass(frozen=True, slots=True)
class BoundText:
    """A bound of a frame. kind: UNBOUNDED, ROW (the current row) or VALUE. value: its distance from the current row."""

    kind: str
    following: bool
    value: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class FrameText:
    """ROWS or RANGE BETWEEN start AND end; one bound alone is the start, up to the current row."""

    unit: str
    start: BoundText
    end: BoundText
    span: Span


@dataclass(frozen=True, slots=True)
class WindowText:
    """The window after OVER: a name, or what it consists of."""

    name: Name | None
    partition: tuple[Expression, ...]
    order: tuple[OrderTerm, ...]
    frame: FrameText | None
    span: Span


@dataclass(frozen=True, slots=True)
class OverCall:
    """call [IGNORE NULLS] OVER window."""

    call: FunctionCall
    ignore_nulls: bool
    window: WindowText
    span: Span


@dataclass(frozen=True, slots=True)
class LambdaText:
    """parameter -> body, or (parameter, …) -> body: an argument of a higher-order function."""

    parameters: tuple[Name, ...]
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class DefinedCall:
    """A call of a user-defined function. function: its definition. body: of a SQL function, its expression, with its own calls resolved."""

    name: str
    function: object
    body: Expression | None
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ExtractCall:
    """EXTRACT(field FROM source)."""

    field: Name
    source: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class RowValue:
    """(expression, expression, …)."""

    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ScalarQuery:
    """A query in parentheses as a value."""

    query: Query
    span: Span


Expression = (
    ColumnName
    | Star
    | ParameterValue
    | NumberText
    | StringText
    | KeywordExpression
    | TypedText
    | IntervalText
    | NamedArgument
    | NamedValue
    | FieldOf
    | UpdatedField
    | PathOf
    | Subscript
    | Operation
    | Prefix
    | Parenthesised
    | IsTest
    | DistinctTest
    | BetweenTest
    | InList
    | InQuery
    | QuantifiedTest
    | LikeTest
    | ExistsTest
    | SearchedCase
    | CastCall
    | FunctionCall
    | OverCall
    | LambdaText
    | DefinedCall
    | ExtractCall
    | RowValue
    | ScalarQuery
)


def unnest(node: Expression) -> Expression:
    """The expression without surrounding parentheses."""
    while isinstance(node, Parenthesised):
        node = node.inner
    return node
