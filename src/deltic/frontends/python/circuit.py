"""Circuits: inputs, views, recursions and outputs, by name.

>>> circuit = Circuit()
>>> edges = circuit.input("edges", schema={"src": int, "dst": int})
>>> @circuit.recursive("paths", schema={"src": int, "dst": int})
... def paths(paths):
...     step = paths.index_with("dst").join(edges.index_with("src"), lambda key, path, edge: (path.src, edge.dst))
...     return edges.plus(step).distinct()
>>> circuit.output("paths", paths)
>>> from deltic.plan.evaluate import evaluate
>>> sorted(evaluate(circuit.outputs["paths"], {"edges": {(1, 2): 1, (2, 3): 1}}))
[(1, 2), (1, 3), (2, 3)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

from deltic.errors import CircuitError, UnknownName, did_you_mean
from deltic.frontends.lateness import Delay, in_python
from deltic.frontends.python.schemas import Columns, schema_of
from deltic.frontends.python.stream import Stream, expected
from deltic.frontends.statements import Defining
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import ITERATION_LIMIT, Plan, Recursion, Reference, Table, TickRecursion, references
from deltic.plan.recursion import has_base
from deltic.plan.signs import as_view
from deltic.purity import shown
from deltic.schema import Field, Schema, StreamSchema, TableSchema

Lateness = Mapping[str, Delay]


class Circuit:
    """A circuit. Its inputs become tables, and its outputs materialized views, of the session or program that installs it.

    over: a Program or a Session, whose tables and views are read by name, without a schema. views: the views that are read, by name.
    """

    def __init__(self, over: Defining | None = None) -> None:
        if over is not None and not hasattr(over, "_relations"):
            raise CircuitError(f"invalid argument {shown(over)} of a circuit", expected="a deltic.Program, a deltic.Session, or nothing")
        self._over = over
        self.inputs: dict[str, TableSchema] = {}
        self.views: dict[str, Schema] = {}
        self.outputs: dict[str, Plan] = {}
        self._recursions: set[str] = set()
        self._around: list[str] = []

    def __copy__(self) -> Circuit:
        """The circuit as it is now, over nothing: what is added to it later is not in the copy."""
        copied = Circuit()
        copied.inputs, copied.views, copied.outputs = dict(self.inputs), dict(self.views), dict(self.outputs)
        copied._recursions = set(self._recursions)
        return copied

    def input(
        self,
        name: str,
        *,
        schema: Columns | None = None,
        key: Iterable[str] = (),
        lateness: Lateness | None = None,
        ahead: Delay | None = None,
    ) -> Stream:
        """A table. key: the columns of its primary key, which become NOT NULL; without a key the table is a multiset.

        lateness, ahead: as in `stream`.

        Without a schema it is a table of the program or session that the circuit is over.
        """
        self._check_free(name)
        if schema is None:
            table = self._known(name, "table")
            self.inputs[table.name] = table
            return Stream(Table(table))
        columns = schema_of(schema)
        _check_columns(name, columns)
        matches = [columns.find(column) for column in ((key,) if isinstance(key, str) else key)]
        if any(len(positions) != 1 for positions in matches):
            expected = f"columns among {', '.join(columns.names)}"
            raise CircuitError(f"the key of input {name} has a column that is not in its schema", expected=expected)
        positions = tuple(dict.fromkeys(position for (position,) in matches))
        fields = [Field(f.name, f.type, f.nullable and i not in positions) for i, f in enumerate(columns)]
        table = _with_lateness(TableSchema(name, Schema(tuple(fields)), positions), lateness, ahead)
        self.inputs[name] = table
        return Stream(Table(table))

    def stream(self, name: str, *, schema: Columns, lateness: Lateness | None = None, ahead: Delay | None = None) -> Stream:
        """A stream: it holds the rows that a tick inserts, and is empty in the next tick; see docs/streams.md.

        lateness: {a column of type TIMESTAMP or DATE: a timedelta or text such as "1 hour"}, or {one of a whole number: a number}. Rows
        older than its greatest value so far, less this, are rejected. ahead: so are rows that are more than this after the clock of the
        machine, or, of a whole number, after the greatest value of the ticks before.
        """
        self._check_free(name)
        columns = schema_of(schema)
        _check_columns(name, columns)
        self.inputs[name] = _with_lateness(StreamSchema(name, columns), lateness, ahead)
        return Stream(Table(self.inputs[name]))

    def view(self, name: str, *, schema: Columns | None = None) -> Stream:
        """A view, of SQL or of another circuit, of the session or program that installs the circuit, which then checks the schema.

        Without a schema it is a view of the program that the circuit is over. The names of a circuit's views, inputs, outputs and
        recursions are distinct.
        """
        self._check_free(name)
        if name in self._recursions:
            raise CircuitError(f"the view {name} has the name of a recursion of the circuit", remedy="give the recursion another name")
        self.views[name] = self._known(name, "view").schema if schema is None else schema_of(schema)
        return Stream(Reference(name, self.views[name]))

    def output(self, name: str, stream: Stream) -> None:
        """Keeps the stream's content as a view with this name."""
        self._check_free(name)
        expected(stream, Stream)
        if self._around:
            raise CircuitError(
                f"output {name} inside the recursion {self._around[-1]}", remedy="return the stream, and call output after the recursion"
            )
        _check_columns(name, stream.schema)
        if inner := sorted(relation for relation, _ in references(stream.plan) if relation not in self.views):
            remedy = f"use the stream that the decorator returns for {inner[0]}"
            raise CircuitError(f"output {name} reads {inner[0]} as of an iteration of its recursion", remedy=remedy)
        self.outputs[name] = as_view(stream.plan, f"output {name}")

    def recursive(self, name: str, *, schema: Columns, limit: int = ITERATION_LIMIT) -> Callable[[Callable[[Stream], Stream]], Stream]:
        """A decorator: the function takes the relation of the previous iteration and returns that of this one.

        The decorated name becomes the stream of the least fixed point. limit: the most iterations that may change the relation. The
        function must be monotone, as WITH RECURSIVE must be; it may be called several times, and may only combine streams.
        """

        def decorate(function: Callable[[Stream], Stream]) -> Stream:
            return self.mutual({name: schema}, limit=limit)(function)[name]

        return decorate

    def feedback(self, name: str, *, schema: Columns) -> Callable[[Callable[[Stream], Stream]], Stream]:
        """A decorator: the function takes the relation as of the previous tick and returns that of this one, in any way but over ticks.

        The relation is empty before the first tick. The decorated name becomes its stream. Costs the changes of each tick.
        """
        _check_name(name)
        self._recursions.add(name)

        def decorate(function: Callable[[Stream], Stream]) -> Stream:
            bodies = self._settled({name: schema_of(schema)}, function)
            if not has_base(bodies, name):
                raise CircuitError(f"the feedback {name} reads only itself, so it is empty", remedy="add a stream with plus")
            return Stream(TickRecursion(tuple(bodies.items()), name))

        return decorate

    def mutual(
        self, schemas: Mapping[str, Columns], *, limit: int = ITERATION_LIMIT
    ) -> Callable[[Callable[..., Stream | tuple[Stream, ...]]], dict[str, Stream]]:
        """A decorator for mutually recursive relations: the function takes them in order and returns them as a tuple.

        The decorated name becomes a dict of their streams, by name.
        """
        names = list(schemas)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise CircuitError(f"limit={limit!r}", expected="a number of iterations, 0 or more")
        for name in names:
            _check_name(name)
            if name in self.views:
                raise CircuitError(f"the recursion {name} has the name of a view that the circuit reads", remedy="give it another name")
            self._recursions.add(name)
            if name in self._around:
                raise CircuitError(f"the recursion {name} is inside another recursion of this name", remedy="give it another name")

        def decorate(function: Callable[..., Stream | tuple[Stream, ...]]) -> dict[str, Stream]:
            bodies = self._settled({name: schema_of(schema) for name, schema in schemas.items()}, function)
            check_monotone(bodies)
            for name in names:
                if not has_base(bodies, name):
                    raise CircuitError(f"the recursion {name} reads only itself, so it is empty", remedy="add a stream with plus")
            return {name: Stream(Recursion(tuple(bodies.items()), name, limit)) for name in names}

        return decorate

    def _settled(self, schemas: Mapping[str, Schema], function: Callable[..., Any]) -> dict[str, Plan]:
        """The bodies, with the schemas of the references in them: a column that is never NULL in its body is NOT NULL in the relation."""
        self._around += schemas
        try:
            while True:
                bodies = self._bodies(schemas, function)
                derived = {name: Schema(_as(body.schema, schemas[name])) for name, body in bodies.items()}
                if derived == schemas:
                    return bodies
                schemas = derived
        finally:
            del self._around[-len(schemas) :]

    def _bodies(self, schemas: Mapping[str, Schema], function: Callable[..., Any]) -> dict[str, Plan]:
        result = function(*(Stream(Reference(name, schema)) for name, schema in schemas.items()))
        streams = result if isinstance(result, tuple) else (result,)
        if len(streams) != len(schemas) or not all(isinstance(stream, Stream) for stream in streams):
            raise CircuitError(f"the recursion {', '.join(schemas)} returned {result!r}", expected="a Stream for each of its relations")
        for (name, schema), stream in zip(schemas.items(), streams, strict=True):
            _check_fits(name, schema, stream.schema)
        return {name: stream.plan for name, stream in zip(schemas, streams, strict=True)}

    @overload
    def _known(self, name: str, kind: Literal["table"]) -> TableSchema: ...
    @overload
    def _known(self, name: str, kind: Literal["view"]) -> Plan: ...
    def _known(self, name: str, kind: Literal["table", "view"]) -> TableSchema | Plan:
        """The relation of that kind in the program or session that the circuit is over."""
        if self._over is None:
            raise CircuitError(
                f"{kind} {name} has no schema",
                expected="schema={…}, unless the circuit is over a program or a session, as deltic.Circuit(program) is",
            )
        relation = self._over._relations.relation(name)
        if relation is None:
            raise UnknownName(f"there is no {kind} {name}", remedy=did_you_mean(name, self._over._relations.names()))
        if isinstance(relation, TableSchema) != (kind == "table"):
            other = "view" if kind == "table" else "input"
            raise CircuitError(f"{name} is not a {kind}", remedy=f"circuit.{other}({name!r})")
        return relation

    def _check_free(self, name: str) -> None:
        _check_name(name)
        if name.lower() in (other.lower() for other in (*self.inputs, *self.views, *self.outputs)):
            raise CircuitError(f"the name {name} is already in use", remedy="give it another name")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise CircuitError(f"invalid name {name!r}", expected="a str that is not blank")


