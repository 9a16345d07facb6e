"""Decides how each dataset of a project is refreshed, before anything runs.

A materialized view that Deltic binds is incremental; what it refuses, Spark recomputes, and views that read it see the difference. Flows
of streaming tables and sinks are Spark's. Datasets are bound in the order of need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

import pyspark.sql.connect.proto as pb

from deltic.errors import CatalogError, DelticError, QueryError, Span, Unsupported
from deltic.frontends.dataframes import FrameDefinition
from deltic.frontends.dataframes.places import Site
from deltic.frontends.sql import tree
from deltic.frontends.sql.ddl import bind_view
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.nesting import shallow
from deltic.frontends.sql.parse_dataset import POLICIES, Policy, QueryText
from deltic.frontends.sql.user_functions import marked
from deltic.frontends.statements import BoundView, CreateTable, CreateView, DefinedFunction, Statement
from deltic.plan.nodes import Plan, Table
from deltic.plan.walk import nodes
from deltic.projects.declared import check_carried, check_columns, check_declared, check_live, declared_schema, merged, source_schema
from deltic.projects.definitions import SINK, ChangeFlow, Dataset, Flow
from deltic.projects.keyed import check_keyed, latest
from deltic.projects.loading import PipelineProject, module_failure
from deltic.projects.messages import (
    SourceRead,
    aliased,
    query_message,
    reads,
    reads_of_text,
    rewritten,
    under_key,
    with_references,
)
from deltic.projects.names import Names
from deltic.projects.server import spark_errors
from deltic.projects.settings import check_settings
from deltic.schema import Schema, TableSchema

Refresh: TypeAlias = Literal["incremental", "inlined", "appended", "merged", "recomputed", "written"]
SHOWN: Final[Mapping[Refresh, str]] = {
    "incremental": "incremental",
    "inlined": "inlined into its readers",
    "appended": "appended by Spark",
    "merged": "changes merged by key",
    "recomputed": "recomputed by Spark",
    "written": "written by Spark",
}
POLICY: Final = "deltic.refresh"
"""A table property of a materialized view: its refresh policy, where it is not a clause."""
_OWN: Final = "\0"
"""What a query is called while it is bound; it does not read itself."""


class Schemas(Protocol):
    """Where the columns of relations outside of a project are found: a Spark."""

    def schema(self, message: pb.Relation, names: Names, settings: Mapping[str, str]) -> Schema:
        """The columns of a relation. Raises QueryError."""
        ...

    def settings(self) -> Mapping[str, str]:
        """Those of `settings.SETTINGS` that it is known to have."""
        ...


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """A flow's relation. message: as Spark runs it, with temporary views in their places. reads: the datasets and sources that it reads.

    definition: what a flow in Python returned.
    """

    flow: Flow
    message: pb.Relation
    reads: tuple[SourceRead, ...]
    streaming: bool
    definition: FrameDefinition | None = None


@dataclass(frozen=True, slots=True)
class EventsPlan:
    """A stream whose rows are kept in files beside the dataset that is made of them, as a table of Deltic."""

    dataset: Dataset
    flow: FlowPlan
    schema: Schema


@dataclass(slots=True)
class DatasetPlan:
    """How a dataset is refreshed. plan: its query over the tables of Deltic. refusal: why Deltic does not keep it.

    policy: of a materialized view. level: of the run in which it is refreshed; datasets that Spark runs come before those that Deltic
    keeps, on one level.
    """

    dataset: Dataset
    refresh: Refresh
    flows: tuple[FlowPlan, ...] = ()
    plan: Plan | None = None
    schema: Schema | None = None
    refusal: QueryError | None = None
    reads: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    policy: Policy = "auto"
    level: int = 0

    @property
    def streaming(self) -> bool:
        return any(flow.streaming for flow in self.flows)


@dataclass(slots=True)
class ProjectPlan:
    """datasets: by key, each after those that it reads. sources: by key, what Deltic reads from outside. tables: all that it reads.

    events: the streams among them, by key.
    """

    project: PipelineProject
    datasets: dict[str, DatasetPlan]
    sources: dict[str, SourceRead]
    tables: dict[str, TableSchema]
    events: dict[str, EventsPlan] = field(default_factory=dict)

    @property
    def incremental(self) -> list[DatasetPlan]:
        return [one for one in self.datasets.values() if one.refresh == "incremental"]

    def statements(self, without: Iterable[str] = ()) -> list[Statement]:
        """The definitions for a session. without: tables that are left out, with all that reads them."""
        left_out = set(without)
        made: list[Statement] = []
        for key, table in self.tables.items():
            if key not in left_out:
                made.append(CreateTable(table, False, Span(key, 0, len(key), key)))
        for one in self.incremental:
            assert one.plan is not None
            if not left_out & tables_of(one.plan).keys():
                made.append(_view(one.dataset.key, one.plan, one.reads, one.calls))
        return made


def _view(key: str, plan: Plan, reads_: tuple[str, ...], calls: tuple[str, ...]) -> CreateView:
    span = Span(key, 0, len(key), key)
    return CreateView(key, plan, True, False, False, lambda _: BoundView(plan, reads_, calls), span, reads_, calls)


def tables_of(plan: Plan) -> dict[str, TableSchema]:
    """The tables that a plan reads, by name."""
    return {node.table.name: node.table for node in nodes(plan) if isinstance(node, Table)}


def plan_project(project: PipelineProject, spark: Schemas, *, offline: bool = False) -> ProjectPlan:
    """How each dataset is refreshed. Raises QueryError for what no Spark would run, with file and line.

    offline: Spark is asked only for what the project does not declare. Files may have partitions as columns beside those of their schema.
    """
    planner = Planner(project, spark, offline)
    project.frames.namespace = lambda: FlowRelations(planner, project.names)
    project.frames.prepare = lambda message: planner.for_deltic(message, project.names)
    for key in project.datasets:
        planner.planned(key)
    ordered = planner.done
    _set_levels(ordered)
    tables: dict[str, TableSchema] = {}
    for one in ordered.values():
        if one.refresh == "incremental" and one.plan is not None:
            tables |= tables_of(one.plan)
    sources = {key: read for key, read in planner.sources.items() if key in tables}
    return ProjectPlan(project, ordered, sources, tables, planner.events)


def _set_levels(datasets: Mapping[str, DatasetPlan]) -> None:
    """What Spark runs sees what Deltic keeps only when it has been written, so it comes one level later."""
    for one in datasets.values():
        kept = one.refresh in ("incremental", "inlined")
        for key in one.reads:
            if (other := datasets.get(key)) is not None:
                later = not kept and other.refresh == "incremental"
                one.level = max(one.level, other.level + later)


@dataclass(slots=True)
class FlowRelations:
    """The relations that a flow's query may name."""

    planner: Planner
    names_: Names
    seen: set[str] = field(default_factory=set)

    def relation(self, name: str) -> TableSchema | Plan | None:
        if name == _OWN:
            return None
        key = name if self.planner.has(name) else self.names_.key(name)
        self.seen.add(key)
        return self.planner.relation(key, lambda: _named_read(self.names_, name))

    def names(self) -> list[str]:
        return list(self.planner.project.datasets)

    def functions(self) -> Mapping[str, DefinedFunction]:
        return {}


