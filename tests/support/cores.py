"""Runs every level of the embedded runtime on both cores, the program and the operators' steps, and compares what they return.

A third run has the steps of large ticks, in which linear operators pass over blocks of rows by instructions, here of three rows each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
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

ARRIVED = 6
"""The position of `arrived` among the arguments of `run_level`."""


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
    compared, one_by_one = Compared(), Lock()
    large = False

    def pass_natively(*arguments: Any) -> Delta | None:
        rows = passes.pass_natively(*arguments) if large else None
        compared.passes += rows is not None
        return rows

    def run_level(*arguments: Any, native: bool, **options: Any) -> Any:
        with one_by_one:  # concurrent shards would overwrite each other's CORE, and one could restore the other's value
            return compare(*arguments, native=native, **options)

    def run(*arguments: Any, **options: Any) -> Any:
        return stage.run_level(*(dict(each) if each is arguments[ARRIVED] else each for each in arguments), **options)

    def compare(*arguments: Any, native: bool, **options: Any) -> Any:
        nonlocal large
        circuit, level, *_ = arguments
        assert native
        program = run(*arguments, native=True, **options)
        large = True
        passed = run(*arguments, native=False, **options)
        large = False
        with pytest.MonkeyPatch.context() as steps:
            steps.setattr(stage, "CORE", "python")
            reference = run(*arguments, native=False, **options)
        _assert_same(program, reference)
        _assert_counted(program.counters, reference.counters)
        _assert_same(passed, reference)
        _assert_counted(passed.counters, reference.counters, added_up=True)
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
        patched.setattr(passes, "STRETCH_ROWS", 7)
        yield compared


def _assert_same(result: stage.LevelResult, reference: stage.LevelResult) -> None:
    """Equal rows, or equal errors."""
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


def _assert_equal(batch: Delta, other: Delta) -> None:
    assert len(batch) == len(other)
    for words, others in zip((*batch.columns, *batch.weights), (*other.columns, *other.weights), strict=True):
        assert np.array_equal(words, others)


def _assert_counted(counted: Mapping[str, Counters], others: Mapping[str, Counters], *, added_up: bool = False) -> None:
    """added_up: the rows between operators may be fewer, since passes add up equal ones."""
    assert counted.keys() <= others.keys() if added_up else counted.keys() == others.keys()
    for name, counters in counted.items():
        other = others[name]
        if added_up:
            assert counters.rows_in <= other.rows_in and counters.rows_out <= other.rows_out and counters.touched <= other.touched
        else:
            assert (counters.rows_in, counters.rows_out, counters.touched) == (other.rows_in, other.rows_out, other.touched)
        assert counters.batches == other.batches


def _record(compared: Compared, program: LevelProgram, counters: LevelCounters) -> None:
    compared.levels += 1
    for node in program.nodes:
        if node.name in counters:
            tally = compared.stepped if node.name in counters.stepped else compared.native
            name = type(node.operator).__name__
            tally[name] = tally.get(name, 0) + 1
