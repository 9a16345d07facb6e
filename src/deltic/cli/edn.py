"""`deltic edn`: a store of facts, with queries and transactions from the command line, files or the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter, validators

from deltic.cli.dropped import reported
from deltic.cli.edn_commands import FormRunner
from deltic.cli.edn_output import Format
from deltic.cli.edn_shell import converse
from deltic.cli.engine_options import EngineOptions
from deltic.cli.exits import Exit
from deltic.cli.output import emit
from deltic.errors import SourceError, UnknownName
from deltic.frontends.edn.read import is_open, read
from deltic.session import Session
from deltic.session.edn import EdnStore
from deltic.session.edn_stores import stored_schemas, stored_tables
from deltic.types import backquoted

_FILE: Final = Parameter(validator=validators.Path(exists=True, dir_okay=False))
DEFAULT_NAME: Final = "facts"


def edn(
    store: str,
    /,
    *,
    query: Annotated[tuple[str, ...], Parameter(name=["--query", "-q"], negative=())] = (),
    input: Annotated[tuple[str, ...], Parameter(name="--input", negative=())] = (),
    transact: Annotated[tuple[Path, ...], _FILE, Parameter(negative=())] = (),
    rules: Annotated[Path | None, _FILE] = None,
    schema: Annotated[Path | None, _FILE] = None,
    script: Annotated[Path | None, _FILE] = None,
    format: Format = "edn",
    name: str | None = None,
    options: EngineOptions | None = None,
) -> int:
    """Open a store of facts: run transactions and queries in EDN, or a shell.

    Parameters
    ----------
    store
        The state folder of the store, or its URL in an object store. With --schema it is created.
    query
        A query, whose result is printed, each row on a line. May be given several times.
    input
        The value of an input of the query, in EDN, in the order of :in. May be given several times.
    transact
        A file with a transaction, which is committed first. May be given several times.
    rules
        A file with the rules that % stands for in queries.
    schema
        A file with the schema of a new store, or with more attributes of one that exists.
    script
        A file of queries, transactions and commands. Default: the terminal, or standard input; nothing with --query or --transact.
    format
        What results are printed as.
    name
        The name of the store. Default: that of the only store in the state; "facts" for a new one.
    """
    with opened(store, name, schema, options or EngineOptions()) as (session, opened_store):
        runner = FormRunner(session, opened_store, emit, format)
        try:
            if rules is not None:
                runner.set_rules(_text(rules), str(rules))
            for path in transact:
                runner.transact(read(_text(path), str(path)))
            for number, text in enumerate(query, 1):
                runner.query(read(text, f"query {number}" if len(query) > 1 else "query"), [read(one, "input") for one in input])
            if script is not None:
                runner.run_file(script)
            elif not query and not transact:
                _converse(runner)
        finally:
            runner.close()
    return Exit.OK


@contextmanager
def opened(location: str, name: str | None, schema: Path | None, options: EngineOptions) -> Iterator[tuple[Session, EdnStore]]:
    """A session with the store of a state folder, which is created if there is a schema."""
    if schema is None and "://" not in location and not os.path.isdir(location):
        raise SourceError(f"there is no store {location}", expected="a state folder", remedy="--schema FILE creates a store")
    text = None if schema is None else _text(schema)
    with options.session(location, f"deltic edn {location}") as session:
        store = _name(name, stored_schemas(session.notes), location, schema is not None)
        with reported(session, location):
            if declared := _tables(session, store):
                session.sql(declared)
            opened_store = session.edn_store(store, schema=text, name=str(schema))
        yield session, opened_store


def _tables(session: Session, store: str) -> str:
    """Statements of SQL that declare the tables of a store as the state has them."""
    tables = {name.lower(): (name, table) for name, table in session._runtime.committed.program.tables.items()}
    statements = []
    for key in sorted({name.lower() for name in stored_tables(session.notes, store).values()} & tables.keys()):
        name, table = tables[key]
        columns = [f"{backquoted(field.name)} {field.type.sql}{'' if field.nullable else ' NOT NULL'}" for field in table.columns]
        statements.append(f"CREATE TABLE {backquoted(name)} ({', '.join(columns)}, PRIMARY KEY ({', '.join(map(backquoted, table.key))}))")
    return "; ".join(statements)


def _name(name: str | None, stored: dict[str, str], location: str, has_schema: bool) -> str:
    if name is not None and (has_schema or name in stored):
        return name
    if name is None and len(stored) == 1:
        return next(iter(stored))
    if name is None and not stored and has_schema:
        return DEFAULT_NAME
    names = ", ".join(stored)
    if stored:
        raise UnknownName(
            f"{location} has the stores {names}" if name is None else f"{location} has no store {name}", expected=f"--name, one of {names}"
        )
    raise UnknownName(f"the state {location} has no store", remedy="--schema FILE creates one")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read {path}: {error}", expected="a file of EDN in UTF-8") from error


def _converse(runner: FormRunner) -> None:
    """Reads forms from the terminal, or from standard input as they are complete, where an error ends them."""
    if sys.stdin.isatty():
        converse(runner)
        return
    waiting = ""
    for number, line in enumerate(sys.stdin, 1):
        waiting += line
        if not is_open(waiting):
            if runner.run_text(waiting, "<stdin>"):
                return
            waiting = "\n" * number  # so that errors have the line of the whole input
    runner.run_text(waiting, "<stdin>")
