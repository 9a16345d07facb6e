"""Files of facts: the rows of input relations are read from a folder, those of output relations are written to one."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from deltic.errors import SourceError
from deltic.frontends.datalog import DatalogBinder, Dialect
from deltic.frontends.datalog.declarations import DatalogRelation
from deltic.frontends.datalog.fact_files import FactFile
from deltic.frontends.datalog.fact_terms import value_of_term
from deltic.frontends.datalog.facts import text_of, value_of
from deltic.frontends.datalog.kinds import Kind, MapKind, TupleKind, UnionKind, VectorKind
from deltic.frontends.datalog.shown_values import Row, order_of, sorted_rows
from deltic.frontends.datalog.souffle_values import souffle_text, souffle_value
from deltic.session import Session

FACTS: Final = {".facts": "\t", ".tsv": "\t", ".csv": ","}
"""The separator in files that a program does not name, by their suffix."""
ReadValue: TypeAlias = Callable[[str, Kind, str], Any]
"""The value of a text of a kind; the last argument is its place in errors."""


def load(session: Session, binder: DatalogBinder, folder: Path, dialect: Dialect) -> None:
    """The facts of all input relations, in one transaction. Of a set, repeated rows count once. Raises SourceError."""
    with session.transaction() as tx:
        for relation in _with_role(binder, "input"):
            if (rows := _rows(relation, folder, _reader(session, binder, dialect))) is not None:
                (tx.insert if relation.is_multiset else tx.upsert)(relation.name, rows)


def reload(session: Session, binder: DatalogBinder, folder: Path, dialect: Dialect) -> None:
    """What the files of sets have more or less than the session, in one transaction. Raises SourceError."""
    relations = list(_with_role(binder, "input"))
    for relation in relations:
        session.sql(f"CREATE MATERIALIZED VIEW `input {relation.name}` AS SELECT * FROM `{relation.name}`")
    with session.transaction() as tx:
        for relation in relations:
            new = {_key(row): row for row in _rows(relation, folder, _reader(session, binder, dialect)) or ()}
            old = {_key(row): row for row in session.view(f"input {relation.name}").rows()}
            tx.delete(relation.name, [row for key, row in old.items() if key not in new])
            tx.insert(relation.name, [row for key, row in new.items() if key not in old])


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(map(order_of, row.values()))


def write(session: Session, binder: DatalogBinder, folder: Path | None, dialect: Dialect, emit: Callable[[str], None]) -> None:
    """The output relations: to the folder, if there is one, and what goes to standard output by `emit`. Raises SourceError."""
    text = souffle_text if dialect == "souffle" else text_of
    for relation in _with_role(binder, "output"):
        assert relation.declaration is not None
        default = FactFile("output", f"{relation.name}.csv", "\t", False, False, relation.declaration.span)
        rows = sorted_rows(relation, session.view(relation.name).rows())
        for file in relation.declaration.files or (default,):
            names = [[name for name, _ in relation.columns]] if file.headers else []
            head, body = _joined(names, file), _joined([[text(kind, row[name]) for name, kind in relation.columns] for row in rows], file)
            if file.path is None:
                emit("\n".join(["-" * 15, relation.name, *head, "=" * 15, *body, "=" * 15]))
            elif folder is not None:
                _save(folder / file.path, "".join(f"{line}\n" for line in (*head, *body)))


def _with_role(binder: DatalogBinder, role: str) -> Iterator[DatalogRelation]:
    for relation in binder.declarations.relations.values():
        if relation.declaration is not None and relation.declaration.role == role:
            yield relation


def _reader(session: Session, binder: DatalogBinder, dialect: Dialect) -> ReadValue:
    def read(text: str, kind: Kind, place: str) -> Any:
        if dialect == "souffle" and isinstance(kind, UnionKind | TupleKind):
            return souffle_value(kind, text, place)
        if isinstance(kind, UnionKind | TupleKind | VectorKind | MapKind):
            return value_of_term(text, place, kind, binder.declarations, session._relations)
        value = value_of(kind, text)
        if value is None:
            raise SourceError(f"{place}: invalid value {text!r}", expected=str(kind))
        return value

    return read


def _rows(relation: DatalogRelation, folder: Path, read: ReadValue) -> list[Row] | None:
    """Those of the relation's files; None if it names none, and there is none."""
    assert relation.declaration is not None
    if relation.declaration.files:
        return [row for file in relation.declaration.files for row in _read(relation, folder / (file.path or ""), file, read)]
    span = relation.declaration.span
    files = [FactFile("input", f"{relation.name}{suffix}", by, suffix == ".csv", False, span) for suffix, by in FACTS.items()]
    existing = [file for file in files if file.path is not None and (folder / file.path).exists()]
    return [row for file in existing for row in _read(relation, folder / (file.path or ""), file, read)] if existing else None


def _read(relation: DatalogRelation, path: Path, file: FactFile, read: ReadValue) -> Iterator[Row]:
    quoting: Any = csv.QUOTE_MINIMAL if file.quoted else csv.QUOTE_NONE
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            reader = csv.reader(lines, delimiter=file.delimiter, quoting=quoting)
            if file.headers:
                next(reader, None)
            for line in reader:
                yield _row(relation, line or [""], f"{path}, line {reader.line_num}", read)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        place = file.span if relation.declaration is not None and relation.declaration.files else None
        raise SourceError(f"cannot read {path}: {reason}", span=place, expected="a file of facts in UTF-8") from error


def _row(relation: DatalogRelation, line: list[str], place: str, read: ReadValue) -> Row:
    if len(line) != len(relation.columns):
        expected = ", ".join(name for name, _ in relation.columns)
        raise SourceError(f"{place}: {len(line)} columns", expected=expected)
    columns = zip(relation.columns, line, strict=True)
    return {name: read(text, kind, f"{place}: column {name}") for (name, kind), text in columns}


def _joined(lines: list[list[str]], file: FactFile) -> list[str]:
    if not file.quoted:
        return [file.delimiter.join(line) for line in lines]
    joined = []
    for line in lines:
        text = io.StringIO()
        csv.writer(text, delimiter=file.delimiter, lineterminator="").writerow(line)
        joined.append(text.getvalue())
    return joined


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot write {path}: {error.strerror}", expected="a file that can be written") from error
