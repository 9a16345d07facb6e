"""The name of a column that is a call of a function, as Spark derives it: the call with its default arguments, under Spark's name for it.

The names that depend on the types of the arguments, such as that of TO_CHAR, are those of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from deltic.frontends.sql import tree

Named = Callable[[tree.Expression], str]

_UPPER: Final = frozenset((
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "cot", "csc", "degrees", "e", "exp"),
    *("expm1", "floor", "hypot", "log", "log10", "log1p", "log2", "pi", "power", "radians", "regexp", "regexp_like", "rlike", "sec"),
    *("signum", "sin", "sinh", "sqrt", "tan", "tanh"),
))  # fmt: skip
_RENAMED: Final = {
    "array_agg": "collect_list",
    "curdate": "current_date",
    "dateadd": "date_add",
    "make_timestamp_ltz": "make_timestamp",
    "to_varchar": "to_char",
    "try_make_timestamp_ltz": "make_timestamp",
}
_DATES_AND_TIMES: Final = ("make_timestamp_ltz", "try_make_timestamp_ltz")
"""Functions of a date and a time under another name, and of seven parts under their own."""
_DEFAULTS: Final[dict[str, tuple[str | None, ...]]] = {
    "aes_decrypt": (None, None, "GCM", "DEFAULT", ""),
    "aggregate": (None, None, None, "lambdafunction(namedlambdavariable(), namedlambdavariable())"),
    "aes_encrypt": (None, None, "GCM", "DEFAULT", "", ""),
    "current_time": ("6",),
    "from_unixtime": (None, "yyyy-MM-dd HH:mm:ss"),
    "listagg": (None, "NULL"),
    "locate": (None, None, "1"),
    "lpad": (None, None, " "),
    "make_dt_interval": ("0", "0", "0", "0.000000"),
    "make_ym_interval": ("0", "0"),
    "mask": (None, "X", "x", "n", "NULL"),
    "months_between": (None, None, "true"),
    "overlay": (None, None, None, "-1"),
    "percentile": (None, None, "1"),
    "position": (None, None, "1"),
    "reduce": (None, None, None, "lambdafunction(namedlambdavariable(), namedlambdavariable())"),
    "regexp_extract": (None, None, "1"),
    "regexp_extract_all": (None, None, "1"),
    "regexp_instr": (None, None, "0"),
    "regexp_replace": (None, None, None, "1"),
    "rpad": (None, None, " "),
    "sort_array": (None, "true"),
    "split": (None, None, "-1"),
    "str_to_map": (None, ",", ":"),
    "string_agg": (None, "NULL"),
    "substr": (None, None, "2147483647"),
    "substring": (None, None, "2147483647"),
    "time_bucket": (None, None, "TIMESTAMP '1970-01-01 00:00:00'"),
    "to_unix_timestamp": (None, "yyyy-MM-dd HH:mm:ss"),
    "try_aes_decrypt": (None, None, "GCM", "DEFAULT", ""),
    "vector_norm": (None, "2.0"),
    "vector_normalize": (None, "2.0"),
    "unix_timestamp": (None, "yyyy-MM-dd HH:mm:ss"),
}
"""The arguments that a call may leave out; None for those that it has."""
_SHOWN: Final = {
    **dict.fromkeys(("any_value", "first", "first_value", "last", "last_value", "mode"), 1),
    **dict.fromkeys(("from_csv", "from_json", "to_csv", "to_json"), 1),
    **dict.fromkeys(("try_variant_get", "variant_get"), 2),
    "try_make_timestamp": 6,
}
"""How many arguments a name shows."""
_LISTING: Final = ("listagg", "string_agg")
_SIDES: Final = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
WORDED: Final = frozenset(("collate", "ltrim", "overlay", "position", "rlike", "rtrim", "substr", "substring", "trim"))
"""Calls with words between their arguments that have the name of a plain call."""
_CASTS: Final = frozenset((
    *("bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint", "string", "time", "timestamp", "tinyint"),
))  # fmt: skip
"""Types as functions: Spark's name of such a call is that of its argument."""


def call_name(node: tree.FunctionCall, named: Named) -> str:
    """The name without FILTER. named: the names of expressions."""
    arguments = [named(part) for part in node.arguments]
    special = None if node.distinct else _special(node.name, arguments)
    if special is not None:
        return special
    name = node.name
    if name in _LISTING and node.within:
        name = "listagg"
    if name == "mode" and (node.within or arguments[1:] == ["true"]):
        least = arguments[0] if arguments else _term(replace(node.within[0], descending=not node.within[0].descending), named, False)
        return f"mode() WITHIN GROUP (ORDER BY {least}{' DESC' * bool(arguments)})"
    if name == "collate":
        arguments = [arguments[0], arguments[1].rpartition(".")[2]]
    if name == "log" and len(arguments) == 1:
        arguments = ["E()", *arguments]
    if name == "convert_timezone" and len(arguments) == 2:
        arguments = ["current_timezone()", *arguments]
    if name == "unix_timestamp" and not arguments:
        arguments = ["current_timestamp()"]
    if name == "position" and node.keywords:
        name = "locate"
    if name == "substr" and node.keywords:
        name = "substring"
    arguments += [part for part in _DEFAULTS.get(name, ())[len(arguments) :] if part is not None] if arguments or not node.within else []
    arguments = arguments[: _SHOWN.get(name, len(arguments))]
    if name in _UPPER and (name not in ("ceil", "floor") or len(arguments) == 1):
        name = name.upper()
    elif name in _RENAMED and (name not in _DATES_AND_TIMES or len(arguments) <= 3):
        name = _RENAMED[name]
    call = f"{name}({'DISTINCT ' * node.distinct}{', '.join(arguments)})"
    terms = ", ".join(_term(term, named, name == "listagg") for term in node.within)
    return f"{call} WITHIN GROUP (ORDER BY {terms})" if terms else call


def _special(name: str, arguments: list[str]) -> str | None:
    """The name of a call that is not printed as one."""
    match name, arguments:
        case ("isnull", [value]):
            return f"({value} IS NULL)"
        case ("isnotnull", [value]):
            return f"({value} IS NOT NULL)"
        case ("if", [condition, value, otherwise]):
            return f"(IF({condition}, {value}, {otherwise}))"
        case ("positive", [value]):
            return f"(+ {value})"
        case ("div", [left, right]):
            return f"({left} div {right})"
        case ("like", [value, pattern]):
            return f"{value} LIKE {pattern}"
        case ("like", [value, pattern, escape]):
            return f"{value} LIKE {pattern} ESCAPE '{escape}'"
        case ("datepart" | "extract", [part, value]):
            return f"{name}({part} FROM {value})"
        case ("assert_true", [condition]):
            return f"assert_true({condition}, '{condition}' is not true!)"
        case ("raise_error", [message]):
            return f"raise_error(USER_RAISED_EXCEPTION, map(errorMessage, {message}))"
        case ("try_make_timestamp_ntz", [day, time]):
            return f"try_make_timestamp_ntz(make_timestamp_ntz({day}, {time}))"
        case ("try_to_time", _):
            return f"try_to_time(to_time({', '.join(arguments)}))"
        case (_, [value]) if name in _CASTS:
            return value
        case ("trim" | "ltrim" | "rtrim", [characters, value]):
            return f"TRIM({_SIDES[name]} {characters} FROM {value})"
        case _:
            return None


def _term(term: tree.OrderTerm, named: Named, with_nulls: bool) -> str:
    name = named(term.expression)
    if with_nulls:
        return f"{name} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"
    return f"{name}{' DESC' * term.descending}"
