"""Binds function calls and EXTRACT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltic.aggregates import known_aggregates
from deltic.errors import QueryError, Span, UnknownName, Unsupported, most_like, unknown_function
from deltic.expr import Expr, Literal, known_functions, resolve
from deltic.expr.functions.signature import check_count
from deltic.expr.registry import lambda_rule
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_lambda import bind_arguments
from deltic.frontends.sql.bind_schema import WITH_SCHEMA, schema_literal
from deltic.frontends.sql.bind_time import CLOCK, TODAY, current_date, not_here, now
from deltic.frontends.sql.bind_window import WINDOW_FUNCTIONS
from deltic.frontends.sql.naming import field_name
from deltic.frontends.sql.refusals import FUNCTIONS, flink
from deltic.frontends.sql.statement_time import time_literal
from deltic.schema import STRING

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

_CLOCK: Final = "in WHERE, compare with now(); or store the time in a table of one row and join it"
_RANDOM: Final = "compute it in the application, and insert it as a column"
REFUSED: Final = {
    **dict.fromkeys(("current_time", "localtimestamp", "unix_timestamp"), _CLOCK),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle", "randstr", "uniform"), _RANDOM),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id", "input_file_name"), _RANDOM),
}
"""Nondeterministic functions, with remedies."""

UNSUPPORTED_CALLS: Final = {
    **{
        name: (
            f"{name}() makes an interval of months, days and time, which is not supported",
            "make_dt_interval(days, hours, minutes, seconds), or make_ym_interval(years, months)",
        )
        for name in ("make_interval", "try_make_interval")
    },
    "sentences": (
        "sentences() is not supported: its words follow the rules of Java's BreakIterator",
        "split(text, ' '), or a function in Python, by session.register",
    ),
}
"""Functions of Spark that are not supported: the message and the remedy."""
TABLE_FUNCTIONS: Final = (
    "explode",
    "explode_outer",
    "posexplode",
    "posexplode_outer",
    "inline",
    "inline_outer",
    "stack",
    "json_tuple",
    "variant_explode",
    "variant_explode_outer",
    "generate_series",
    "repeat_row",
    "range",
)

_WITH_FIELDS: Final = {"struct": ("named_struct", "col", 1), "arrays_zip": ("named_arrays_zip", "", 0)}
"""Functions that make fields of their arguments: the one that takes their names too, and what arguments without one are called."""

CLOCK_WORDS: Final = {
    **{word: (f"{word.lower()} changes with the time, without a change of a row", _CLOCK) for word in ("CURRENT_TIME", "LOCALTIMESTAMP")},
    **{word: (f"{word.lower()} depends on the user who reads it", "write the name") for word in ("CURRENT_USER", "SESSION_USER", "USER")},
}
"""Unsupported functions without parentheses: the message and the remedy."""


def callable_names() -> tuple[str, ...]:
    """The names of all functions, aggregates, window functions and table functions that are supported."""
    return (*known_functions(), *known_aggregates(), *WINDOW_FUNCTIONS, *TABLE_FUNCTIONS)


def bind_call(binder: ExpressionBinder, node: tree.FunctionCall) -> Expr:
    """A call of a scalar function."""
    name, span = node.name, node.span
    if node.condition is not None:
        raise _not_aggregate(node, "FILTER", span, "CASE WHEN … END")
    if node.now_us is not None:
        return time_literal(name, node.now_us, [binder.bind(argument) for argument in _scalars(node)], span)
    if name in CLOCK or name in TODAY:
        check_count(name, node.arguments, 0, 0, span)
        return bind_now(binder, name, span)
    if name in REFUSED and not (name == "unix_timestamp" and node.arguments):
        raise Unsupported(f"{name}() changes without a change of a row", span=span, remedy=REFUSED[name])
    if (refusal := UNSUPPORTED_CALLS.get(name) or flink(name)) is not None:
        raise Unsupported(refusal[0], span=span, remedy=refusal[1])
    if name in TABLE_FUNCTIONS:
        place = "a select list without other items, LATERAL VIEW, or FROM"
        raise Unsupported(f"{name}() is a table function, which is not allowed here", span=span, expected=place)
    rule = lambda_rule(name)
    if rule is not None:
        return resolve(name, bind_arguments(binder, name, _scalars(node), rule, span), span)
    if name in _WITH_FIELDS and node.arguments:
        return _with_fields(binder, node)
    arguments = [binder.bind(argument) for argument in _scalars(node)]
    if len(arguments) > (schema := WITH_SCHEMA.get(name, len(arguments))):
        arguments[schema] = schema_literal(name, arguments[schema])
    if name not in known_functions():
        # expr's names of operators are not SQL functions.
        remedy = FUNCTIONS.get(name.lower()) or unknown_function(name, callable_names())
        raise UnknownName(f"there is no function {name}", span=span, remedy=remedy)
    return resolve(name, arguments, span)


def _with_fields(binder: ExpressionBinder, node: tree.FunctionCall) -> Expr:
    """A call whose arguments are fields of STRUCTs, named as they are written: struct(value AS name, …), arrays_zip(array, …)."""
    function, otherwise, first = _WITH_FIELDS[node.name]
    fields: list[Expr] = []
    for i, argument in enumerate(_scalars(node), first):
        value = binder.bind(argument.value if isinstance(argument, tree.NamedValue) else argument)
        fields += (Literal(field_name(argument) or f"{otherwise}{i}", STRING, value.span), value)
    return resolve(function, fields, node.span, written=node.name)


def bind_now(binder: ExpressionBinder, name: str, span: Span) -> Expr:
    """now() or current_date(), allowed only in WHERE and in ON of an inner join, where conditions on it become a temporal filter."""
    if binder.clause != "WHERE" and not binder.timed:
        raise not_here("now()" if name in CLOCK else "current_date()", span, binder.clause)
    return now(span) if name in CLOCK else current_date(span)


def _not_aggregate(node: tree.FunctionCall, word: str, span: Span | None, remedy: str) -> QueryError:
    """The error for DISTINCT or FILTER in a call of what is no aggregate."""
    like = None if node.name in callable_names() else most_like(node.name, known_aggregates())
    if like is not None:
        return UnknownName(f"there is no function {node.name}", span=node.span, remedy=f"did you mean {like!r}?")
    return Unsupported(f"{word} belongs to COUNT, SUM, AVG, MIN or MAX", span=span, remedy=remedy)


def _scalars(node: tree.FunctionCall) -> tuple[tree.Expression, ...]:
    if node.distinct:
        raise _not_aggregate(node, "DISTINCT", node.arguments[0].span, "leave it out")
    for argument in node.arguments:
        if isinstance(argument, tree.Star):
            raise Unsupported("* is not an argument of a function", span=argument.span, remedy="name the columns")
    return node.arguments


def bind_extract(binder: ExpressionBinder, node: tree.ExtractCall) -> Expr:
    """EXTRACT(field FROM moment)."""
    field = Literal(node.field.text, STRING, node.field.span)
    return resolve("extract", [field, binder.bind(node.source)], node.span)
