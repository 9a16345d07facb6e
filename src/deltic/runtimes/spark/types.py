"""Spark's objects for types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VariantType,
)

from deltic.errors import FrameError
from deltic.kinds import DAY_TIME, interval_word
from deltic.schema import Type

_SPARK: Final[Mapping[str, DataType]] = {
    "BOOLEAN": BooleanType(),
    "TINYINT": ByteType(),
    "SMALLINT": ShortType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "STRING": StringType(),
    "BINARY": BinaryType(),
    "DATE": DateType(),
    "TIMESTAMP": TimestampType(),
    "TIMESTAMP_NTZ": TimestampNTZType(),
    "VARIANT": VariantType(),
    "VOID": NullType(),
    **{
        interval_word(start, end): DayTimeIntervalType(i, j) for i, start in enumerate(DAY_TIME) for j, end in enumerate(DAY_TIME) if i <= j
    },
}


def spark_type(type_: Type) -> DataType:
    """Spark's object for a type."""
    parts = [spark_type(part.type) for part in type_.parts]
    match type_.name:
        case "DECIMAL":
            return DecimalType(type_.precision, type_.scale)
        case "TIME":
            return TimeType(type_.precision)
        case "ARRAY":
            return ArrayType(parts[0])
        case "MAP":
            return MapType(parts[0], parts[1])
        case "STRUCT":
            return StructType([StructField(part.name, kind) for part, kind in zip(type_.parts, parts, strict=True)])
        case _ if type_.is_year_month:
            message = f"PySpark cannot read {type_.sql} from a Python data source"
            raise FrameError(message, expected="other types", remedy="CAST(CAST(x AS INTERVAL MONTH) AS INT) in the view")
        case name:
            return StringType(type_.collation) if type_.collation else _SPARK[name]
