"""What a run of a project reports, as `deltic run` does: after each tick its rows, its seconds, and the epochs that tables lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from deltic.pipeline.progress import Progress, StageClock, Summary
from deltic.projects.planning import DatasetPlan
from deltic.projects.publishing import Publisher
from deltic.projects.source_reads import SourceReads
from deltic.runtimes.view_errors import is_errors
from deltic.session import Session

Listener = Callable[[Progress], object]


class RunProgress:
    """Gathers what happens to the datasets of a level, and gives it to `listener` when the level has ended.

    Its stages: `flows`, what Spark runs; `read`, `tick`; and `sinks`, the writing of views to their tables.
    """

    def __init__(self, session: Session, publisher: Publisher, views: Iterable[DatasetPlan], listener: Listener | None) -> None:
        self._session, self._publisher, self._listener = session, publisher, listener
        self._views = [one for one in views if one.dataset.stored and not one.dataset.live]
        self._written: set[str] = set()
        self.summary = Summary(session.epoch)
        self.begin()

    def begin(self) -> None:
        """A level begins."""
        self._epoch, self.clock = self._session.epoch, StageClock()
        self._rows_in: Counter[str] = Counter()
        self._rows_out: Counter[str] = Counter()
        self._files: dict[str, tuple[str, ...]] = {}

    def has_read(self, reading: SourceReads) -> None:
        """Adds what a tick takes from its sources."""
        self._files |= reading.files
        for rows in (reading.contents, reading.changes):
            self._rows_in.update({key: frame.num_rows for key, frame in rows.items()})

    def ticked(self) -> None:
        """Adds the changes of the session's last tick."""
        result = self._session.last_tick
        if result is not None:
            self._rows_out.update({view: len(change) for view, change in result.changes.items() if not is_errors(view)})

    def wrote(self, key: str) -> None:
        """A view has been written to its table, or has not changed since it was."""
        self._written.add(key)

    def ended(self) -> None:
        """Reports the level, if it had a tick."""
        if self._session.epoch > self._epoch:
            progress = Progress(
                self._session.epoch, self._files, dict(self._rows_in), dict(self._rows_out), {}, self.clock.seconds, sink_lag=self._lag()
            )
            self.summary.add(progress)
            if self._listener is not None:
                self._listener(progress)

    def _lag(self) -> dict[str, int]:
        return {one.dataset.key: 0 if one.dataset.key in self._written else self._publisher.lag(one) for one in self._views}
