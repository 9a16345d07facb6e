"""Random programs and random changes on the embedded runtime, equal to the oracle after every tick."""

from __future__ import annotations

import pytest
from engines import embedded, run
from programs import Case, Mix, Outcome, case, expected

FAST = 120
SLOW = 2_000
REGRESSIONS = (25, 59, 74, 81, 219, 247, 303, 329, 435)
"""Seeds that were once wrong."""


def check(seed: int, *, shards: int, row_by_row: bool = False) -> tuple[Case, list[Outcome]]:
    program = case(seed)
    outcomes = expected(program)
    run(embedded(program.tables, program.views, shards), program, outcomes, row_by_row=row_by_row)
    return program, outcomes


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_seeds_that_were_once_wrong(seed: int) -> None:
    check(seed, shards=1)
    check(seed, shards=3)


def test_random_programs() -> None:
    for seed in range(10_000, 10_000 + FAST):
        check(seed, shards=1 + 2 * (seed % 2), row_by_row=seed % 4 == 0 and not case(seed).fails)


@pytest.mark.slow
def test_many_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix()
    for seed in range(SLOW):
        program, outcomes = check(seed, shards=1)
        mix.record(program, outcomes)
        check(seed, shards=3)
        if not program.fails:
            check(seed, shards=1, row_by_row=True)
            check(seed, shards=3, row_by_row=True)
    with capsys.disabled():
        print(f"\n{mix}")
    mix.assert_fair()
