"""Every refusal says what, where, and what is possible instead, in exactly the words of errors/*.txt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deltic.aggregates import is_aggregate
from deltic.errors import Span
from deltic.expr import known_functions
from deltic.frontends.sql.refusals import FUNCTIONS
from sql_errors import FOLDER, cases, error_of, rewrite

FILES = sorted(FOLDER.glob("*.txt"))


@pytest.fixture(scope="module", autouse=True)
def updating(request: pytest.FixtureRequest) -> bool:
    update = bool(request.config.getoption("--update-goldens"))
    if update:
        rewrite()
    return update


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_error_texts(path: Path, updating: bool) -> None:
    if updating:
        pytest.skip("written anew")
    for case in cases(path):
        assert error_of(case.sql) == case.text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_errors_have_a_place(path: Path) -> None:
    for case in cases(path):
        assert re.match(r"\w+: \[DELTIC-1\d{3}\] test:\d+:\d+: ", case.text), case.text
        assert re.search(r"^ +\^+$", case.text, re.MULTILINE), case.text


def test_unsupported_syntax_has_a_remedy() -> None:
    for path in FILES:
        if path.stem.startswith("unsupported"):
            for case in cases(path):
                assert re.search(r"^(help|expected): ", case.text, re.MULTILINE), case.text


def test_what_serves_instead_of_functions_of_other_systems_is_there() -> None:
    assert not FUNCTIONS.keys() & set(known_functions())
    for remedy in FUNCTIONS.values():
        for name in re.findall(r"(\w+)\(", remedy):
            assert name in (*known_functions(), "current_timestamp", "explode", "try_cast") or is_aggregate(name), remedy


def test_carets_stand_under_wide_and_combined_characters() -> None:
    text = "SELECT '日本', 'e\u0301' AS 数 FROM t"
    start = text.index("数")
    assert Span(text, start, start + 1, "x").picture().splitlines()[1] == "  " + " " * (start + 1) + "^^"
