"""What a Python worker of Spark keeps open between its tasks."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import deltic
from deltic.circuit.nodes import Dataflow
from deltic.circuit.operator import Tick
from deltic.storage.manifest import Manifest
from deltic.storage.reader import StateReader

pytest.importorskip("pyspark")

from deltic.runtimes.spark.task import WARM_STATES, Assignment, _Warm


def stored(root: Path) -> tuple[Dataflow, Manifest]:
    """The circuit and the manifest of a new state, which is closed."""
    with deltic.Session(state=str(root)) as session:
        session.sql("CREATE TABLE t (id BIGINT, g STRING, PRIMARY KEY (id))")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
        session.apply({"t": [{"id": i, "g": f"g{i % 7}", "_op": "insert"} for i in range(1000)]})
        circuit = session._definitions.circuit
    with StateReader.open(root, lease_s=None) as reader:
        return circuit, reader.manifest


def run(warm: _Warm, root: Path, circuit: Dataflow, manifest: Manifest, generation: int) -> int:
    """Opens what a task on each level opens; returns how many spines were not open before."""
    opened = 0
    for number, level in enumerate(circuit.levels):
        assignment = Assignment.of(str(root), generation, Tick(manifest.epoch + 1), level, manifest, 0)
        arrangements = warm.arrangements(assignment, circuit, 0, 1, number)
        opened += len(arrangements) - len(arrangements._spines)
        assert sum(arrangements[name].rows for name in arrangements)
    return opened


def mapped(root: Path) -> int:
    """How many maps of the state's files this process has."""
    gc.collect()
    return sum(str(root) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_the_files_of_states_that_are_no_longer_used_are_closed(tmp_path: Path) -> None:
    warm, roots = _Warm(), [tmp_path / f"state-{i}" for i in range(WARM_STATES + 2)]
    states = {root: stored(root) for root in roots}
    assert not any(map(mapped, roots))
    for root in roots:
        assert run(warm, root, *states[root], 1) > 0
        assert run(warm, roots[0], *states[roots[0]], 1) == 0 or root is roots[0], "the state that is used meanwhile stays open"
    assert [root for root in roots if not mapped(root)] == roots[1:3]


def test_the_files_of_earlier_writers_are_closed(tmp_path: Path) -> None:
    warm, (circuit, manifest) = _Warm(), stored(tmp_path)
    assert run(warm, tmp_path, circuit, manifest, 1) > 0 == run(warm, tmp_path, circuit, manifest, 1)
    before = mapped(tmp_path)
    assert run(warm, tmp_path, circuit, manifest, 2) > 0
    assert mapped(tmp_path) == before
    assert warm.states[str(tmp_path)].generation == 2
