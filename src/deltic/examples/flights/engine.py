"""A session on the chosen engine, with everything it needs."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from deltic.errors import SetupError
from deltic.session import Session


@contextmanager
def open_session(engine: str, shards: int | None) -> Iterator[Session]:
    """Closes the session at the end, and the local Spark session and the state folder that were created for it. Raises SetupError."""
    with ExitStack() as stack:
        if engine == "embedded":
            session = Session(shards=shards)
        else:
            spark = stack.enter_context(_local_spark())
            state = stack.enter_context(tempfile.TemporaryDirectory(prefix="deltic-flights-"))
            session = Session(spark=spark, state=state, shards=shards)
        yield stack.enter_context(session)


@contextmanager
def _local_spark() -> Iterator[Any]:
    """The Spark room imports PySpark, which is an extra."""
    if importlib.util.find_spec("pyspark") is None:
        raise SetupError("PySpark is not installed", remedy='pip install "deltic[spark]", or give --engine embedded')
    spark = importlib.import_module("deltic.runtimes.spark.session").local_session(name="deltic demo flights")
    try:
        yield spark
    finally:
        spark.stop()
