"""The shrinker: it keeps the failure, ends at one view, one tick and one row, and its file reads back as the same case."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.plan.nodes import Aggregate
from deltic.plan.walk import nodes
from parts import PARTS, part_of
from programs import Case, case, expected, mixed
from shrink import shrinking, shrunk
from written import read, write


def has_aggregate_and_null(program: Case) -> bool:
    rows = [row for tick in program.ticks for changes in tick.values() for row, _ in changes]
    plans = [node for plan in program.views.values() for node in nodes(plan)]
    return any(None in row for row in rows) and any(isinstance(node, Aggregate) for node in plans)


def test_shrinking_leaves_nothing_removable() -> None:
    seed = next(seed for seed in range(100) if has_aggregate_and_null(case(seed)) and len(case(seed).views) > 1)
    smallest = shrunk(has_aggregate_and_null, case(seed))
    assert len(smallest.views) == len(smallest.ticks) == 1
    ((changes,),) = (tick.values() for tick in smallest.ticks)
    ((row, weight),) = changes
    assert None in row and weight > 0


@pytest.mark.parametrize("program", [case(3), case(19), mixed(37), mixed(49)], ids=str)
def test_a_written_case_is_read_back(program: Case, tmp_path: Path) -> None:
    again = read(write(program, tmp_path))
    assert (again.tables, again.views, again.fails) == (program.tables, program.views, program.fails)
    assert expected(again) == expected(program)


def test_a_failing_check_names_the_file_of_the_shrunk_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shrink.write", lambda program: write(program, tmp_path))

    def check(program: Case) -> None:
        assert not has_aggregate_and_null(program), "planted"

    program = next(case(seed) for seed in range(100) if has_aggregate_and_null(case(seed)))
    with pytest.raises(AssertionError, match="planted") as raised:
        shrinking(check, program, seconds=20)
    (path,) = tmp_path.iterdir()
    assert str(path) in raised.value.__notes__[0]
    assert has_aggregate_and_null(read(path))


def test_every_part_of_the_slow_suite_names_files_that_exist() -> None:
    root = Path(__file__).resolve().parents[2]
    parts = {part_of(str(path.relative_to(root))) for path in root.glob("tests/*/test_*.py")}
    assert parts == set(PARTS)
