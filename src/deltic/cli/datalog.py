"""`deltic datalog`: a Datalog program with facts from files, and DDlog's commands from a script or the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter, validators

from deltic.cli.datalog_commands import CommandRunner
from deltic.cli.datalog_shell import converse
from deltic.cli.dropped import reported
from deltic.cli.engine_options import EngineOptions
from deltic.cli.exits import Exit
from deltic.cli.fact_folder import load, write
from deltic.cli.module import FunctionFile, imported_functions
from deltic.cli.output import emit
from deltic.errors import SourceError
from deltic.frontends.datalog import DatalogBinder
from deltic.session import Datalog, Session

_FILE: Final = Parameter(validator=validators.Path(exists=True, dir_okay=False))
_FOLDER: Final = Parameter(validator=validators.Path(exists=True, file_okay=False))


Dialect = Literal["ddlog", "souffle"]


def datalog(
    program: Annotated[Path, _FILE],
    /,
    *,
    functions: Annotated[Path | None, _FILE] = None,
    facts: Annotated[Path | None, _FOLDER] = None,
    script: Annotated[Path | None, _FILE] = None,
    output: Path | None = None,
    dialect: Dialect = "ddlog",
    state: str | None = None,
    options: EngineOptions | None = None,
) -> int:
    """Run a Datalog program: load facts, run commands, write relations.

    Parameters
    ----------
    program
        A file of Datalog (.dl).
    functions
        A Python module (.py) whose variables that are a deltic.UDF are the extern functions of the program.
    facts
        A folder with a file for input relations: R.facts or R.tsv (columns separated by tabs), or R.csv (by commas). They are
        loaded in one transaction, unless the state has rows already. In Soufflé's dialect, the files that .input names.
    script
        A file of commands. Default: the terminal, or standard input; nothing with --facts or --output.
    output
        A folder for the output relations at the end: R.csv, columns separated by tabs. In Soufflé's dialect, the files that .output names.
    dialect
        The syntax of the program: DDlog's or Soufflé's. Commands are DDlog's.
    state
        The state folder, or its URL in an object store. Default: none, and the content is lost at the end.
    """
    with opened(program, dialect, state, options or EngineOptions(), emit, functions) as (session, binder, is_new):
        if facts is not None and is_new:
            load(session, binder, facts, dialect)
        runner = CommandRunner(session, binder, emit)
        if script is not None:
            runner.run(runner.parse(_text(script), str(script)))
        elif facts is None and output is None:
            _converse(runner)
        if facts is not None or output is not None:
            write(session, binder, output, dialect, emit)
    return Exit.OK


@contextmanager
def opened(
    program: Path,
    dialect: Dialect,
    state: str | None,
    options: EngineOptions,
    inspect: Callable[[str], object],
    functions: Path | None = None,
) -> Iterator[tuple[Session, DatalogBinder, bool]]:
    """(a session with the program, the program, whether the state is new). Prints warnings on standard error."""
    source = Datalog.read(program, dialect)
    binder = source.bound()
    for message, span in binder.warnings():
        print(f"deltic: {span.name}:{span.line}:{span.column}: warning: {message}", file=sys.stderr)
    with ExitStack() as stack:
        module = FunctionFile((), ()) if functions is None else stack.enter_context(imported_functions(functions))
        session = stack.enter_context(options.session(state, f"deltic datalog {program.name}", module.helpers))
        is_new = session.epoch == 0
        with reported(session, state):
            for function in module.functions:
                session.register(function)
            session.datalog(source, warn=False, inspect=inspect)
        yield session, binder, is_new


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read {path}: {error}", expected="a file of commands in UTF-8") from error


def _converse(runner: CommandRunner) -> None:
    """Reads commands from the terminal, or line by line from standard input, where an error ends the script."""
    if sys.stdin.isatty():
        converse(runner)
        return
    waiting, first = "", 1
    for number, line in enumerate(sys.stdin, 1):
        waiting += line
        if line.rstrip().endswith(";"):
            if runner.run(runner.parse(waiting, f"line {first}")):
                return
            waiting = ""
        if not waiting.strip():
            waiting, first = "", number + 1
    if waiting:
        runner.run(runner.parse(waiting, f"line {first}"))
