"""docs/sql.md names every function there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from deltic.expr import known_functions

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")


def test_every_function_is_named_once() -> None:
    table = PAGE.split("| kind | functions |")[1].split("\n\n")[0]
    named = re.findall(r"\w+", " ".join(line.split("|")[2] for line in table.strip().splitlines()[1:]))
    assert sorted(named) == sorted(known_functions())
