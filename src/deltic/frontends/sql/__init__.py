"""Binds Spark's SQL to plans: scripts of CREATE TABLE, CREATE VIEW, CREATE SINK, DECLARE and DROP, and single queries.

The parser follows Spark's grammar rule by rule (parse_statement, parse_query, parse_expression) and builds a tree in which every node has
its place. A statement is parsed completely or refused; `refusals` lists the unsupported syntax.

Plans are not optimized: a Project for a select list, a Filter for a condition, joins in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from deltic.errors import QueryError, Span, SyntaxFailure
from deltic.frontends.sql import tree
from deltic.frontends.sql.arguments import Arguments
from deltic.frontends.sql.bind_answer import BoundAnswer
from deltic.frontends.sql.bind_answer import bind_answer as bind_ordered
from deltic.frontends.sql.bind_change import BoundChange
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.bind_recursive import no_base
from deltic.frontends.sql.change_statement import ChangeStatement
from deltic.frontends.sql.ddl import bind_statement, bind_view
from deltic.frontends.sql.delays import FORM as DELAY_FORM
from deltic.frontends.sql.delays import delay_us
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.form import Form, check_form
from deltic.frontends.sql.nesting import shallow
from deltic.frontends.sql.parse_statement import Parsed, QueryStatement, TableStatement, parse
from deltic.frontends.sql.parse_statement import is_complete as is_complete_text
from deltic.frontends.sql.parse_statement import parse as parse_statements
from deltic.frontends.sql.parse_statement import texts as statement_texts
from deltic.frontends.sql.statement_time import with_time
from deltic.frontends.sql.user_functions import marked
from deltic.frontends.sql.variables import variables_of, with_variables
from deltic.frontends.statements import (
    CreateFunction,
    CreateSink,
    CreateTable,
    CreateView,
    DeclareView,
    DropFunction,
    DropSink,
    DropTable,
    DropView,
    Namespace,
    Statement,
    Timed,
)
from deltic.plan.nodes import Plan
from deltic.plan.signs import as_view
from deltic.purity import shown

__all__ = [
    "DELAY_FORM",
    "Args",
    "BoundAnswer",
    "BoundChange",
    "ChangeStatement",
    "CreateFunction",
    "CreateSink",
    "CreateTable",
    "CreateView",
    "DeclareView",
    "DropFunction",
    "DropSink",
    "DropTable",
    "DropView",
    "Form",
    "Namespace",
    "Statement",
    "Timed",
    "bind_answer",
    "bind_query",
    "changes_rows",
    "delay_us",
    "is_complete_text",
    "no_base",
    "parse_script",
    "parse_sql",
    "parse_statements",
    "statement_texts",
]


Args: TypeAlias = Mapping[str, Any] | Sequence[Any] | None
"""The values of parameters: of `:name` by name, of `?` in order."""


_CHANGES: Final = (tree.InsertRows, tree.UpdateRows, tree.DeleteRows, tree.MergeRows, tree.TransactionMark)


def parse_script(text: str, name: str, catalog: Namespace, args: Args = None) -> Iterator[Statement]:
    """The statements of a script. Each is bound when it is requested, after the caller has added the previous ones to the catalog.

    name: the script's name in messages. args: the values of its parameters, by name or in order. All statements are parsed, and
    unsupported ones refused, before the first is yielded. Raises subclasses of QueryError, with the place.
    """
    if not isinstance(text, str):
        raise QueryError(f"invalid script {shown(text)}", expected="SQL as a string")
    parsed = parse(text, name, Arguments.of(args))
    return (_statement(one, catalog) for one in parsed)


def parse_sql(
    text: str, name: str, catalog: Namespace, now_us: int, args: Args = None
) -> Iterator[Statement | ChangeStatement | tree.TransactionMark]:
    """As `parse_script`, with statements that change rows, which come after the definitions. Each is bound once to check it.

    now_us: the time of the values of variables and of new columns, in microseconds since 1970 UTC.
    """
    if not isinstance(text, str):
        raise QueryError(f"invalid script {shown(text)}", expected="SQL as a string")
    parsed = parse(text, name, Arguments.of(args))
    return (_change(one, catalog, now_us) if isinstance(one, _CHANGES) else _statement(one, catalog, now_us) for one in parsed)


def _change(parsed: tree.RowChange | tree.TransactionMark, catalog: Namespace, now_us: int) -> ChangeStatement | tree.TransactionMark:
    if isinstance(parsed, tree.TransactionMark):
        return parsed
    with shallow(parsed.span):
        change = ChangeStatement(with_variables(parsed, variables_of(catalog)))
    change.bind(catalog, now_us)
    return change


def changes_rows(text: str) -> bool:
    """Whether the text is a statement that changes rows, such as WITH … INSERT; False where it has a syntax error."""
    try:
        return any(isinstance(one, _CHANGES) for one in parse(text, "<text>"))
    except QueryError:
        return False


def bind_query(text: str, name: str, catalog: Namespace, form: Form | None = None, *, final: bool = True) -> Plan:
    """The plan of one query, or of the query of CREATE VIEW under the view's column names. form: restricts the clauses.

    final: whether the plan is a view's, which refuses negative weights; otherwise it is part of a larger plan.
    """
    parsed = parse(text, name)
    one = parsed[0] if len(parsed) == 1 else None
    if not isinstance(one, QueryStatement | tree.NamedQuery):
        span = _place(parsed[-1]) if parsed else None
        raise SyntaxFailure("expected one query", span=span, expected="SELECT …")
    if form is not None:
        check_form(one.query, form)
    env = Environment(catalog)
    with shallow(one.span):
        called, _ = marked(one, catalog) if isinstance(one, tree.NamedQuery) else marked(one.query, catalog)
        if isinstance(called, tree.NamedQuery):
            return bind_view(called, env)
        plan = bind_tree(called, env)
        return as_view(plan) if final else plan


def bind_answer(text: str, name: str, catalog: Namespace, now_us: int, args: Args = None) -> BoundAnswer:
    """The plan of one query that is answered once, with its order. Raises subclasses of QueryError.

    now_us: the time of the query, in microseconds since 1970 UTC.
    """
    if not isinstance(text, str):
        raise QueryError(f"invalid query {shown(text)}", expected="SQL as a string")
    parsed = parse(text, name, Arguments.of(args))
    one = parsed[0] if len(parsed) == 1 else None
    if not isinstance(one, QueryStatement):
        span = _place(parsed[-1]) if parsed else None
        raise SyntaxFailure("expected one query", span=span, expected="SELECT …")
    with shallow(one.span):
        called, _ = marked(with_time(with_variables(one.query, variables_of(catalog)), now_us), catalog)
        return replace(bind_ordered(called, Environment(catalog)), explained=one.explained)


def _statement(parsed: Parsed, catalog: Namespace, now_us: int | None = None) -> Statement:
    with shallow(_place(parsed)):
        if isinstance(parsed, tree.VariableDeclaration | tree.VariableAssignments | tree.TableAlteration):
            parsed = with_time(parsed, now_us)
        return bind_statement(with_variables(parsed, variables_of(catalog)), Environment(catalog))


def _place(parsed: Parsed) -> Span:
    if isinstance(parsed, TableStatement | tree.ViewDeclaration):
        return parsed.table.name.span
    return parsed.span
