"""Function calls, by name and in SQL's forms with keywords (EXTRACT, TRIM, SUBSTRING)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from deltic.errors import Span, UnknownName, Unsupported
from deltic.expr import Expr, Literal, known_functions, resolve
from deltic.expr.functions.signature import check_count
from deltic.frontends.sql.bind_time import CLOCK, EXPECTED, REMEDY, now
from deltic.frontends.sql.scope import did_you_mean
from deltic.schema import STRING

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

_CLOCK: Final = "in WHERE, compare with now(); or keep the time in a table of one row and join it"
_RANDOM: Final = "compute it outside, and give it as a column"
REFUSED: Final = {
    **dict.fromkeys(("current_date", "curdate", "localtimestamp", "unix_timestamp"), _CLOCK),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle", "randstr", "uniform"), _RANDOM),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id", "input_file_name"), _RANDOM),
}
"""Functions whose value changes while no row does."""

COLLECTIONS: Final = ("array", "map", "struct", "named_struct", "split", "sequence", "map_from_arrays", "from_json")
TABLE_FUNCTIONS: Final = ("explode", "explode_outer", "posexplode", "posexplode_outer", "generate_series", "repeat_row", "range")
OTHER_TABLE_FUNCTIONS: Final = ("inline", "inline_outer", "stack", "json_tuple")


def function_name(node: exp.Anonymous) -> str:
    """The name as written, in lower case."""
    return (node.this if isinstance(node.this, str) else node.this.name).lower()


def bind_call(binder: ExpressionBinder, node: exp.Anonymous, span: Span) -> Expr:
    """A call of a scalar function."""
    name = function_name(node)
    if name in CLOCK:
        check_count(name, node.expressions, 0, 0, span)
        return bind_now(binder, span)
    if name in REFUSED and not (name == "unix_timestamp" and node.expressions):
        raise Unsupported(f"{name}() changes while no row does", span=span, remedy=REFUSED[name])
    if name in TABLE_FUNCTIONS:
        place = "a select list, where it stands alone, LATERAL VIEW, or FROM"
        raise Unsupported(f"{name}() makes rows, which is not possible here", span=span, expected=place)
    if name in OTHER_TABLE_FUNCTIONS:
        raise Unsupported(f"{name}() is not supported", span=span, remedy="give the rows as a table of their own")
    if name in COLLECTIONS:
        remedy = "a column for each part; explode(array(…)), explode(sequence(…)) and explode(split(…)) make rows of arrays"
        raise Unsupported(f"{name}() makes an array, a map or a struct, which is not supported here", span=span, remedy=remedy)
    arguments = [binder.bind(argument) for argument in _scalars(node, binder)]
    if name not in known_functions():
        # Names that expr has for operators are no functions of SQL.
        raise UnknownName(f"there is no function {name}", span=span, remedy=did_you_mean(name, known_functions()))
    return resolve(name, arguments, span)


def bind_now(binder: ExpressionBinder, span: Span) -> Expr:
    """The time, in a WHERE, whose conditions on it become a temporal filter."""
    if binder.clause != "WHERE":
        raise Unsupported("now() is not supported here", span=span, expected=EXPECTED, remedy=REMEDY)
    return now(span)


def _scalars(node: exp.Anonymous, binder: ExpressionBinder) -> list[exp.Expr]:
    for argument in node.expressions:
        if isinstance(argument, exp.Distinct):
            raise Unsupported("DISTINCT belongs to COUNT, SUM, AVG, MIN or MAX", span=binder.places.of(argument), remedy="leave it out")
        if isinstance(argument, exp.Alias | exp.Star):
            raise Unsupported("this is no argument of a function", span=binder.places.of(argument), remedy="name the columns")
    return list(node.expressions)


def bind_extract(binder: ExpressionBinder, node: exp.Extract, span: Span) -> Expr:
    """EXTRACT(field FROM moment)."""
    if not isinstance(node.this, exp.Var):
        raise Unsupported("this is no field of EXTRACT", span=span, expected="EXTRACT(YEAR FROM d)")
    field = Literal(node.this.name, STRING, binder.places.of(node.this))
    return resolve("extract", [field, binder.bind(node.expression)], span)


def bind_trim(binder: ExpressionBinder, node: exp.Trim, span: Span) -> Expr:
    """TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)."""
    name = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[str(node.args.get("position") or "").upper()]
    characters = node.args.get("expression")
    text = binder.bind(node.this)
    return resolve(name, [text] if characters is None else [binder.bind(characters), text], span)


def bind_substring(binder: ExpressionBinder, node: exp.Substring, span: Span) -> Expr:
    """SUBSTRING(text FROM start FOR length), and with commas."""
    parts = (node.this, node.args.get("start"), node.args.get("length"))
    return resolve("substring", [binder.bind(part) for part in parts if part is not None], span)
