"""The Spark session of a command."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from deltic.errors import SetupError


@contextmanager
def opened_spark(master: str | None, name: str, helpers: Sequence[ModuleType]) -> Iterator[Any]:
    """A Spark session, stopped at the end, whose workers need not have the modules `helpers`.

    The Spark room imports PySpark, which is an extra.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise SetupError("PySpark is not installed", remedy='pip install "deltic[spark]", or give --engine embedded')
    by_value = importlib.import_module("deltic.runtimes.spark.by_value").pickled_by_value
    spark = importlib.import_module("deltic.runtimes.spark.session").session_at(master, name=name)
    try:
        with by_value(helpers):
            yield spark
    finally:
        spark.stop()
