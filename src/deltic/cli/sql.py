"""`deltic sql`: statements and queries from the terminal, over a state or an empty session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter, validators
from rich.console import Console

from deltic.cli.dropped import reported
from deltic.cli.exits import Exit
from deltic.cli.script import opened_program
from deltic.cli.sql_runner import StatementRunner
from deltic.cli.sql_shell import converse, is_begun
from deltic.cli.sql_table import PIPE_WIDTH
from deltic.session import Session
from deltic.session.state_query import StateQueries

_FILE: Final = Parameter(validator=validators.Path(exists=True, dir_okay=False))


def sql(
    state: str | None = None,
    /,
    *,
    command: Annotated[tuple[str, ...], Parameter(name=("--command", "-c"), allow_leading_hyphen=True, negative=())] = (),
    script: Annotated[Path | None, _FILE] = None,
    no_lease: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Run SQL: queries, definitions and changes of rows, with history and completion in a terminal.

    Parameters
    ----------
    state
        A state folder, or its URL. Without --script it is only read, at its last epoch. Default: an empty session, lost at the end.
    command
        Statements, separated by semicolons, or a command such as '\\d', in place of the terminal. Several are run in order.
    script
        A file of SQL, a Datalog program (.dl) or a Python module (.py), with all definitions of the state or session. Tables and views of
        the state that it lacks are dropped.
    no_lease
        Write nothing: for a read-only folder. Without this option a lease keeps the files of the state while they are read.
    """
    with _opened(state, script, lease=not no_lease) as source:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = PIPE_WIDTH
        runner = StatementRunner(source, console)
        if command:
            runner.timing = False
            for text in command:
                runner.run(text)
            runner.finish()
        elif sys.stdin.isatty():
            converse(runner)
            if runner.is_open:
                console.print("the open transaction was not run", style="dim")
        else:
            runner.timing = False
            _read(runner)
            runner.finish()
    return Exit.OK


@contextmanager
def _opened(state: str | None, script: Path | None, *, lease: bool) -> Iterator[Session | StateQueries]:
    if state is not None and script is None:
        with StateQueries(state, lease=lease) as queries:
            yield queries
    elif script is None:
        with Session(clock="wall", progress=True) as session:
            yield session
    else:
        with opened_program(script) as module, Session(state=state, clock="wall", progress=True) as session:
            with reported(session, state):
                session.program(module.program)
            yield session


def _read(runner: StatementRunner) -> None:
    """Runs statements from standard input, where an error ends the run."""
    waiting = ""
    for line in sys.stdin:
        begins = not waiting.strip()
        waiting += line
        if (begins or ";" in line) and not is_begun(waiting):  # other lines end no statement, and are not scanned again
            if waiting.strip() and runner.run(waiting):
                return
            waiting = ""
    if waiting.strip():
        runner.run(waiting)
