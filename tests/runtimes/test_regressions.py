"""The shrunk failures in tests/regressions: on one and three shards, row by row, and from state."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.runtimes.embedded import DurableEmbedded
from engines import durable, embedded, run
from parts import slow
from programs import expected
from written import FOLDER, read

CASES = sorted(FOLDER.glob("case_*.py"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("shards", [3, *slow(1)])
def test_a_case_that_once_failed(path: Path, shards: int, tmp_path: Path) -> None:
    program = read(path)
    outcomes = expected(program)
    run(embedded(program.tables, program.views, shards), program, outcomes)
    if not program.fails:
        run(embedded(program.tables, program.views, shards), program, outcomes, row_by_row=True)
    engine = durable(program.tables, program.views, tmp_path / "state", shards)
    try:
        openers = {number: lambda: DurableEmbedded(str(tmp_path / "state"), None) for number in range(len(program.ticks))}
        run(engine, program, outcomes, restarts=openers)
    finally:
        engine.runtime.close()
