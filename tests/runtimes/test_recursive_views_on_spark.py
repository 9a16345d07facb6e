"""Recursive SQL on Spark: deletions that other systems compute incorrectly are right, also after the state is opened again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltic
from checked import Checked, edges
from deltic.errors import Divergence
from recursive_scripts import CLOSURE, EDGES, NON_LINEAR, PARITY, REACHABLE, SAME_GENERATION, SHORTEST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OF_EDGES = EDGES + "".join(
    script.removeprefix(EDGES) for script in (CLOSURE, NON_LINEAR.replace("VIEW paths", "VIEW paths_of_paths"), REACHABLE)
)
WAYS = (
    EDGES
    + """
    CREATE MATERIALIZED VIEW ways AS
        WITH RECURSIVE p MAX RECURSION LEVEL 20 AS (
            SELECT src, dst FROM edges UNION ALL SELECT p.src, e.dst FROM p JOIN edges e ON p.dst = e.src
        )
        SELECT src, dst FROM p;
    """
)


class Restarted:
    """A session on Spark whose state can be reopened."""

    def __init__(self, spark: SparkSession, folder: Path, script: str) -> None:
        self.spark, self.folder = spark, folder
        self.checked = Checked(script, session=self._session())

    def _session(self) -> deltic.Session:
        return deltic.Session(spark=self.spark, state=str(self.folder / "state"))

    def restart(self) -> None:
        """Closes the session, and resumes in another from its state."""
        self.checked.session.close()
        self.checked.open(self._session())


@pytest.mark.slow
def test_paths_are_removed_with_their_support_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    running = Restarted(spark, tmp_path, OF_EDGES)
    views = running.checked.tick({"edges": edges((0, 2), (2, 0), (2, 1), (1, 3), (3, 1))})
    assert len(views["paths"]) == len(views["paths_of_paths"]) == 12
    running.restart()
    views = running.checked.tick({"edges": edges((2, 1), weight=-1)})
    assert set(views["paths"]) == {(a, b) for pair in ((0, 2), (1, 3)) for a in pair for b in pair}
    assert set(views["reached"]) == {(0,), (2,)}
    running.checked.tick({"edges": edges((0, 2), weight=-1) | edges((0, 3))})
    running.checked.session.close()


@pytest.mark.slow
def test_strata_and_minima_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    running = Restarted(spark, tmp_path, SHORTEST + SAME_GENERATION + PARITY)
    running.checked.tick(
        {
            "roads": edges((0, 1, 1), (1, 2, 1), (0, 2, 5), (2, 1, 1), (2, 3, 1)),
            "parents": edges(("b", "a"), ("c", "a"), ("d", "b"), ("e", "c"), ("f", "d"), ("g", "e")),
            "steps": edges((0, 1), (1, 2), (2, 3), (3, 4), (7, 8), (8, 9)),
        }
    )
    running.restart()
    views = running.checked.tick({"roads": edges((0, 1, 1), weight=-1), "parents": edges(("c", "a"), weight=-1), "blocked": edges((2,))})
    assert views["distances"][(3, 6)] == 1
    assert ("f", "g") not in views["generation"]
    running.checked.tick({"roads": edges((0, 2, 5), weight=-1), "parents": edges(("c", "a"), ("e", "b")), "steps": edges((0, 7))})
    running.checked.session.close()


def test_divergence_rolls_the_tick_back(spark: SparkSession, tmp_path: Path) -> None:
    running = Restarted(spark, tmp_path, WAYS)
    running.checked.tick({"edges": edges((0, 1), (1, 2))})
    message = r"recursive relation p has not converged after 20 iterations: the last ones changed \d+, \d+, \d+ rows, such as \(\d, \d\)"
    running.checked.failing({"edges": edges((2, 0))}, Divergence, message)
    running.restart()
    assert running.checked.tick({"edges": edges((2, 3))})["ways"][(0, 3)] == 1
    running.checked.session.close()