def _check_columns(name: str, schema: Schema) -> None:
    """Raises CircuitError for columns whose names differ only in case, or not at all."""
    twice = [column for i, column in enumerate(schema.names) if column.lower() in map(str.lower, schema.names[:i])]
    if twice:
        raise CircuitError(f"two columns of {name} are called {twice[0]}", remedy="rename one with map")


def _as(body: Schema, declared: Schema) -> tuple[Any, ...]:
    """The declared columns, with the nullability of the body."""
    return tuple(type(field)(field.name, field.type, column.nullable) for field, column in zip(declared, body, strict=True))


def _check_fits(name: str, declared: Schema, body: Schema) -> None:
    same = [f.type for f in declared] == [f.type for f in body]
    if not same or any(column.nullable and not field.nullable for field, column in zip(declared, body, strict=True)):
        raise CircuitError(f"the recursion {name} returns ({described(body)})", expected=f"({described(declared)}), its schema")


def described(schema: Schema) -> str:
    """The columns as errors show them: name, type and NOT NULL."""
    return ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' NOT NULL'}" for f in schema)


def _with_lateness(table: TableSchema, lateness: Lateness | None, ahead: Delay | None) -> TableSchema:
    """Raises CircuitError."""
    if lateness is None:
        if ahead is not None:
            raise CircuitError(f"input {table.name} has ahead={ahead!r}, but no lateness", remedy='lateness={"column": "1 hour"}')
        return table
    if not isinstance(lateness, Mapping) or len(lateness) != 1 or not all(isinstance(column, str) for column in lateness):
        raise CircuitError(f"the lateness of input {table.name} is {shown(lateness)}", expected='{"column": "1 hour"}, of one column')
    ((column, delay),) = lateness.items()
    return in_python(table, column, delay, ahead)
