"""The catalog: what names mean. Immutable: each definition returns a new catalog, and a script that fails leaves the old one in use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from deltic.connectors.connector import SourceSpec
from deltic.connectors.registry import check_columns, sink_spec, source_spec
from deltic.errors import CatalogError, CircuitError, QueryError, Span, TypeMismatch, UnknownName, did_you_mean
from deltic.expr.nodes import UserFunction
from deltic.frontends.statements import (
    AlterDefaults,
    AlterTable,
    ColumnDefault,
    CreateFunction,
    CreateSink,
    CreateTable,
    CreateView,
    DeclareView,
    DefinedFunction,
    DropFunction,
    DropSink,
    DropStream,
    DropTable,
    DropVariable,
    DropView,
    Replan,
    SessionVariable,
    SetVariables,
    SqlScalar,
    SqlTable,
    Statement,
    Timed,
)
from deltic.plan.nodes import Plan, Reference
from deltic.plan.recursion import bound_to
from deltic.plan.stream_checks import check_streams
from deltic.schema import Schema, StreamSchema, TableSchema
from deltic.session.alterations import Alteration, altered, changed_positions, readers
from deltic.session.column_defaults import changed_defaults, check_without_source, defaults_after
from deltic.session.locations import Use, check_locations, sink_uses, source_uses
from deltic.session.recursive import check_complete, meanings
from deltic.session.view_definitions import SinkDefinition, ViewDefinition, check_has_columns, check_names, check_sink, rebound

T = TypeVar("T")


def _none() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Catalog:
    """Tables, views and sinks by their names in lower case, in the order of their definition; no two share a name. Functions have names of
    their own.

    sources: by table; tables without a source are not in it. declared: the views that are declared recursive; queries that read one have a
    Reference to it, so it may be created or replaced later. timed: by table, the column that is its watermark.
    altered: by table, what ALTER TABLE has made of it. values: the variables. initial: by table, the defaults of its columns, by column in
    lower case.
    """

    tables: Mapping[str, TableSchema] = field(default_factory=_none)
    views: Mapping[str, ViewDefinition] = field(default_factory=_none)
    sources: Mapping[str, SourceSpec] = field(default_factory=_none)
    sinks: Mapping[str, SinkDefinition] = field(default_factory=_none)
    declared: Mapping[str, DeclareView] = field(default_factory=_none)
    timed: Mapping[str, Timed] = field(default_factory=_none)
    scalars: Mapping[str, DefinedFunction] = field(default_factory=_none)
    altered: Mapping[str, tuple[Alteration, ...]] = field(default_factory=_none)
    values: Mapping[str, SessionVariable] = field(default_factory=_none)
    initial: Mapping[str, Mapping[str, ColumnDefault]] = field(default_factory=_none)

    def functions(self) -> Mapping[str, DefinedFunction]:
        """The functions of users."""
        return self.scalars

    def variables(self) -> Mapping[str, SessionVariable]:
        """The variables of the session."""
        return self.values

    def defaults(self, table: str) -> Mapping[str, ColumnDefault]:
        """The defaults of a table's columns."""
        return self.initial.get(table.lower(), {})

    def python_functions(self) -> Mapping[str, UserFunction]:
        """The functions of users in Python, by the name that SQL calls."""
        return {one.name: one.function for one in self.scalars.values() if not isinstance(one, SqlScalar | SqlTable)}

    def relation(self, name: str) -> TableSchema | Plan | None:
        """The relation that a query calls `name`: a table by its schema, a view by its plan; None if there is neither."""
        key = name.lower()
        if key in self.tables:
            return self.tables[key]
        if key in self.declared:
            return Reference(self.declared[key].name, self.declared[key].schema)
        return self.views[key].plan if key in self.views else None

    def names(self) -> tuple[str, ...]:
        """All names, for suggestions."""
        declared = (view.name for key, view in self.declared.items() if key not in self.views)
        return (*(t.name for t in self.tables.values()), *(v.name for v in self.views.values()), *declared)

    def plans(self) -> dict[str, Plan]:
        """The plan of each materialized view over base tables alone. Raises CatalogError and Unsupported as `meanings` does."""
        bodies = {one.name: self.views[key].plan for key, one in self.declared.items() if key in self.views}
        denotations = meanings(self.declared.values(), bodies)
        plans = {v.name: self._denoted(key, v, denotations) for key, v in self.views.items()}
        for name, plan in plans.items():
            check_complete(name, plan)
            check_streams(plan)
        return {v.name: plans[v.name] for v in self.views.values() if v.materialized}

    def _denoted(self, key: str, view: ViewDefinition, denotations: Mapping[str, Plan]) -> Plan:
        return denotations[self.declared[key].name] if key in self.declared else bound_to(view.plan, denotations)

    def apply(self, statement: Statement) -> Catalog:
        """The catalog after one statement; raises CatalogError."""
        match statement:
            case CreateTable():
                return self._create_table(statement)
            case CreateView():
                return self._create_view(statement)
            case DeclareView():
                return self._declare(statement)
            case CreateSink():
                return self._create_sink(statement)
            case CreateFunction():
                return self._create_function(statement)
            case DropFunction():
                return self._drop_function(statement)
            case DropStream():
                return self._drop(statement.name, "stream", statement.if_exists, statement.span)
            case DropTable():
                return self._drop(statement.name, "table", statement.if_exists, statement.span)
            case DropView():
                return self._drop(statement.name, "view", statement.if_exists, statement.span)
            case DropSink():
                return self._drop(statement.name, "sink", statement.if_exists, statement.span)
            case AlterTable():
                return self._alter_table(statement)
            case AlterDefaults():
                return self._alter_defaults(statement)
            case Replan():
                return self._replanned(statement)
            case SetVariables():
                return replace(self, values={**self.values, **{one.name.lower(): one for one in statement.variables}})
            case DropVariable():
                return self._drop_variable(statement)

    def _create_table(self, statement: CreateTable) -> Catalog:
        table, source = statement.table, None if statement.source is None else source_spec(statement.table, statement.source)
        check_names(table.schema, "table", table.name, statement.span)
        if self._is_defined(table.name, "table", statement.span, may_exist=statement.if_not_exists):
            return self
        key = table.name.lower()
        timed = self.timed if statement.timed is None else {**self.timed, key: statement.timed}
        tables = {**self.tables, key: table}
        if source is None:
            initial = {**self.initial, key: statement.defaults} if statement.defaults else self.initial
            return replace(self, tables=tables, timed=timed, initial=initial)
        check_columns(source, table.schema, f"table {table.name}", lambda name: statement.places.get(name.lower(), statement.span))
        check_without_source(table, statement.defaults, statement.span)
        check_locations(source_uses(table.name, source), self._uses())
        return replace(self, tables=tables, timed=timed, sources={**self.sources, key: source})

    def _alter_table(self, statement: AlterTable) -> Catalog:
        """The catalog with the table altered, and every view that reads it bound again. No view reads what goes or gets another name."""
        key, table = statement.name.lower(), self._table_to_alter(statement)
        alteration = altered(table, statement, self.timed.get(key))
        if alteration.after == table:
            return self
        for name, place in _named(statement):
            fields = tuple(field for field in alteration.after.schema if field.name == name)
            check_names(Schema(fields), "table", table.name, place)
        if key in self.sources:
            places = dict(_named(statement))
            check_columns(self.sources[key], alteration.after.schema, f"table {table.name}", lambda name: places.get(name, statement.span))
        changed_columns = changed_positions(alteration)
        named = [table.schema[i].name for i in sorted(changed_columns)]
        reading = readers({view.name: view.plan for view in self.views.values()}, table, changed_columns) if changed_columns else []
        after = replace(
            self,
            tables={**self.tables, key: alteration.after},
            altered={**self.altered, key: (*self.altered.get(key, ()), alteration)},
            initial={**self.initial, key: defaults_after(self.defaults(key), alteration, () if key in self.sources else statement.added)},
        )
        views = after._views_of_altered(table, alteration, reading, statement.span)
        if reading:
            columns, names = f"column{'s' * (len(named) > 1)} {', '.join(named)}", ", ".join(dict.fromkeys(reading))
            plural = "s" * (len(set(reading)) > 1)
            message = f"{columns} of table {table.name} {'is' if len(named) == 1 else 'are'} read by view{plural} {names}"
            raise CatalogError(message, span=statement.span, remedy=f"drop {names} first, or replace {'them' if plural else 'it'}")
        self._check_sinks(views, statement.span)
        return replace(after, views=views)

    def _table_to_alter(self, statement: AlterTable | AlterDefaults) -> TableSchema:
        key = statement.name.lower()
        if (kind := self._kind(key)) not in ("table", "stream"):
            remedy = did_you_mean(statement.name, [table.name for table in self.tables.values()])
            message = f"{statement.name} is a {kind}, not a table" if kind else f"there is no table {statement.name!r}"
            raise UnknownName(message, span=statement.span, remedy=None if kind else remedy)
        return self.tables[key]

    def _alter_defaults(self, statement: AlterDefaults) -> Catalog:
        key, table = statement.name.lower(), self._table_to_alter(statement)
        changed = changed_defaults(self.defaults(key), table, statement.columns)
        if key in self.sources:
            check_without_source(table, changed, statement.span)
        return replace(self, initial={**self.initial, key: changed})

    def _views_of_altered(self, table: TableSchema, alteration: Alteration, reading: list[str], span: Span) -> Mapping[str, ViewDefinition]:
        """The views, those that read the table bound again. reading: gets the names of those that need a column that it lacks now."""
        views, stale = dict(self.views), {table.name.lower()}
        removes = bool(changed_positions(alteration))
        for name in self._in_order_of_reading(views):
            view = views[name]
            if not (stale - self.declared.keys()) & {one.lower() for one in view.depends_on}:
                continue
            stale.add(name)
            try:
                views[name] = view.over(replace(self, views=views))
            except (QueryError, CircuitError) as error:
                if not removes:
                    message = f"view {view.name} reads {table.name} and would no longer be valid: {error.message}"
                    other = "" if isinstance(error, TypeMismatch) else ", or give the column another name"
                    raise CatalogError(message, span=span, remedy=f"drop {view.name} first{other}") from error
                reading.append(view.name)
                continue
            if removes and views[name].plan.schema != view.plan.schema and view.name not in reading:
                reading.append(view.name)
        return views

    def _declare(self, statement: DeclareView) -> Catalog:
        check_names(statement.schema, "view", statement.name, statement.span)
        self._is_defined(statement.name, "view", statement.span, may_exist=False)
        return replace(self, declared={**self.declared, statement.name.lower(): statement})

    def _create_view(self, statement: CreateView) -> Catalog:
        key = statement.name.lower()
        check_names(statement.plan.schema, "view", statement.name, statement.span)
        check_has_columns(statement, statement.plan, statement.span)
        if statement.or_replace and key in self.views:
            return self._replace_view(statement)
        is_body = key in self.declared and key not in self.views
        if not is_body and self._is_defined(statement.name, "view", statement.span, may_exist=statement.if_not_exists):
            return self
        definition = ViewDefinition.of(statement)
        return replace(self, views={**self.views, key: definition})

    def _replace_view(self, statement: CreateView) -> Catalog:
        """The view in the position of the old one, and every view that reads it bound again."""
        key = statement.name.lower()
        if key not in self.declared and key in self._upstream(statement):
            raise CatalogError(f"view {statement.name} would read itself", span=statement.span)
        views = self._with_readers({**self.views, key: ViewDefinition.of(statement)}, {key}, statement.name, statement.span)
        self._check_sinks(views, statement.span)
        sinks = {n: replace(s, view=statement.name) if s.view.lower() == key else s for n, s in self.sinks.items()}
        return replace(self, views=views, sinks=sinks)

    def _with_readers(
        self, views: Mapping[str, ViewDefinition], replaced: Collection[str], cause: str, span: Span | None, calling: Collection[str] = ()
    ) -> Mapping[str, ViewDefinition]:
        """The views; those in `calling`, and all that read one of these or a replaced one, bound again. cause: what was replaced."""
        bound, stale = dict(views), set(replaced)
        for name in self._in_order_of_reading(views):
            view = views[name]
            if name not in stale and (name in calling or (stale - self.declared.keys()) & {d.lower() for d in view.depends_on}):
                stale.add(name)
                bound[name] = rebound(view, replace(self, views=bound), cause, span)
        if all(bound[name].depends_on == view.depends_on for name, view in views.items()):
            return bound
        after = replace(self, views=bound)
        for name in calling:
            if name not in self.declared and name in after._upstream(bound[name]):
                raise CatalogError(f"view {bound[name].name} calls {cause} and would read itself", span=span)
        return after._with_readers(bound, replaced, cause, span, calling)  # in the order in which they read one another now

    def _in_order_of_reading(self, views: Mapping[str, ViewDefinition]) -> list[str]:
        """The names of views, each after those that are inlined in it, otherwise in the order of their definition. O(reads).

        The order of definition alone does not do: a view that was replaced may read one that was defined after it.
        """
        ordered: dict[str, None] = {}
        pending = [*views][::-1]
        while pending:
            inlined = [one.lower() for one in views[pending[-1]].depends_on]
            below = [one for one in inlined if one in views and one not in ordered and one not in self.declared]
            if below:
                pending += reversed(below)
            else:
                ordered[pending.pop()] = None
        return list(ordered)

    def _create_function(self, statement: CreateFunction) -> Catalog:
        key = statement.name.lower()
        if key in self.scalars and not statement.or_replace:
            if statement.if_not_exists:
                return self
            remedy = "drop it first, or use CREATE OR REPLACE FUNCTION"
            raise CatalogError(f"function {statement.name} is defined already", span=statement.span, remedy=remedy)
        after = replace(self, scalars={**self.scalars, key: statement.function})
        views = after._with_readers(self.views, (), statement.name, statement.span, self._calling(key))
        self._check_sinks(views, statement.span)
        return replace(after, views=views)

    def _drop_function(self, statement: DropFunction) -> Catalog:
        key = statement.name.lower()
        if key not in self.scalars:
            if statement.if_exists:
                return self
            raise _nothing_to_drop("function", statement, self.scalars)
        calling = self._calling_functions(key)
        functions = [one.name for name, one in self.scalars.items() if name in calling]
        readers = [*(f"view {self.views[name].name}" for name in self._calling(key)), *(f"function {name}" for name in functions)]
        if readers:
            message = f"function {statement.name} is called by {readers[0]}"
            raise CatalogError(message, span=statement.span, remedy=f"drop {', '.join(one.partition(' ')[2] for one in readers)} first")
        return replace(self, scalars=_without(self.scalars, key))

    def _drop_variable(self, statement: DropVariable) -> Catalog:
        key = statement.name.lower()
        if key not in self.values and not statement.if_exists:
            raise _nothing_to_drop("variable", statement, self.values)
        return replace(self, values=_without(self.values, key))

    def _calling(self, function: str) -> list[str]:
        """The views that call a function, directly or through others, by their names in lower case."""
        reached = {function, *self._calling_functions(function)}
        return [name for name, view in self.views.items() if not reached.isdisjoint(view.calls)]

    def _calling_functions(self, function: str) -> set[str]:
        """The functions in SQL that call a function, directly or through others, by their names in lower case."""
        reached: set[str] = set()
        waiting = [function]
        while waiting:
            called = waiting.pop()
            calling = {key for key, one in self.scalars.items() if isinstance(one, SqlScalar | SqlTable) and called in one.calls} - reached
            reached |= calling
            waiting += calling
        return reached

    def upstream(self, view: str) -> set[str]:
        """Names of all views, in lower case, that a view reads, directly or through others."""
        return self._reached(self.views[view.lower()])

    def _upstream(self, view: ViewDefinition | CreateView) -> set[str]:
        """Names of all views that are inlined in the view's query, directly or not."""
        return self._reached(view, beyond=frozenset(self.declared))

    def _reached(self, view: ViewDefinition | CreateView, beyond: frozenset[str] = frozenset()) -> set[str]:
        """Names of all views that the view's query reads, directly or through views that are not in `beyond`."""
        reached: set[str] = set()
        pending = [d.lower() for d in view.depends_on]
        while pending:
            name = pending.pop()
            if name not in reached and name in self.views:
                reached.add(name)
                pending += [] if name in beyond else [d.lower() for d in self.views[name].depends_on]
        return reached

    def _create_sink(self, statement: CreateSink) -> Catalog:
        sink = sink_spec(statement.name, statement.sink)
        if self._is_defined(statement.name, "sink", statement.span, may_exist=statement.if_not_exists):
            return self
        view = self._sink_view(statement)
        check_sink(statement.name, sink, view, statement.view_span)
        check_locations(sink_uses(statement.name, sink), self._uses())
        return replace(self, sinks={**self.sinks, statement.name.lower(): SinkDefinition(statement.name, view.name, sink)})

    def _check_sinks(self, views: Mapping[str, ViewDefinition], span: Span | None) -> None:
        """Raises QueryError for a sink that could not deliver its view as it is in `views`. span: the place of the change."""
        for sink in self.sinks.values():
            key = sink.view.lower()
            if views[key] is not self.views[key]:
                check_sink(sink.name, sink.sink, views[key], span)

    def _sink_view(self, statement: CreateSink) -> ViewDefinition:
        name = statement.view
        if name.lower() in self.views:
            return self.views[name.lower()]
        if kind := self._kind(name.lower()):
            remedy = f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {name}, and FROM v" if kind == "table" else "name the view that it reads"
            raise CatalogError(f"{name} is a {kind}, but a sink reads a view", span=statement.view_span, remedy=remedy)
        raise UnknownName(f"there is no view {name!r}", span=statement.view_span, remedy=did_you_mean(name, self._materialized()))

    def _materialized(self) -> list[str]:
        return [v.name for v in self.views.values() if v.materialized]

    def _uses(self) -> list[Use]:
        """The locations of all sources and sinks."""
        sources = [use for key, source in self.sources.items() for use in source_uses(self.tables[key].name, source)]
        return sources + [use for sink in self.sinks.values() for use in sink_uses(sink.name, sink.sink)]

    def _kind(self, key: str) -> str | None:
        """Whether the name is a table's, a stream's, a view's or a sink's; None if it is not defined."""
        if key in self.declared:
            return "view"
        kind = next((kind for kind, definitions in self._all().items() if key in definitions), None)
        return "stream" if kind == "table" and isinstance(self.tables[key], StreamSchema) else kind

    def _all(self) -> dict[str, Mapping[str, TableSchema | ViewDefinition | SinkDefinition]]:
        return {"table": self.tables, "stream": self.tables, "view": self.views, "sink": self.sinks}

    def _is_defined(self, name: str, new_kind: str, span: Span | None, *, may_exist: bool) -> bool:
        """Whether the name is defined. Raises CatalogError if it is, unless it may be."""
        kind = self._kind(name.lower())
        if kind is None:
            return False
        mixed = new_kind != kind and "sink" in (new_kind, kind)
        if may_exist and not mixed:
            return True
        remedy = {
            "table": "drop it first, or use CREATE TABLE IF NOT EXISTS",
            "stream": "drop it first, or use CREATE STREAM IF NOT EXISTS",
            "view": "drop it first, or use CREATE OR REPLACE",
            "sink": "drop it first, or use CREATE SINK IF NOT EXISTS",
        }
        raise CatalogError(f"{kind} {name} is defined already", span=span, remedy="give it another name" if mixed else remedy[kind])

    def _drop(self, name: str, kind: str, if_exists: bool, span: Span | None) -> Catalog:
        key = name.lower()
        actual, names = self._kind(key), [one.name for other, one in self._all()[kind].items() if self._kind(other) == kind]
        if actual is None and if_exists:
            return self
        if actual is None:
            raise CatalogError(
                f"there is no {kind} {name}",
                span=span,
                expected=f"one of {', '.join(names)}" if names else None,
                remedy=f"DROP {kind.upper()} IF EXISTS ignores a {kind} that does not exist",
            )
        if actual != kind:
            raise CatalogError(f"{name} is a {actual}", span=span, remedy=f"use DROP {actual.upper()}")
        self._check_unread(name, kind, span)
        return replace(
            self,
            tables=_without(self.tables, key),
            views=_without(self.views, key),
            sources=_without(self.sources, key),
            sinks=_without(self.sinks, key),
            declared=_without(self.declared, key),
            timed=_without(self.timed, key),
            altered=_without(self.altered, key),
            initial=_without(self.initial, key),
        )

    def _replanned(self, statement: Replan) -> Catalog:
        """The catalog as it is. Raises CatalogError unless the view is materialized."""
        view = self.views.get(statement.name.lower())
        if view is None:
            remedy = did_you_mean(statement.name, self._materialized())
            raise UnknownName(f"there is no view {statement.name!r}", span=statement.span, remedy=remedy)
        if not view.materialized:
            message = f"view {view.name} is not materialized: it has no plan of its own"
            raise CatalogError(message, span=statement.span, remedy="name the materialized view that reads it")
        return self

    def _check_unread(self, name: str, kind: str, span: Span | None) -> None:
        key = name.lower()
        own = self._reached(self.views[key]) if key in self.declared and key in self.views else set()
        reading = {k: v for k, v in self.views.items() if key in {d.lower() for d in v.depends_on}}
        views = [f"view {v.name}" for k, v in reading.items() if k != key and k not in own]
        sinks = [f"sink {s.name}" for s in self.sinks.values() if s.view.lower() == key]
        if readers := [*views, *sinks]:
            names = ", ".join(reader.partition(" ")[2] for reader in readers)
            raise CatalogError(f"{kind} {name} is read by {readers[0]}", span=span, remedy=f"drop {names} first")


def _without(definitions: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: definition for name, definition in definitions.items() if name != key}


def _nothing_to_drop(
    kind: str, statement: DropFunction | DropVariable, definitions: Mapping[str, DefinedFunction | SessionVariable]
) -> CatalogError:
    names = ", ".join(one.name for one in definitions.values())
    expected = f"one of {names}" if names else None
    return CatalogError(f"there is no {kind} {statement.name} to drop", span=statement.span, expected=expected)


def _named(statement: AlterTable) -> list[tuple[str, Span]]:
    """The new names of columns, and their places."""
    added = [(column.field.name, column.span) for column in statement.added]
    return added if statement.renamed is None else [*added, statement.renamed[2:]]
