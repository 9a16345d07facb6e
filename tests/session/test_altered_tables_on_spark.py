"""ALTER TABLE on Spark: old rows are exact, over restarts too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from altered_tables import replay
from parts import slow
from seeds import rotating

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", slow(*rotating(3)))
def test_random_alterations_on_spark(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    replay(seed, tmp_path / "state", 2, spark, steps=8)
