"""Values as PySpark passes them to functions of rows: an ARRAY is a list, a MAP a dict, a STRUCT a Row."""

from __future__ import annotations

from typing import Any

from deltic.types import Type


def spark_value(type: Type, value: Any) -> Any:
    """The value of an argument; one that is not nested as it is, and an ARRAY that is the key of a MAP, since a list is no key."""
    from pyspark.sql import Row  # noqa: PLC0415  needs the extra, which a function of PySpark has

    if value is None or not type.is_nested:
        return value
    match type.name:
        case "STRUCT":
            parts = [spark_value(part.type, item) for part, item in zip(type.parts, value, strict=True)]
            return Row(*(part.name for part in type.parts))(*parts)
        case "MAP":
            key, item = (part.type for part in type.parts)
            return {k if key.name == "ARRAY" else spark_value(key, k): spark_value(item, v) for k, v in value}
        case _:
            return [spark_value(type.parts[0].type, item) for item in value]
