"""Values as JSON text, as Spark's JacksonGenerator writes them."""

from __future__ import annotations

import base64
import datetime
import math
from dataclasses import dataclass
from typing import Any

from deltic.expr.rows.casts import EPOCH, MICROSECOND
from deltic.expr.rows.datetime_fields import DEFAULT, Patterns, datetime_field
from deltic.expr.rows.rendering import render
from deltic.intervals import units_of
from deltic.times import NANOSECONDS, micros_of
from deltic.types import BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, Type
from deltic.variant_bytes import VariantPlace
from deltic.variant_json import quoted, text_of


@dataclass(frozen=True, slots=True)
class JsonForm:
    """How values are written: whether fields that are NULL are, and dates and times by which patterns."""

    null_fields: bool = False
    patterns: Patterns = DEFAULT


def json_of(value: Any, type: Type, form: JsonForm) -> str:
    """A value that may be NULL, as JSON without blanks."""
    if value is None:
        return "null"
    if type == VARIANT:
        return text_of(VariantPlace(*value))
    if type.name == "STRUCT":
        named = zip(value, type.parts, strict=True)
        parts = [f"{quoted(part.name)}:{json_of(one, part.type, form)}" for one, part in named if one is not None or form.null_fields]
        return f"{{{','.join(parts)}}}"
    if type.name == "ARRAY":
        return f"[{','.join(json_of(one, type.parts[0].type, form) for one in value)}]"
    if type.name == "MAP":
        key, item = (part.type for part in type.parts)
        return f"{{{','.join(f'{quoted(_key(name, key))}:{json_of(one, item, form)}' for name, one in value)}}}"
    return _scalar(value, type, form)


def _scalar(value: Any, type: Type, form: JsonForm) -> str:
    if (text := datetime_field(value, type, form.patterns)) is not None:
        return quoted(text)
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case bool() | int():
            return render(value, type)
        case float():
            return render(value, type) if math.isfinite(value) else f'"{render(value, type)}"'
        case _:
            return str(value)  # a DECIMAL, as java.math.BigDecimal has it


def _key(value: Any, type: Type) -> str:
    """The key of a MAP: dates and timestamps are numbers since 1970, times are nanoseconds, intervals microseconds or months."""
    if type.is_interval:
        return str(units_of(value))
    if type == DATE:
        return str((value - EPOCH.date()).days)
    if type in (TIMESTAMP, TIMESTAMP_NTZ):
        return str((value.replace(tzinfo=datetime.UTC) - EPOCH) // MICROSECOND)
    return str(micros_of(value) * NANOSECONDS) if type.is_time else render(value, type)


def is_key(type: Type) -> bool:
    """Whether JSON has a name for each key of this type."""
    return not type.is_nested and type != BINARY
