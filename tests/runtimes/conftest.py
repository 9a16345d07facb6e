from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session that Deltic made, on two cores."""
    pytest.importorskip("pyspark")
    from deltic.runtimes.spark.session import local_session  # noqa: PLC0415  needs the extra

    session = local_session(2, name="deltic tests")
    yield session
    session.stop()
