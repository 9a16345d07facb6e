"""Every refusal says what, where, and what is possible instead, in exactly the words of errors/*.txt."""

from __future__ import annotations

import re

import pytest

from sql_errors import FOLDER, Case, cases, error_of, rewrite

ALL = [pytest.param(case, id=f"{path.stem}-{i}") for path in sorted(FOLDER.glob("*.txt")) for i, case in enumerate(cases(path), 1)]


@pytest.fixture(scope="module", autouse=True)
def updating(request: pytest.FixtureRequest) -> bool:
    update = bool(request.config.getoption("--update-goldens"))
    if update:
        rewrite()
    return update


@pytest.mark.parametrize("case", ALL)
def test_error_text(case: Case, updating: bool) -> None:
    if updating:
        pytest.skip("written anew")
    assert error_of(case.sql) == case.text


@pytest.mark.parametrize("case", ALL)
def test_error_has_a_place(case: Case) -> None:
    assert re.match(r"\w+: \[DELTIC-1\d{3}\] test:\d+:\d+: ", case.text)
    assert re.search(r"^ +\^+$", case.text, re.MULTILINE)


@pytest.mark.parametrize("case", [p for p in ALL if p.id is not None and str(p.id).startswith("unsupported")])
def test_what_is_unsupported_has_a_remedy(case: Case) -> None:
    assert re.search(r"^(help|expected): ", case.text, re.MULTILINE)
