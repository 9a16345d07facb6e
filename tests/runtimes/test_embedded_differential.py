"""Random programs and random changes on the embedded runtime, equal to the oracle after every tick, also from reopened state."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from engines import checked_durable, embedded, run
from programs import Case, Mix, Outcome, case, expected, mixed
from seeds import rotating
from shrink import shrinking

FAST = 16
FEW = 4
SLOW = 2_000
SLOW_DURABLE = 600
RECURSIVE_FAST = 20
RECURSIVE_SLOW = 5_000
RECURSIVE_SLICE = 100


def check(seed: int, *, shards: int, row_by_row: bool = False) -> tuple[Case, list[Outcome]]:
    return check_case(case(seed), shards=shards, row_by_row=row_by_row)


def check_case(program: Case, *, shards: int, row_by_row: bool = False) -> tuple[Case, list[Outcome]]:
    def checked(program: Case) -> list[Outcome]:
        outcomes = expected(program)
        run(embedded(program.tables, program.views, shards), program, outcomes, row_by_row=row_by_row)
        return outcomes

    return program, shrinking(checked, program)


def check_durable(program: Case, folder: Path) -> tuple[list[Outcome], bool]:
    """As `checked_durable`; a failing case is shrunk."""
    return shrinking(lambda program: checked_durable(program, folder), program)


def test_random_programs() -> None:
    for seed in range(10_000, 10_000 + FAST):
        check(seed, shards=1 + 2 * (seed % 2), row_by_row=seed % 4 == 0 and not case(seed).fails)


def test_random_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(11_000, 11_000 + FEW):
        check_durable(case(seed), tmp_path)


def test_random_recursive_programs() -> None:
    for seed in range(30_000, 30_000 + RECURSIVE_FAST):
        if seed % 10 >= 5:
            check_case(mixed(seed), shards=1 + 2 * (seed % 2), row_by_row=seed % 4 == 0)


def test_random_recursive_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(31_005, 31_005 + FEW):
        if seed % 10 >= 5:
            check_durable(mixed(seed), tmp_path)


def recursive_slice(seeds: range, folder: Path) -> Mix:
    """Checks these cases; ten of each hundred have their state in a folder, and resume from it at random ticks."""
    mix = Mix()
    for seed in seeds:
        program = mixed(seed)
        if seed // 10 % 10 == 3:
            outcomes, restarted = check_durable(program, folder)
            mix.record(program, outcomes, restarted=restarted)
        else:
            mix.record(*check_case(program, shards=1 + 2 * (seed % 2), row_by_row=seed % 3 == 0 and not program.fails))
    return mix


@pytest.mark.slow
def test_many_random_recursive_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs on all cores. The slices are small, so that the first failure is reported early."""
    seeds = rotating(RECURSIVE_SLOW)
    slices = [seeds[start : start + RECURSIVE_SLICE] for start in range(0, len(seeds), RECURSIVE_SLICE)]
    mix = Mix()
    pool = ProcessPoolExecutor(mp_context=get_context("spawn"))
    try:
        for part in [pool.submit(recursive_slice, seeds, tmp_path) for seeds in slices]:
            mix += part.result()
    finally:
        pool.shutdown(cancel_futures=True)
    with capsys.disabled():
        print(f"\n{mix}")
    mix.assert_recursive(restarted=0.08)


@pytest.mark.slow
def test_many_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    mix = Mix()
    for seed in rotating(SLOW):
        program, outcomes = check(seed, shards=1)
        mix.record(program, outcomes)
        check(seed, shards=3)
        if not program.fails:
            check(seed, shards=1, row_by_row=True)
            check(seed, shards=3, row_by_row=True)
    with capsys.disabled():
        print(f"\n{mix}")
    mix.assert_fair()


@pytest.mark.slow
def test_many_random_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in rotating(SLOW_DURABLE):
        check_durable(case(seed), tmp_path)
