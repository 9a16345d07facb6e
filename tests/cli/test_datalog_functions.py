"""`deltic datalog --functions`: extern functions from a Python module."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.cli import main
from deltic.cli.exits import Exit

PROGRAM = """
extern function tenfold(x: s64): s64
extern function name_of(x: s64): Option<string>
input relation R(x: s64)
output relation O(x: s64, name: string)
O(tenfold(x), name) :- R(x), Some{var name} = name_of(x).
"""
MODULE = """
import deltic
from tables import NAMES

tenfold = deltic.UDF("tenfold", lambda x: 10 * x, int)
name_of = deltic.UDF("name_of", lambda x: NAMES.get(x), str)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "own_functions.py").write_text(MODULE)
    (tmp_path / "tables.py").write_text('NAMES = {2: "two"}')
    (tmp_path / "p.dat").write_text("start; insert R(1), insert R(2); commit dump_changes; dump;")
    return tmp_path


def run(folder: Path, *options: str) -> int:
    return main(["datalog", str(folder / "p.dl"), "--script", str(folder / "p.dat"), *options])


def test_extern_functions_are_those_of_the_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--functions", str(folder / "own_functions.py"), "--state", str(folder / "state")
    row = 'O{.x = 20, .name = "two"}'
    assert run(folder, *options) == Exit.OK
    assert capsys.readouterr().out == f"O:\n{row}: +1\nO:\n{row}\n\n"
    assert run(folder, *options) == Exit.OK
    assert capsys.readouterr().out == f"O:\n{row}\n\n"


def test_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder) == Exit.INPUT
    assert "the extern function name_of is not registered" in capsys.readouterr().err
    assert run(folder, "--functions", str(folder / "tables.py")) == Exit.INPUT
    error = capsys.readouterr().err
    assert "tables.py has no functions" in error and 'double = deltic.UDF("double"' in error
