"""Fixtures for the tests of every room: golden files, and Spark."""

from __future__ import annotations

import faulthandler
import gc
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import is_hypothesis_test, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from deltic import purity
from deltic.kernels import warm_up
from deltic.trace.identity import Identity
from goldens import Goldens
from parts import PARTS, part_of
from seeds import KEY, ROTATION

MEMORY: Final = "/dev/shm"
MEMORY_BYTES: Final = 4 << 30
"""What the tests' temporary folders need at most, several times over."""
DEEP: Final = "-XX:+UseSerialGC -XX:-UsePerfData -Xss8m"
"""For JSON of 999 levels: where a thread of Spark's ends with a full stack, its query has no end."""
QUICK: Final = f"{DEEP} -XX:TieredStopAtLevel=1"
"""Java's second compiler takes a quarter of the CPU that the fast suite's Spark takes, and is repaid in longer runs only."""
READ_BY_DATA_SOURCE: Final = ("tests/docs/test_docs", "tests/runtimes/test_old_states", "tests/spark/test_datasource")
settings.register_profile("few", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("many", max_examples=500, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden files anew from what the code gives now")
    parser.addoption("--part", choices=PARTS, help="of the slow suite this part alone; each takes at most 20 minutes on two cores")


def pytest_configure(config: pytest.Config) -> None:
    """Compiles all kernels once, before workers start, so that no test meets the lines that say so.

    Temporary folders are in memory where there is enough, since a sync of a disk takes milliseconds, and a commit makes several.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; tests interrupt themselves
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("many" if config.option.markexpr == "slow" else "few")
    with suppress(OSError):
        if shutil.disk_usage(MEMORY).free > MEMORY_BYTES and os.access(MEMORY, os.W_OK):
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
    if not hasattr(config, "workerinput"):
        warm_up()
    elif config.getoption("--update-goldens"):
        raise pytest.UsageError("--update-goldens without -n: workers would overwrite each other's sections")


def pytest_report_header() -> str:
    return f"random seeds of the slow suite: DELTIC_ROTATION={ROTATION}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Without Python's collector of cycles, which takes a quarter of the time: it walks the trees of rewritten modules again and again.

    What is collected by then stays to the end, so that later collections leave it out: they took a tenth of the tests' time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # extensions complain about what is left at exit


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several workers, tests that need Spark are one group, which shares a session. --part leaves out the other parts.

    Laws with Hypothesis are in both suites: the fast one tries few examples, and always the same. What reads views by the data source comes
    last: Spark ends Python workers that are idle for a minute, and has one for each step of such a read.
    """
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None and item.nodeid.startswith(READ_BY_DATA_SOURCE))
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if config.option.markexpr == "slow" and isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            item.add_marker(pytest.mark.slow)
    if (part := config.getoption("--part")) is not None:
        others = [item for item in items if part_of(item.nodeid) != part]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if part_of(item.nodeid) == part]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A slow test may take as long as it does; the limit of pyproject.toml has begun by now."""
    if item.get_closest_marker("slow"):
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _same_string_ids(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every state has the same key, so that a run can be repeated: the order of string ids decides the order of rows.

    DELTIC_ROTATION gives another key. Tests of drawn keys are marked `drawn_key`.
    """
    if not request.node.get_closest_marker("drawn_key"):
        monkeypatch.setattr(Identity, "drawn", staticmethod(lambda: Identity(KEY)))


@pytest.fixture
def repeated_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of users' functions are repeated, as with DELTIC_REPEAT_CALLS=1."""
    monkeypatch.setattr(purity, "REPEATED", True)


@pytest.fixture
def goldens(request: pytest.FixtureRequest) -> Goldens:
    """The golden file beside the test file, of its name without `test_`."""
    return Goldens(request.path.with_name(f"{request.path.stem.removeprefix('test_')}.txt"), request.config.getoption("--update-goldens"))


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A Spark session that Deltic made, on two cores; one for all the tests that need one from the first of them on.

    Every tick is a job, except with `driver_ticks`.
    """
    pytest.importorskip("pyspark")
    from deltic.runtimes.spark.session import local_session  # noqa: PLC0415  needs the extra

    java = DEEP if request.config.option.markexpr == "slow" else QUICK
    settings = {"spark.driver.extraJavaOptions": java, "spark.sql.timeType.enabled": "true", "spark.deltic.driverRows": "0"}
    session = local_session(2, name="deltic tests", settings=settings)
    yield session
    session.stop()


@pytest.fixture
def driver_ticks(spark: SparkSession) -> Iterator[None]:
    """The driver computes small ticks of the sessions that the test opens, as by default."""
    before = spark.conf.get("spark.deltic.driverRows")
    spark.conf.unset("spark.deltic.driverRows")
    yield
    spark.conf.set("spark.deltic.driverRows", before or "0")


@pytest.fixture
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Functions and classes of the test's module travel by value: Spark's workers cannot import it."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)
