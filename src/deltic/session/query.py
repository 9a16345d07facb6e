"""Queries that are answered once, over tables and views as of the last commit.

A materialized view is read, not computed again. The query runs as a dataflow of its own, as a new view is filled, and keeps nothing: the
strings that it makes are in a table beside the session's. Of a single row it needs none (`single_row.py`). It takes no lock, so ticks go on
meanwhile; it is repeated under the session's lock if a commit has removed what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from deltic.circuit.nodes import Dataflow
from deltic.errors import DataError, EvaluationError, Unsupported
from deltic.explain import explain
from deltic.frontends.sql import Args, BoundAnswer, bind_answer
from deltic.frontends.statements import ColumnDefault, DefinedFunction, Namespace, SessionVariable
from deltic.lowering import GrowingProgram
from deltic.optimizer import optimize
from deltic.optimizer.replace_views import replaced
from deltic.plan.nodes import FlatMap, Generate, Join, OverTicks, Plan, Recursion, Table
from deltic.plan.streams import reads_ticks
from deltic.plan.walk import nodes
from deltic.runtimes import Committed
from deltic.runtimes.once import content_of
from deltic.runtimes.readable_view import Readable, listed
from deltic.runtimes.shown_rows import SHOWN, rows_text
from deltic.schema import STRING, Field, Schema, StreamSchema, TableSchema
from deltic.session.clock import time_us
from deltic.session.contents import Contents, content_of_view
from deltic.session.definitions import Definitions, definitions_of
from deltic.session.failing_views import check_readable
from deltic.session.keyed import MOST_KEYS, joined_tables, keys_of, sought, sought_by_rows
from deltic.session.plan_sizes import sizes_of
from deltic.session.recursive import limited
from deltic.session.single_row import single_row
from deltic.session.sorting import in_order
from deltic.stacks import roomy
from deltic.trace.batch import Batch
from deltic.trace.reading import Reader
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

_ANSWER = "answer"
SCANNED_ROWS: Final = 1 << 17
"""Tables of fewer rows are scanned in less time than it takes to find their keys by a query of its own."""


class Answer(Readable):
    """The rows of a query, in the order of its ORDER BY; else in no particular order. epoch: of the commit that they are of."""

    def __init__(self, schema: Schema, rows: pa.Table, epoch: int) -> None:
        self._schema, self._rows, self.epoch = schema, rows, epoch

    @property
    def schema(self) -> Schema:
        """Columns in the order of the query."""
        return self._schema

    def to_arrow(self) -> pa.Table:
        """The rows."""
        return self._rows

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dicts. Raises DataError for two columns of one name."""
        names = self._schema.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two columns are called {twice!r}", remedy="name them in the query with AS; to_arrow() has both")
        return listed(self._rows)

    def __len__(self) -> int:
        """The number of rows."""
        count: int = self._rows.num_rows
        return count

    def __repr__(self) -> str:
        """The first rows."""
        return rows_text(self._rows.slice(0, SHOWN), len(self))


class CommitLike(Protocol):
    """What a query needs of a commit."""

    @property
    def epoch(self) -> int: ...

    @property
    def notes(self) -> Mapping[str, Any]: ...


C_contra = TypeVar("C_contra", bound=CommitLike, contravariant=True)


class QueriedRelations(Namespace, Protocol[C_contra]):
    """Relations that a query reads, with their content."""

    def content(self, table: TableSchema, committed: C_contra) -> Sequence[Spine]:
        """The content of a table, as the sum of spines, sorted by the table's key and then its other columns."""
        ...


