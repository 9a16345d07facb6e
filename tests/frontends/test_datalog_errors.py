"""Every error of the Datalog front end, with place and remedy: datalog_errors.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from deltic.errors import DelticError
from deltic.frontends.datalog import bind_datalog
from deltic.session import Datalog
from deltic.session.catalog import Catalog
from deltic.session.datalog import datalog_statements
from deltic.session.draft import Draft

PAGE = Path(__file__).with_name("datalog_errors.txt")


def cases() -> list[tuple[str, str]]:
    blocks = PAGE.read_text(encoding="utf-8").split("\n====\n")
    parted = (block.partition("\n----") for block in blocks if block.strip())
    return [(program.strip("\n"), text.strip("\n")) for program, _, text in parted]


def error_of(program: str) -> str:
    """The error, or the warnings."""
    draft = Draft(Catalog())
    try:
        for statement in datalog_statements(Datalog(program, "test"), draft, warn=False):
            draft.apply(statement)
    except DelticError as error:
        return f"{type(error).__name__}: {error}"
    return "\n".join(f"warning: {message}" for message, _ in bind_datalog(program, "test").warnings()) or "no error"


@pytest.mark.parametrize(("program", "text"), cases(), ids=lambda value: None)
def test_error(program: str, text: str) -> None:
    assert error_of(program) == text


def test_update(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-goldens"):
        PAGE.write_text("".join(f"{program}\n----\n{error_of(program)}\n====\n" for program, _ in cases()), encoding="utf-8")


def test_an_error_of_a_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("output relation R(x: s64)\nR(y).\n")
    with deltic.Session() as session, pytest.raises(deltic.errors.UnsafeRule, match=r"p\.dl:2:3: the variable y is not bound"):
        session.datalog(tmp_path / "p.dl")


def test_an_error_in_a_text_has_its_place_in_the_program() -> None:
    assert "test:2:7: the variable y is not bound" in error_of('output relation R(t: string)\nR("a${y}").')
