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
from error_pages import cases_of, update

PAGE = Path(__file__).with_name("datalog_errors.txt")


def error_of(program: str) -> str:
    """The error, or the warnings."""
    draft = Draft(Catalog())
    try:
        for statement in datalog_statements(Datalog(program, "test"), draft, warn=False):
            draft.apply(statement)
    except DelticError as error:
        return f"{type(error).__name__}: {error}"
    return "\n".join(f"warning: {message}" for message, _ in bind_datalog(program, "test").warnings()) or "no error"


@pytest.mark.parametrize(("program", "text"), cases_of(PAGE), ids=lambda value: None)
def test_error(program: str, text: str) -> None:
    assert error_of(program) == text


def test_update(pytestconfig: pytest.Config) -> None:
    update(PAGE, error_of, pytestconfig)


def test_an_error_of_a_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("output relation R(x: s64)\nR(y).\n")
    with deltic.Session() as session, pytest.raises(deltic.errors.UnsafeRule, match=r"p\.dl:2:3: the variable y is not bound"):
        session.datalog(tmp_path / "p.dl")


def test_an_error_in_a_text_has_its_place_in_the_program() -> None:
    assert "test:2:7: the variable y is not bound" in error_of('output relation R(t: string)\nR("a${y}").')
