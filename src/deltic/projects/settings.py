"""Settings of Spark under which a query means something else than in Deltic, which has Spark's defaults and the time zone UTC.

Under another zone Deltic keeps what does not depend on it: TIMESTAMPs that are stored, compared, grouped and ordered, but not those that
are made of other values or turned into them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltic.errors import Unsupported
from deltic.expr.nodes import Call, Cast, Constants, Expr, Literal, PythonFunction, children
from deltic.plan.nodes import Plan
from deltic.plan.walk import expressions, nodes
from deltic.types import Type

ZONE: Final = "spark.sql.session.timeZone"
_UTC: Final = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "zulu", "universal", "utc+0", "+00:00", "utc+00:00", "gmt0"})
MEANINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.caseSensitive": ("false",),
    "spark.sql.timestampType": ("timestamp_ltz",),
    "spark.sql.legacy.timeParserPolicy": ("corrected", "exception"),
    "spark.sql.mapKeyDedupPolicy": ("exception",),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("true",),
}
"""By setting, the values under which queries mean what they mean in Deltic."""
SETTINGS: Final = (ZONE, *MEANINGS)
_NAME: Final = b"current_timezone"
_ZONELESS: Final = frozenset({
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same", "is_null", "is_not_null", "in", "coalesce", "greatest",
    "least", "make_struct", "array", "unix_seconds", "unix_millis", "unix_micros", "timestamp_seconds", "timestamp_millis",
    "timestamp_micros",
})  # fmt: skip
"""Functions whose value does not depend on the zone, though an argument or the value is a TIMESTAMP."""


def check_settings(plan: Plan, settings: Mapping[str, str], written: bytes = b"") -> None:
    """Raises Unsupported if a query may mean something else under these settings.

    written: the query as it was written, since its plan has a literal in place of a call of current_timezone().
    """
    for key, same in MEANINGS.items():
        if (value := settings.get(key)) is not None and value.lower() not in same:
            raise Unsupported(f"it runs with {key} = {value}", expected=f"{key} = {same[0]}")
    zone = settings.get(ZONE)
    if zone is not None and zone.lower() not in _UTC:
        if _NAME in written.lower():
            raise Unsupported(f"{_NAME.decode()} depends on the time zone, {zone}", expected=f"{ZONE} = UTC")
        zoned = next((expr for node in nodes(plan) for expr in expressions(node) for expr in _parts(expr) if _is_zoned(expr)), None)
        if zoned is not None:
            what = "a TIMESTAMP" if isinstance(zoned, Literal | Constants) else f"{getattr(zoned, 'function', None) or 'a cast'}"
            span = getattr(zoned, "span", None)
            raise Unsupported(f"{what} depends on the time zone, {zone}", span=span, expected=f"{ZONE} = UTC")


def _parts(expr: Expr) -> Iterator[Expr]:
    """An expression and all within it."""
    yield expr
    for part in children(expr):
        yield from _parts(part)


def _is_zoned(expr: Expr) -> bool:
    """Whether the value of an expression may depend on the time zone, apart from those of its parts."""
    match expr:
        case Literal() | Constants():
            return _has_instants(expr.type)
        case Call():
            return expr.function not in _ZONELESS and _has_instants(expr.type, *(part.type for part in expr.arguments))
        case Cast():
            return expr.type != expr.argument.type and _has_instants(expr.type, expr.argument.type)
        case PythonFunction():
            return _has_instants(expr.type, *(part.type for part in expr.arguments))
        case _:
            return False


def _has_instants(*types: Type) -> bool:
    """Whether one of the types is TIMESTAMP, or has it within."""
    return any(type.has(lambda part: part.name == "TIMESTAMP") for type in types)
