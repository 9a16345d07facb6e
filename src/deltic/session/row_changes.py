"""Statements that change rows: the changes of tables that they mean, from queries over the tables as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from deltic.circuit.operators.table import TableInput
from deltic.connectors.frames import Changes, change_frame
from deltic.errors import DataError, SyntaxFailure
from deltic.expr.rows.ordering import order_key
from deltic.frontends.sql import BoundAnswer, BoundChange, ChangeStatement
from deltic.frontends.sql.tree import TransactionMark
from deltic.frontends.statements import DropVariable, SessionVariable, SetVariables, Statement
from deltic.plan.nodes import Plan
from deltic.runtimes import Committed
from deltic.schema import TableSchema
from deltic.session.constant_rows import constant_rows
from deltic.session.contents import Contents
from deltic.session.definitions import definitions_of
from deltic.session.query import QueryRelations, rows_of
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.intake import encode_changes
from deltic.trace.reading import WEIGHT
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable
from deltic.types import frozen

CHANGES: Final = (ChangeStatement, TransactionMark)
RowsOf: TypeAlias = Callable[[Plan], pa.Table]


class RowChanges:
    """The statements of a script that change rows, by ticks."""

    def __init__(self) -> None:
        self._ticks: list[list[ChangeStatement]] = []
        self._open: TransactionMark | None = None
        self.started = False
        """Whether there are any."""

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return self._open is not None

    @property
    def last(self) -> list[ChangeStatement]:
        """The statements of the last tick, or of the transaction that is open."""
        return self._ticks[-1]

    def add(self, statement: ChangeStatement | TransactionMark) -> None:
        """Adds one. Raises SyntaxFailure for a mark in the wrong place."""
        self.started = True
        if isinstance(statement, TransactionMark):
            self._mark(statement)
            return
        if self._open is None:
            self._ticks.append([])
        self._ticks[-1].append(statement)

    def check_definition(self, statement: Statement) -> None:
        """Raises SyntaxFailure for a definition in a transaction, but of variables."""
        if self.is_open and not is_of_variable(statement):
            raise SyntaxFailure("a definition in a transaction", span=statement.span, remedy="before BEGIN, or after COMMIT")

    def _mark(self, mark: TransactionMark) -> None:
        if mark.word == "BEGIN":
            if self._open is not None:
                raise SyntaxFailure("BEGIN in a transaction", span=mark.span, remedy="COMMIT; or ROLLBACK; before it")
            self._open = mark
            self._ticks.append([])
        elif self._open is None:
            raise SyntaxFailure(f"{mark.word} without BEGIN", span=mark.span, remedy="BEGIN; before the statements that are one tick")
        else:
            self._open = None
            if mark.word == "ROLLBACK":
                self._ticks.pop()

    def ticks(self) -> list[list[ChangeStatement]]:
        """The statements of each tick. Raises SyntaxFailure for a transaction that has no end."""
        if self._open is not None:
            raise SyntaxFailure("BEGIN without COMMIT", span=self._open.span, remedy="COMMIT; after the statements that are one tick")
        return [statements for statements in self._ticks if statements]


def is_of_variable(statement: Statement) -> bool:
    """Whether it sets or drops a variable, which statements have when they are read."""
    return isinstance(statement, SetVariables | DropVariable)


def changed_rows(
    statements: Sequence[ChangeStatement], contents: Contents, now_us: int, limit: int | None
) -> Mapping[TableSchema, Changes]:
    """The changes of one tick by table: each statement sees those of the statements before it. limit: of iterations.

    now_us: the time of the statements, in microseconds since 1970 UTC.

    Raises QueryError; EvaluationError, ConstraintViolation and DataError for rows that a statement cannot make.
    """
    return contents.compute(lambda committed, strings: AppliedStatements(statements, committed, strings, now_us, limit).changes())


class AppliedStatements:
    """Statements applied to the rows of a commit, one after another."""

    def __init__(
        self, statements: Sequence[ChangeStatement], committed: Committed, strings: StringTable, now_us: int, limit: int | None
    ) -> None:
        self._definitions, self._strings = definitions_of(committed), strings
        self._frames: dict[str, tuple[TableSchema, list[pa.Table]]] = {}
        self._batches: dict[str, Batch] = {}
        for statement in statements:
            relations = self.relations()
            bound = statement.bind(relations, now_us)

            def rows(plan: Plan) -> pa.Table:
                if (constants := constant_rows(plan)) is not None:
                    return constants
                return rows_of(BoundAnswer(plan, len(plan.schema)), relations, committed, strings, limit)  # noqa: B023  called at once

            self._frames.setdefault(bound.table.name, (bound.table, []))[1].extend(_frames(bound, rows))
            self._batches.pop(bound.table.name, None)

    def changes(self) -> dict[TableSchema, Changes]:
        """By table."""
        return {table: change_frame(pa.concat_tables(own), table) for table, own in self._frames.values()}

    def relations(self, variables: Mapping[str, SessionVariable] | None = None) -> QueryRelations:
        """The tables and views after the statements so far. variables: instead of those of the definitions."""
        for name, (table, own) in self._frames.items():
            if name not in self._batches:
                self._batches[name] = self._batch(change_frame(pa.concat_tables(own), table), table)
        return QueryRelations(self._definitions, self._strings, dict(self._batches), variables)

    def _batch(self, changes: Changes, table: TableSchema) -> Batch:
        """The changes as words in the order of the table's arrangement."""
        words = encode_changes(changes.rows, table, self._strings)
        operators = (node.operator for node in self._definitions.circuit.nodes)
        source = next(one for one in operators if isinstance(one, TableInput) and one.table.name == table.name)
        return consolidate(Rows(tuple(words[i] for i in source.order), (changes.weights,)))


