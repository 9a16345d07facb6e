"""Runs forms of EDN over a store: queries, transactions, and commands, which are lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from deltic.cli.edn_output import Format, as_text
from deltic.errors import CatalogError, QueryError, SourceError, SyntaxFailure, UnknownName, did_you_mean
from deltic.frontends.edn.read import read, read_all
from deltic.frontends.edn.values import Keyword, ListForm, LocatedForm, MapForm, Symbol, VectorForm, write
from deltic.session import Session
from deltic.session.edn import EdnReport, EdnStore
from deltic.session.edn_view import EdnView

COMMANDS: Final = {
    "q": ("(q QUERY input …)", "the result of a query that has inputs; one without may stand alone"),
    "subscribe": ("(subscribe name QUERY input …)", "prints what a query's result is, and after each transaction what changes in it"),
    "unsubscribe": ("(unsubscribe name)", "ends it"),
    "rules": ("(rules [[(name ?x …) clause …] …])", "what % stands for in the queries that follow"),
    "schema": ("(schema {:attribute {…}})", "adds attributes; (schema) shows them"),
    "run": ('(run "file.edn")', "runs the forms of a file"),
    "explain": ("(explain QUERY)", "plan and circuit of a query"),
    "help": ("help", "this list"),
    "exit": ("exit", "ends the shell, as Ctrl-D does"),
}
_EXAMPLE: Final = '[:find ?e :where [?e :name]], [{:name "Ann"}] or (help)'


class FormRunner:
    """The forms that a user gives, over one store. emit: prints a line. form: of what is printed."""

    def __init__(self, session: Session, store: EdnStore, emit: Callable[[str], None], form: Format = "edn") -> None:
        self.session, self.store, self.emit, self.form = session, store, emit, form
        self.rules: LocatedForm | None = None
        self._subscribed: dict[str, tuple[EdnView, Callable[[], None]]] = {}

    def run_text(self, text: str, name: str) -> bool:
        """Runs the forms of a text, which errors call `name`, one after the other; whether they ended by `exit`. Raises DelticError."""
        return any(self.run(one) for one in read_all(text, name))

    def run_file(self, path: Path) -> bool:
        """Runs the forms of a file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"cannot read {path}: {error}", expected="a file of EDN in UTF-8") from error
        return self.run_text(text, str(path))

    def run(self, form: LocatedForm) -> bool:
        """Runs one form; whether it is `exit`. Raises DelticError."""
        match form.value:
            case ListForm(parts=parts) if parts:
                return self._command(parts[0], parts[1:])
            case Symbol():
                return self._command(form, ())
            case MapForm():
                self.query(form)
            case VectorForm(parts=parts):
                if parts and isinstance(parts[0].value, Keyword):
                    self.query(form)
                else:
                    self.transact(form)
            case _:
                raise SyntaxFailure(f"{write(form)} is neither a query nor a transaction", span=form.span, expected=_EXAMPLE)
        return False

    def transact(self, data: Any) -> None:
        """Commits a transaction, and prints its report."""
        self.emit(as_text(_reported(self.store.transact(data)), self.form))

    def query(self, form: Any, inputs: Sequence[Any] = ()) -> None:
        """Prints the result of a query: each row on a line."""
        view = self._view(form, self._unused("query"), inputs)
        try:
            for value in _listed(view):
                self.emit(as_text(value, self.form))
        finally:
            view.drop()

    def set_rules(self, text: str, name: str) -> None:
        """Sets what % stands for."""
        self.rules = read(text, name)

    @property
    def rule_names(self) -> list[str]:
        """The rules that queries may call."""
        rules = self.rules.value.parts if self.rules is not None and isinstance(self.rules.value, VectorForm) else ()
        heads = [one.value.parts[0] for one in rules if isinstance(one.value, VectorForm) and one.value.parts]
        return list(dict.fromkeys(write(one.value.parts[0]) for one in heads if isinstance(one.value, ListForm) and one.value.parts))

    def close(self) -> None:
        """Ends all subscriptions, and drops their views."""
        for name in list(self._subscribed):
            self._unsubscribe(name)

    def _view(self, form: Any, name: str, inputs: Sequence[Any]) -> EdnView:
        takes_rules = any(write(one) == "%" for one in _in(form))
        rules = self.rules if takes_rules else None
        if takes_rules and rules is None:
            span = form.span if isinstance(form, LocatedForm) else None
            raise QueryError("the query takes rules (%), and none are given", span=span, remedy=COMMANDS["rules"][0])
        return self.session.edn(form, name=name, store=self.store.name, rules=rules, inputs=inputs)

    def _unused(self, name: str) -> str:
        number, views = 1, {one.lower() for one in self.session.views}
        while f"{name} {number}" in views:
            number += 1
        return f"{name} {number}"

    # commands

    def _command(self, name: LocatedForm, arguments: Sequence[LocatedForm]) -> bool:
        command = write(name)
        if command not in COMMANDS:
            raise UnknownName(
                f"there is no command {command}", span=name.span, expected=", ".join(COMMANDS), remedy=did_you_mean(command, COMMANDS)
            )
        least, most = _ARGUMENTS[command]
        if not least <= len(arguments) <= most:
            raise SyntaxFailure(f"{command} has {len(arguments)} arguments", span=name.span, expected=COMMANDS[command][0])
        match command:
            case "q":
                self.query(arguments[0], arguments[1:])
            case "subscribe":
                self._subscribe(arguments[0], arguments[1], arguments[2:])
            case "unsubscribe":
                self._unsubscribe(self._subscription(arguments[0]))
            case "rules":
                self.rules = arguments[0]
            case "schema":
                self._schema(arguments)
            case "run":
                return self._run(arguments[0])
            case "explain":
                self._explain(arguments[0])
            case "help":
                self.emit(help_text())
        return command == "exit"

    def _subscribe(self, name: LocatedForm, query: LocatedForm, inputs: Sequence[LocatedForm]) -> None:
        title = _title(name)
        if title in self._subscribed:
            raise CatalogError(f"{title} is subscribed to already", span=name.span, remedy=f"(unsubscribe {title})")
        view = self._view(query, title, inputs)
        for value in _listed(view):
            self.emit(as_text(value, self.form))

        def changed(changes: Sequence[tuple[tuple[Any, ...], int]]) -> None:
            for row, weight in changes:
                self.emit(as_text({":name": title, ":weight": weight, ":row": row}, self.form))

        self._subscribed[title] = view, view.subscribe_results(changed)

    def _subscription(self, name: LocatedForm) -> str:
        title = _title(name)
        if title not in self._subscribed:
            remedy = did_you_mean(title, self._subscribed)
            raise UnknownName(f"there is no subscription {title}", span=name.span, expected=COMMANDS["subscribe"][0], remedy=remedy)
        return title

    def _unsubscribe(self, name: str) -> None:
        view, end = self._subscribed[name]
        end()
        view.drop()
        del self._subscribed[name]

    def _schema(self, arguments: Sequence[LocatedForm]) -> None:
        if arguments:
            self.session.edn_store(self.store.name, schema=arguments[0])
            return
        for attribute in self.store.schema.attributes.values():
            self.emit(f"{write(attribute.form)} {write(attribute.options)}")

    def _run(self, path: LocatedForm) -> bool:
        if not isinstance(path.value, str):
            raise SyntaxFailure(f"{write(path)} is not a path", span=path.span, expected=COMMANDS["run"][0])
        return self.run_file(Path(path.value))

    def _explain(self, query: LocatedForm) -> None:
        view = self._view(query, self._unused("query"), ())
        try:
            self.emit(str(self.session.explain(view.name)))
        finally:
            view.drop()


