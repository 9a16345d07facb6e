"""Which runtime a session gets. What needs pyspark is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltic.errors import SetupError
from deltic.runtimes import Runtime
from deltic.runtimes.embedded import DurableEmbedded, Embedded
from deltic.schema import TableSchema

if TYPE_CHECKING:
    import pyspark.sql


def spark_changes(frame: Any, table: TableSchema, sequence: str | None) -> Any:
    """A Spark DataFrame as changes that stay on Spark."""
    from deltic.runtimes.spark import SparkChanges  # noqa: PLC0415  pyspark is an optional extra

    return SparkChanges(frame, table, sequence)


def open_runtime(spark: pyspark.sql.SparkSession | None, state: str | None, shards: int | None, retain: int, shared_state: bool) -> Runtime:
    """The arguments are those of Session."""
    if shards is not None and shards < 1:
        raise SetupError(f"a session of {shards} shards", expected="shards=1 or more")
    if retain < 0:
        raise SetupError(f"a session that retains {retain} epochs", expected="retain=0 or more")
    if spark is None and state is not None:
        return DurableEmbedded(state, shards, retain=retain)
    if spark is None:
        return Embedded(shards or 1)
    from deltic.runtimes.spark import SparkRuntime  # noqa: PLC0415  pyspark is an optional extra

    return SparkRuntime(spark, state, shards, retain=retain, shared_state=shared_state)
