"""Runs what is typed into `deltic sql`: statements, queries and commands, over a session or a state that is only read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final

import pyarrow as pa
from rich.console import Console

from deltic.cli.output import is_unread
from deltic.cli.sql_table import SHOWN_ROWS, drawn, listed
from deltic.errors import SyntaxFailure, UnknownName, Unsupported
from deltic.frontends.sql import changes_rows, statement_texts
from deltic.plan.nodes import Plan
from deltic.schema import BIGINT, StreamSchema, TableSchema
from deltic.session import Answer, Session
from deltic.session.state_query import StateQueries
from deltic.session.typed_transaction import TypedTransaction

QUERIES: Final = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
COMMANDS: Final = {
    "\\d": "the tables and views, as SHOW TABLES; \\d NAME: the columns of one, as DESCRIBE NAME",
    "\\timing": "shows how long each statement takes, or no longer",
    "\\?": "this list, as help",
    "\\q": "ends the shell, as exit, quit and Ctrl-D do",
    "EXPLAIN": "[VIEW] NAME; or EXPLAIN SELECT …;: plan and circuit of a materialized view, or of a query",
    "SUBSCRIBE": "VIEW;: prints the changes of a view as they come; those of a state until Ctrl-C",
    "UNSUBSCRIBE": "VIEW;: no longer",
}
ALONE: Final = {"help": "\\?", "exit": "\\q", "quit": "\\q"}
"""Words that are commands, with and without a semicolon."""
_ONE_NAME: Final = re.compile(r"(?:VIEW\s+)?(\w+|`[^`]+`)", re.IGNORECASE)
_READ_ONLY: Final = "deltic sql STATE --script FILE, the script with its definitions, opens a session"


class StatementRunner:
    """console: where results go. timing: whether times are shown."""

    def __init__(self, source: Session | StateQueries, console: Console) -> None:
        self._source, self._console = source, console
        self.timing = True
        self._transaction: TypedTransaction | None = None
        """The one that is open."""
        self._subscriptions: dict[str, Callable[[], None]] = {}

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return self._transaction is not None

    def names(self) -> Iterator[str]:
        """Names of relations and columns, for completion."""
        for name, columns in self.columns():
            yield name
            yield from columns

    def columns(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each relation with its columns."""
        yield from ((name, columns) for name, columns, _ in self._relations())

    def run(self, text: str) -> bool:
        """Whether a command ended the shell. Raises DelticError."""
        command = text.strip().rstrip(";").rstrip()
        command = ALONE.get(command.lower(), command)
        if command.startswith("\\"):
            return self._command(*command.split(maxsplit=1))
        for statement in statement_texts(text, "<terminal>"):
            self._statement(statement)
        return False

    def finish(self) -> None:
        """The end of a script. Raises SyntaxFailure if a transaction is open, whose statements are not run."""
        if self.is_open:
            raise SyntaxFailure("BEGIN without COMMIT: nothing was run", remedy="COMMIT; after the statements that are one tick")

    def _command(self, command: str, argument: str = "") -> bool:
        match command:
            case "\\q":
                return True
            case "\\timing":
                self.timing = not self.timing
                self._console.print(f"timing is {'on' if self.timing else 'off'}")
            case "\\d" if argument:
                self._describe(argument.strip().strip("`"))
            case "\\d":
                self._console.print(listed(("name", "kind"), [(name, kind) for name, _, kind in self._relations()]))
            case "\\?" | "\\h":
                self._console.print(listed(("command", ""), list(COMMANDS.items())))
            case _:
                raise UnknownName(f"there is no command {command}", remedy="\\? lists them")
        return False

    def _relations(self) -> list[tuple[str, tuple[str, ...], str]]:
        """(name, columns, kind) of each table, stream and view."""
        if isinstance(self._source, StateQueries):
            program, relations = self._source.program, self._source.relations
            return [
                _described(name, relations.relation(name), "materialized view" if name in program.views else None)
                for name in relations.names()
            ]
        catalog = self._source._relations
        views = {view.name: "materialized view" if view.materialized else "view" for view in catalog.views.values()}
        return [_described(name, catalog.relation(name), views.get(name)) for name in catalog.names()]

    def _relation(self, name: str) -> TableSchema | Plan | None:
        relations = self._source.relations if isinstance(self._source, StateQueries) else self._source._relations
        return relations.relation(name)

    def _describe(self, name: str) -> None:
        relation = self._relation(name)
        if relation is None:
            names = (known for known, _, _ in self._relations())
            raise UnknownName(f"there is no table or view {name!r}", expected=", ".join(names) or None)
        key = [relation.schema[i].name for i in relation.key] if isinstance(relation, TableSchema) else []
        rows = [
            (f.name, f.type.sql, "" if f.nullable else "NOT NULL", "key" if f.name in key else "", self._default(name, f.name))
            for f in relation.schema
        ]
        shown = 5 if any(row[4] for row in rows) else 4
        self._console.print(listed(("column", "type", "", "", "")[:shown], [row[:shown] for row in rows]))

    def _default(self, table: str, column: str) -> str:
        """DEFAULT and its expression, or nothing."""
        if isinstance(self._source, StateQueries):
            text = self._source.program.default_of(table, column)
        else:
            default = self._source._relations.defaults(table).get(column.lower())
            text = None if default is None else default.text
        return "" if text is None else f"DEFAULT {text}"

    def _statement(self, text: str) -> None:
        match text.upper().split():
            case ["SHOW", "TABLES"]:
                self._command("\\d")
                return
            case ["DESCRIBE" | "DESC", _] | ["DESCRIBE" | "DESC", "TABLE", _]:
                self._command("\\d", text.rsplit(maxsplit=1)[-1])
                return
        start = perf_counter()
        answer = self._answer(text)
        seconds = perf_counter() - start
        if answer is not None:
            rows = answer.to_arrow()
            self._console.print(drawn(rows, [field.type for field in answer.schema], self._console.width))
            more = f", the first {SHOWN_ROWS:,} are shown" if rows.num_rows > SHOWN_ROWS else ""
            self._console.print(f"{rows.num_rows:,} row{'s' * (rows.num_rows != 1)}{more}{self._time(seconds, ', ')}", style="dim")
        elif self.timing:
            self._console.print(self._time(seconds), style="dim")

    def _time(self, seconds: float, before: str = "") -> str:
        return f"{before}{seconds * 1000:,.1f} ms" if self.timing else ""

    def _answer(self, text: str) -> Answer | None:
        """Runs one statement; its answer if it is a query."""
        first, *rest = text.replace("(", " ( ", 1).split()
        word = first.upper()
        explains = word == "EXPLAIN" and len(rest) > (rest[0].upper() == "VIEW" if rest else 0) + 1
        if (word in QUERIES and not changes_rows(text)) or explains:
            if isinstance(self._source, StateQueries):
                self._source.refresh()
            answer = self._queried(text)
            if not explains:
                return answer
            self._print_plan(answer.rows()[0]["plan"])
            return None
        if isinstance(self._source, StateQueries):
            if word == "SUBSCRIBE" and rest:
                self._follow(self._source, _view_of(text))
                return None
            raise Unsupported(f"{word} is not possible: the state is only read", remedy=_READ_ONLY)
        if word in ("EXPLAIN", "SUBSCRIBE", "UNSUBSCRIBE") and rest:
            self._of_view(self._source, word, _view_of(text))
        elif word in ("BEGIN", "START") or self.is_open:
            self._in_transaction(self._source, word, text)
        else:
            self._source.sql(text, name="<terminal>")
        return None

    def _queried(self, text: str) -> Answer:
        """The answer of a query, which sees the changes of the transaction that is open."""
        return (self._transaction or self._source).query(text, name="<terminal>")

    def _of_view(self, session: Session, word: str, view: str) -> None:
        if word == "EXPLAIN":
            self._print_plan(str(session.explain(view)))
            return
        name = session.view(view).name
        if (end := self._subscriptions.pop(name, None)) is not None:
            end()
        if word == "SUBSCRIBE":
            self._subscriptions[name] = session.view(name).subscribe(lambda changes: self._changed(name, changes))

    def _print_plan(self, plan: str) -> None:
        self._console.print(plan, markup=False, highlight=False, soft_wrap=True)

    def _follow(self, state: StateQueries, view: str) -> None:
        """Prints the changes that another process commits, until Ctrl-C, or until the reader of stdout has closed the pipe."""
        try:
            for changes in state.changes(view):
                self._changed(view, changes)
                if is_unread():
                    return
        except KeyboardInterrupt:
            return

    def _changed(self, view: str, changes: pa.Table) -> None:
        self._console.print(f"{view}:", style="dim")
        relation = self._relation(view)
        assert relation is not None
        types = [*(field.type for field in relation.schema), BIGINT]  # with the weights
        self._console.print(drawn(changes, types, self._console.width))

    def _in_transaction(self, session: Session, word: str, text: str) -> None:
        """Gathers the statements from BEGIN to COMMIT, which are one script."""
        transaction = self._transaction or session._typed_transaction()
        transaction.add(text, "<terminal>")
        self._transaction = transaction if transaction.is_open else None
        if word == "COMMIT":
            session.sql(transaction.script, name="<terminal>")


def _view_of(statement: str) -> str:
    """The name after EXPLAIN, SUBSCRIBE or UNSUBSCRIBE, and VIEW."""
    word, _, rest = statement.partition(" ")
    match = _ONE_NAME.fullmatch(rest.strip())
    if match is None:
        raise SyntaxFailure(f"{word.upper()} {rest.strip()}: not the name of a view", expected=f"{word.upper()} [VIEW] name")
    return match[1].strip("`")


def _described(name: str, relation: object, view: str | None) -> tuple[str, tuple[str, ...], str]:
    """(name, columns, kind) of a relation. view: its kind if it is a view."""
    return name, _columns(relation), view or ("stream" if isinstance(relation, StreamSchema) else "table")


def _columns(relation: object) -> tuple[str, ...]:
    names: tuple[str, ...] = relation.schema.names  # type: ignore[attr-defined]
    return names
