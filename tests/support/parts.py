"""The parts of the slow suite, each of at most 20 minutes on two cores: `pytest -m slow --part recursions`."""

from __future__ import annotations

from typing import Any, Final

import pytest

REST: Final = "rest"
_FILES: Final = {
    "checked": ("tests/kernels/test_checked_build.py",),
    "recursions": ("tests/runtimes/test_embedded_differential.py", "tests/lowering/", "tests/circuit/test_nested"),
    "programs": ("tests/optimizer/", "tests/aggregates/test_incremental"),
    "cycles": ("tests/runtimes/test_cyclic_joins.py", "tests/circuit/test_multiway.py", "tests/wcoj/"),
    "spark": ("tests/runtimes/test_", "tests/spark/"),
    "datalog": ("tests/frontends/test_datalog",),
    "edn": ("tests/frontends/test_edn",),
    "streams": ("tests/frontends/test_stream", "tests/frontends/test_feedback", "tests/sources/"),
    "queries": ("tests/frontends/test_tpc", "tests/frontends/test_nexmark"),
    "sql": ("tests/frontends/", "tests/expr/"),
    "crashes": ("tests/pipeline/", "tests/storage/", "tests/session/test_interrupted", "tests/session/test_group_commit", "tests/disk/"),
}
PARTS: Final = (*_FILES, REST)


def slow(*cases: Any) -> list[Any]:
    """Cases of a parametrized test that the slow suite alone runs; a tuple is the values of several parameters."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]


def part_of(path: str) -> str:
    """The part of a test by the path of its file from the root; the first that names it.

    >>> part_of("tests/runtimes/test_cyclic_joins.py"), part_of("tests/runtimes/test_time_on_spark.py"), part_of("tests/cli/test_run.py")
    ('cycles', 'spark', 'rest')
    """
    return next((part for part, files in _FILES.items() if path.startswith(files)), REST)
