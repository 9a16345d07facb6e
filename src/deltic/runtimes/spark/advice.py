"""Settings that make ticks faster on a user's Spark session. Deltic itself changes none of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import SparkSession

from deltic.runtimes.spark.session import TUNED


@dataclass(frozen=True, slots=True)
class Advice:
    """setting: what to set when the session is created. reason: what that gains."""

    setting: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.reason}"


_REASONS = {
    "spark.python.unix.domain.socket.enabled": "Python stages talk over a Unix socket; TCP adds about 40 ms to each",
    "spark.sql.adaptive.enabled": "a tick is one job instead of one for each exchange",
    "spark.ui.enabled": "no events are kept for unused pages of the web UI",
    "spark.sql.streaming.checkpointFileManagerClass": "each micro-batch of a stream writes its checkpoint about 45 ms faster",
    "spark.python.worker.reuse": "Python workers stay warm: kernels loaded, state mapped",
}


def advice(spark: SparkSession) -> list[Advice]:
    """The largest gain first; empty for a session created by `local_session`."""
    advised = [Advice(f"{name}={TUNED[name]}", reason) for name, reason in _REASONS.items() if not _has(spark, name, TUNED[name])]
    if (cores := re.fullmatch(r"local\[(\d+|\*)\]", _setting(spark, "spark.master") or "")) is not None:
        advised.append(Advice(f"spark.master=local[{cores[1]},4]", "a failed task is retried; plain local[n] never retries"))
    return advised


def _has(spark: SparkSession, name: str, value: str) -> bool:
    return (_setting(spark, name) or "").lower() == value.lower()


def _setting(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(name, "true" if name in ("spark.ui.enabled", "spark.python.worker.reuse") else None)
