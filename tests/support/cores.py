"""Runs every level of the embedded runtime on both cores, the program and the operators' steps, and compares what they return.

A third run has the steps of large ticks, in which linear operators pass over blocks of rows by instructions, here of three rows each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from deltic.circuit import stage
from deltic.circuit.operator import Delta
from deltic.circuit.programs import passes
from deltic.circuit.programs.counted import LevelCounters
from deltic.circuit.programs.program import LevelProgram, program_of
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters


class Compared:
    """levels: how many runs of programs were compared. native, stepped: how many nodes ran as instructions, or by `step`, by operator.

    passes: how many passes over blocks were.
    """

    def __init__(self) -> None:
        self.levels = self.passes = 0
        self.native: dict[str, int] = {}
        self.stepped: dict[str, int] = {}


@contextmanager
def both_cores() -> Iterator[Compared]:
    """In the block each level is also run by its operators' steps: equal rows, equal counters, equal errors."""
    compared = Compared()

    def pass_natively(*arguments: Any) -> Delta | None:
        rows = passes.pass_natively(*arguments)
        compared.passes += rows is not None
        return rows

    def run_level(circuit: Any, level: int | None, *rest: Any, native: bool, **options: Any) -> Any:
        assert native
        program = stage.run_level(circuit, level, *rest, native=True, **options)
        passed = stage.run_level(circuit, level, *rest, native=False, **options)
        with pytest.MonkeyPatch.context() as steps:
            steps.setattr(stage, "CORE", "python")
            reference = stage.run_level(circuit, level, *rest, native=False, **options)
        _assert_same(program, reference)
        _assert_same(passed, reference)
        if reference.failure is not None:
            return reference
        if isinstance(program.counters, LevelCounters):
            _record(compared, program_of(circuit.whole if level is None else circuit.levels[level]), program.counters)
        return program

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("deltic.runtimes.embedded.levels.run_level", run_level)
        patched.setattr(stage, "pass_natively", pass_natively)
        patched.setattr(passes, "LEAST_ROWS", 2)
        patched.setattr(passes, "BLOCK_ROWS", 3)
        yield compared


def _assert_same(result: stage.LevelResult, reference: stage.LevelResult) -> None:
    """Equal rows and counters, or equal errors."""
    assert result.failure == reference.failure
    if reference.failure is not None:
        return
    assert result.appended.keys() == reference.appended.keys()
    for name, batch in result.appended.items():
        _assert_equal(batch, reference.appended[name])
    assert result.sent.keys() == reference.sent.keys()
    for port, parts in result.sent.items():
        for part, other in zip(parts, reference.sent[port], strict=True):
            _assert_equal(consolidate(part), consolidate(other))
    _assert_counted(result.counters, reference.counters)


def _assert_equal(batch: Delta, other: Delta) -> None:
    assert len(batch) == len(other)
    for words, others in zip((*batch.columns, *batch.weights), (*other.columns, *other.weights), strict=True):
        assert np.array_equal(words, others)


def _assert_counted(counted: Mapping[str, Counters], others: Mapping[str, Counters]) -> None:
    def work(counters: Mapping[str, Counters]) -> dict[str, tuple[int, int, int, int]]:
        return {name: (c.rows_in, c.rows_out, c.touched, c.batches) for name, c in counters.items()}

    assert work(counted) == work(others)


def _record(compared: Compared, program: LevelProgram, counters: LevelCounters) -> None:
    compared.levels += 1
    for node in program.nodes:
        if node.name in counters:
            tally = compared.stepped if node.name in counters.stepped else compared.native
            name = type(node.operator).__name__
            tally[name] = tally.get(name, 0) + 1
