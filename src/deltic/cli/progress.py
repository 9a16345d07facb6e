"""Output of `deltic run`: progress on stderr, in one updated line on a terminal; with --json, JSON lines on stdout."""

from __future__ import annotations

import json as encoder
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from deltic.cli.output import emit
from deltic.pipeline import Progress, Start, Summary

_PLAIN_WIDTH: Final = 1_000
_PLAIN_EVERY_S: Final = 5.0
_FRAMES_PER_S: Final = 12.5


class Report:
    """The output of one run."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        console = Console(stderr=True)
        self._err = console if console.is_terminal else Console(stderr=True, width=_PLAIN_WIDTH)

    def say(self, line: str) -> None:
        """A line on stderr."""
        self._err.print(line, highlight=False, markup=False)

    def started(self, state: str, start: Start) -> None:
        """Reports how the script differs from the state."""
        self.say(f"state {state}: {start}")
        self._emit(start)

    @contextmanager
    def ticks(self) -> Iterator[Callable[[Progress], None]]:
        """Gives a function to call after each tick."""
        total, start_s = Summary(), time.monotonic()
        reported_s = start_s
        spinner = Spinner("dots", "looking for files", style="status.spinner")
        beside = sys.stdout is not None and sys.stdout.isatty()  # else what is printed on stdout would be drawn above the line, on stderr
        with Live(spinner, console=self._err, refresh_per_second=_FRAMES_PER_S, transient=True, redirect_stdout=beside):

            def ticked(progress: Progress) -> None:
                nonlocal reported_s
                total.add(progress)
                self._emit(progress)
                line = _line(progress, total, time.monotonic() - start_s)
                if self._err.is_terminal:
                    spinner.update(text=line)
                elif time.monotonic() - reported_s >= _PLAIN_EVERY_S:
                    reported_s = time.monotonic()
                    self.say(line)

            yield ticked

    def ended(self, summary: Summary) -> None:
        """Reports the summary."""
        self.say(_sentence(summary))
        self._emit(summary)

    def _emit(self, event: Any) -> None:
        if self._json:
            emit(encoder.dumps(event.json()))


def _line(progress: Progress, total: Summary, seconds: float) -> str:
    rows = sum(total.rows_in.values())
    tick = 1_000 * sum(progress.seconds.values())
    return f"epoch {progress.epoch:,}  {rows:,} rows  {total.files:,} files  {rows / max(seconds, 1e-9):,.0f} rows/s  tick {tick:.1f} ms"


def _sentence(summary: Summary) -> str:
    rows = ", ".join(f"{table} {rows:,}" for table, rows in summary.rows_in.items())
    letters = (
        f"; to the dead letters: {', '.join(f'{table} {rows:,}' for table, rows in summary.letters.items())}" if summary.letters else ""
    )
    read = f"{summary.files:,} files, rows: {rows}{letters}" if summary.ticks else "no new files"
    stages = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in summary.seconds.items())
    failing = f"; views with errors: {', '.join(f'{view} {rows:,}' for view, rows in summary.failing.items())}" if summary.failing else ""
    end = "stopped at" if summary.stopped else "up to date at"
    return f"{end} epoch {summary.epoch:,} after {summary.ticks:,} ticks: {read}{failing}" + (f" ({stages})" if stages else "")
