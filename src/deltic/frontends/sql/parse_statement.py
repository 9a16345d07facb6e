"""Statements of a script: CREATE, DECLARE and DROP of tables, views and sinks, and queries.

Invariant: a statement is parsed to its last token, or refused at the first unexpected token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.arguments import Arguments
from deltic.frontends.sql.clauses import ClauseParser
from deltic.frontends.sql.lexer import NOTHING_GIVEN, NUMBER, SIGN, WORD, Token, is_open, tokenize
from deltic.frontends.sql.nesting import shallow
from deltic.frontends.sql.options import WATERMARK, timed_of
from deltic.frontends.sql.parse_alteration import AlterationParser
from deltic.frontends.sql.parse_change import CHANGES, ChangeParser
from deltic.frontends.sql.parse_function import FunctionParser
from deltic.frontends.sql.parse_query import EMIT
from deltic.frontends.sql.parse_variable import VariableParser
from deltic.frontends.sql.refusals import AFTER_TABLE, AFTER_VIEW, COLUMN, CREATED, STATEMENTS, refuse
from deltic.frontends.statements import CreateSink, DropFunction, DropSink, DropStream, DropTable, DropVariable, DropView, Replan, Timed
from deltic.options import Options

UNDERSTOOD: Final = (
    "CREATE TABLE or STREAM, CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW, CREATE SINK, CREATE [OR REPLACE] FUNCTION, "
    "DECLARE RECURSIVE VIEW, ALTER TABLE, DROP TABLE, STREAM, VIEW, SINK or FUNCTION, INSERT, UPDATE, DELETE, MERGE, TRUNCATE, SELECT, "
    "DECLARE VARIABLE, SET VAR"
)
VIEW_FORM: Final = (
    "CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW [IF NOT EXISTS] name [(column, …)] [COMMENT '…'] AS SELECT … "
    "[EMIT ON WINDOW CLOSE]"
)
DECLARE_FORM: Final = "DECLARE RECURSIVE VIEW name (column type [NOT NULL], …) [MAX RECURSION LEVEL n]"
QUERIES: Final = ("SELECT", "VALUES", "WITH", "(", "FROM", "TABLE")
"""The words that begin a query."""
COLUMN_FORM: Final = "NOT NULL, DEFAULT expression, PRIMARY KEY, LATENESS INTERVAL …, COMMENT '…', a comma or )"


@dataclass(frozen=True, slots=True)
class TableStatement:
    """CREATE TABLE, or CREATE STREAM. source, timed: from USING and OPTIONS."""

    table: tree.TableDefinition
    source: Options | None
    timed: Timed | None
    stream: bool


@dataclass(frozen=True, slots=True)
class QueryStatement:
    """A query as a statement. explained: after EXPLAIN."""

    query: tree.Query
    span: Span
    explained: bool = False


Parsed = (
    TableStatement
    | tree.NamedQuery
    | tree.ViewDeclaration
    | tree.VariableDeclaration
    | tree.VariableAssignments
    | tree.FunctionDefinition
    | tree.TableAlteration
    | QueryStatement
    | tree.RowChange
    | tree.TransactionMark
    | CreateSink
    | DropSink
    | DropTable
    | DropStream
    | DropView
    | DropFunction
    | DropVariable
    | Replan
)

Piece = TypeVar("Piece")


def parse(text: str, name: str, arguments: Arguments | None = None) -> list[Parsed]:
    """The statements of a script, split at semicolons; empty ones are skipped. arguments: the values of its parameters."""
    return [_parsed(StatementParser(text, name, tokens, arguments)) for tokens in statement_tokens(text, name, arguments)]


def texts(text: str, name: str) -> list[str]:
    """The text of each statement of a script, without its semicolon."""
    return [text[tokens[0].start : tokens[-1].end] for tokens in statement_tokens(text, name)]


def is_complete(text: str) -> bool:
    """Whether the text has ended: its last statement has its semicolon, and no quote or comment is open. So has one without statements."""
    if is_open(text):
        return False
    try:
        tokens = tokenize(text, "")
    except SyntaxFailure:
        return text.rstrip().endswith(";")
    return not tokens or tokens[-1].word == ";"


def parse_item(text: str, name: str) -> tree.SelectItem:
    """One item of a select list as a text of its own: an expression, with or without an alias."""
    return _piece(text, name, lambda parser: parser._item())


def parse_type(text: str, name: str) -> tree.TypeName:
    """A type as a text of its own."""
    return _piece(text, name, lambda parser: parser.type_name())


def parse_columns(text: str, name: str) -> tuple[tree.TypePart, ...]:
    """Columns with their types as a text of its own: `a INT, b STRING`."""
    return _piece(text, name, lambda parser: parser.several(lambda: parser._part(True)))


def _piece(text: str, name: str, rule: Callable[[StatementParser], Piece]) -> Piece:
    tokens = tokenize(text, name)
    if not tokens:
        raise SyntaxFailure("the text is empty", expected="an expression, or a type")
    parser = StatementParser(text, name, tokens)
    piece = rule(parser)
    if not parser.ended:
        raise parser.failure()
    return piece


def _parsed(parser: StatementParser) -> Parsed:
    with shallow(parser.statement):
        return parser.parsed()


def statement_tokens(text: str, name: str, arguments: Arguments | None = None) -> Iterator[list[Token]]:
    """The tokens of each statement of a script. arguments: the values of its parameters, which IDENTIFIER(:name) reads."""
    statement: list[Token] = []
    given = NOTHING_GIVEN if arguments is None else arguments.named
    for token in [*tokenize(text, name, given), Token(SIGN, ";", ";", len(text), len(text))]:
        if token.word != ";":
            statement.append(token)
        elif statement:
            _check_parentheses(statement, text, name)
            yield statement
            statement = []


def _check_parentheses(tokens: Sequence[Token], text: str, name: str) -> None:
    """Raises SyntaxFailure at an unmatched parenthesis."""
    opened: list[Token] = []
    for token in tokens:
        if token.word == "(":
            opened.append(token)
        elif token.word == ")":
            if not opened:
                raise SyntaxFailure("unmatched closing parenthesis", span=Span(text, token.start, token.end, name))
            opened.pop()
    if opened:
        raise SyntaxFailure("unmatched opening parenthesis", span=Span(text, opened[-1].start, opened[-1].end, name))


class StatementParser(ChangeParser, FunctionParser, AlterationParser, VariableParser, ClauseParser):
    """The rules for statements."""

    def parsed(self) -> Parsed:
        """The statement, parsed to its end."""
        parsed = self._parsed()
        if self.word in ("SELECT", "VALUES", "WITH"):
            raise self.unseparated(self.token)
        if not self.ended:
            raise self.misplaced_level() if self.sees("MAX", "RECURSION") else self.failure()
        return parsed

    def _parsed(self) -> Parsed:
        refuse(self, STATEMENTS)
        match self.word:
            case "CREATE":
                return self._create()
            case "DROP":
                return self._drop()
            case "ALTER":
                return self.alteration()
            case "DECLARE" if self.tokens[1].word == "RECURSIVE" and self.tokens[2].word == "VIEW":
                return self._declare()
            case "DECLARE":
                return self.declared_variable()
            case "SET":
                return self.assigned_variables()
            case "WITH" if self.begins_change():
                return self.change_with()
            case word if word in QUERIES:
                return QueryStatement(self.query(), self.since(self.tokens[0].start))
            case "EXPLAIN":
                return self._explain()
            case word if word in CHANGES:
                return self.change()
            case _:
                raise self._not_understood()

    def _explain(self) -> QueryStatement:
        """EXPLAIN of a query. The modes of Spark show parts of what is always shown."""
        self.expect("EXPLAIN")
        if self.word in ("CODEGEN", "COST"):
            raise Unsupported(f"EXPLAIN {self.word} is not supported", span=self.span, remedy="EXPLAIN SELECT …")
        if self.word in ("FORMATTED", "EXTENDED"):
            self.position += 1
        if self.ended or self.word not in QUERIES:
            raise self.failure("a query: SELECT, VALUES or WITH")
        return QueryStatement(self.query(), self.since(self.tokens[0].start), explained=True)

    def _not_understood(self) -> SyntaxFailure:
        return SyntaxFailure("unknown statement", span=self.of(self.tokens[0]), expected=UNDERSTOOD)

    def _create(self) -> Parsed:
        self.expect("CREATE")
        refuse(self, CREATED)
        replaces = self.passes("OR", "REPLACE")
        materialized = self.passes("MATERIALIZED")
        temporary = not materialized and (self.passes("TEMPORARY") or self.passes("TEMP"))
        if self.passes("VIEW"):
            return self._create_view(replaces, materialized)
        if self.word in ("TABLE", "STREAM") and not (materialized or temporary):
            return self._create_table(replaces)
        if self.passes("SINK") and not (replaces or materialized or temporary):
            return self._create_sink()
        if self.passes("FUNCTION") and not materialized:
            return self.function(replaces)
        raise self._not_understood()

    def _exists(self, *words: str) -> bool:
        return self.passes("IF", *words, "EXISTS")

    def _create_table(self, replaces: bool) -> TableStatement:
        kind = self.take().word
        if_not_exists = self._exists("NOT")
        name = self.simple_name(kind.lower())
        if replaces:
            raise Unsupported(f"CREATE OR REPLACE {kind} is not supported", span=name.span, remedy=f"DROP {kind}, then CREATE {kind}")
        refuse(self, AFTER_TABLE)
        if self.word != "(" and (self.ended or self.word in ("USING", "OPTIONS", "LOCATION", "COMMENT")):
            form = f"CREATE {kind} {name.text} (column type, …)"
            raise Unsupported(f"a {kind.lower()} requires columns", span=name.span, expected=form)
        if self.word != "(":
            raise self.failure("( before the columns")
        definition = tree.TableDefinition(name, self.listed(self._column_or_key), if_not_exists)
        if self.word == "COMMENT":
            self.position += 1
            self.string("the comment, as a string")
        refuse(self, AFTER_TABLE)
        stream = kind == "STREAM"
        if self.ended:
            return TableStatement(definition, None, None, stream)
        options, timed = timed_of(self.clauses(WATERMARK))
        return TableStatement(definition, options if options.connector else None, timed, stream)

    def _column_or_key(self) -> tree.ColumnDefinition | tree.KeyDefinition:
        start = self.token.start
        if self.sees("CONSTRAINT") and self.tokens[self.position + 2].word in ("PRIMARY", "FOREIGN", "UNIQUE", "CHECK"):
            self.position += 2
        if self.passes("PRIMARY", "KEY"):
            columns = self.listed(lambda: self.identifier("the name of a column"))
            refuse(self, COLUMN)
            return tree.KeyDefinition(columns, self.since(start))
        if self.tokens[self.position + 1].word in ("KEY", "(", "FOR"):
            refuse(self, COLUMN)
        return self._column()

    def _column(self) -> tree.ColumnDefinition:
        start = self.token.start
        name = self.identifier("the name of a column")
        if self.word in (",", ")"):
            raise Unsupported("a column requires a type", span=name.span, expected=f"{name.text} BIGINT, for example")
        self.passes(":")
        type = self.type_name()
        required = key = False
        lateness = comment = default = None
        while self.word not in (",", ")"):
            if self.passes("NOT", "NULL"):
                required = True
            elif self.passes("PRIMARY", "KEY"):
                key = True
            elif self.passes("LATENESS"):
                lateness = self._lateness()
            elif self.passes("COMMENT"):
                comment = self.string("the comment, as a string")
            elif self.word == "DEFAULT":
                default = self.default(default)
            else:
                refuse(self, COLUMN)
                raise self.failure(COLUMN_FORM)
        return tree.ColumnDefinition(name, type, required, key, self.since(start), lateness, comment, default)

    def _lateness(self) -> tree.LatenessDefinition:
        delay = self._delay("LATENESS")
        return tree.LatenessDefinition(delay, self._delay("AHEAD") if self.passes("AHEAD") else None)

    def _delay(self, word: str) -> tree.IntervalText | tree.NumberText:
        if self.token.kind == NUMBER:
            token = self.take()
            return tree.NumberText(token.text, self.of(token))
        interval = self._interval() if self.word == "INTERVAL" else None
        if interval is None:
            raise self.failure(f"{word} INTERVAL 1 HOUR, for example, or {word} 100 of a whole number")
        return interval

    def _create_view(self, replaces: bool, materialized: bool) -> tree.NamedQuery:
        if_not_exists = self._exists("NOT")
        name = self.simple_name("view")
        if replaces and if_not_exists:
            raise Unsupported("OR REPLACE and IF NOT EXISTS together", span=name.span, remedy="leave one of them out")
        columns = self.listed(self._view_column) if self.word == "(" else ()
        if self.passes("COMMENT"):
            self.string("the comment, as a string")
        refuse(self, AFTER_VIEW)
        if not self.passes("AS"):
            raise self.failure(VIEW_FORM)
        if self.ended:
            raise self.missing()
        if self.word not in QUERIES:
            raise self.failure("a query: SELECT, VALUES or WITH")
        query = self.query()
        start = self.token.start
        emits = self.since(start) if self.passes(*EMIT) else None
        return tree.NamedQuery(name, columns, materialized, replaces, if_not_exists, query, self.statement, emits)

    def _view_column(self) -> tree.Name:
        name = self.identifier("the name of a column")
        if self.token.kind == WORD and self.word != "COMMENT":
            span = self.since(name.span.start)
            self.type_name()
            span = self.since(name.span.start)
            raise Unsupported("a view's columns take their types from its query", span=span, expected="names alone")
        if self.passes("COMMENT"):
            self.string("the comment, as a string")
        return name

    def _declare(self) -> tree.ViewDeclaration:
        self.expect("DECLARE", "RECURSIVE", "VIEW")
        name = self.simple_name("view")
        if self.word != "(":
            raise self.failure(DECLARE_FORM)
        columns = self.listed(self._declared_column)
        limit = self.level()
        if not self.ended:
            raise self.failure(DECLARE_FORM)
        return tree.ViewDeclaration(tree.TableDefinition(name, columns, False), limit)

    def _declared_column(self) -> tree.ColumnDefinition:
        if self.word == ")":
            raise self.failure(DECLARE_FORM)
        column = self._column()
        if column.key or column.lateness is not None:
            what = "PRIMARY KEY" if column.key else "LATENESS"
            raise SyntaxFailure(f"a view has no {what}", span=column.span, expected=DECLARE_FORM)
        if column.default is not None:
            raise SyntaxFailure("a view has no DEFAULT", span=column.default.span, expected=DECLARE_FORM)
        return column

    def _create_sink(self) -> CreateSink:
        if_not_exists = self._exists("NOT")
        name = self.simple_name("sink")
        if self.word == "AS":
            remedy = "CREATE MATERIALIZED VIEW v AS the query, then CREATE SINK name FROM v"
            raise Unsupported("CREATE SINK … AS is not supported", span=self.span, remedy=remedy)
        self.expect("FROM")
        if self.word == "(":
            remedy = "CREATE MATERIALIZED VIEW v AS the query, then FROM v"
            raise Unsupported("a sink reads a view, not a query", span=self.span, remedy=remedy)
        view = self.simple_name("view")
        return CreateSink(name.text, view.text, self.clauses(), if_not_exists, name.span, view.span)

    def _drop(self) -> Parsed:
        self.expect("DROP")
        materialized = self.passes("MATERIALIZED")
        temporary = not materialized and (self.passes("TEMPORARY") or self.passes("TEMP"))
        if not materialized and self.word in ("VARIABLE", "VAR"):
            return self.dropped_variable()
        kinds: dict[str, type[DropView | DropTable | DropStream | DropSink | DropFunction]] = {
            "VIEW": DropView,
            "TABLE": DropTable,
            "STREAM": DropStream,
            "SINK": DropSink,
            "FUNCTION": DropFunction,
        }
        kind = kinds.get(self.word)
        if kind is None or (materialized and kind is not DropView) or (temporary and kind is not DropFunction):
            raise self._not_understood()
        what = self.take().text.lower()
        if_exists = self._exists()
        name = self.simple_name(what)
        if self.word == ",":
            raise Unsupported("DROP of several at once is not supported", span=self.span, remedy="one statement for each")
        if self.word in ("CASCADE", "RESTRICT"):
            remedy = "drop the views that read it first" if self.word == "CASCADE" else "leave it out"
            raise Unsupported(f"DROP … {self.word} is not supported", span=self.span, remedy=remedy)
        if self.word == "PURGE":
            raise Unsupported("PURGE is not supported in DROP", span=self.span, remedy="leave it out")
        if not self.ended:
            raise self.failure("the end of the statement")
        return kind(name.text, if_exists, name.span)
