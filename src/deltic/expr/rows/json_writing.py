"""Values as JSON text, as Spark's JacksonGenerator writes them."""

from __future__ import annotations

import base64
import datetime
import math
from dataclasses import dataclass
from typing import Any, Final

from deltic.expr.rows.casts import EPOCH, MICROSECOND
from deltic.expr.rows.datetime_text import DEFAULT, Patterns, format_timestamp, time_text
from deltic.expr.rows.rendering import render
from deltic.intervals import units_of
from deltic.times import NANOSECONDS, micros_of
from deltic.types import BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, Type
from deltic.variant_bytes import VariantPlace
from deltic.variant_json import quoted, text_of

TIMESTAMPS: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]"
LOCAL_TIMESTAMPS: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS]"


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
    if type.is_interval:
        return quoted(render(value, type))
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case bool() | int():
            return render(value, type)
        case float():
            return render(value, type) if math.isfinite(value) else f'"{render(value, type)}"'
        case datetime.time():
            return quoted(render(value, type) if form.patterns.times is None else time_text(value, form.patterns.times))
        case datetime.date():
            return quoted(moment_text(value, type, form.patterns))
        case _:
            return str(value)  # a DECIMAL, as java.math.BigDecimal has it


def moment_text(value: datetime.date, type: Type, patterns: Patterns) -> str:
    """A DATE, TIMESTAMP or TIMESTAMP_NTZ by its pattern."""
    if not isinstance(value, datetime.datetime):
        moment = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
        return value.isoformat() if patterns.dates is None else format_timestamp(moment, patterns.dates)
    local = type == TIMESTAMP_NTZ
    pattern = (patterns.local_timestamps or LOCAL_TIMESTAMPS) if local else (patterns.timestamps or TIMESTAMPS)
    return format_timestamp(value.replace(tzinfo=datetime.UTC), pattern)


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
