"""Statements of a file of a Declarative Pipelines project, as Spark's grammar has them: datasets, flows, settings.

It is the parser of Deltic's own scripts, with names of one to three parts and STREAM in FROM. A query that it cannot parse is kept as text
with the error: Spark may run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from deltic.errors import QueryError, Span, SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import NUMBER, STRING
from deltic.frontends.sql.nesting import shallow
from deltic.frontends.sql.parse_statement import StatementParser, statement_tokens
from deltic.frontends.sql.refusals import Refusals, by_first, refuse
from deltic.types import backquoted

DatasetKind: TypeAlias = Literal["materialized view", "streaming table", "temporary view", "view"]
Policy: TypeAlias = Literal["auto", "incremental", "incremental strict", "full"]
POLICIES: Final[tuple[Policy, ...]] = ("incremental strict", "incremental", "auto", "full")
UNDERSTOOD: Final = (
    "CREATE MATERIALIZED VIEW, CREATE STREAMING TABLE, CREATE [TEMPORARY] VIEW, CREATE FLOW … AS INSERT INTO … BY NAME, SET, SET CATALOG, "
    "USE SCHEMA"
)
_ONLY_DATABRICKS: Final = "is only on Databricks, not in Apache Spark"
_LEAVE_OUT: Final = "leave it out"
DATABRICKS: Final[Refusals] = by_first(
    {
        "CREATE OR REFRESH": (f"OR REFRESH {_ONLY_DATABRICKS}", "CREATE, which refreshes what exists"),
        "CREATE LIVE": (f"LIVE {_ONLY_DATABRICKS}", "CREATE MATERIALIZED VIEW, or CREATE STREAMING TABLE"),
        "CREATE PRIVATE": (f"PRIVATE {_ONLY_DATABRICKS}", "CREATE TEMPORARY VIEW"),
        "APPLY CHANGES": (f"APPLY CHANGES INTO {_ONLY_DATABRICKS}", "create_auto_cdc_flow in Python"),
    }
)
_CLAUSES: Final[Refusals] = by_first(
    {
        "CONSTRAINT": (f"a CONSTRAINT with EXPECT {_ONLY_DATABRICKS}", "WHERE, or a view of the rows that break the rule"),
        "SCHEDULE": (f"SCHEDULE {_ONLY_DATABRICKS}", "a scheduler that runs `deltic pipelines run`"),
        "TRIGGER": (f"TRIGGER {_ONLY_DATABRICKS}", "a scheduler that runs `deltic pipelines run`"),
        "WITH ROW": (f"ROW FILTER {_ONLY_DATABRICKS}", "WHERE"),
        "OPTIONS": ("OPTIONS of a dataset are not supported, in Apache Spark too", "TBLPROPERTIES"),
        "LOCATION": ("LOCATION of a dataset is not supported, in Apache Spark too", _LEAVE_OUT),
        "CLUSTERED": ("CLUSTERED BY of a dataset is not supported, in Apache Spark too", "CLUSTER BY"),
        "STORED": ("STORED AS of a dataset is not supported, in Apache Spark too", "USING"),
        "ROW": ("ROW FORMAT of a dataset is not supported, in Apache Spark too", "USING"),
        "DEFAULT": ("DEFAULT COLLATION of a dataset is not supported", "COLLATE in the query"),
        "COLLATE": ("COLLATE of a dataset is not supported", "COLLATE in the query"),
    }
)


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query as it is written. query: its tree; None if Deltic cannot parse it, for the reason `refusal`."""

    text: str
    span: Span
    query: tree.Query | None
    refusal: QueryError | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class DatasetClauses:
    """What is said about a dataset besides its query. columns: with types, or names alone."""

    columns: tuple[tree.ColumnDefinition | tree.Name, ...] = ()
    provider: str | None = None
    partitions: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class DatasetStatement:
    """CREATE MATERIALIZED VIEW, STREAMING TABLE, [TEMPORARY] VIEW. query: None for a streaming table that flows feed."""

    kind: DatasetKind
    name: tree.Name
    clauses: DatasetClauses
    query: QueryText | None
    span: Span


@dataclass(frozen=True, slots=True)
class FlowStatement:
    """CREATE FLOW name AS INSERT INTO target BY NAME query."""

    name: tree.Name
    target: tree.Name
    query: QueryText
    span: Span


@dataclass(frozen=True, slots=True)
class SetStatement:
    """SET key = value."""

    key: str
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class UseStatement:
    """SET CATALOG, or USE SCHEMA: what names that follow are relative to."""

    catalog: str | None
    schema: str | None
    span: Span


ProjectStatement: TypeAlias = DatasetStatement | FlowStatement | SetStatement | UseStatement


def parse_definitions(text: str, name: str) -> list[ProjectStatement]:
    """The statements of a file. Raises SyntaxFailure and Unsupported, with the place, for what no Spark would take."""
    return [_parsed(ProjectParser(text, name, tokens)) for tokens in statement_tokens(text, name)]


