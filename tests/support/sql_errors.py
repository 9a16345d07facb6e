"""Test support: the golden texts of the SQL frontend's errors, in errors/*.txt.

Each case is a statement, a line `----`, the error's class and its text, and a line `====`. Write a new case without its text;
`pytest --update-goldens` writes every text anew from the frontend as it stands. Read the difference before you commit it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deltic.connectors.registry import sink_spec, source_spec
from deltic.errors import DelticError
from deltic.frontends.sql import CreateSink, CreateTable, Statement, parse_script
from sql_data import TestCatalog, bound

FOLDER = Path(__file__).parents[1] / "frontends" / "errors"
QUERIES = ("SELECT", "WITH", "VALUES", "(", "FROM")


@dataclass(frozen=True)
class Case:
    """One statement and the text of its error."""

    sql: str
    text: str


def cases(path: Path) -> list[Case]:
    """The cases of one file."""
    blocks = path.read_text(encoding="utf-8").split("\n====\n")
    parted = (block.partition("\n----") for block in blocks if block.strip())
    return [Case(sql.strip("\n"), text.strip("\n")) for sql, _, text in parted]


def error_of(sql: str) -> str:
    """What the frontend says to a statement."""
    try:
        if sql.upper().startswith(QUERIES):
            bound(sql)
        else:
            for statement in parse_script(sql, "test", TestCatalog()):
                _check_options(statement)
    except DelticError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def _check_options(statement: Statement) -> None:
    """As a session does, which hands them to the connector."""
    if isinstance(statement, CreateTable) and statement.source is not None:
        source_spec(statement.table, statement.source)
    if isinstance(statement, CreateSink):
        sink_spec(statement.name, statement.sink)


def rewrite() -> None:
    """Writes the texts anew."""
    for path in sorted(FOLDER.glob("*.txt")):
        path.write_text("".join(f"{case.sql}\n----\n{error_of(case.sql)}\n====\n" for case in cases(path)), encoding="utf-8")
