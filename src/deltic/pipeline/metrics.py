"""Counts of a running pipeline in Prometheus's text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Final

from deltic.pipeline.progress import Progress, Summary

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What a run has done since it began, tick by tick. Safe to share between threads. epoch: the last one committed before."""

    def __init__(self, epoch: int, now_s: Callable[[], float] = time.time) -> None:
        self._lock, self._now_s = Lock(), now_s
        self._total = Summary(epoch)
        self._last: Progress | None = None
        self._last_s: float | None = None

    def add(self, progress: Progress) -> None:
        """Adds a tick."""
        with self._lock:
            self._total.add(progress)
            self._last, self._last_s = progress, self._now_s()

    def text(self) -> str:
        """All metrics."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        total, last = self._total, self._last
        yield from _metric("deltic_epoch", "gauge", "The last committed epoch.", {"": total.epoch})
        yield from _metric("deltic_ticks_total", "counter", "Ticks of this run.", {"": total.ticks})
        yield from _metric("deltic_files_total", "counter", "Files that were read.", {"": total.files})
        yield from _metric("deltic_rows_in_total", "counter", "Rows read from sources.", total.rows_in, "table")
        yield from _metric("deltic_rows_out_total", "counter", "Rows of changes of views.", total.rows_out, "view")
        yield from _metric("deltic_dead_letters_total", "counter", "Rows that were not valid changes.", total.letters, "table")
        yield from _metric("deltic_stage_seconds_total", "counter", "Time by stage of the ticks.", total.seconds, "stage")
        if last is None or self._last_s is None:
            return
        yield from _metric("deltic_last_tick_seconds", "gauge", "Time by stage of the last tick.", last.seconds, "stage")
        yield from _metric("deltic_last_tick_timestamp_seconds", "gauge", "When the last tick ended.", {"": self._last_s})
        yield from _metric("deltic_failing_rows", "gauge", "Rows on which a view fails.", last.failing, "view")
        yield from _metric("deltic_sink_lag_epochs", "gauge", "Committed epochs that a sink lacks.", last.sink_lag, "sink")


def _metric(name: str, kind: str, about: str, values: Mapping[str, float], label: str | None = None) -> Iterator[str]:
    if values:
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} {kind}"
    for key, value in values.items():
        labels = "" if label is None else f'{{{label}="{_escaped(key)}"}}'
        yield f"{name}{labels} {value!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
