"""docs/sql.md names every aggregate."""

from __future__ import annotations

from pathlib import Path

from program_plans import built_in

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"


def test_the_page_names_every_aggregate() -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## Aggregates\n")[1].split("\n## ")[0]
    words = set(section.replace("(", " ").replace(",", " ").replace(";", " ").split())
    names = [name.upper() for function in built_in() for name in (function.name, *function.aliases)]
    assert [name for name in names if name not in words] == []
