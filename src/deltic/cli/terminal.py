"""What the shells of `deltic sql`, `deltic datalog` and `deltic edn` share: the conversation, its history, and errors in colour."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import print_formatted_text

from deltic.errors import DelticError


def converse_by(
    run: Callable[[str], bool],
    shell: str,
    prompt: str | Callable[[], str],
    completer: Completer,
    is_begun: Callable[[str], bool],
    *,
    continuation: str,
    history: History | None = None,
    input: Input | None = None,
    output: Output | None = None,
) -> None:
    """Reads texts until one ends the shell, or the input ends. An error ends no session, and neither does Ctrl-C.

    run: runs a text, and returns whether it ends the shell. shell: the name of its history. is_begun: whether Enter continues a text in
    another line, which begins with the continuation. history, input, output: by default the file of the shell, and the terminal.
    """
    session: PromptSession[str] = PromptSession(
        prompt,
        history=FileHistory(str(history_file(shell))) if history is None else history,
        completer=completer,
        complete_while_typing=False,
        multiline=Condition(lambda: is_begun(get_app().current_buffer.text)),
        prompt_continuation=continuation,
        input=input,
        output=output,
    )
    while True:
        try:
            text = session.prompt()
        except KeyboardInterrupt:
            continue  # drops what was typed
        except EOFError:
            return
        try:
            if text.strip() and run(text):
                return
        except DelticError as error:
            print_error(error, output)
        except KeyboardInterrupt:
            print_formatted_text(FormattedText([("ansired bold", "interrupted\n")]), end="", output=output)


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
