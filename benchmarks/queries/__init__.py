"""The texts of queries that many systems answer, and their tables. Those of TPC are in Spark's tests (Apache License 2.0).

tpch: the 22 queries of TPC-H. tpcds: those of TPC-DS 1.4 (99, four of them in two variants). tpcds_2_7: those that version 2.7 has changed.
nexmark: the 23 of Nexmark, as one writes them for Spark; q12 takes the time of the events for its own. The tables have the benchmarks'
primary keys; CHAR and VARCHAR columns are STRINGs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SUITES: Final[Mapping[str, str]] = {"tpch": "tpch", "tpcds": "tpcds", "tpcds_2_7": "tpcds", "nexmark": "nexmark"}
"""Each suite, and that whose tables it reads."""
_FOLDER: Final = Path(__file__).parent


def texts(suite: str) -> dict[str, str]:
    """The queries by name, in the order of their numbers.

    >>> len(texts("tpch")), len(texts("tpcds")), len(texts("tpcds_2_7")), list(texts("tpcds"))[13:16]
    (22, 103, 32, ['q14a', 'q14b', 'q15'])
    """
    paths = sorted((_FOLDER / suite).glob("q*.sql"), key=lambda path: _number(path.stem))
    return {path.stem: path.read_text().strip().rstrip(";") for path in paths}


def tables(suite: str) -> str:
    """The CREATE TABLE statements of a suite."""
    return (_FOLDER / SUITES[suite] / "schema.sql").read_text()


def _number(name: str) -> tuple[int, str]:
    match = re.fullmatch(r"q(\d+)(\w*)", name)
    assert match is not None, name
    return int(match[1]), match[2]
