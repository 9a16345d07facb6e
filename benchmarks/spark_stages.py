"""What Spark did between two moments: jobs, and the bytes that each exchange wrote, from the driver's own status store."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pyspark.sql import SparkSession

SETTLE_S = 5.0
ENDED = frozenset({"COMPLETE", "SKIPPED", "FAILED"})


@dataclass(frozen=True, slots=True)
class Shuffled:
    """jobs that ran, and for every stage that wrote a shuffle how many bytes."""

    jobs: int
    written_bytes: tuple[int, ...]


class Stages:
    """Reads the status store, which exists without Spark's UI too. Spark fills it asynchronously, so reading waits for it."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm, self._store = context._jvm, context._jsc.sc().statusStore()
        self._no_quantiles = context._gateway.new_array(context._jvm.double, 0)

    def mark(self) -> tuple[int, int]:
        """The newest stage and job so far."""
        return _newest(self._stages(), "stageId"), _newest(self._jobs(), "jobId")

    def since(self, mark: tuple[int, int]) -> Shuffled:
        """What came after a mark; all of it has ended when this returns."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            stages = _after(self._stages(), "stageId", mark[0])
            if all(stage.status().toString() in ENDED for stage in stages) or time.monotonic() > deadline:
                break
            time.sleep(0.005)
        written = [stage.shuffleWriteBytes() for stage in reversed(stages)]
        return Shuffled(len(_after(self._jobs(), "jobId", mark[1])), tuple(size for size in written if size))

    def _stages(self) -> Any:
        nothing = self._jvm.java.util.ArrayList
        return self._store.stageList(nothing(), False, False, self._no_quantiles, nothing())

    def _jobs(self) -> Any:
        return self._store.jobsList(self._jvm.java.util.ArrayList())


def _newest(listed: Any, number: str) -> int:
    return int(getattr(listed.apply(0), number)()) if listed.size() else -1


def _after(listed: Any, number: str, mark: int) -> list[Any]:
    """Those that came after a mark, newest first; the store lists them so."""
    entries = (listed.apply(i) for i in range(listed.size()))
    return list(takewhile(lambda entry: getattr(entry, number)() > mark, entries))
