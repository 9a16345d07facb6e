"""Runs DDlog's commands in a session, and prints what DDlog prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from deltic.errors import AbsentRow, ClosedError, DataError, DelticError, DuplicateKey, Span
from deltic.frontends.datalog import DatalogBinder
from deltic.frontends.datalog.commands import (
    Command,
    PlainCommand,
    QueryCommand,
    UpdateCommand,
    parse_commands,
)
from deltic.frontends.datalog.declarations import DatalogRelation
from deltic.frontends.datalog.shown_values import Row, shown_row, sorted_rows
from deltic.session import Session, Transaction

EXIT: Final = "exit"


class CommandRunner:
    """Commands over the relations of a program that the session has. emit: prints a line.

    The changes of a transaction are kept here until its commit, so that `modify` and `clear` see those before them.
    """

    def __init__(self, session: Session, binder: DatalogBinder, emit: Callable[[str], None]) -> None:
        self.session, self.binder, self.emit = session, binder, emit
        self._pending: list[UpdateCommand] | None = None
        self._read: set[str] = set()

    def parse(self, text: str, name: str) -> list[Command]:
        """The commands of a text. Raises QueryError."""
        return parse_commands(text, name, self.binder, self.session._relations)

    def run(self, commands: Iterable[Command]) -> bool:
        """Whether the commands ended by `exit`. Raises DelticError; a commit that fails has rolled its transaction back."""
        return any(self._one(command) == EXIT for command in commands)

    def _one(self, command: Command) -> str | None:
        match command:
            case UpdateCommand():
                self._changes(command.span).extend(self._resolved(command))
            case QueryCommand():
                view = self.session.view(command.index)
                rows = view.lookup(command.key) if command.key else view.rows()
                self._print(command.relation, rows)
            case PlainCommand(name="clear"):
                self._clear(command)
            case PlainCommand():
                return self._plain(command)
        return None

    def _plain(self, command: PlainCommand) -> str | None:
        match command.name:
            case "start":
                if self._pending is not None:
                    raise ClosedError("a transaction is open", span=command.span, remedy="commit; or rollback; first")
                self._pending = []
            case "rollback":
                self._changes(command.span)
                self._pending = None
            case "commit" | "commit dump_changes":
                self._commit(command.span)
                if command.name != "commit":
                    self._print_changes()
            case "dump":
                self._dump(command.argument)
            case "timestamp":
                self.emit(str(self.session.epoch))
            case "echo":
                self.emit(command.argument or "")
            case "profile":
                explained = self.session.explain()
                self.emit(f"{explained}\n\n{explained.work()}")
            case "exit":
                return EXIT
        return None

    def _changes(self, span: Span) -> list[UpdateCommand]:
        if self._pending is None:
            raise ClosedError("no transaction is open", span=span, remedy="start;")
        return self._pending

    def _commit(self, span: Span) -> None:
        """Commits the open transaction; it is closed whether it fails or not."""
        pending, self._pending = self._changes(span), None
        try:
            with self.session.transaction() as tx:
                for one in pending:
                    self._change(tx, one)
        except DelticError as error:
            if error.span is None and isinstance(error, DataError) and 0 <= error.ordinal < len(pending):
                command = pending[error.ordinal]
                if command.relation.name == error.table:
                    error.remedy, span = _remedy(error, command) or error.remedy, command.span
            if error.span is None:
                error.move(span)
            raise

    def _change(self, tx: Transaction, command: UpdateCommand) -> None:
        table = command.relation.name
        try:
            match command.name:
                case "delete":
                    tx.delete(table, [command.row])
                case "delete_key":
                    assert command.key is not None
                    tx.delete(table, [command.key if len(command.key) > 1 else command.key[0]])
                case "insert" if command.relation.is_multiset or self._has_key(command.relation):
                    tx.insert(table, [command.row])
                case _:
                    tx.upsert(table, [command.row])
        except DelticError as error:
            if error.span is None:
                error.move(command.span)
            raise

    def _has_key(self, relation: DatalogRelation) -> bool:
        return relation.declaration is not None and relation.declaration.key is not None

    # reading inputs

    def _resolved(self, command: UpdateCommand) -> list[UpdateCommand]:
        """`modify` as the insertion of a whole row; under another key, after the deletion of the old one."""
        if command.name != "modify":
            return [command]
        assert command.key is not None and command.row is not None
        row = self._row(command.relation, command.key)
        if row is None:
            key = ", ".join(map(str, command.key))
            raise DataError(f"{command.relation.name} has no row with the key ({key})", span=command.span, remedy="insert the row first")
        whole = UpdateCommand("insert_or_update", command.relation, None, {**row, **command.row}, command.span)
        if self._key_of(whole) == command.key:
            return [whole]
        return [UpdateCommand("delete_key", command.relation, command.key, None, command.span), replace(whole, name="insert")]

    def _row(self, relation: DatalogRelation, key: tuple[Any, ...]) -> Row | None:
        """The row with the key, after the changes of the open transaction."""
        for one in reversed(self._pending or []):
            if one.relation is relation and self._key_of(one) == key:
                return None if one.name in ("delete", "delete_key") else one.row
        rows = self.session.view(self._reader(relation)).lookup(key)
        return rows[0] if rows else None

    def _key_of(self, command: UpdateCommand) -> tuple[Any, ...]:
        if command.key is not None:
            return command.key
        assert command.row is not None
        table = self.session.table(command.relation.name)
        return tuple(command.row[table.schema[i].name] for i in table.key)

    def _clear(self, command: PlainCommand) -> None:
        """Deletes what the relation has after the changes of the open transaction."""
        pending = self._changes(command.span)
        assert command.argument is not None
        relation = self.binder.declarations.relations[command.argument]
        if relation.is_stream:
            remedy = "rollback; drops the rows of an open transaction"
            raise DataError(f"the rows of the stream {relation.name} cannot be deleted", span=command.span, remedy=remedy)
        rows = self.session.view(self._reader(relation)).rows()
        for one in pending:
            if one.relation is relation:
                rows = self._after(rows, one)
        pending += [UpdateCommand("delete", relation, None, row, command.span) for row in rows]

    def _after(self, rows: list[Row], command: UpdateCommand) -> list[Row]:
        if command.relation.is_multiset:
            if command.name == "insert":
                return [*rows, command.row or {}]
            index = rows.index(command.row or {}) if command.row in rows else len(rows)
            return rows[:index] + rows[index + 1 :]
        table, key = self.session.table(command.relation.name), self._key_of(command)
        names = [table.schema[i].name for i in table.key]
        rest = [row for row in rows if tuple(row[name] for name in names) != key]
        return rest if command.name.startswith("delete") else [*rest, command.row or {}]

    def _reader(self, relation: DatalogRelation) -> str:
        """A view of an input relation, made when it is first needed."""
        name = f"input {relation.name}"
        if name not in self._read:
            self.session.sql(f"CREATE MATERIALIZED VIEW `{name}` AS SELECT * FROM `{relation.name}`")
            self._read.add(name)
        return name

    # printing

    def _outputs(self) -> list[DatalogRelation]:
        relations = self.binder.declarations.relations.values()
        return [one for one in relations if one.declaration is not None and one.declaration.role == "output"]

    def _print(self, relation: DatalogRelation, rows: list[Row]) -> None:
        for row in sorted_rows(relation, rows):
            self.emit(shown_row(relation, row))

    def _dump(self, name: str | None) -> None:
        if name is not None:
            self._print(self.binder.declarations.relations[name], self.session.view(name).rows())
            return
        for relation in self._outputs():
            self.emit(f"{relation.name}:")
            self._print(relation, self.session.view(relation.name).rows())
            self.emit("")

    def _print_changes(self) -> None:
        for relation in self._outputs():
            changes = self.session.view(relation.name).changes().to_pylist()
            if changes:
                self.emit(f"{relation.name}:")
            for row in sorted_rows(relation, changes):
                self.emit(f"{shown_row(relation, row)}: {row['_weight']:+}")


def _remedy(error: DataError, command: UpdateCommand) -> str | None:
    """What to do in commands, where the session's remedy names methods of Python."""
    name = command.relation.name
    match error:
        case DuplicateKey():
            return f"insert_or_update {name}(…) replaces the row with the same primary key"
        case AbsentRow() if (
            command.name == "delete" and (declared := command.relation.declaration) is not None and declared.key is not None
        ):
            return f"delete_key {name} … deletes the row with the primary key, whatever its other columns are"
        case AbsentRow():
            return "delete a row that the relation has"
    return None
