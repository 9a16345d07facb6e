"""Schemas in constant text, as the functions of JSON and CSV take them: 'a INT, b STRING', or a type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from deltic.errors import QueryError, TypeMismatch
from deltic.expr import Expr, Literal
from deltic.expr.functions.signature import constant
from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import tokenize
from deltic.frontends.sql.parse_type import TypeParser
from deltic.frontends.sql.sql_types import sql_type
from deltic.schema import STRING, Type

WITH_SCHEMA: Final[Mapping[str, int]] = MappingProxyType({"from_json": 1, "from_csv": 1, "variant_get": 2, "try_variant_get": 2})
"""Functions with a schema, and the place of it among their arguments."""


def schema_literal(name: str, argument: Expr) -> Expr:
    """The argument; a constant one as Type.sql writes its type. Raises TypeMismatch with what is wrong with the text."""
    literal = constant(argument)
    if literal is None or not isinstance(literal.value, str):
        return argument
    try:
        return Literal(_parsed(literal.value).sql, STRING, argument.span)
    except QueryError as error:
        message = f"the schema of {name} is invalid: {error.message}"
        raise TypeMismatch(message, span=argument.span, expected="the columns, such as 'a INT, b STRING', or a type") from None


def _parsed(text: str) -> Type:
    try:
        return sql_type(_optional(_node(f"STRUCT<{text}>")))
    except QueryError as error:
        try:
            return sql_type(_optional(_node(text)))
        except QueryError as other:
            raise (error if " " in text.strip() else other) from None


def type_in(text: str) -> Type:
    """The type that SQL calls so, in any of its spellings. Raises QueryError.

    >>> type_in("map<string,array<long>>").sql
    'MAP<STRING, ARRAY<BIGINT>>'
    """
    return sql_type(_node(text))


def _node(text: str) -> tree.TypeName:
    tokens = tokenize(text, "schema")
    if not tokens:
        raise QueryError("the name of a type is empty")
    parser = TypeParser(text, "schema", tokens)
    node = parser.type_name()
    if not parser.ended:
        raise parser.failure("the end of the schema")
    return node


def _optional(node: tree.TypeName) -> tree.TypeName:
    """Without NOT NULL: what is read can always be NULL, as in Spark."""
    if node.parts is None:
        return node
    return replace(node, parts=tuple(replace(part, required=False, type=_optional(part.type)) for part in node.parts))
