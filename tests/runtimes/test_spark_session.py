"""Spark sessions: the tuned local one, and the advice about others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deltic.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Settings(dict[str, str]):
    """A session's `conf`, the only part that `advice` and `parallelism` read."""

    @property
    def conf(self) -> Settings:
        return self


def test_our_session_needs_no_advice(spark: SparkSession) -> None:
    from deltic.runtimes.spark.runtime import parallelism  # noqa: PLC0415  needs the extra
    from deltic.spark import advice  # noqa: PLC0415

    assert advice(spark) == []
    assert parallelism(spark) == 2
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_plain_session_is_advised_in_order_of_gain() -> None:
    from deltic.runtimes.spark.session import CHECKPOINTS  # noqa: PLC0415  needs the extra
    from deltic.spark import advice  # noqa: PLC0415

    plain = Settings({"spark.master": "local[*]", "spark.sql.adaptive.enabled": "true", "spark.python.unix.domain.socket.enabled": "false"})
    assert [advised.setting for advised in advice(plain)] == [  # type: ignore[arg-type]
        "spark.python.unix.domain.socket.enabled=true",
        "spark.sql.adaptive.enabled=false",
        "spark.ui.enabled=false",
        f"spark.sql.streaming.checkpointFileManagerClass={CHECKPOINTS}",
        "spark.master=local[*,4]",
    ]


def test_the_default_number_of_shards_is_the_parallelism() -> None:
    from deltic.runtimes.spark.runtime import parallelism  # noqa: PLC0415  needs the extra

    assert parallelism(Settings({"spark.default.parallelism": "7"})) == 7  # type: ignore[arg-type]
    assert parallelism(Settings({"spark.master": "local[3,4]"})) == 3  # type: ignore[arg-type]


def test_a_second_session_is_rejected(spark: SparkSession) -> None:
    from deltic.spark import local_session  # noqa: PLC0415  needs the extra

    with pytest.raises(SetupError, match="already has a Spark session"):
        local_session()
