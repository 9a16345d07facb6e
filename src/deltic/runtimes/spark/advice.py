"""What would make ticks faster on a session that a user made; Deltic itself changes nothing on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import SparkSession

from deltic.runtimes.spark.session import TUNED


@dataclass(frozen=True, slots=True)
class Advice:
    """setting: what to set when the session is made. reason: what it is good for."""

    setting: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.reason}"


_REASONS = {
    "spark.python.unix.domain.socket.enabled": "Python stages talk over a Unix socket; TCP adds about 40 ms to each",
    "spark.sql.adaptive.enabled": "a tick is one job instead of one for each exchange",
    "spark.ui.enabled": "no events are kept for pages that nobody looks at",
    "spark.sql.streaming.checkpointFileManagerClass": "each micro-batch of a stream writes its checkpoint about 45 ms faster",
    "spark.python.worker.reuse": "Python workers stay warm: kernels loaded, state mapped",
}


def advice(spark: SparkSession) -> list[Advice]:
    """In order of what it brings; empty on a session that `local_session` made."""
    found = [Advice(f"{name}={TUNED[name]}", reason) for name, reason in _REASONS.items() if not _has(spark, name, TUNED[name])]
    if (cores := re.fullmatch(r"local\[(\d+|\*)\]", _setting(spark, "spark.master") or "")) is not None:
        found.append(Advice(f"spark.master=local[{cores[1]},4]", "a failed task is tried again; plain local[n] gives up at once"))
    return found


def _has(spark: SparkSession, name: str, wanted: str) -> bool:
    return (_setting(spark, name) or "").lower() == wanted.lower()


def _setting(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(name, "true" if name in ("spark.ui.enabled", "spark.python.worker.reuse") else None)
