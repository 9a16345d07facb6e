"""The connectors that USING can name: Deltic's own, and those that installed packages register.

A package registers a connector by an entry point of the group `deltic.connectors`, under the name for USING. The module is imported when a
statement names it, so a broken connector is an error of that statement alone. Names are case-insensitive; Deltic's own come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Final, NoReturn

from deltic.connectors.connector import SinkSpec, SourceSpec
from deltic.connectors.files.connector import FORMATS, FileConnector, FileSinkSpec, FileSourceSpec
from deltic.connectors.guarded import ConnectorGuard, GuardedSinkSpec, GuardedSourceSpec
from deltic.errors import QueryError, SetupError, SinkError, SourceError, Span, UnknownName, did_you_mean
from deltic.options import Options
from deltic.schema import Schema, TableSchema

GROUP: Final = "deltic.connectors"
_SPARK_FORMATS: Final = frozenset(
    {"avro", "delta", "deltasharing", "hudi", "iceberg", "jdbc", "kafka", "kinesis", "orc", "pubsub", "text", "xml"}
)
"""Names that a user of Spark may write after USING: formats that Spark, or a package for it, reads or writes."""
_REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "source": "leave USING out, and give the rows to Pipeline.tick in Python, or on Spark a stream of this format to a "
        "deltic.spark.StreamingPipeline; or install a package that has the connector",
        "sink": "write session.view(…).changes() with a client in Python, or on Spark the stream spark.readStream.format('deltic') in this "
        "format; or install a package that has the connector",
    }
)
"""For each kind of connector, how to do without it."""
_BUILT_IN: Final[Mapping[str, FileConnector]] = MappingProxyType({format: FileConnector(format) for format in FORMATS})


def source_spec(table: TableSchema, options: Options) -> SourceSpec:
    """The source of CREATE TABLE … USING … OPTIONS. Raises QueryError, and SetupError for a broken connector."""
    if (built_in := _BUILT_IN.get(options.connector.lower())) is not None:
        return built_in.source(table, options)
    connector, package = _installed("source", options)
    guard = ConnectorGuard(options.connector, package, f"table {table.name}", options.span, SourceError)
    with guard.doing("validate its options"):
        spec = _function("source", connector, options)(table, options)
        valid = isinstance(spec, SourceSpec)
    if not valid:
        _fail(options, f"its source() returned {type(spec).__name__}", "a SourceSpec")
    return GuardedSourceSpec(spec, guard)


def sink_spec(name: str, options: Options) -> SinkSpec:
    """The sink of CREATE SINK name … USING … OPTIONS. Raises as `source_spec`."""
    if (built_in := _BUILT_IN.get(options.connector.lower())) is not None:
        return built_in.sink(options)
    connector, package = _installed("sink", options)
    guard = ConnectorGuard(options.connector, package, f"sink {name}", options.span, SinkError)
    with guard.doing("validate its options"):
        spec = _function("sink", connector, options)(options)
        valid = isinstance(spec, SinkSpec)
    if not valid:
        _fail(options, f"its sink() returned {type(spec).__name__}", "a SinkSpec")
    return GuardedSinkSpec(spec, guard)


def check_columns(spec: SourceSpec | SinkSpec, schema: Schema, relation: str, place: Callable[[str], Span | None]) -> None:
    """Raises QueryError for a column that the files of a source or sink have no form for. place: of a column, by its name."""
    if isinstance(spec, FileSourceSpec | FileSinkSpec) and spec.format == "csv":
        nested = next((field for field in schema if field.type.held.is_nested), None)
        if nested is not None:
            verb = "read" if isinstance(spec, FileSourceSpec) else "write"
            message = f"{relation}: CSV has no form for the column {nested.name} of {nested.type.sql}"
            expected = "columns without ARRAY, MAP, STRUCT and VARIANT"
            raise QueryError(message, span=place(nested.name), expected=expected, remedy=f"{verb} it as JSON or Parquet")


def _function(kind: str, connector: object, options: Options) -> Any:
    """The connector's function for specs of this kind."""
    function = getattr(connector, kind, None)
    if not callable(function):
        _fail(options, f"it has no {kind}s", f"a connector with a function {kind}")
    return function


def _installed(kind: str, options: Options) -> tuple[Any, str]:
    """(connector, package) of the one entry point with this name. kind: what it is needed for, a source or a sink."""
    points = entry_points(group=GROUP)
    name = options.connector.lower()
    matches = {(point.value, _package(point)): point for point in points if point.name.lower() == name}
    if not matches:
        names = sorted({*_BUILT_IN, *(point.name for point in points)})
        remedy = "" if name in _SPARK_FORMATS else did_you_mean(options.connector, names) or ""
        raise UnknownName(
            f"there is no connector {options.connector!r}",
            span=options.span,
            expected=f"one of {', '.join(names)}",
            remedy=remedy if remedy.startswith("did") else _REMEDIES[kind] if name in _SPARK_FORMATS else "install the package that has it",
        )
    if len(matches) > 1:
        packages = " and ".join(sorted(package for _, package in matches))
        _fail(options, f"several packages register it: {packages}", "one package", "uninstall the others")
    (point,) = matches.values()
    try:
        return point.load(), _package(point)
    except Exception as error:
        message = f"{_package(point)} cannot load it from {point.value!r}: {type(error).__name__}: {error}"
        _fail(options, message, f"an entry point of {GROUP} that can be imported", "repair or uninstall that package", error)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unnamed package"


def _fail(options: Options, message: str, expected: str, remedy: str | None = None, cause: Exception | None = None) -> NoReturn:
    raise SetupError(f"connector {options.connector}: {message}", span=options.span, expected=expected, remedy=remedy) from cause
