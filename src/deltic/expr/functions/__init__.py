"""The registry: SQL names and aliases to Calls of canonical functions, their arguments cast to what these take.

Canonical names are what both evaluators implement. They are reached here by the SQL function's name, by an operator's symbol
(`resolve("+", …)`; unary minus is `negate`, unary plus `positive`), or by a word for what SQL writes otherwise: in, between, like,
is_null, is_not_null, is_true, is_not_true, is_false, is_not_false, extract(field, source), plus_months (an interval of months,
where `add_months` is Spark's function, which gives a DATE).

Where Deltic leaves Spark 4.2, on purpose: dates and timestamps outside the years 1 to 9999 are errors, and text of such a year is
malformed; text that depends on the present day ('now', 'today', a time alone) and Java's short zone names (PST) are malformed;
DIV of decimals that leaves BIGINT is an overflow, where Spark wraps around; EXP, POWER and logarithms may differ in the last
place; a LIKE constant with a bad escape is refused at definition.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from deltic.errors import Span, UnknownName
from deltic.expr.functions import arithmetic, dates, logic, text
from deltic.expr.functions.dates import add_interval
from deltic.expr.functions.signature import Builder, check_count
from deltic.expr.nodes import Expr
from deltic.expr.typing import cast
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, Type, decimal

__all__ = ["add_interval", "known_functions", "resolve"]

_CANONICAL: Final[Mapping[str, Builder]] = {**arithmetic.BUILDERS, **logic.BUILDERS, **text.BUILDERS, **dates.BUILDERS}

_OPERATORS: Final = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder", "div": "integral_divide",
    "=": "equal", "==": "equal", "<>": "not_equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal", "<=>": "same", "||": "concat", "&": "bit_and", "|": "bit_or", "^": "bit_xor", "~": "bit_not",
    "!": "not",
}  # fmt: skip

_ALIASES: Final = {
    "ceiling": "ceil", "signum": "sign", "pow": "power", "mod": "remainder", "negative": "negate", "ifnull": "nvl",
    "char_length": "length", "character_length": "length", "len": "length", "substr": "substring", "ucase": "upper", "lcase": "lower",
    "position": "locate", "charindex": "locate", "dayofmonth": "day", "date_diff": "datediff", "dateadd": "date_add",
    "date_part": "extract", "datepart": "extract", "isnull": "is_null", "isnotnull": "is_not_null", "equal_null": "same",
}  # fmt: skip

_CASTS: Final[Mapping[str, Type]] = {
    "boolean": BOOLEAN, "tinyint": TINYINT, "smallint": SMALLINT, "int": INT, "bigint": BIGINT, "float": FLOAT, "double": DOUBLE,
    "decimal": decimal(10, 0), "string": STRING, "date": DATE, "timestamp": TIMESTAMP,
}  # fmt: skip

# Words that SQL writes as operators or that only lowering uses; they are not offered as functions.
_INNER: Final = frozenset((
    "add", "subtract", "multiply", "divide", "integral_divide", "remainder", "negate", "bit_and", "bit_or", "bit_xor", "bit_not",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same", "and", "or", "not", "in", "between", "like",
    "is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false", "normalize", "second_fraction", "yearofweek",
    "add_days", "plus_months", "add_microseconds",
))  # fmt: skip


def _cast_function(type: Type) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 1, span)
        return cast(arguments[0], type, span)

    return build


_REGISTRY: Final[Mapping[str, Builder]] = {
    **_CANONICAL,
    **{name: _CANONICAL[canonical] for name, canonical in (_OPERATORS | _ALIASES).items()},
    **{name: _cast_function(type) for name, type in _CASTS.items()},
}


def known_functions() -> tuple[str, ...]:
    """The names of the SQL functions, sorted."""
    return tuple(sorted((_CANONICAL.keys() | _ALIASES.keys() | _CASTS.keys()) - _INNER))


def resolve(name: str, arguments: Sequence[Expr], span: Span | None = None) -> Expr:
    """The expression that SQL's `name(arguments)` means; the name is found without regard to case.

    Raises UnknownName with the nearest names, or TypeMismatch naming the function, the argument, what was found and expected.
    """
    builder = _REGISTRY.get(name.lower())
    if builder is None:
        near = difflib.get_close_matches(name.lower(), known_functions(), 3)
        remedy = f"did you mean {' or '.join(near)}?" if near else "`deltic.expr.known_functions()` lists what there is"
        raise UnknownName(f"there is no function {name}", span=span, remedy=remedy)
    return builder(name, tuple(arguments), span)
