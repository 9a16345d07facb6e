"""Test support: golden files. A file has sections, `### name` and then the text; `pytest --update-goldens` alone writes it.

Whoever updates reads the difference before it is committed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

HEAD = re.compile(r"^### (.*)\n", re.MULTILINE)


class Goldens:
    """The sections of one file, each without the blank lines around it."""

    def __init__(self, path: Path, update: bool) -> None:
        self.path, self.update = path, update

    def read(self) -> dict[str, str]:
        """The sections by name, in their order."""
        if not self.path.exists():
            return {}
        before, *parts = HEAD.split(self.path.read_text(encoding="utf-8"))
        assert not before.strip(), f"{self.path.name} has text ahead of its first section"
        return {name: text.strip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}

    def check(self, name: str, text: str) -> None:
        """Asserts that the section equals this text; when updating, writes it."""
        text = text.strip("\n")
        assert not HEAD.search(text), "a line of the text would begin a section"
        sections = self.read()
        if self.update:
            self._write({**sections, name: text})
        else:
            assert name in sections, f"{self.path.name} has no section {name}: run pytest --update-goldens"
            assert text == sections[name]

    def check_names(self, names: Collection[str]) -> None:
        """Asserts that the file has exactly these sections; when updating, removes others and sorts the rest."""
        sections = self.read()
        if self.update:
            self._write({name: sections[name] for name in names if name in sections})
        else:
            assert list(sections) == list(names)

    def _write(self, sections: dict[str, str]) -> None:
        self.path.write_text("\n".join(f"### {name}\n{text}\n" for name, text in sections.items()), encoding="utf-8")
