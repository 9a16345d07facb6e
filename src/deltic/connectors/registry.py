"""Which connector a name after USING stands for: one of Deltic's own, or one that an installed package registers.

A package registers a connector by an entry point of the group `deltic.connectors`; its name is what USING says. It is imported when a
statement names it, so a broken one is an error of that statement alone. Names are found whatever their case; Deltic's own come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Final, NoReturn

from deltic.connectors.connector import SinkSpec, SourceSpec
from deltic.connectors.files.connector import FORMATS, FileConnector
from deltic.errors import SetupError, UnknownName, did_you_mean
from deltic.options import Options
from deltic.schema import TableSchema

GROUP: Final = "deltic.connectors"
_BUILT_IN: Final[Mapping[str, FileConnector]] = MappingProxyType({format: FileConnector(format) for format in FORMATS})


def source_spec(table: TableSchema, options: Options) -> SourceSpec:
    """What USING and OPTIONS of CREATE TABLE say. Raises QueryError, and SetupError for a broken connector."""
    spec = _function("source", options)(table, options)
    if not isinstance(spec, SourceSpec):
        _fail(options, f"its source() returned {type(spec).__name__}", "a SourceSpec")
    return spec


def sink_spec(options: Options) -> SinkSpec:
    """What USING and OPTIONS of CREATE SINK say. Raises as `source_spec`."""
    spec = _function("sink", options)(options)
    if not isinstance(spec, SinkSpec):
        _fail(options, f"its sink() returned {type(spec).__name__}", "a SinkSpec")
    return spec


def _function(kind: str, options: Options) -> Any:
    """The connector's function that makes specs of this kind."""
    built_in = _BUILT_IN.get(options.connector.lower())
    function = getattr(built_in or _installed(options), kind, None)
    if not callable(function):
        _fail(options, f"it has no {kind}s", f"a connector with a function {kind}")
    return function


def _installed(options: Options) -> Any:
    points = entry_points(group=GROUP)
    name = options.connector.lower()
    matches = {(point.value, _package(point)): point for point in points if point.name.lower() == name}
    if not matches:
        names = sorted({*_BUILT_IN, *(point.name for point in points)})
        remedy = did_you_mean(options.connector, names) or ""
        raise UnknownName(
            f"there is no connector {options.connector!r}",
            span=options.span,
            expected=f"one of {', '.join(names)}",
            remedy=remedy if remedy.startswith("did") else "install the package that has it",
        )
    if len(matches) > 1:
        packages = " and ".join(sorted(package for _, package in matches))
        _fail(options, f"several packages register it: {packages}", "one package", "uninstall the others")
    (point,) = matches.values()
    try:
        return point.load()
    except Exception as error:
        message = f"{_package(point)} cannot load it from {point.value!r}: {type(error).__name__}: {error}"
        _fail(options, message, f"an entry point of {GROUP} that can be imported", "repair or uninstall that package", error)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unnamed package"


def _fail(options: Options, message: str, expected: str, remedy: str | None = None, cause: Exception | None = None) -> NoReturn:
    raise SetupError(f"connector {options.connector}: {message}", span=options.span, expected=expected, remedy=remedy) from cause
