"""The statements that front ends pass to a catalog: definitions of tables, views and sinks, bound to plans and schemas, and drops.

A catalog has no text: a view has a function that binds it again when a relation that it reads is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from deltic.errors import Span
from deltic.expr.nodes import Expr, Literal, UserFunction
from deltic.options import Options
from deltic.plan.nodes import Plan
from deltic.schema import Field, Schema, TableSchema, Type


@dataclass(frozen=True, slots=True)
class SqlScalar:
    """A function in SQL. body: its expression, in the front end's form. calls: the functions that it calls itself, in lower case."""

    name: str
    body: object = field(repr=False)
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table function in SQL. body: its query, in the front end's form. calls: as of SqlScalar."""

    name: str
    body: object = field(repr=False)
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PythonScalar:
    """A function in Python of the values of a row, or of Arrow arrays. type: of what it returns. least, most: how many arguments it takes;
    None is any number. parameters: their names."""

    name: str
    function: UserFunction
    type: Type
    least: int
    most: int | None
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonAggregate:
    """An aggregate in Python: a function of Arrow arrays, one for each argument, with the rows of a group. type: of its value."""

    name: str
    function: UserFunction
    type: Type
    least: int
    most: int | None
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonTable:
    """A table function in Python. function: returns the rows for the values of one call, of schema `returned`. terminates: it returns rows
    after the last call, which is defined for one call alone."""

    name: str
    function: UserFunction
    returned: Schema
    least: int
    most: int | None
    terminates: bool
    parameters: tuple[str, ...] = ()


DefinedFunction: TypeAlias = SqlScalar | SqlTable | PythonScalar | PythonAggregate | PythonTable


class Relations(Protocol):
    """Tables and views by name. Names are case-insensitive."""

    def relation(self, name: str) -> TableSchema | Plan | None:
        """A table's schema, a view's plan, a Reference for a view that is declared recursive, or None for an unknown name."""

    def names(self) -> Iterable[str]:
        """The names of all tables and views, for suggestions."""


class Defining(Protocol):
    """What a circuit can be over: a program or a session."""

    @property
    def _relations(self) -> Relations:
        """Its tables and views now."""


class Namespace(Relations, Protocol):
    """The tables, views and functions that a query can name."""

    def functions(self) -> Mapping[str, DefinedFunction]:
        """The functions of users, by their names in lower case."""


@dataclass(frozen=True, slots=True)
class SessionVariable:
    """A variable of a session. value, default: constants of its type."""

    name: str
    value: Expr
    default: Expr


@runtime_checkable
class WithVariables(Protocol):
    """A namespace that has variables."""

    def variables(self) -> Mapping[str, SessionVariable]:
        """The variables, by their names in lower case."""


@dataclass(frozen=True, slots=True)
class BoundView:
    """A view's query over a namespace. depends_on: the relations that it reads, sorted. calls: the users' functions that it calls, directly
    or not, in lower case."""

    plan: Plan
    depends_on: tuple[str, ...]
    calls: tuple[str, ...] = ()


Rebind: TypeAlias = Callable[[Namespace], BoundView]
"""Binds a query again over another namespace, whose functions may read other relations. Raises QueryError if it is no longer valid."""


ShownChanges: TypeAlias = Callable[[list[dict[str, Any]], int], list[str]]
"""(rows with `_weight`, epoch) → lines."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A table's watermark: the greatest value of `column` less `delay_us`. span: the place of the column's name."""

    column: str
    delay_us: int
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ColumnDefault:
    """The DEFAULT of a column. body: its expression, in the front end's form, which each statement evaluates. text: in SQL, to be shown."""

    body: object = field(repr=False)
    text: str


@runtime_checkable
class WithDefaults(Protocol):
    """A namespace whose tables have columns with a DEFAULT."""

    def defaults(self, table: str) -> Mapping[str, ColumnDefault]:
        """Those of a table, by column in lower case."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE [IF NOT EXISTS].

    source: USING and OPTIONS, not validated yet; None for a table without a source. timed: the watermark.
    defaults: by column in lower case. places: of columns, by name in lower case; the others are at `span`.
    """

    table: TableSchema
    if_not_exists: bool
    span: Span
    source: Options | None = None
    timed: Timed | None = None
    defaults: Mapping[str, ColumnDefault] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW [IF NOT EXISTS].

    materialized: False for a plain or temporary view, which only names its query.
    rebind: binds its query again over another namespace. span: its name. depends_on: the relations that it reads, sorted. calls: the
    users' functions that it calls, directly or not, in lower case. printed: if the session prints its changes after each tick, their lines.
    """

    name: str
    plan: Plan
    materialized: bool
    or_replace: bool
    if_not_exists: bool
    rebind: Rebind
    span: Span
    depends_on: tuple[str, ...]
    calls: tuple[str, ...] = ()
    printed: ShownChanges | None = None


@dataclass(frozen=True, slots=True)
class DeclareView:
    """DECLARE RECURSIVE VIEW: the columns of a view whose query follows. limit: the most iterations. span: its name."""

    name: str
    schema: Schema
    limit: int
    span: Span


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP [MATERIALIZED] VIEW [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DropStream:
    """DROP STREAM [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK [IF NOT EXISTS] name FROM view. sink: USING and OPTIONS, not validated yet. span, view_span: places of the names."""

    name: str
    view: str
    sink: Options
    if_not_exists: bool
    span: Span
    view_span: Span


@dataclass(frozen=True, slots=True)
class DropSink:
    """DROP SINK [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS], and functions that Python registers."""

    function: DefinedFunction
    or_replace: bool
    if_not_exists: bool
    span: Span | None

    @property
    def name(self) -> str:
        return self.function.name


@dataclass(frozen=True, slots=True)
class DropFunction:
    """DROP FUNCTION [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SetVariables:
    """DECLARE VARIABLE and SET VAR: variables with their new values."""

    variables: tuple[SessionVariable, ...]
    span: Span

    @property
    def name(self) -> str:
        return self.variables[0].name


@dataclass(frozen=True, slots=True)
class DropVariable:
    """DROP VARIABLE [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Replan:
    """ALTER MATERIALIZED VIEW name REPLAN: orders its joins by the sizes that tables have now. It changes no definition."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column that a table gets, its value in the rows that the table has, and its DEFAULT in later ones."""

    field: Field
    value: Literal
    span: Span
    default: ColumnDefault | None = None


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE: columns that are added, those that are dropped, or one that is renamed. span: the place of the table's name.

    dropped: names with their places. renamed: (old name, its place, new name, its place). if_exists: columns to drop may be absent.
    """

    name: str
    added: tuple[NewColumn, ...]
    dropped: tuple[tuple[str, Span], ...]
    renamed: tuple[str, Span, str, Span] | None
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class AlterDefaults:
    """ALTER TABLE … ALTER COLUMN … SET DEFAULT or DROP DEFAULT: names of columns, their places, and what they have then.

    span: the place of the table's name.
    """

    name: str
    columns: tuple[tuple[str, Span, ColumnDefault | None], ...]
    span: Span


Statement = (
    CreateTable
    | CreateView
    | DeclareView
    | CreateSink
    | CreateFunction
    | DropView
    | DropTable
    | DropStream
    | DropSink
    | DropFunction
    | AlterTable
    | AlterDefaults
    | Replan
    | SetVariables
    | DropVariable
)
