"""Failed Spark jobs as one short error, and workers without Deltic reported before the first tick."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest

pytest.importorskip("pyspark")

import deltic
from deltic.errors import SetupError, TaskFailed
from deltic.runtimes.spark.failures import explain_failure
from deltic.runtimes.spark.task import DIFFERENT_CODE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORT = """An error occurred while calling o147.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 2.0 failed {times}, most recent failure: \
Lost task 1.3 in stage 2.0 (TID 8) (localhost executor driver): {reason}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:704)
"""
DIED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting 'spark.python.worker.…' config"
FAILED_FOUR_TIMES = r"^\[DELTIC-7001\] Task \d+ in stage \S+ on \S+ \(executor driver\) failed 4 times, so the tick"
TASK = "Task 1 in stage 2.0 on localhost (executor driver) failed"
KEPT = "help: state and views are unchanged; the same changes may be applied again"
RAISED = """org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python worker: \
Traceback (most recent call last):
  File "/app/task.py", line 164, in __call__
    circuit = load(self.program)
              ^^^^^^^^^^^^^^^^^^
{error}
 SQLSTATE: 38000"""
MEMORY = "; if memory ran out, use more shards or fewer cores; spark.python.worker.faulthandler.enabled=true names crashes"


@pytest.mark.parametrize(
    ("times", "reason", "text"),
    [
        (
            "4 times",
            DIED,
            f"{TASK} 4 times, so the tick was not committed: "
            f"its Python worker died without a message, as by SIGKILL or SIGSEGV\n{KEPT}{MEMORY}",
        ),
        (
            "1 times",
            DIED + ": Fatal Python error: Segmentation fault",
            f"{TASK} once, so the tick was not committed: its Python worker died (Segmentation fault)\n{KEPT}; "
            'plain local[2] never retries a task, master "local[2,4]" runs it up to 4 times',
        ),
        (
            "4 times",
            "java.io.IOException: No space left on device",
            f"{TASK} 4 times, so the tick was not committed: No space left on device\n{KEPT}",
        ),
        (
            "4 times",
            RAISED.format(error="OSError: [Errno 24] Too many open files"),
            f"{TASK} 4 times, so the tick was not committed: its Python worker raised OSError: [Errno 24] Too many open files\n{KEPT}",
        ),
    ],
)
def test_a_report_becomes_a_few_lines(times: str, reason: str, text: str) -> None:
    error = explain_failure(REPORT.format(times=times, reason=reason))
    assert isinstance(error, TaskFailed)
    assert str(error) == f"[DELTIC-7001] {text}"


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (
            "[SPARK_JOB_CANCELLED] Job 46 cancelled as part of cancellation of all jobs SQLSTATE: XXKDA",
            "as part of cancellation of all jobs",
        ),
        ("[SPARK_JOB_CANCELLED] Job 46 cancelled . SQLSTATE: XXKDA\n\tat org.apache", "Spark gives no reason"),
        ("[SPARK_JOB_CANCELLED] Job 46 cancelled because SparkContext was shut down", "because SparkContext was shut down"),
    ],
)
def test_a_job_that_was_cancelled_changes_nothing(report: str, reason: str) -> None:
    error = explain_failure(f"An error occurred while calling o57.getResult.\n: org.apache.spark.SparkException: {report}")
    assert isinstance(error, TaskFailed)
    assert str(error) == f"[DELTIC-7001] Job 46 was cancelled, so the tick was not committed: {reason}\n{KEPT}"


def test_other_reports_are_unchanged() -> None:
    assert explain_failure("[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found.") is None


def test_a_missing_package_is_a_setup_error() -> None:
    error = explain_failure("pyspark.errors.PythonException: …\nModuleNotFoundError: No module named 'deltic'")
    assert isinstance(error, SetupError) and "PYSPARK_PYTHON" in str(error)


def test_another_version_of_python_is_one_error() -> None:
    mismatch = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with …"
    report = REPORT.format(times="4 times", reason=RAISED.format(error=f"pyspark.errors.exceptions.base.PySparkRuntimeError: {mismatch}"))
    error = explain_failure(report)
    assert isinstance(error, SetupError)
    assert str(error).splitlines() == [
        "[DELTIC-7000] Spark's workers run Python 3.12, and this program Python 3.11; nothing was committed",
        "help: set PYSPARK_PYTHON to a Python that has Deltic, such as sys.executable here, before the Spark session is created",
    ]


def test_another_version_of_deltic_is_one_error() -> None:
    report = REPORT.format(times="4 times", reason=RAISED.format(error=f"RuntimeError: {DIFFERENT_CODE}: Can't get attribute 'Listing'"))
    error = explain_failure(report)
    assert isinstance(error, SetupError)
    assert str(error).splitlines() == [
        "[DELTIC-7000] Spark's workers have another version of Deltic than this program; nothing was committed",
        "help: install the same version on the workers as here, in the Python that PYSPARK_PYTHON names",
    ]


def test_a_module_that_the_workers_lack_is_named() -> None:
    report = REPORT.format(times="4 times", reason=RAISED.format(error="ModuleNotFoundError: No module named 'rules.prices'"))
    error = explain_failure(report)
    assert isinstance(error, SetupError)
    assert str(error).splitlines() == [
        "[DELTIC-7000] Spark's workers cannot import module rules.prices, which the program's functions need; nothing was committed",
        "help: send its file with spark.sparkContext.addPyFile(path) or spark-submit --py-files, or install it on the workers",
    ]


@pytest.mark.slow
@pytest.mark.spark
def test_a_module_that_the_workers_lack_is_named_until_it_is_sent(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "only_on_the_driver.py"
    path.write_text("def double(row):\n    return 2 * row.v\n")
    monkeypatch.syspath_prepend(tmp_path)
    double = importlib.import_module("only_on_the_driver").double
    circuit = deltic.Circuit()
    circuit.output("o", circuit.input("t", schema={"v": int}).map(double, schema={"v": int}))
    said = r"^\[DELTIC-7000\] Spark's workers cannot import module only_on_the_driver, [^\n]*\nhelp: send its file with [^\n]*$"
    with deltic.Session(spark=spark) as session:
        with pytest.raises(SetupError, match=said):
            session.install(circuit)
        spark.sparkContext.addPyFile(str(path))
        session.install(circuit)
        session.apply({"t": [{"v": 4, "_op": "insert"}]})
        assert session.view("o").rows() == [{"v": 8}]


@pytest.mark.slow
@pytest.mark.spark
def test_a_killed_worker_changes_nothing(spark: SparkSession) -> None:
    def die(row: Any) -> int:
        if row.v == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        return int(row.v)

    circuit = deltic.Circuit()
    circuit.output("o", circuit.input("t", schema={"v": int}).map(die, schema={"v": int}))
    with deltic.Session(spark=spark) as session:
        session.install(circuit)
        with session.transaction() as tx:
            tx.insert("t", [{"v": 1}])
        with (
            pytest.raises(TaskFailed, match=FAILED_FOUR_TIMES) as raised,
            session.transaction() as tx,
        ):
            tx.insert("t", [{"v": 13}])
        assert len(str(raised.value).splitlines()) == 2 and raised.value.__cause__ is not None
        with session.transaction() as tx:
            tx.insert("t", [{"v": 2}])
        assert sorted(row["v"] for row in session.view("o").rows()) == [1, 2]


BLOCKING = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name in ("deltic", "pyarrow", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
"""


@pytest.mark.spark
def test_workers_without_deltic_are_named_before_the_first_tick(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKING)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))  # PYSPARK_PYTHON when a session is created
    monkeypatch.setattr("deltic.runtimes.spark.failures._checked", WeakSet())
    with pytest.raises(SetupError) as raised:
        deltic.Session(spark=spark)
    first, second = str(raised.value).splitlines()
    assert first.startswith("[DELTIC-7000] Spark's workers run ") and first.endswith("which cannot import Deltic: No module named 'deltic'")
    assert second.startswith("help: set PYSPARK_PYTHON")


@pytest.mark.spark
def test_workers_with_another_version_are_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.spark.failures.own_version", lambda: "0.0.7")
    monkeypatch.setattr("deltic.runtimes.spark.failures._checked", WeakSet())
    with pytest.raises(SetupError, match=r"Spark's workers have Deltic \S+, and this program has 0\.0\.7\nhelp: install the same version"):
        deltic.Session(spark=spark)