def _frames(bound: BoundChange, rows: RowsOf) -> Iterator[pa.Table]:
    """Frames of the table's columns and weights."""
    width = len(bound.table.schema)
    deleted_rows: list[pa.Table] = []
    for part in bound.parts:
        answer = rows(part.plan)
        if part.removes:
            old = answer.select(list(range(width)))
            deleted_rows += [old] * part.matched
            yield _weighed(old, bound.table, -1)
        if part.adds:
            yield _weighed(answer.select(list(range(width * part.removes, width * (part.removes + 1)))), bound.table, 1)
    if bound.matched is not None:
        _check_matches(bound, deleted_rows, rows)


def _weighed(rows: pa.Table, table: TableSchema, weight: int) -> pa.Table:
    columns = [*rows.columns, pa.array([weight] * rows.num_rows, pa.int64())]
    schema = pa.schema([*(pa.field(field.name, field.type.arrow) for field in table.schema), pa.field(WEIGHT, pa.int64())])
    return pa.Table.from_arrays([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def _check_matches(bound: BoundChange, deleted_rows: Sequence[pa.Table], rows: RowsOf) -> None:
    """Raises DataError if a row of the table would change for several rows of the source of a MERGE."""
    examples: dict[Hashable, tuple[Any, ...]] = {}
    counts = Counter[Hashable]()
    for deleted in deleted_rows:
        for row in _tuples(deleted):
            key = tuple(map(order_key, row))
            counts[key] += 1
            examples[key] = row
    if bound.changes_all and all(count == 1 for count in counts.values()):
        return
    assert bound.matched is not None
    counts.subtract(tuple(map(order_key, row)) for row in _tuples(rows(bound.matched)))
    for excess in (key for key, count in counts.items() if count > 0):
        shown = ", ".join(f"{field.name}={value!r}" for field, value in zip(bound.table.schema, examples[excess], strict=True))
        raise DataError(
            f"several rows of the source of MERGE match one row of table {bound.table.name}: {shown}",
            span=bound.span,
            expected="at most one row of the source for each row that is updated or deleted",
            remedy="GROUP BY the key in the source",
        )


def _tuples(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    columns = [list(map(frozen, column.to_pylist())) for column in rows.columns]
    return zip(*columns, strict=True)
