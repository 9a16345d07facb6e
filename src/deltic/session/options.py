"""The options of a session, a pipeline, streams on Spark and the command line, validated in one place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

from deltic.errors import SetupError
from deltic.runtimes import RETAINED_EPOCHS
from deltic.session.clock import Clock, checked_clock
from deltic.session.load_progress import ProgressOption, checked_progress
from deltic.session.watermark import Watermark
from deltic.storage.folder import location, open_folder
from deltic.storage.manifest import MOST_SHARDS
from deltic.trace.workers import processors

if TYPE_CHECKING:
    import pyspark.sql


OnViewError = Literal["rollback", "isolate"]
"""What happens to a tick on whose rows a view's expression fails."""

MOST_THREADS: Final = 1024
PIPELINE_RETAINS: Final = 100
"""How many past epochs a pipeline keeps readable by default: its sinks are updated from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The keyword arguments of `Session`, which documents them, and `rows_per_tick` of a `Pipeline`.

    Raises SetupError, with the option's name and value, for an invalid one. A path given as `state` is converted to text.
    """

    spark: pyspark.sql.SparkSession | None = None
    state: str | os.PathLike[str] | None = None
    shards: int | None = None
    threads: int | None = None
    retain: int = RETAINED_EPOCHS
    shared_state: bool = False
    commit_log: bool = False
    iteration_limit: int | None = None
    clock: Clock | Watermark | Iterable[Watermark] = "manual"
    rows_per_tick: int | None = None
    on_view_error: OnViewError = "rollback"
    progress: ProgressOption = False

    def __post_init__(self) -> None:
        if self.spark is not None and not _is_session(self.spark):
            raise _invalid("spark", self.spark, "a SparkSession, or None to run in this process")
        if self.spark is not None and _is_stopped(self.spark):
            raise _invalid("spark", self.spark, "a SparkSession that has not been stopped")
        object.__setattr__(self, "state", _folder(self.state))
        _check_count("shards", self.shards, 1, MOST_SHARDS)
        _check_count("threads", self.threads, 1, MOST_THREADS)
        if self.threads is not None and self.spark is not None:
            raise _invalid("threads", self.threads, "no Spark, whose master says how many threads it has")
        _check_count("retain", self.retain, 0)
        _check_count("iteration_limit", self.iteration_limit, 0)
        _check_count("rows_per_tick", self.rows_per_tick, 1)
        for name in ("shared_state", "commit_log"):
            if not isinstance(getattr(self, name), bool):
                raise _invalid(name, getattr(self, name), "True or False")
        if self.commit_log and (self.spark is not None or self.folder is None or not open_folder(self.folder).local):
            raise _invalid("commit_log", True, "a state folder on a file system, and no Spark")
        if self.on_view_error not in get_args(OnViewError):
            raise _invalid("on_view_error", self.on_view_error, "'rollback' or 'isolate'")
        checked_progress(self.progress)
        kind, watermarks = checked_clock(self.clock)
        object.__setattr__(self, "clock", watermarks or kind)

    @property
    def embedded_threads(self) -> int:
        """How many threads compute large ticks in this process."""
        return self.threads or min(processors(), MOST_THREADS)

    @property
    def folder(self) -> str | None:
        """The state's folder or URL."""
        assert self.state is None or isinstance(self.state, str)
        return self.state

    def on(self, spark: pyspark.sql.SparkSession | None) -> Self:
        """The same on another engine."""
        return replace(self, spark=spark)


def _folder(state: object) -> str | None:
    """The option `state` as text."""
    if state is None:
        return None
    if (path := location(state)) is None:
        raise _invalid("state", state, "the path of a folder, a URL of one in an object store, or None to keep the state in memory")
    return path


def _is_session(spark: object) -> bool:
    """Whether it is a session of PySpark, classic or Connect, which is not imported here."""
    return any(t.__name__ == "SparkSession" and t.__module__.startswith("pyspark.sql") for t in type(spark).__mro__)


def _is_stopped(spark: Any) -> bool:
    """Whether a session of PySpark, or the context of a classic one, has been stopped."""
    if not hasattr(spark, "_jsparkSession"):
        return bool(spark.is_stopped)
    context = spark._sc._jsc
    return context is None or bool(context.sc().isStopped())


def _check_count(name: str, value: object, least: int, most: int | None = None) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        raise _invalid(name, value, f"an integer of {least} or more" if most is None else f"an integer from {least} to {most}")


def _invalid(name: str, value: object, expected: str) -> SetupError:
    return SetupError(f"invalid option {name}={value!r}", expected=expected)
