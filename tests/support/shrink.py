"""Failing programs shrink by themselves: views, ticks and rows go as long as the failure stays, and the rest is kept as a regression."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeVar

from programs import Case, applied, empty
from written import write

T = TypeVar("T")

SECONDS: Final = 60.0
"""How long shrinking may take."""


def shrinking(check: Callable[[Case], T], program: Case, *, seconds: float = SECONDS) -> T:
    """What the check of the program gives. If it fails, a smaller program that fails alike is written to tests/regressions and named."""
    try:
        return check(program)
    except Exception as error:
        kind = type(error)
        smallest = shrunk(lambda smaller: fails_alike(check, smaller, kind), program, seconds=seconds)
        error.add_note(f"shrunk to {write(smallest)}; keep it there, {program} may be another program tomorrow")
        raise


def fails_alike(check: Callable[[Case], object], program: Case, kind: type[Exception]) -> bool:
    """Whether the check of the program raises an error of this class."""
    try:
        check(program)
    except kind:
        return True
    except Exception:  # another failure: not the one that is looked for
        return False
    return False


def shrunk(fails: Callable[[Case], bool], program: Case, *, seconds: float = SECONDS) -> Case:
    """A program that fails and of which no single view, tick or run of rows can go, as far as there is time."""
    until = time.monotonic() + seconds
    smaller: Case | None = program
    while smaller is not None:
        program = smaller
        smaller = next((part for part in _parts(program) if time.monotonic() < until and _is_possible(part) and fails(part)), None)
    return program


def _parts(program: Case) -> Iterator[Case]:
    """The program without something, the largest things first."""
    for name in program.views:
        if len(program.views) > 1:
            yield replace(program, views={other: plan for other, plan in program.views.items() if other != name})
    for number in range(len(program.ticks) - 1, -1, -1):
        yield replace(program, ticks=[tick for i, tick in enumerate(program.ticks) if i != number])
    for number, tick in enumerate(program.ticks):
        for name, rows in tick.items():
            size = len(rows)
            while size:
                for start in range(0, len(rows), size):
                    left = [*rows[:start], *rows[start + size :]]
                    changed = {**tick, name: left} if left else {other: part for other, part in tick.items() if other != name}
                    yield replace(program, ticks=[changed if i == number else other for i, other in enumerate(program.ticks)])
                size //= 2


def _is_possible(program: Case) -> bool:
    """Whether the tables never have a row fewer than 0 times, nor two rows under one key."""
    tables = empty(program.tables)
    for tick in program.ticks:
        tables = applied(tables, tick)
        for name, relation in tables.items():
            key, seen = program.tables[name].key, set()
            for row, weight in relation.pairs():
                under = tuple(row[i] for i in key) if key else row
                if weight < 0 or (key and (weight > 1 or under in seen)):
                    return False
                seen.add(under)
    return bool(program.ticks)
