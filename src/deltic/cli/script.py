"""A script's text."""

from __future__ import annotations

from pathlib import Path

from deltic.errors import SyntaxFailure


def read_script(script: Path) -> str:
    """Raises SyntaxFailure if it is not UTF-8."""
    try:
        return script.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SyntaxFailure(f"{script}: byte {error.start} is not UTF-8", expected="a script in UTF-8") from error
