"""CREATE SINK and DROP SINK, which are Deltic's own: read from the tokens."""

from __future__ import annotations

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql.clauses import parse_clauses
from deltic.frontends.sql.cursor import Cursor
from deltic.frontends.sql.options import sink_of
from deltic.frontends.sql.spans import Places
from deltic.frontends.sql.statements import CreateSink, DropSink


def parse_sink(places: Places) -> CreateSink | DropSink | None:
    """The statement, if it is CREATE SINK or DROP SINK."""
    cursor = Cursor(places, 0)
    if cursor.passes("CREATE", "SINK"):
        return _create(cursor)
    if cursor.passes("DROP", "SINK"):
        return _drop(cursor)
    if cursor.passes("CREATE", "OR", "REPLACE", "SINK"):
        raise Unsupported("CREATE OR REPLACE SINK is not supported", span=places.statement, remedy="DROP SINK, then CREATE SINK")
    return None


def _create(cursor: Cursor) -> CreateSink:
    if_not_exists = cursor.passes("IF", "NOT", "EXISTS")
    name, span = cursor.name("a sink")
    if cursor.word == "AS":
        remedy = "CREATE MATERIALIZED VIEW v AS the query, then CREATE SINK name FROM v"
        raise Unsupported("CREATE SINK … AS is not supported", span=cursor.span, remedy=remedy)
    cursor.expect("FROM")
    if cursor.word == "(":
        remedy = "CREATE MATERIALIZED VIEW v AS the query, then FROM v"
        raise Unsupported("a sink reads a view, not a query", span=cursor.span, remedy=remedy)
    view, view_span = cursor.name("a view")
    return CreateSink(name, view, sink_of(parse_clauses(cursor)), if_not_exists, span, view_span)


def _drop(cursor: Cursor) -> DropSink:
    if_exists = cursor.passes("IF", "EXISTS")
    name, span = cursor.name("a sink")
    if cursor.word == ",":
        raise Unsupported("DROP of several at once is not supported", span=cursor.span, remedy="one statement for each")
    if cursor.token is not None:
        raise SyntaxFailure(f"syntax error at {cursor.token.text!r}", span=cursor.span, expected="the end of the statement")
    return DropSink(name, if_exists, span)
