"""What Spark's UI says of Deltic's jobs.

On a classic session a block's jobs have a description, after the one that the user or a streaming query gave. Under Spark Connect, whose
clients cannot describe jobs, they have a tag, which the UI's page of Connect shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from deltic.runtimes.spark.streams import is_connect

DESCRIPTION: Final = "spark.job.description"
_NAMED: Final = 3
"""How many tables a description names."""


@contextmanager
def described(spark: SparkSession, text: str, tag: str) -> Iterator[None]:
    """Jobs of the block have this description or tag. tag: without commas."""
    if is_connect(spark):
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    context = spark.sparkContext
    before = context.getLocalProperty(DESCRIPTION)
    context.setLocalProperty(DESCRIPTION, f"{before}; {text}" if before else text)
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]  # None removes it


def tick_description(root: str, epoch: int, levels: int, tables: Sequence[str], *, fills: bool) -> str:
    """Of the job of a tick.

    >>> tick_description("/data/shop.state", 7, 2, ["orders", "customers"], fills=False)
    'deltic /data/shop.state: epoch 7, 2 levels, changes of customers, orders'
    """
    named = sorted(tables)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    reads = "fills views" if fills else f"changes of {', '.join(named[:_NAMED])}{more}" if named else "no changes"
    return f"deltic {root}: epoch {epoch}, {levels} {'level' if levels == 1 else 'levels'}, {reads}"
