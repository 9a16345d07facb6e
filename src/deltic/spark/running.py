"""A running pipeline: one handle for its query, its files, or both."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Final

from deltic.errors import SetupError
from deltic.pipeline import Pipeline, Progress
from deltic.reentrant import ReentrantEvent

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

RECENT: Final = 100
POLL_S: Final = 1.0
"""Seconds between two looks for new files, unless the trigger sets it."""
_UNITS: Final = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0}


def seconds(interval: str) -> float:
    """The seconds in an interval as Spark writes it, such as "5 seconds". Raises SetupError."""
    match = re.fullmatch(r"\s*(\d+)\s*(millisecond|second|minute|hour)s?\s*", str(interval).lower())
    if match is None:
        raise SetupError(f"invalid trigger processingTime {interval!r}", expected='a number and a unit, such as "5 seconds"')
    return int(match[1]) * _UNITS[match[2]]


class Journal:
    """Recent progress of a pipeline and its first error. Used from several threads."""

    def __init__(self) -> None:
        self.recent: deque[Progress] = deque(maxlen=RECENT)
        self.error: BaseException | None = None
        self.stopping = ReentrantEvent()

    def fail(self, error: BaseException) -> None:
        """Records the error, unless there is one already."""
        self.error = self.error or error


class Follower:
    """A thread that reads the script's own files.

    ended: set at its end. Not Thread.is_alive, which is False for a running thread once Ctrl-C has ended a `join`.
    """

    def __init__(self, files: Pipeline, journal: Journal, run: Callable[[Pipeline], object], failed: Callable[[], None]) -> None:
        self._files, self._journal, self._run_files, self._failed = files, journal, run, failed
        self.ended = ReentrantEvent()
        files._stopping.clear()  # of the follower before, which may have ended before it was stopped
        self._thread = Thread(target=self._run, name="deltic-files", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the current tick."""
        if not self.ended.is_set():
            self._files.stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it has ended, unless a subscriber calls this in a tick of its own; whether it has."""
        return self.ended.is_set() if current_thread() is self._thread else self.ended.wait(seconds)

    def _run(self) -> None:
        try:
            self._run_files(self._files)
        except Exception as error:  # raised by awaitTermination
            self._journal.fail(error)
            self._failed()
        finally:
            self.ended.set()


class Running:
    """Like Spark's StreamingQuery, with progress in Deltic's terms. query: Spark's own handle if there are streams."""

    def __init__(
        self,
        journal: Journal,
        query: StreamingQuery | None,
        settle: Callable[[], None],
        remote_progress: Callable[[], list[Progress]] | None = None,
    ) -> None:
        """settle: waits until no tick runs. remote_progress: returns the progress of ticks that run in another process."""
        self.query = query
        self._journal, self._settle, self._remote_progress = journal, settle, remote_progress
        self._follower: Follower | None = None
        self._lasts = True
        """Whether the follower continues after the query has ended."""

    def follow(self, files: Pipeline, run: Callable[[Pipeline], object], beside: bool = False) -> None:
        """Reads the script's files concurrently with the streams; or, with `beside`, only makes the ticks of rows that become due."""
        self._follower, self._lasts = Follower(files, self._journal, run, self._end_query), not beside

    @property
    def isActive(self) -> bool:
        """Whether more ticks may come."""
        follows = self._lasts and self._follower is not None and not self._follower.ended.is_set()
        return follows or (self.query is not None and self.query.isActive)

    @property
    def lastProgress(self) -> Progress | None:
        """That of the last tick."""
        recent = self.recentProgress
        return recent[-1] if recent else None

    @property
    def recentProgress(self) -> list[Progress]:
        """That of the last hundred ticks, the oldest first; under Spark Connect, empty unless this process can read the state folder."""
        return list(self._journal.recent) if self._remote_progress is None else self._remote_progress()

    def exception(self) -> BaseException | None:
        """The error that ended it; None while it runs, and after a stop. The tick's own error, not Spark's, which wraps it."""
        if self._journal.error is not None or self.query is None or self._journal.stopping.is_set():
            return self._journal.error
        error: BaseException | None = self.query.exception()
        return error

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Waits until it ends, at most `timeout` seconds; returns whether it has ended. Raises the error that ended it."""
        until = None if timeout is None else time.monotonic() + timeout
        ended = self._await_query(until)
        if self._follower is not None and ended:
            if self.exception() is not None or not self._lasts:
                self._follower.stop()
            ended = self._follower.wait(_left(until))
        if ended and (error := self.exception()) is not None:
            raise error
        return ended

    def stop(self) -> None:
        """Ends it after the current tick, and waits for that."""
        self._journal.stopping.set()
        self._settle()
        self._end_query()
        if self._follower is not None:
            self._follower.stop()
            self._follower.wait()

    def _end_query(self) -> None:
        if self.query is not None:
            self.query.stop()

    def _await_query(self, until: float | None) -> bool:
        if self.query is None:
            return True
        try:
            if until is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(max(0.001, until - time.monotonic())))  # type: ignore[arg-type]
        except Exception as error:
            if self._journal.error is None and not self._journal.stopping.is_set():
                self._journal.fail(error)
            return True


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())