def parse_project_query(text: str, name: str) -> tree.Query:
    """A query as a text of its own. Raises QueryError."""
    statements = list(statement_tokens(text, name))
    if len(statements) != 1:
        raise SyntaxFailure("expected one query", expected="SELECT …")
    parser = ProjectParser(text, name, statements[0])
    with shallow(parser.statement):
        query = parser.query()
        if not parser.ended:
            raise parser.failure()
        return query


def _parsed(parser: ProjectParser) -> ProjectStatement:
    with shallow(parser.statement):
        return parser.definition()


class ProjectParser(StatementParser):
    """The rules for these statements."""

    def in_schema(self, names: Sequence[tree.Name], what: str) -> tree.Name:
        """`catalog.schema.name` as one name."""
        if len(names) == 1:
            return names[0]
        span = self.since(names[0].span.start)
        if len(names) > 3:
            raise SyntaxFailure(f"the name of a {what} has {len(names)} parts", span=span, expected="catalog.schema.name at most")
        return tree.Name(dotted([name.text for name in names]), span)

    def _source(self) -> tree.Source:
        """STREAM table and STREAM(table) besides those of any query."""
        if self.word != "STREAM" or not self._sees_table_of_stream():
            return super()._source()
        start = self.take().start
        inner = self.passes("(")
        name = self._name("table")
        if inner:
            self.expect(")")
        return tree.TableName(name, self.table_alias(), self.since(start), stream=True)

    def _sees_table_of_stream(self) -> bool:
        """Whether STREAM is followed by a name, or a name in parentheses, and is not the name of a table itself."""
        self.position += 1
        follows = self.word == "(" or self._sees_table_alias()
        self.position -= 1
        return follows

    def _name(self, what: str) -> tree.Name:
        names = [self.identifier(f"the name of a {what}")]
        while self.passes("."):
            names.append(self.identifier("a name after the dot"))
        return self.in_schema(names, what)

    def definition(self) -> ProjectStatement:
        """The statement, parsed to its end."""
        refuse(self, DATABRICKS)
        match self.word:
            case "CREATE":
                parsed = self._definition()
            case "SET":
                parsed = self._setting()
            case "USE":
                parsed = self._use()
            case _:
                raise self._unknown()
        if not self.ended:
            raise self.failure()
        return parsed

    def _unknown(self) -> SyntaxFailure:
        return SyntaxFailure("not a statement of a pipeline", span=self.of(self.tokens[0]), expected=UNDERSTOOD)

    def _definition(self) -> ProjectStatement:
        self.expect("CREATE")
        if self.passes("FLOW"):
            return self._flow()
        replaces = self.passes("OR", "REPLACE")
        kind: DatasetKind
        if self.passes("MATERIALIZED", "VIEW"):
            kind = "materialized view"
        elif self.passes("STREAMING", "TABLE"):
            kind = "streaming table"
        elif self.passes("TEMPORARY", "VIEW") or self.passes("TEMP", "VIEW"):
            kind = "temporary view"
        elif self.passes("VIEW"):
            kind = "view"
        else:
            raise self._unknown()
        if replaces and kind in ("materialized view", "streaming table"):
            raise Unsupported("OR REPLACE of a dataset is not supported, in Apache Spark too", span=self.span, remedy=_LEAVE_OUT)
        self._exists("NOT")
        name = self._name(kind)
        clauses = self._clauses()
        if kind == "streaming table" and self.ended:
            return DatasetStatement(kind, name, clauses, None, self.statement)
        self.expect("AS")
        return DatasetStatement(kind, name, clauses, self._query_text(), self.statement)

    def _clauses(self) -> DatasetClauses:
        columns = self._dataset_columns() if self.word == "(" else ()
        given: dict[str, object] = {}
        properties: dict[str, str] = {}
        while not self.ended and self.word != "AS":
            refuse(self, _CLAUSES)
            clause, start = self.word, self.span
            if clause in given:
                raise SyntaxFailure(f"duplicate {clause}", span=start, remedy="leave one of them out")
            given[clause] = self._clause_value(properties)
        cluster = given.get("CLUSTER") or ()
        partitions = given.get("PARTITIONED") or ()
        assert isinstance(cluster, tuple) and isinstance(partitions, tuple)
        texts = {clause: value for clause, value in given.items() if isinstance(value, str)}
        policy = next((policy for policy in POLICIES if policy == texts.get("REFRESH")), None)
        return DatasetClauses(columns, texts.get("USING"), partitions, cluster, texts.get("COMMENT"), properties, policy)

    def _clause_value(self, properties: dict[str, str]) -> object:
        match self.word:
            case "USING":
                self.position += 1
                return self._dotted_text()[0]
            case "COMMENT":
                self.position += 1
                return self.string("the comment, as a string")
            case "PARTITIONED" | "CLUSTER":
                self.position += 1
                self.expect("BY")
                return tuple(name.text for name in self.listed(lambda: self.identifier("the name of a column")))
            case "TBLPROPERTIES":
                self.position += 1
                self.listed(lambda: self._property(properties))
                return ""
            case "REFRESH":
                self.position += 1
                self.expect("POLICY")
                return self._policy()
            case _:
                raise self.failure("USING, PARTITIONED BY, CLUSTER BY, COMMENT, TBLPROPERTIES, or AS and a query")

    def _policy(self) -> str:
        for policy in POLICIES:
            if self.passes(*policy.upper().split()):
                return policy
        raise self.failure("AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL")

    def _property(self, properties: dict[str, str]) -> None:
        key = self.take().text if self.token.kind == STRING else self._dotted_text()[0]
        self.passes("=")
        if self.token.kind not in (STRING, NUMBER) and self.word not in ("TRUE", "FALSE"):
            raise self.failure(f"a value of the property {key}")
        properties[key] = self.take().text

    def _dataset_columns(self) -> tuple[tree.ColumnDefinition | tree.Name, ...]:
        return self.listed(self._dataset_column)

    def _dataset_column(self) -> tree.ColumnDefinition | tree.Name:
        refuse(self, _CLAUSES)
        name = self.identifier("the name of a column")
        if self.word in (",", ")"):
            return name
        if self.passes("COMMENT"):
            self.string("the comment, as a string")
            return name
        self.position -= 1
        column = self._column()
        if column.default is not None:
            message = "DEFAULT of a dataset's column is not supported: its queries give every column"
            raise Unsupported(message, span=column.default.span, remedy="coalesce(column, value) in the query")
        return column

    def _query_text(self) -> QueryText:
        """The rest of the statement."""
        if self.ended:
            raise self.missing()
        span = Span(self.text, self.token.start, self.tokens[self.count - 1].end, self.name)
        text = self.text[span.start : span.end]
        try:
            query = self._whole_query()
        except QueryError as error:
            self.position, self.depth = self.count, 0
            return QueryText(text, span, None, error)
        return QueryText(text, span, query, None)

    def _whole_query(self) -> tree.Query:
        query = self.query()
        if self.ended:
            return query
        raise self.failure()

    def _flow(self) -> FlowStatement:
        name = self._name("flow")
        if self.passes("COMMENT"):
            self.string("the comment, as a string")
        self.expect("AS")
        if self.sees("AUTO", "CDC"):
            raise Unsupported("AUTO CDC INTO needs Spark 4.3", span=self.span, remedy="create_auto_cdc_flow in Python")
        self.expect("INSERT", "INTO")
        if self.word == "ONCE":
            raise Unsupported(f"INSERT INTO ONCE {_ONLY_DATABRICKS}", span=self.span, remedy=_LEAVE_OUT)
        target = self._name("table")
        self.expect("BY", "NAME")
        return FlowStatement(name, target, self._query_text(), self.statement)

    def _setting(self) -> SetStatement | UseStatement:
        self.expect("SET")
        if self.passes("CATALOG"):
            name = self.take().text if self.token.kind == STRING else self.identifier("the name of a catalog").text
            return UseStatement(name, None, self.statement)
        start = self.token.start
        while not self.ended and self.word != "=":
            self.position += 1
        if self.ended:
            raise self.failure("SET key = value")
        key = self.text[start : self.tokens[self.position - 1].end].strip("`")
        self.expect("=")
        if self.ended:
            raise self.missing()
        value = self.text[self.token.start : self.tokens[self.count - 1].end]
        if self.token.kind == STRING and self.position == self.count - 1:
            value = self.token.text
        self.position = self.count
        return SetStatement(key, value, self.statement)

    def _use(self) -> UseStatement:
        self.expect("USE")
        if self.passes("CATALOG"):
            return UseStatement(self.identifier("the name of a catalog").text, None, self.statement)
        for word in ("SCHEMA", "DATABASE", "NAMESPACE"):
            if self.passes(word):
                break
        names = [self.identifier("the name of a schema")]
        while self.passes("."):
            names.append(self.identifier("a name after the dot"))
        if len(names) > 2:
            raise SyntaxFailure("the name of a schema has more than two parts", span=self.statement, expected="catalog.schema")
        return UseStatement(names[0].text if len(names) == 2 else None, names[-1].text, self.statement)


def dotted(parts: Sequence[str]) -> str:
    """The parts of a name as one text, in `back quotes` where they have other characters than letters, digits and _."""
    return ".".join(part if part.replace("_", "a").isalnum() else backquoted(part) for part in parts)


def streamed(query: tree.Query) -> Iterator[tree.TableName]:
    """The tables that a query reads as streams."""
    return (node for node in tree.walk(query) if isinstance(node, tree.TableName) and node.stream)
