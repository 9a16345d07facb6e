"""Every aggregate after random inserts and deletes equals the oracle's result from scratch, to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.circuit import results
from deltic.runtimes.embedded import DurableEmbedded
from engines import durable, embedded, restarts, run
from grouped_programs import calls, grouped_case, source
from program_plans import built_in
from programs import expected
from seeds import rotating

FAST = 2
SLOW = 160
SLICES = 8


def check(seed: int, folder: Path | None = None) -> None:
    """On one shard or three, in ticks or row by row; or with restarts from a folder, also with another number of shards. Half of the seeds
    estimate the aggregates of single groups, too."""
    with pytest.MonkeyPatch.context() as patch:
        if seed % 4 < 2:
            patch.setattr(results, "ESTIMATED", 1)
        compare(seed, folder)


def compare(seed: int, folder: Path | None) -> None:
    case = grouped_case(seed)
    outcomes = expected(case)
    if folder is None:
        run(embedded(case.tables, case.views, 1 + 2 * (seed % 2)), case, outcomes, row_by_row=seed % 3 == 0)
        return
    engine = durable(case.tables, case.views, folder, 1 + seed % 3)
    try:
        openers = restarts(seed, len(case.ticks), lambda shards: DurableEmbedded(str(folder), shards))
        run(engine, case, outcomes, restarts=openers)
    finally:
        engine.runtime.close()


def test_random_groups() -> None:
    for seed in range(FAST):
        check(seed)


def test_random_groups_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(100, 101):
        check(seed, tmp_path / str(seed))


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(SLICES))
def test_many_random_groups(slice_: int, tmp_path: Path) -> None:
    for seed in rotating(SLOW)[slice_::SLICES]:
        check(seed, tmp_path / str(seed) if seed % 5 == 0 else None)


def test_every_function_accepts_some_column() -> None:
    schema = source().table.schema
    assert [f.name for f in built_in() if not list(calls(f, schema))] == []
