"""Queries in EDN as views of a session: their statements for the catalog, their results as values, and their inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from deltic.connectors.frames import WEIGHT, change_frame
from deltic.errors import CatalogError, DataError, QueryError, Span, SubscriberError
from deltic.frontends.edn.bind_query import BoundQuery, QueryInput, QueryPull, bind_pull, bind_query, query_inputs, query_pulls
from deltic.frontends.edn.grounding import shaped
from deltic.frontends.edn.kinds import EdnKind, decoded
from deltic.frontends.edn.operations import place
from deltic.frontends.edn.parse import parse_query
from deltic.frontends.edn.patterns import constant_of
from deltic.frontends.edn.pulled import ReadEntity, same
from deltic.frontends.edn.schema import EdnSchema
from deltic.frontends.edn.tree import EdnQuery, QueryVariable
from deltic.frontends.edn.values import LocatedForm, form_of
from deltic.frontends.statements import BoundView, CreateTable, CreateView, DropTable, DropView, Namespace, Rebind, Statement
from deltic.purity import shown
from deltic.session.edn import Define, Prepare
from deltic.session.edn_pulls import PullTrees
from deltic.session.stored_table import StoredTable
from deltic.session.transaction import PendingChanges
from deltic.session.view import View, rows_with

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EdnDefinition:
    """A query as the definition of a view. inputs: its tables, by the bindings of :in. pulls: those of :find, each a view of its own."""

    view: str
    query: EdnQuery
    schema: EdnSchema
    inputs: tuple[QueryInput, ...]
    pulls: tuple[QueryPull, ...]

    @classmethod
    def of(
        cls,
        view: str,
        form: LocatedForm,
        rules: LocatedForm | None,
        schema: EdnSchema,
        kinds: Mapping[str, str],
        values: Sequence[LocatedForm] = (),
    ) -> EdnDefinition:
        """kinds, values: of inputs. Raises QueryError."""
        query = parse_query(form, rules)
        return cls(view, query, schema, query_inputs(query, view, schema, kinds, values), query_pulls(query, view, schema))

    def bound(self, namespace: Namespace) -> BoundQuery:
        """The query over a namespace."""
        return bind_query(self.query, self.inputs, self.schema, namespace, self.view)

    def statements(self, namespace: Callable[[], Namespace]) -> Iterator[Statement]:
        """A table for each input, the view, and one for each pull. namespace: returns it with what has been defined so far."""
        span = self.query.span or Span(self.view, 0, len(self.view), "<query>")
        for one in self.inputs:
            relation = namespace().relation(one.table.name)
            if relation is None:
                yield CreateTable(one.table, False, span)
            elif relation != one.table:
                raise CatalogError(f"{one.table.name} exists, and is not an input of this query", span=one.binding.span)
        bound = self.bound(namespace())
        yield CreateView(self.view, bound.plan, True, False, False, self._rebind, span, bound.reads)
        for pull in self.pulls:
            if pull.has_rows:
                shown = bind_pull(pull, self.schema, namespace(), self.view)
                yield CreateView(pull.name, shown.plan, True, False, False, self._rebind_pull(pull), span, shown.reads)

    def dropped(self) -> Iterator[Statement]:
        """Drops what `statements` creates, perhaps without its pulls."""
        span = Span(self.view, 0, len(self.view), "<query>")
        yield from (DropView(pull.name, True, span) for pull in self.pulls)
        yield DropView(self.view, False, span)
        yield from (DropTable(one.table.name, False, span) for one in self.inputs)

    def _rebind(self, namespace: Namespace) -> BoundView:
        bound = self.bound(namespace)
        return BoundView(bound.plan, bound.reads)

    def _rebind_pull(self, pull: QueryPull) -> Rebind:
        def rebind(namespace: Namespace) -> BoundView:
            shown = bind_pull(pull, self.schema, namespace, self.view)
            return BoundView(shown.plan, shown.reads)

        return rebind


class EdnView(View):
    """A view that a query in EDN defines, from `Session.edn`."""

    def __init__(
        self, view: View, definition: EdnDefinition, kinds: Sequence[EdnKind], commit: Callable[[Prepare], int], define: Define
    ) -> None:
        """view: its rows. kinds: of its columns. commit: as of EdnStore."""
        super().__init__(view._contents, view.name, view._spark)
        self._definition, self._kinds, self._commit, self._define = definition, kinds, commit, define

    def result(self) -> Any:
        """The answer in the form that :find has: a list of tuples, a list of values, a tuple or a value.

        Rows are sorted, by :order-by first. The last two are None if there is none, and the first of several. A keyword is a Keyword, a
        set a tuple, and a pulled tree a dict, whose keys are texts such as ":person/name"; None for an entity that shows nothing.
        O(n log n) of n rows, and of the trees.
        """
        rows = self._contents.at_one_commit(self._decoded_rows)
        match self._definition.query.shape:
            case "relation":
                return rows
            case "collection":
                return [value for (value,) in rows]
            case "tuple":
                return rows[0] if rows else None
            case "scalar":
                return rows[0][0] if rows else None

    @property
    def has_rows(self) -> bool:
        """Whether `result` is a list, and not one tuple or value."""
        return self._definition.query.shape in ("relation", "collection")

    def result_changes(self) -> list[tuple[tuple[Any, ...], int]]:
        """What the last tick has changed in the rows of the result: (row, weight), with weights below 0 of removed rows.

        A tree that has changed is a row that is removed, and one that is added. O(changes · log of the view, and the trees).
        """
        return self._contents.at_one_commit(self._decoded_changes)

    def _decoded_rows(self) -> list[Row]:
        stored = sorted(map(_stored, self.rows()))
        for one in reversed(self._definition.query.order):
            stored.sort(key=_rank_of(one.element), reverse=one.descending)
        readers = [(pull, pull.whole()) for pull in self._pulls]
        return [self._decoded(row, readers) for row in stored]

    def _decoded(self, stored: Row, readers: Sequence[tuple[PullTrees, ReadEntity]]) -> Row:
        row = [decoded(value, kind) for value, kind in zip(stored, self._kinds, strict=True)]
        for pull, read in readers:
            row[pull.pull.column] = pull.tree(stored[pull.pull.column], read)
        return tuple(row)

    def _decoded_changes(self) -> list[tuple[Row, int]]:
        changed: Counter[Row] = Counter()
        for values in self.changes().to_pylist():
            weight = values.pop(WEIGHT)
            changed[_stored(values)] += weight
        pulls = [(pull, pull.last_change()) for pull in self._pulls]
        counts: dict[Row, int] = {}
        """How often rows whose trees may have changed occur now."""
        for pull, change in pulls:
            name = self.schema.names[pull.pull.column]
            rows_above = rows_with(self, [name], [(root,) for root in change.roots()])
            counts |= Counter(zip(*rows_above.values(), strict=True))
        rows = sorted({**changed, **counts})
        for pull, change in pulls:
            change.fetch({row[pull.pull.column] for row in rows})
        before = [(pull, change.before) for pull, change in pulls]
        now = [(pull, change.now) for pull, change in pulls]
        changes: list[tuple[Row, int]] = []
        for row in rows:
            previous, current = self._decoded(row, before), self._decoded(row, now)
            count = counts.get(row, 0)
            weights = [(current, changed[row])] if same(previous, current) else [(previous, changed[row] - count), (current, count)]
            changes += [one for one in weights if one[1]]
        return changes

    @property
    def _pulls(self) -> list[PullTrees]:
        return [PullTrees(pull, self._contents) for pull in self._definition.pulls]

    def subscribe_results(self, callback: Callable[[list[tuple[Row, int]]], object]) -> Callable[[], None]:
        """Calls `callback(result_changes())` after each commit that changes the result. Returns a function that ends the subscription."""
        if not callable(callback):
            raise SubscriberError(f"invalid subscriber {shown(callback)} of view {self.name}: expected a function of a list")
        views = (self.name, *(pull.name for pull in self._definition.pulls if pull.has_rows))
        return self._contents.subscribe_to(views, self._decoded_changes, callback)

    def drop(self) -> None:
        """Drops the view, with the rows of its pulls and its inputs. Raises CatalogError if another view reads it."""
        self._define(lambda draft: self._definition.dropped())

    def set_inputs(self, *values: Any) -> None:
        """Replaces the inputs, in the order of :in without $ and %, as one tick: a value, a tuple, a list of values or of tuples.

        Until then the inputs are empty, and so is a result that depends on them. Raises TypeMismatch.
        """
        inputs = self._definition.inputs
        if len(values) != len(inputs):
            raise DataError(f"{len(values)} values for {len(inputs)} inputs", expected=", ".join(" ".join(one.names) for one in inputs))
        rows = [_rows(one, value) for one, value in zip(inputs, values, strict=True)]

        def prepare(pending: PendingChanges) -> Mapping[str, Any]:
            for one, now in zip(inputs, rows, strict=True):
                before = set(StoredTable(self._contents, one.table.name).rows())
                changes = [(row, 1) for row in now if row not in before] + [(row, -1) for row in before if row not in now]
                names = one.table.schema.names
                frame = [{**dict(zip(names, row, strict=True)), WEIGHT: weight} for row, weight in changes]
                pending.add_changes(self._contents.definitions.catalog.tables[one.table.name.lower()], change_frame(frame, one.table))
            return {}

        self._commit(prepare)


def _rank_of(column: int) -> Callable[[Row], Any]:
    """What rows are sorted by: not a number is greater than all numbers."""
    return lambda row: (row[column] != row[column], row[column])


def _stored(value: Any) -> Any:
    """A stored row, or a value of one, that can be a key and be sorted: a list or a STRUCT is a tuple."""
    parts = value.values() if isinstance(value, dict) else value
    return tuple(map(_stored, parts)) if isinstance(value, dict | list) else value


def _rows(one: QueryInput, value: Any) -> dict[tuple[Any, ...], None]:
    """The stored rows of an input. Raises TypeMismatch."""
    form = form_of(value)
    try:
        columns = [i for i, term in enumerate(one.binding.terms) if isinstance(term, QueryVariable)]
        return dict.fromkeys(
            tuple(constant_of(row[i], kind, name) for i, kind, name in zip(columns, one.kinds, one.names, strict=True))
            for row in shaped(form, one.binding)
        )
    except QueryError as error:
        place(error, form)
        raise
