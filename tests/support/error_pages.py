"""Test support: pages of programs that are refused, each with its error: `program`, a line ----, the error, a line ====."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def cases_of(page: Path) -> list[tuple[str, str]]:
    """The programs with their errors."""
    blocks = page.read_text(encoding="utf-8").split("\n====\n")
    parted = (block.partition("\n----") for block in blocks if block.strip())
    return [(program.strip("\n"), text.strip("\n")) for program, _, text in parted]


def update(page: Path, error_of: Callable[[str], str], pytestconfig: pytest.Config) -> None:
    """Writes the errors as they are now, if goldens are to be updated."""
    if pytestconfig.getoption("--update-goldens"):
        page.write_text("".join(f"{program}\n----\n{error_of(program)}\n====\n" for program, _ in cases_of(page)), encoding="utf-8")
