"""Texts speak of programs as programs: none in docs, source or changelog says that one knows, wants, believes or is told something."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
AVOIDED = re.compile(r"\b(knows|knew|wants|wanted to|believes|remembers|(?:is|are|was|were) told)\b", re.IGNORECASE)
TEXTS = ("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "pyproject.toml", "docs/**/*.md", "src/**/*.py")
NAMED = "docs/glossary.md"
"""Lists terms to avoid."""


def test_programs_do_not_know_or_want() -> None:
    paths = [path for pattern in TEXTS for path in sorted(ROOT.glob(pattern)) if path != ROOT / NAMED]
    assert len(paths) > 300
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if AVOIDED.search(line)
    ]
    assert not lines, "\n".join(lines)
