"""Streams: random programs equal the oracle after every tick, on one and several shards and over restarts; nothing is kept of a stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.runtimes.embedded import DurableEmbedded, Embedded
from engines import Engine
from seeds import rotating
from stream_programs import compare, stream_case


def try_programs(tmp_path: Path, seeds: range) -> int:
    """How many of the programs read a stream."""
    programs = [program for seed in seeds if (program := stream_case(seed)) is not None]
    for program in programs:
        compare(program, Engine(Embedded(1), program.tables, program.views))
        compare(program, Engine(Embedded(3), program.tables, program.views))
        folder = str(tmp_path / f"{program.seed}")
        compare(
            program, Engine(DurableEmbedded(folder, 2), program.tables, program.views), lambda folder=folder: DurableEmbedded(folder, None)
        )
    return len(programs)


def test_random_programs_over_streams_equal_the_oracle(tmp_path: Path) -> None:
    assert try_programs(tmp_path, range(12)) > 6


@pytest.mark.slow
def test_many_random_programs_over_streams(tmp_path: Path) -> None:
    assert try_programs(tmp_path, rotating(1_000)) > 500