def _named_read(names: Names, name: str) -> SourceRead:
    return reads_of_text(f"TABLE {names.identifier(name)}", names)[0]


class Planner:
    """Plans datasets on demand. done: in the order in which they were finished."""

    def __init__(self, project: PipelineProject, spark: Schemas, offline: bool) -> None:
        self.project, self._spark, self._offline = project, spark, offline
        self.done: dict[str, DatasetPlan] = {}
        self.sources: dict[str, SourceRead] = {}
        self.events: dict[str, EventsPlan] = {}
        self._schemas: dict[str, Schema] = {}
        self._pending: list[str] = []

    def has(self, key: str) -> bool:
        """Whether the text is the key of a dataset or source that has been seen."""
        return key in self.project.datasets or key in self.sources or key in self.events

    def planned(self, key: str) -> DatasetPlan:
        """Raises CatalogError for datasets that read each other."""
        if key in self.done:
            return self.done[key]
        if key in self._pending:
            circle = [*self._pending[self._pending.index(key) :], key]
            place = self.project.datasets[key].place
            raise CatalogError(f"{place}: datasets read each other: {' → '.join(circle)}", remedy="leave one of these reads out")
        self._pending.append(key)
        try:
            planned = self._planned(self.project.datasets[key])
        finally:
            self._pending.pop()
        self.done[key] = planned
        return planned

    def relation(self, key: str, read: Callable[[], SourceRead]) -> TableSchema | Plan | None:
        """What a query over a dataset or a source is over. Raises the QueryError of a view that Deltic refuses."""
        if key in self.project.datasets:
            planned = self.planned(key)
            if planned.refresh in ("incremental", "inlined"):
                if planned.plan is None:
                    assert planned.refusal is not None
                    raise planned.refusal
                return planned.plan
            check_carried(self._schema_of(planned), key)
            return TableSchema(key, self._schema_of(planned), ())
        if key in self.events:
            return TableSchema(key, self.events[key].schema, ())
        if key not in self.sources:
            self.sources[key] = read()
        source = self.sources[key]
        if key not in self._schemas:
            declared = source_schema(source.message) if self._offline else None
            with spark_errors(self._reader):
                # Spark may change what it says about NULLs from one version of the files to the next.
                self._schemas[key] = (declared or self._spark.schema(source.message, self.project.names, {})).nullable
        check_carried(self._schemas[key], key)
        return TableSchema(key, self._schemas[key], ())

    @property
    def _reader(self) -> str:
        """What an error is about: the dataset that is being planned."""
        dataset = self.project.datasets[self._pending[-1]]
        return f"{dataset.place}: {dataset.key}: "

    def for_deltic(self, message: pb.Relation, names: Names) -> pb.Relation:
        """The relation over tables that are named by their keys."""

        def over_keys(relation: pb.Relation) -> pb.Relation | None:
            if relation.WhichOneof("rel_type") != "read":
                return None
            (read,) = reads(relation, names)
            if read.key not in self.project.datasets and read.key not in self.events:
                self.sources.setdefault(read.key, read)
            return under_key(relation, read)

        return rewritten(message, over_keys)

    def _planned(self, dataset: Dataset) -> DatasetPlan:
        flows = []
        for flow in dataset.flows:
            definition = None if isinstance(flow.query, QueryText) else self._made(flow.query)
            flows.append(self._flow(flow, definition))
        names_read = tuple(dict.fromkeys(read.key for flow in flows for read in flow.reads))
        planned = DatasetPlan(dataset, "inlined", tuple(flows), reads=tuple(key for key in names_read if key in self.project.datasets))
        for key in planned.reads:
            if key not in self._pending:  # otherwise a circle, if the name is that of a relation: binding decides
                self.planned(key)
        if dataset.kind in ("streaming table", SINK):
            return self._fed(planned)
        if not flows:
            raise CatalogError(f"{dataset.place}: {dataset.key} has no query")
        if planned.streaming and dataset.kind == "materialized view":
            message = f"{dataset.place}: the materialized view {dataset.key} reads a stream"
            raise CatalogError(message, remedy="a streaming table: dp.table, or CREATE STREAMING TABLE")
        if not planned.streaming:
            self._bind(planned)
        if dataset.kind == "materialized view":
            planned.refresh = "incremental" if planned.plan is not None else "recomputed"
            self._apply_policy(planned)
            check_live(planned.dataset, planned.refusal)
        if planned.refresh == "recomputed":
            planned.schema = self._spark_schema(planned)
            check_columns(dataset, planned.schema)
        return planned

    def _made(self, function: Callable[..., Any]) -> FrameDefinition:
        """What a function of the project returns. Raises ModuleFailure if it raises anything."""
        try:
            return self.project.frames.define(function)
        except DelticError:
            raise
        except Exception as error:  # of the user's function
            raise module_failure(error, self.project.folder) from error

    def _apply_policy(self, planned: DatasetPlan) -> None:
        """REFRESH POLICY, or the table property. Raises the refusal of a view that must be incremental."""
        dataset = planned.dataset
        given = dataset.policy or dataset.properties.get(POLICY, "auto").lower()
        policy = planned.policy = next((one for one in POLICIES if one == given), "auto")
        if policy != given:
            message = f"{dataset.place}: invalid {POLICY} {given!r} of {dataset.key}"
            raise CatalogError(message, expected=", ".join(POLICIES))
        if policy == "full":
            planned.refresh, planned.plan = "recomputed", None
            planned.refusal = Unsupported("the refresh policy is FULL", span=dataset.span)
        if policy == "incremental strict" and planned.refusal is not None:
            raise planned.refusal

    def _fed(self, planned: DatasetPlan) -> DatasetPlan:
        """A streaming table or a sink."""
        dataset = planned.dataset
        if dataset.changes:
            return self._keyed(planned)
        planned.refresh = "written" if dataset.kind == SINK else "appended"
        if not dataset.flows:
            raise CatalogError(f"{dataset.place}: {dataset.key} has no flow", remedy="append_flow, or CREATE FLOW")
        for flow in planned.flows:
            if not flow.streaming:
                message = f"{flow.flow.place}: the flow {flow.flow.name} into {dataset.key} reads no stream"
                raise CatalogError(message, remedy="spark.readStream, or STREAM t in SQL")
        if dataset.kind != SINK:
            declared = declared_schema(dataset)
            planned.schema = (declared or merged(dataset, [self._flow_schema(flow) for flow in planned.flows])).nullable
        return planned

    def _keyed(self, planned: DatasetPlan) -> DatasetPlan:
        """The target of create_auto_cdc_flow: a view over its events."""
        dataset = planned.dataset
        check_keyed(dataset)
        (changes,) = dataset.changes
        names, source = self.project.names, self.project.names.key(changes.source)
        own = self.project.datasets.get(source)
        if own is None or own.kind != "streaming table":
            source = self._events(dataset, changes)
        query = latest(changes.flow, source, changes.place)
        flow = Flow(dataset.key, dataset.key, query, changes.place, names)
        place = Site(str(self.project.folder / changes.place.file), changes.place.line, "create_auto_cdc_flow").span
        definition = self.project.frames.define(query, place)
        planned.plan, planned.reads, planned.calls = self._bound(flow, definition, ())
        try:
            check_settings(planned.plan, self._settings())
        except QueryError as error:
            raise CatalogError(f"{changes.place}: {dataset.key}: {error.message}", expected=error.expected) from error
        planned.refresh, planned.schema = "incremental", planned.plan.schema
        if (events := self.events.get(source)) is not None:
            planned.flows = (events.flow,)
            planned.reads = tuple({*planned.reads, *(read.key for read in events.flow.reads if read.key in self.project.datasets)})
        return planned

    def _events(self, dataset: Dataset, changes: ChangeFlow) -> str:
        """The key of a table of the events of a stream that is no table of the project."""
        key = f"{dataset.key} events"
        read = pb.Relation()
        read.read.named_table.unparsed_identifier = self.project.names.identifier(changes.source)
        read.read.is_streaming = True
        flow = Flow(key, key, QueryText("", Span("", 0, 0), None, None), changes.place, self.project.names)
        (source,) = reads(read, self.project.names)
        inside = self.planned(source.key).flows if self._is_view(source.key) else ()
        below = [one for view in inside for one in view.reads]
        plan = FlowPlan(flow, self.for_spark(read, self.project.names), (source, *below), True)
        if self._is_view(source.key):
            schema = self._flow_schema(self.planned(source.key).flows[0])
        else:
            with spark_errors(f"{changes.place}: {dataset.key}: "):
                schema = self._spark.schema(self.for_spark(read, self.project.names, empty=True), self.project.names, {})
        self.events[key] = EventsPlan(dataset, plan, schema.nullable)
        return key

    def _flow(self, flow: Flow, definition: FrameDefinition | None) -> FlowPlan:
        try:
            if definition is None:
                assert isinstance(flow.query, QueryText)
                message, read = query_message(flow.query.text), reads_of_text(flow.query.text, flow.names)
            else:
                message, read = definition.message, reads(definition.message, flow.names)
        except CatalogError as error:
            raise CatalogError(f"{flow.place}: {error.message}", expected=error.expected) from error
        read = [one for one in read if one.key != self._pending[-1] or one.key in self._read_by_name(flow, one)]
        inside = [self.planned(one.key) for one in read if self._is_view(one.key)]
        streaming = any(one.streaming for one in read) or any(one.streaming for one in inside)
        below = [one for view in inside for flow_ in view.flows for one in flow_.reads]
        return FlowPlan(flow, self.for_spark(message, flow.names), tuple([*read, *below]), streaming, definition)

    def _read_by_name(self, flow: Flow, read: SourceRead) -> set[str]:
        """The names in a text that Deltic cannot parse may be those of columns; a query does not read its own dataset."""
        parsed = not isinstance(flow.query, QueryText) or flow.query.query is not None
        return {read.key} if parsed else set()

    def _is_view(self, key: str) -> bool:
        dataset = self.project.datasets.get(key)
        return dataset is not None and dataset.kind in ("temporary view", "view")

    def for_spark(self, message: pb.Relation, names: Names, empty: bool = False) -> pb.Relation:
        """The relation with temporary views in their places. empty: other datasets are empty relations of their columns."""

        def standing(query: str) -> dict[str, pb.Relation]:
            keys = {read.key for read in reads_of_text(query, names)}
            others = {key.rpartition(".")[2]: self._stands_for(key, empty) for key in keys}
            return {name: other for name, other in others.items() if other is not None}

        def replaced(relation: pb.Relation) -> pb.Relation | None:
            match relation.WhichOneof("rel_type"):
                case "read":
                    (read,) = reads(relation, names)
                    other = self._stands_for(read.key, empty)
                    last = read.key.rpartition(".")[2]
                    return None if other is None or not read.named else aliased(other, last, relation)
                case "sql":
                    others = standing(relation.sql.query)
                    return with_references(relation, others) if others else None
                case "with_relations" if relation.with_relations.root.WhichOneof("rel_type") == "sql":
                    return self._more_references(relation, standing(relation.with_relations.root.sql.query), names, empty)
                case _:
                    return None

        return rewritten(message, replaced)

    def _more_references(self, query: pb.Relation, standing: dict[str, pb.Relation], names: Names, empty: bool) -> pb.Relation:
        """A query in which names stand for relations already: Spark takes all references of a text in one message."""
        own = [self.for_spark(one, names, empty) for one in query.with_relations.references]
        given = {one.subquery_alias.alias.lower() for one in own}
        more = {name: other for name, other in standing.items() if name.lower() not in given}
        whole = with_references(query.with_relations.root, more)
        if not more:
            whole = pb.Relation(with_relations=pb.WithRelations(root=query.with_relations.root))
        whole.common.CopyFrom(query.common)
        whole.with_relations.references.extend(own)
        return whole

    def _stands_for(self, key: str, empty: bool) -> pb.Relation | None:
        dataset = self.project.datasets.get(key)
        if dataset is None or key in self._pending:
            return None
        if self._is_view(key):
            (flow,) = self.planned(key).flows
            return self.for_spark(flow.message, flow.flow.names, True) if empty else flow.message
        return _empty(self._schema_of(self.planned(key))) if empty else None

    def _bind(self, planned: DatasetPlan) -> None:
        """Sets the plan, or why there is none."""
        flow = planned.flows[0]
        try:
            planned.plan, planned.reads, planned.calls = self._bound(flow.flow, flow.definition, planned.dataset.names)
            check_declared(planned.dataset, planned.plan.schema)
            check_settings(planned.plan, {**self._settings(), **flow.flow.settings}, flow.message.SerializeToString())
            check_carried(planned.plan.schema, planned.dataset.key, planned.dataset.span)
            planned.schema = planned.plan.schema
        except CatalogError:
            raise
        except QueryError as error:
            planned.plan, planned.refusal = None, error

    def _settings(self) -> Mapping[str, str]:
        """Those of the project, over those of Spark."""
        return {**self._spark.settings(), **self.project.configuration}

    def _bound(
        self, flow: Flow, definition: FrameDefinition | None, columns: tuple[str, ...]
    ) -> tuple[Plan, tuple[str, ...], tuple[str, ...]]:
        """(the plan, the datasets that it reads, the users' functions that it calls)."""
        relations = FlowRelations(self, flow.names)
        if definition is not None:
            own = replace(definition, message=self.for_deltic(definition.message, flow.names))
            bound = own.bound(relations)
            plan, calls = bound.plan, bound.calls
        else:
            assert isinstance(flow.query, QueryText)
            if flow.query.query is None:
                assert flow.query.refusal is not None
                raise flow.query.refusal
            span = flow.query.span
            named = tree.NamedQuery(
                tree.Name(_OWN, span), tuple(tree.Name(name, span) for name in columns), True, False, False, flow.query.query, span
            )
            with shallow(span):
                called, calls = marked(named, relations)
                plan = bind_view(called, Environment(relations))
        return plan, tuple(sorted(key for key in relations.seen if key in self.project.datasets)), calls

    def _flow_schema(self, flow: FlowPlan) -> Schema:
        """The columns of a streaming flow: those of its query over tables, if Deltic binds it."""
        try:
            return self._bound(flow.flow, flow.definition, ())[0].schema
        except CatalogError:
            raise
        except QueryError:
            message = self.for_spark(flow.message, flow.flow.names, empty=True)
            return self._spark.schema(message, flow.flow.names, flow.flow.settings)

    def _schema_of(self, planned: DatasetPlan) -> Schema:
        if planned.schema is None:
            planned.schema = self._spark_schema(planned)
        return planned.schema.nullable

    def _spark_schema(self, planned: DatasetPlan) -> Schema:
        """Of a dataset that Deltic refuses. Raises its error if Spark refuses it too."""
        (flow,) = planned.flows
        try:
            return self._spark.schema(self.for_spark(flow.message, flow.flow.names, empty=True), flow.flow.names, flow.flow.settings)
        except QueryError as error:
            if planned.refusal is None:
                raise
            raise planned.refusal from error


def _empty(schema: Schema) -> pb.Relation:
    """No rows of these columns."""
    message = pb.Relation()
    message.local_relation.schema = ", ".join(f"`{one.name}` {one.type.sql}" for one in schema)
    return message
