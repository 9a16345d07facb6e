"""docs/sql.md lists all functions, by topic; `pytest --update-goldens tests/docs/test_sql_page.py` writes the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.expr import known_functions
from deltic.expr.functions import TOPICS
from deltic.expr.registry import Function, Rewrite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
HEAD = "| kind | functions |\n|---|---|\n"


def words(record: Function | Rewrite) -> tuple[str, ...]:
    return (*((record.name,) if record.named else ()), *record.aliases)


def test_the_page_lists_every_function(request: pytest.FixtureRequest) -> None:
    listed = {kind: sorted(word for record in records for word in words(record)) for kind, records in TOPICS.items()}
    assert {word for names in listed.values() for word in names} <= set(known_functions())
    table = "".join(f"| {kind} | {', '.join(names)} |\n" for kind, names in listed.items())
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(HEAD)
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(before + HEAD + table + "\n" + after.split("\n\n", 1)[1], encoding="utf-8")
    else:
        assert after.split("\n\n")[0] + "\n" == table
