"""The scalar functions, by topic: a module has the records of its functions (deltic.expr.registry) in FUNCTIONS.

They are reached by the SQL function's name, by an operator's symbol (`resolve("+", …)`; unary minus is `negate`, unary plus
`positive`), or by a word for what SQL writes otherwise: in, between, like, is_null, is_not_null, is_true, is_not_true, is_false,
is_not_false, extract(field, source), plus_months (an interval of months, where `add_months` is Spark's function, which gives a DATE).

Where Deltic leaves Spark 4.2, on purpose: dates and timestamps outside the years 1 to 9999 are errors, and text of such a year is
malformed; text that depends on the present day ('now', 'today', a time alone) and Java's short zone names (PST) are malformed;
DIV of decimals that leaves BIGINT is an overflow, where Spark wraps around; EXP, POWER and logarithms may differ in the last
place; a LIKE constant with a bad escape is refused at definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from deltic.expr.functions import calendar, casts, comparison, dates, logic, lookup, numbers, operators, search, text, units
from deltic.expr.functions.calendar import add_interval
from deltic.expr.registry import Function, Rewrite, known_functions, register, resolve

__all__ = ["TOPICS", "add_interval", "known_functions", "resolve"]

TOPICS: Final[Mapping[str, tuple[Function | Rewrite, ...]]] = MappingProxyType(
    {
        "numbers": (*operators.FUNCTIONS, *numbers.FUNCTIONS),
        "text": (*text.FUNCTIONS, *search.FUNCTIONS),
        "dates": (*dates.FUNCTIONS, *calendar.FUNCTIONS, *units.FUNCTIONS),
        "conditions": (*comparison.FUNCTIONS, *logic.FUNCTIONS, *lookup.FUNCTIONS),
        "casts": casts.FUNCTIONS,
    }
)
"""The records of all modules here, by what they are listed under in docs/sql.md."""

for _records in TOPICS.values():
    register(*_records)
