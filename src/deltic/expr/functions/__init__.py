"""The scalar functions, by topic: a module has the records of its functions (deltic.expr.registry) in FUNCTIONS.

`resolve` accepts the name of a SQL function, the symbol of an operator (`resolve("+", …)`; unary minus is `negate`, unary plus
`positive`), or a word for other syntax: in, between, like, is_null, is_not_null, is_true, is_not_true, is_false,
is_not_false, extract(field, source), plus_months (adds an interval of months; `add_months` is Spark's function, which gives a DATE).

Deliberate differences from Spark 4.2: dates and timestamps outside the years 1 to 9999 are errors, and text of such a year is
malformed; text that depends on the current day ('now', 'today', a time alone) and Java's short zone names (PST) are malformed;
a DIV of decimals out of BIGINT's range is an overflow, where Spark wraps around; SIN, COS, TAN and their
reciprocals may differ in the last place; a LIKE constant with a bad escape is refused at definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from deltic.expr.functions import (
    aes,
    array_elements,
    array_making,
    attempts,
    bits,
    buckets,
    calendar,
    casts,
    chains,
    checks,
    collated,
    comparison,
    csv_text,
    dates,
    element_counts,
    encodings,
    epochs,
    event_time,
    failures,
    formats,
    hashes,
    intervals,
    json_text,
    json_values,
    lambdas,
    logic,
    lookup,
    maps,
    nested,
    number_patterns,
    number_text,
    numbers,
    operators,
    pieces,
    ranges,
    regex,
    rounding,
    search,
    subqueries,
    text,
    thresholds,
    times,
    tries,
    trigonometry,
    units,
    urls,
    variants,
    vectors,
)
from deltic.expr.registry import Function, Rewrite, known_functions, register, resolve

__all__ = ["TOPICS", "known_functions", "resolve"]

TOPICS: Final[Mapping[str, tuple[Function | Rewrite, ...]]] = MappingProxyType(
    {
        "numbers": (
            *operators.FUNCTIONS,
            *chains.FUNCTIONS,
            *numbers.FUNCTIONS,
            *rounding.FUNCTIONS,
            *tries.FUNCTIONS,
            *trigonometry.FUNCTIONS,
            *bits.FUNCTIONS,
            *ranges.FUNCTIONS,
        ),
        "text": (*text.FUNCTIONS, *search.FUNCTIONS, *pieces.FUNCTIONS, *regex.FUNCTIONS, *collated.FUNCTIONS),
        "numbers as text": (*number_text.FUNCTIONS, *number_patterns.FUNCTIONS),
        "hashes, encodings, URLs": (*hashes.FUNCTIONS, *encodings.FUNCTIONS, *aes.FUNCTIONS, *urls.FUNCTIONS),
        "JSON and CSV": (*json_text.FUNCTIONS, *json_values.FUNCTIONS, *csv_text.FUNCTIONS),
        "VARIANT": variants.FUNCTIONS,
        "arrays, maps and structs": (*nested.FUNCTIONS, *array_elements.FUNCTIONS, *array_making.FUNCTIONS, *maps.FUNCTIONS),
        "higher-order functions": lambdas.FUNCTIONS,
        "vectors": vectors.FUNCTIONS,
        "dates": (
            *dates.FUNCTIONS,
            *calendar.FUNCTIONS,
            *intervals.FUNCTIONS,
            *times.FUNCTIONS,
            *buckets.FUNCTIONS,
            *event_time.FUNCTIONS,
            *units.FUNCTIONS,
            *epochs.FUNCTIONS,
            *formats.FUNCTIONS,
        ),
        "conditions": (
            *comparison.FUNCTIONS,
            *logic.FUNCTIONS,
            *lookup.FUNCTIONS,
            *checks.FUNCTIONS,
            *attempts.FUNCTIONS,
            *thresholds.FUNCTIONS,
            *subqueries.FUNCTIONS,
            *failures.FUNCTIONS,
            *element_counts.FUNCTIONS,
        ),
        "casts": casts.FUNCTIONS,
    }
)
"""All records, by their heading in docs/sql.md."""

for _records in TOPICS.values():
    register(*_records)