class QueryRelations:
    """The relations of a commit as a query reads them: a materialized view is a table with its content.

    strings: those of the commit. changes: rows that are added to tables; with some, views are computed. variables: instead of those of the
    definitions.
    """

    def __init__(
        self,
        definitions: Definitions,
        strings: StringTable,
        changes: Mapping[str, Batch] | None = None,
        variables: Mapping[str, SessionVariable] | None = None,
    ) -> None:
        self._catalog = definitions.catalog
        self._variables = definitions.catalog.variables() if variables is None else variables
        stored = {} if changes else definitions.views
        self._views = {name.lower(): name for name in stored}
        self._definitions, self._strings, self._changes = definitions, strings, changes or {}

    def relation(self, name: str) -> TableSchema | Plan | None:
        if (view := self._views.get(name.lower())) is not None:
            return self._table_of(view)
        relation = self._catalog.relation(name)
        if not isinstance(relation, Plan) or not reads_ticks(relation):
            return relation
        return replaced(relation, {self._catalog.views[key].plan: Table(self._table_of(view)) for key, view in self._views.items()})

    def _table_of(self, view: str) -> TableSchema:
        stored = self._definitions.views[view]
        return view_as_table(view, stored.reader.schema, stored.spec.order, stored.spec.key)

    def names(self) -> tuple[str, ...]:
        return self._catalog.names()

    def functions(self) -> Mapping[str, DefinedFunction]:
        return self._catalog.functions()

    def defaults(self, table: str) -> Mapping[str, ColumnDefault]:
        return self._catalog.defaults(table)

    def variables(self) -> Mapping[str, SessionVariable]:
        return self._variables

    def content(self, table: TableSchema, committed: Committed) -> Sequence[Spine]:
        """The content of a table or a view, a spine for each shard, and one for the changes."""
        view = self._views.get(table.name.lower())
        if view is not None:
            check_readable(self._definitions, view, committed, self._strings)
            return content_of_view(committed, view, self._definitions.views[view].spec)
        spines = committed.snapshot(self._definitions.circuit.tables[table.name])
        return [*spines, Spine.of(self._changes[table.name])] if table.name in self._changes else spines


def view_as_table(name: str, schema: Schema, order: tuple[int, ...], key: int) -> TableSchema:
    """A view as a table whose rows are stored as the view's. order, key: as in ArrangementSpec.

    All columns in their own order are no key: the rows may have none.
    """
    has_key = key < len(order) or order != tuple(range(len(order)))
    return TableSchema(name, schema, order[:key] if has_key else ())


def answered(contents: Contents, text: str, args: Args, name: str, limit: int | None) -> Answer:
    """The answer of one query. limit: of the iterations of a recursion. Raises QueryError with the place, EvaluationError."""

    def answer(committed: Committed, strings: StringTable) -> Answer:
        return answer_of(text, name, QueryRelations(definitions_of(committed), strings), args, committed, strings, limit)

    return contents.compute(answer)


@roomy
def answer_of(
    text: str,
    name: str,
    relations: QueriedRelations[C_contra],
    args: Args,
    committed: C_contra,
    strings: StringTable,
    limit: int | None,
) -> Answer:
    """The answer of a query over the relations of a commit; of EXPLAIN the plan, as one row."""
    bound = bind_answer(text, name, relations, time_us(committed.notes), args)
    if bound.explained:
        rows = pa.table({"plan": [_explained(bound, relations, committed, limit)]})
        return Answer(Schema((Field("plan", STRING, False),)), rows, committed.epoch)
    rows = rows_of(bound, relations, committed, strings, limit)
    return Answer(Schema(bound.plan.schema.fields[: bound.width]), rows, committed.epoch)


def _explained(bound: BoundAnswer, relations: QueriedRelations[C_contra], committed: C_contra, limit: int | None) -> str:
    """The plan and the circuit of a query, as `Session.explain` describes a view."""
    query = _read(bound, relations, committed, limit)
    circuit = _circuit(query)
    sizes = {circuit.tables[name]: (sum(one.rows for one in spines), 0) for name, spines in query.spines.items()}
    return str(explain({_ANSWER: query.plan}, circuit, sizes, None, 1, sources={}, sinks={}))


