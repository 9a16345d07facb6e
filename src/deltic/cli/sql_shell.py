"""The shell of `deltic sql` in a terminal: history, completion of words and names, and errors in colour."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import print_formatted_text

from deltic.cli.sql_runner import COMMANDS, StatementRunner
from deltic.errors import DelticError

WORDS: Final = (
    *("AGGREGATE", "AND", "AS", "BEGIN", "BETWEEN", "BY", "CASE", "COMMIT", "CREATE", "CROSS", "DELETE", "DISTINCT", "DROP", "ELSE", "END"),
    *("EXCEPT", "EXISTS", "EXPLAIN", "EXTEND", "FROM", "FULL", "GROUP", "HAVING", "IN", "INSERT", "INTERSECT", "INTO", "IS", "JOIN", "KEY"),
    *("LEFT", "LIKE", "LIMIT", "MATCHED", "MATERIALIZED", "MERGE", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "PRIMARY", "RECURSIVE"),
    *("REPLACE", "SELECT", "SET", "SUBSCRIBE", "TABLE", "THEN", "TRUNCATE", "UNION", "UPDATE", "USING", "VALUES", "VIEW", "WHEN", "WHERE"),
    "WITH",
)


def converse(runner: StatementRunner, *, history: History | None = None, input: Input | None = None, output: Output | None = None) -> None:
    """Reads statements, each up to its semicolon, until \\q or the end of the input. An error ends no session."""
    session: PromptSession[str] = PromptSession(
        lambda: "*> " if runner.is_open else "> ",
        history=FileHistory(str(history_file())) if history is None else history,
        completer=StatementCompleter(runner),
        complete_while_typing=False,
        multiline=Condition(lambda: is_begun(get_app().current_buffer.text)),
        prompt_continuation=". ",
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
        if text.strip() and _ended(runner, text, output):
            return


def _ended(runner: StatementRunner, text: str, output: Output | None) -> bool:
    """Runs statements; whether a command ended the shell."""
    try:
        return runner.run(text)
    except DelticError as error:
        first, _, rest = str(error).partition("\n")
        lines = [("ansired bold", f"deltic: {first}\n")]
        lines += [("ansicyan" if line.startswith("help:") else "", f"{line}\n") for line in rest.splitlines()]
        print_formatted_text(FormattedText(lines), end="", output=output)
        return False


def is_begun(text: str) -> bool:
    """Whether Enter continues the text in another line."""
    return bool(text.strip()) and not text.lstrip().startswith("\\") and not text.rstrip().endswith(";")


def history_file() -> Path:
    """Where what was typed is kept; its folder exists."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "deltic"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "sql_history"


class StatementCompleter(Completer):
    """Completes words of SQL, commands, and the names of tables, views and columns."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The names that the word before the cursor begins."""
        word = document.get_word_before_cursor(WORD=True).rpartition("(")[2].rpartition(",")[2]
        start = word.rpartition(".")[2] or word
        names = (*(name for name in COMMANDS if name.startswith("\\")),) if word.startswith("\\") else (*self._runner.names(), *WORDS)
        for name in dict.fromkeys(names):
            if start and name.lower().startswith(start.lower()):
                yield Completion(name, -len(start))
