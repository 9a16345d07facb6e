"""Failed Spark jobs as one short error: nothing was committed, which task failed, why, and what to do.

Spark's own report is hundreds of lines of stack traces; it stays as the error's cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakSet

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from deltic.errors import DelticError, SetupError, TaskFailed
from deltic.runtimes.spark import worker
from deltic.runtimes.spark.task import DIFFERENT_CODE

T = TypeVar("T")

_SET_PYTHON: Final = "set PYSPARK_PYTHON to a Python that has Deltic, such as sys.executable here, before the Spark session is created"
_SAME_VERSION: Final = "install the same version on the workers as here, in the Python that PYSPARK_PYTHON names"
_ABORTED: Final = re.compile(r"Job aborted due to stage failure: (?P<task>Task \S+ in stage \S+) failed (?P<times>\d+) times?")
_CANCELLED: Final = re.compile(r"\[SPARK_JOB_CANCELLED\] (?P<job>Job \d+) cancelled *(?P<reason>[^\n]*?)\.?(?: SQLSTATE: \w+)?(?:\n|$)")
_REASON: Final = re.compile(r"most recent failure: Lost task .*? \((?P<host>\S+) executor (?P<executor>\S+?)\): (?P<reason>[^\n]*)")
_DIED: Final = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure|Python worker failed to connect back")
_FATAL: Final = re.compile(r"Fatal Python error: ([^\n]*)")
_INTRODUCTION: Final = "python string, version string, problem string"
_OTHER_PYTHON: Final = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*? version: (?P<worker>[\d.]+) than that in driver: (?P<driver>[\d.]+)")
_NO_DELTIC: Final = re.compile(r"No module named 'deltic'")
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '(?P<module>[^'\n]+)'")
_SEND_MODULE: Final = "send its file with spark.sparkContext.addPyFile(path) or spark-submit --py-files, or install it on the workers"
_KEPT: Final = "state and views are unchanged; the same changes may be applied again"
_RAISED: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n)+(?P<error>\S[^\n]*)")

_checked: WeakSet[SparkSession] = WeakSet()


def check_workers(spark: SparkSession) -> None:
    """Raises SetupError if the workers' Python cannot import Deltic, or has another version of it.

    One job of one task, once for each Spark session.
    """
    if spark in _checked:
        return
    cloudpickle.register_pickle_by_value(worker)  # type: ignore[no-untyped-call]
    try:
        introduce = udf(worker.introduce, _INTRODUCTION, useArrow=False)  # a Python without Deltic often lacks pyarrow, too
        frame = spark.range(1, numPartitions=1).select(introduce("id"))
        (((python, version, problem),),) = run_job(frame.collect)
    finally:
        cloudpickle.unregister_pickle_by_value(worker)  # type: ignore[no-untyped-call]
    if version and version != (own := own_version()):
        raise SetupError(f"Spark's workers have Deltic {version}, and this program has {own}", remedy=_SAME_VERSION)
    if problem:
        raise SetupError(f"Spark's workers run {python}, which cannot import Deltic: {problem}", remedy=_SET_PYTHON)
    _checked.add(spark)


def own_version() -> str:
    """The version of this process."""
    return worker.version()


def run_job(action: Callable[[], T]) -> T:
    """The result of an action that runs a Spark job. Raises TaskFailed or SetupError for failed tasks, and KeyboardInterrupt.

    Ctrl-C while Spark works raises KeyboardInterrupt, although py4j reports a broken connection.
    """
    try:
        return action()
    except Exception as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        if (explained := explain_failure(str(error))) is not None:
            raise explained from error
        raise


def explain_failure(report: str) -> DelticError | None:
    """Spark's report of a failed job as a Deltic error; None if it is about something else."""
    if _NO_DELTIC.search(report):
        return SetupError("Spark's workers run a Python without Deltic", remedy=_SET_PYTHON)
    if other := _OTHER_PYTHON.search(report):
        message = f"Spark's workers run Python {other['worker']}, and this program Python {other['driver']}; nothing was committed"
        return SetupError(message, remedy=_SET_PYTHON)
    if missing := _NO_MODULE.search(report):
        message = f"Spark's workers cannot import module {missing['module']}, which the program's functions need; nothing was committed"
        return SetupError(message, remedy=_SEND_MODULE)
    if DIFFERENT_CODE in report:
        return SetupError("Spark's workers have another version of Deltic than this program; nothing was committed", remedy=_SAME_VERSION)
    if cancelled := _CANCELLED.search(report):
        message = f"{cancelled['job']} was cancelled, so the tick was not committed: {cancelled['reason'] or 'Spark gives no reason'}"
        return TaskFailed(message, remedy=_KEPT)
    aborted = _ABORTED.search(report)
    if aborted is None:
        return None
    lost = _REASON.search(report)
    reason = lost["reason"].strip() if lost else "Spark gives no reason"
    where = f" on {lost['host']} (executor {lost['executor']})" if lost else ""
    message = f"{aborted['task']}{where} failed {_times(int(aborted['times']))}, so the tick was not committed: {_cause(report, reason)}"
    return TaskFailed(message, remedy=_remedy(int(aborted["times"]), report))


def _times(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _cause(report: str, reason: str) -> str:
    if fatal := _FATAL.search(report):
        return f"its Python worker died ({fatal[1].strip()})"
    if _DIED.search(reason):
        return "its Python worker died without a message, as by SIGKILL or SIGSEGV"
    if raised := _RAISED.search(report):
        return f"its Python worker raised {raised['error']}"
    return reason.partition(": ")[2] or reason


def _remedy(times: int, report: str) -> str:
    parts = [_KEPT]
    if _DIED.search(report) and not _FATAL.search(report):
        parts.append("if memory ran out, use more shards or fewer cores; spark.python.worker.faulthandler.enabled=true names crashes")
    if times == 1:
        parts.append('plain local[2] never retries a task, master "local[2,4]" runs it up to 4 times')
    return "; ".join(parts)


def _interrupted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
