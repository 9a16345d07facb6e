"""`deltic datalog`: a Datalog program with facts from files, and DDlog's commands from a script or the terminal."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter, validators

from deltic.cli.datalog_commands import CommandRunner
from deltic.cli.datalog_shell import converse
from deltic.cli.exits import Exit
from deltic.cli.output import emit
from deltic.cli.spark import opened_spark
from deltic.errors import SourceError
from deltic.frontends.datalog import DatalogBinder
from deltic.frontends.datalog.declarations import DatalogRelation
from deltic.frontends.datalog.facts import text_of, value_of
from deltic.frontends.datalog.shown_values import sorted_rows
from deltic.session import Datalog, Session

_FILE: Final = Parameter(validator=validators.Path(exists=True, dir_okay=False))
_FOLDER: Final = Parameter(validator=validators.Path(exists=True, file_okay=False))
FACTS: Final = {".facts": "\t", ".tsv": "\t", ".csv": ","}
"""The separator in files of facts, by their suffix."""


def datalog(
    program: Annotated[Path, _FILE],
    /,
    *,
    facts: Annotated[Path | None, _FOLDER] = None,
    script: Annotated[Path | None, _FILE] = None,
    output: Path | None = None,
    dialect: Literal["ddlog", "souffle"] = "ddlog",
    engine: Literal["spark", "embedded"] = "embedded",
    state: str | None = None,
    shards: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
) -> int:
    """Run a Datalog program: load facts, run commands, write relations.

    Parameters
    ----------
    program
        A file of Datalog (.dl).
    facts
        A folder with a file for input relations: R.facts or R.tsv (columns separated by tabs), or R.csv (by commas). They are
        loaded in one transaction, unless the state has rows already.
    script
        A file of commands. Default: the terminal, or standard input; nothing with --facts or --output.
    output
        A folder for the output relations at the end: R.csv, columns separated by tabs.
    dialect
        The syntax of the program: DDlog's or Soufflé's. Commands are DDlog's.
    engine
        Where ticks run: on Spark, or in this process.
    state
        The state folder, or its URL in an object store. Default: none, and the content is lost at the end.
    shards
        The number of parts into which the state is split.
    """
    source = Datalog.read(program, dialect)
    binder = source.bound()
    for message, span in binder.warnings():
        print(f"deltic: {span.name}:{span.line}:{span.column}: warning: {message}", file=sys.stderr)
    spark = nullcontext() if engine == "embedded" else opened_spark(None, f"deltic datalog {program.name}", ())
    with spark as on_spark, Session(spark=on_spark, state=state, shards=shards) as session:
        is_new = session.epoch == 0
        session.datalog(source, warn=False, inspect=emit)
        if facts is not None and is_new:
            _load(session, binder, facts)
        runner = CommandRunner(session, binder, emit)
        if script is not None:
            runner.run(runner.parse(_text(script), str(script)))
        elif facts is None and output is None:
            _converse(runner)
        if output is not None:
            _write(session, binder, output)
    return Exit.OK


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read {path}: {error}", expected="a file of commands in UTF-8") from error


def _load(session: Session, binder: DatalogBinder, folder: Path) -> None:
    """The facts of all input relations, in one transaction. Of a set, repeated rows count once."""
    with session.transaction() as tx:
        for relation in binder.declarations.relations.values():
            for path in (folder / f"{relation.name}{suffix}" for suffix in FACTS):
                if relation.is_input and path.exists():
                    rows = list(_rows(relation, path))
                    (tx.insert if relation.is_multiset else tx.upsert)(relation.name, rows)


def _rows(relation: DatalogRelation, path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        quoting: Any = csv.QUOTE_MINIMAL if path.suffix == ".csv" else csv.QUOTE_NONE
        for number, line in enumerate(csv.reader(file, delimiter=FACTS[path.suffix], quoting=quoting), 1):
            if len(line) != len(relation.columns):
                expected = ", ".join(name for name, _ in relation.columns)
                raise SourceError(f"{path}, line {number}: {len(line)} columns", expected=expected)
            row = {}
            for (name, kind), text in zip(relation.columns, line, strict=True):
                value = value_of(kind, text)
                if value is None:
                    raise SourceError(f"{path}, line {number}: column {name}: invalid value {text!r}", expected=str(kind))
                row[name] = value
            yield row


def _write(session: Session, binder: DatalogBinder, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for relation in binder.declarations.relations.values():
        if relation.declaration is not None and relation.declaration.role == "output":
            rows = sorted_rows(relation, session.view(relation.name).rows())
            lines = ["\t".join(text_of(kind, row[name]) for name, kind in relation.columns) for row in rows]
            (folder / f"{relation.name}.csv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


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
