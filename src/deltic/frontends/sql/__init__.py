"""Spark's SQL into plans: scripts of CREATE TABLE, CREATE VIEW, CREATE SINK, DECLARE and DROP, and single queries.

sqlglot parses, nothing of its optimizer is used. What is not understood whole is refused with its place (`refuse`), so no syntax is
passed by in silence. Plans are plain: a Project for a select list, a Filter for a condition, joins in the order written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from deltic.errors import SyntaxFailure
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.bind_recursive import no_base
from deltic.frontends.sql.ddl import bind_declaration, bind_statement, bind_view, is_view
from deltic.frontends.sql.delays import FORM as DELAY_FORM
from deltic.frontends.sql.delays import delay_us
from deltic.frontends.sql.environment import Catalog, Environment
from deltic.frontends.sql.form import Form, check_form
from deltic.frontends.sql.parse import Parsed, parse
from deltic.frontends.sql.precedence import check_precedence
from deltic.frontends.sql.refuse import refuse_unknown
from deltic.frontends.sql.scope import did_you_mean
from deltic.frontends.sql.spans import Places
from deltic.frontends.sql.statements import (
    CreateSink,
    CreateTable,
    CreateView,
    DeclareView,
    DropSink,
    DropTable,
    DropView,
    FileSink,
    FileSource,
    Statement,
    Timed,
)
from deltic.plan.nodes import Plan
from deltic.plan.signs import as_view

__all__ = [
    "DELAY_FORM",
    "Catalog",
    "CreateSink",
    "CreateTable",
    "CreateView",
    "DeclareView",
    "DropSink",
    "DropTable",
    "DropView",
    "FileSink",
    "FileSource",
    "Form",
    "Statement",
    "Timed",
    "bind_query",
    "delay_us",
    "did_you_mean",
    "no_base",
    "parse_script",
]


def parse_script(text: str, name: str, catalog: Catalog) -> Iterator[Statement]:
    """The statements of a script, each bound when it is asked for, so that the caller can put it into the catalog first.

    name: what messages call the script. All statements are parsed, and refused for what they have that Deltic has not, before the
    first is given. Raises QueryError's kinds with the place.
    """
    parsed = [_checked(statement) for statement in parse(text, name)]
    return (_statement(one, catalog) for one in parsed)


def bind_query(text: str, name: str, catalog: Catalog, form: Form | None = None) -> Plan:
    """The plan of one query; of CREATE VIEW, the plan of its query under the view's column names. form: what else it may not be."""
    parsed = parse(text, name)
    tree = parsed[0].tree if len(parsed) == 1 else None
    if not isinstance(tree, exp.Query | exp.Values | exp.Create) or (isinstance(tree, exp.Create) and not is_view(tree)):
        span = parsed[-1].places.statement if parsed else None
        raise SyntaxFailure("this is not one query", span=span, expected="SELECT …")
    one = _checked(parsed[0])
    if form is not None:
        check_form(tree, one.places, form)
    env = Environment(one.places, catalog, levels=one.levels)
    with _shallow(one.places):
        return bind_view(tree, env) if isinstance(tree, exp.Create) else as_view(bind_tree(tree, env))


def _statement(parsed: Parsed, catalog: Catalog) -> Statement:
    if isinstance(parsed.tree, CreateSink | DropSink):
        return parsed.tree
    with _shallow(parsed.places):
        env = Environment(parsed.places, catalog, levels=parsed.levels)
        return bind_declaration(parsed.tree, env) if parsed.declares else bind_statement(parsed.tree, parsed.source, parsed.timed, env)


def _checked(statement: Parsed) -> Parsed:
    if isinstance(statement.tree, CreateSink | DropSink):
        return statement
    with _shallow(statement.places):
        refuse_unknown(statement.tree, statement.places)
        check_precedence(statement.tree, statement.places)
    return statement


@contextmanager
def _shallow(places: Places) -> Iterator[None]:
    """Turns Python's recursion limit into an error of the statement."""
    try:
        yield
    except RecursionError as error:
        remedy = "IN (…) for many alternatives, views for many steps"
        raise SyntaxFailure("the statement is nested too deeply", span=places.statement, remedy=remedy) from error
