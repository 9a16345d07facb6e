"""What the shells of `deltic datalog` and `deltic edn` share: where the history is kept, and errors in colour."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import print_formatted_text

from deltic.errors import DelticError


def history_file(shell: str) -> Path:
    """Where what was typed in a shell is kept; its folder exists."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "deltic"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{shell}_history"


def print_error(error: DelticError, output: Output | None) -> None:
    """output: by default the terminal."""
    first, _, rest = str(error).partition("\n")
    lines = [("ansired bold", f"deltic: {first}\n")]
    lines += [("ansicyan" if line.startswith("help:") else "", f"{line}\n") for line in rest.splitlines()]
    print_formatted_text(FormattedText(lines), end="", output=output)
