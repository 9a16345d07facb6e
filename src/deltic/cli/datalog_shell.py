"""The shell of `deltic datalog` in a terminal: history, completion of commands and names, help, and errors in colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from deltic.cli.datalog_commands import CommandRunner
from deltic.cli.terminal import converse_by
from deltic.frontends.datalog.declarations import DatalogRelation

COMMANDS: Final = {
    "start": "begins a transaction",
    "commit": "ends it",
    "commit dump_changes": "ends it, and prints the changes of the output relations",
    "rollback": "ends it without its changes",
    "insert": 'R(1, "a"), insert …: of a set, a row that exists stays',
    "insert_or_update": "R(…): replaces the row with the same primary key",
    "delete": "R(…): the row must exist",
    "delete_key": "R key: deletes the row with the primary key",
    "modify": "R key <- R{.column = value}: changes columns of the row with the key",
    "clear": "R: deletes all rows of an input relation",
    "dump": "the rows of all output relations; dump R: of one",
    "query_index": "I(key): the rows that an index has under a key",
    "timestamp": "the number of the last commit",
    "echo": "prints a text",
    "profile": "plans, circuit, and the work of each operator in the last transaction",
    "help": "this list",
    "exit": "ends the shell, as Ctrl-D does",
}
INPUTS: Final = ("insert", "insert_or_update", "delete", "delete_key", "modify", "clear")
"""The commands that an input relation follows."""


def converse(runner: CommandRunner, *, history: History | None = None, input: Input | None = None, output: Output | None = None) -> None:
    """Reads commands, each up to its semicolon, until `exit` or the end of the input. An error ends no session."""
    converse_by(
        lambda text: _answered(runner, text),
        "datalog",
        ">> ",
        CommandCompleter(runner),
        _is_begun,
        continuation=".. ",
        history=history,
        input=input,
        output=output,
    )


def _answered(runner: CommandRunner, text: str) -> bool:
    """Runs commands; whether they ended by `exit`."""
    if text.strip().rstrip(";").strip() != "help":
        return runner.run(runner.parse(text, "<terminal>"))
    runner.emit("\n".join(f"{name:20} {what}" for name, what in COMMANDS.items()))
    return False


def _is_begun(text: str) -> bool:
    """Whether Enter continues the text in another line."""
    return bool(text.strip()) and not text.rstrip().endswith(";") and text.strip() != "help"


class CommandCompleter(Completer):
    """Completes commands, and the names of relations and indexes that may follow them."""

    def __init__(self, runner: CommandRunner) -> None:
        self._declarations = runner.binder.declarations

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The names that the word before the cursor begins."""
        command = document.text_before_cursor.rpartition(";")[2].rpartition(", ")[2].lstrip()
        first, separator, rest = command.partition(" ")
        names = self._after(first) if separator else iter(COMMANDS)
        word = rest.lstrip() if separator else first
        yield from (Completion(name, -len(word)) for name in names if name.startswith(word))

    def _after(self, command: str) -> Iterator[str]:
        relations = self._declarations.relations.values()
        if command in INPUTS:
            yield from (one.name for one in relations if one.is_input)
        elif command == "dump":
            yield from (one.name for one in relations if _is_output(one))
        elif command == "query_index":
            yield from self._declarations.indexes
        elif command == "commit":
            yield "dump_changes"


def _is_output(relation: DatalogRelation) -> bool:
    return relation.declaration is not None and relation.declaration.role == "output"