def rows_of(
    bound: BoundAnswer, relations: QueriedRelations[C_contra], committed: C_contra, strings: StringTable, limit: int | None
) -> pa.Table:
    """The rows of a bound query."""
    query = _read(bound, relations, committed, limit)
    rows = single_row(query.plan, next(iter(query.spines.values())), strings) if len(query.spines) == 1 else None
    if rows is None:
        rows = _rows_of_circuit(query, strings, committed)
    if bound.order:
        rows = in_order(rows, bound.order)
    return rows.select(list(range(bound.width)))


def _rows_of_circuit(query: _Query, strings: StringTable, committed: CommitLike) -> pa.Table:
    circuit, spines = _circuit(query), dict(query.spines)
    for name, keys in keys_of(query.plan).items():
        spines[name] = sought(name, spines[name], keys, circuit.arrangements[circuit.tables[name]], strings)
    for joined in joined_tables(query.plan):
        if _stored_rows([spines[joined.name]]) >= SCANNED_ROWS:
            spec = circuit.arrangements[circuit.tables[joined.name]]
            if (few := _few_rows(joined.keys, spines, strings, committed)) is not None:
                spines[joined.name] = sought_by_rows(joined.name, spines[joined.name], joined.columns, few, spec, strings)
    return _content(circuit, spines, strings, committed)


def _content(circuit: Dataflow, spines: Mapping[str, Sequence[Spine]], strings: StringTable, committed: CommitLike) -> pa.Table:
    whole = content_of(circuit, _ANSWER, spines, strings, committed.epoch, committed.notes)
    spec = circuit.arrangements[circuit.views[_ANSWER]]
    return Reader(spec.shape.schema, spec.order).content(whole, strings)


def _few_rows(
    plan: Plan, spines: Mapping[str, Sequence[Spine]], strings: StringTable, committed: CommitLike
) -> Iterable[tuple[Any, ...]] | None:
    """The rows of a part of a query over few rows; None if it reads many, may make many of few, or fails: then the query does."""
    tables = _tables(plan)
    if any(isinstance(node, FlatMap | Generate | Recursion) or (isinstance(node, Join) and not node.keys) for node in nodes(plan)):
        return None
    if _stored_rows(spines[name] for name in tables) > MOST_KEYS:
        return None
    circuit = GrowingProgram(1).circuit({_ANSWER: plan}, tables)
    try:
        rows = _content(circuit, {name: spines[name] for name in tables}, strings, committed)
    except EvaluationError:
        return None
    return None if len(rows) > MOST_KEYS else zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _stored_rows(tables: Iterable[Sequence[Spine]]) -> int:
    return sum(spine.rows for spines in tables for spine in spines)


class _Query(NamedTuple):
    """An optimized query. spines: the content of the tables that it reads."""

    plan: Plan
    tables: Mapping[str, TableSchema]
    spines: Mapping[str, Sequence[Spine]]


def _read(bound: BoundAnswer, relations: QueriedRelations[C_contra], committed: C_contra, limit: int | None) -> _Query:
    denotation = limited(bound.plan, limit)
    contents = {table.name: relations.content(table, committed) for table in _tables(denotation).values()}
    plan = optimize(denotation, sizes=sizes_of(contents))
    tables = _tables(plan)
    return _Query(plan, tables, {name: contents[name] for name in tables})


def _circuit(query: _Query) -> Dataflow:
    return GrowingProgram(1).circuit({_ANSWER: query.plan}, query.tables)


def _tables(plan: Plan) -> dict[str, TableSchema]:
    """The tables of a plan by name. Raises Unsupported for what has rows in a tick alone."""
    tables: dict[str, TableSchema] = {}
    for node in nodes(plan):
        if isinstance(node, Table):
            if isinstance(node.table, StreamSchema):
                remedy = "a materialized view over the stream, which the query reads"
                raise Unsupported(f"the stream {node.table.name} has rows in a tick alone", span=node.span, remedy=remedy)
            tables[node.table.name] = node.table
        elif isinstance(node, OverTicks):
            raise Unsupported(f"{node.function}() depends on the ticks before, which a query does not see", remedy="a materialized view")
    return tables
