"""The shell of `deltic sql` in a terminal: history, completion of words and names, and errors in colour."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from deltic.cli.sql_runner import ALONE, COMMANDS, StatementRunner
from deltic.cli.terminal import converse_by
from deltic.frontends.sql import is_complete_text
from deltic.types import quoted

WORDS: Final = (
    *("AGGREGATE", "AND", "AS", "BEGIN", "BETWEEN", "BY", "CASE", "COMMIT", "CREATE", "CROSS", "DECLARE", "DELETE", "DISTINCT", "DROP"),
    *("ELSE", "END", "EXCEPT", "EXISTS", "EXPLAIN", "EXTEND", "FROM", "FULL", "GROUP", "HAVING", "IN", "INSERT", "INTERSECT", "INTO"),
    *("IS", "JOIN", "KEY", "LEFT", "LIKE", "LIMIT", "MATCHED", "MATERIALIZED", "MERGE", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER"),
    *("PRIMARY", "RECURSIVE", "REPLACE", "ROLLBACK", "SELECT", "SET", "SUBSCRIBE", "TABLE", "THEN", "TRUNCATE", "UNION", "UPDATE"),
    *("USING", "VALUES", "VARIABLE", "VIEW", "WHEN", "WHERE", "WITH"),
)


def converse(runner: StatementRunner, *, history: History | None = None, input: Input | None = None, output: Output | None = None) -> None:
    """Reads statements, each up to its semicolon, until \\q or the end of the input. An error ends no session."""
    converse_by(
        runner.run,
        "sql",
        lambda: "*> " if runner.is_open else "> ",
        StatementCompleter(runner),
        is_begun,
        continuation=". ",
        history=history,
        input=input,
        output=output,
    )


def is_begun(text: str) -> bool:
    """Whether Enter continues the text in another line."""
    words = text.strip()
    return bool(words) and not words.startswith("\\") and words.lower() not in ALONE and not is_complete_text(text)


class StatementCompleter(Completer):
    """Completes words of SQL, commands, and the names of tables, views and columns."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner = runner

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The names that the word before the cursor begins."""
        word = document.get_word_before_cursor(WORD=True).rpartition("(")[2].rpartition(",")[2]
        relation, dot, start = word.rpartition(".")
        if word.startswith("\\"):
            start, names = word, [name for name in COMMANDS if name.startswith("\\")]
        elif dot:
            names = self._columns(relation, document.text)
        else:
            names = [*map(quoted, self._runner.names()), *WORDS]
        for name in dict.fromkeys(names):
            if (start or dot) and name.lower().strip("`").startswith(start.lower().strip("`")):
                yield Completion(name, -len(start))

    def _columns(self, relation: str, text: str) -> list[str]:
        """The columns of a relation or of an alias in the text; of all relations if there is none of that name."""
        columns = {name.lower(): [quoted(column) for column in columns] for name, columns in self._runner.columns()}
        for name in (relation, *_aliased(relation, text)):
            if (found := columns.get(name.strip("`").lower())) is not None:
                return found
        return [column for some in columns.values() for column in some]


def _aliased(alias: str, text: str) -> list[str]:
    """The words to which the text gives the alias."""
    return re.findall(rf"(\w+|`[^`]+`)\s+(?:AS\s+)?{re.escape(alias)}\b", text, re.IGNORECASE)