_ARGUMENTS: Final[Mapping[str, tuple[int, float]]] = {
    "q": (1, float("inf")),
    "subscribe": (2, float("inf")),
    "unsubscribe": (1, 1),
    "rules": (1, 1),
    "schema": (0, 1),
    "run": (1, 1),
    "explain": (1, 1),
    "help": (0, 0),
    "exit": (0, 0),
}


def help_text() -> str:
    """What a user can type."""
    shapes = {"[:find ?x :where …]": "the result of a query, each row on a line"}
    shapes["[{:attribute value} …]"] = "a transaction"
    shapes |= dict(COMMANDS.values())
    width = max(map(len, shapes)) + 2
    return "\n".join(f"{shape:{width}}{what}" for shape, what in shapes.items())


def _title(name: LocatedForm) -> str:
    if not isinstance(name.value, Symbol | Keyword | str):
        raise SyntaxFailure(f"{write(name)} is not a name", span=name.span, expected=COMMANDS["subscribe"][0])
    return name.value if isinstance(name.value, str) else name.value.name


def _in(form: Any) -> Sequence[LocatedForm]:
    """What follows :in in a query; nothing in what is not one."""
    value = form.value if isinstance(form, LocatedForm) else None
    if isinstance(value, MapForm):
        clause = next((one for key, one in value.pairs if key.value == Keyword("in")), None)
        return clause.value.parts if clause is not None and isinstance(clause.value, VectorForm | ListForm) else ()
    parts = value.parts if isinstance(value, VectorForm) else ()
    positions = [i for i, one in enumerate(parts) if isinstance(one.value, Keyword)]
    bounds = pairwise([*positions, len(parts)])
    return next((parts[start + 1 : stop] for start, stop in bounds if parts[start].value == Keyword("in")), ())


def _listed(view: EdnView) -> list[Any]:
    """What a result has, one for each line; the only one of a tuple or a value."""
    result = view.result()
    return result if view.has_rows else [result]


def _reported(report: EdnReport) -> dict[str, Any]:
    data = [(one.e, one.a, one.v, one.tx, one.added) for one in report.tx_data]
    return {":tx": report.tx, ":tempids": {str(name): entity for name, entity in report.tempids.items()}, ":tx-data": data}
