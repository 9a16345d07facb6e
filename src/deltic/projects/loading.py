"""Loads a project by PySpark's own loader, with a registry of ours."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.pipelines import cli
from pyspark.pipelines.flow import AutoCdcFlow
from pyspark.pipelines.flow import Flow as SparkFlow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable, Table, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation

from deltic.errors import CatalogError, DelticError, ModuleFailure, QueryError
from deltic.frontends.dataframes import Frames, OuterSpark
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_dataset import (
    DatasetStatement,
    FlowStatement,
    SetStatement,
    UseStatement,
    dotted,
    parse_definitions,
)
from deltic.projects.definitions import SINK, ChangeFlow, Dataset, FilePlace, Flow
from deltic.projects.names import Names
from deltic.projects.server import first_line

_KINDS: Final[Mapping[type[Output], str]] = {
    MaterializedView: "materialized view",
    StreamingTable: "streaming table",
    TemporaryView: "temporary view",
    Sink: SINK,
}
GRAPH: Final = "deltic"
"""The id of the graph, which only a server reads."""


@dataclass(slots=True)
class PipelineProject:
    """A project's definitions. datasets: by key, in the order of the files. folder: of the spec. frames: what made its DataFrames."""

    name: str
    folder: Path
    storage: str
    configuration: Mapping[str, str]
    names: Names
    frames: Frames
    datasets: dict[str, Dataset] = field(default_factory=dict)


def spec_path(given: Path | None) -> Path:
    """The file of a project: the given one, or that of the working folder or the nearest one above it."""
    try:
        return cli.find_pipeline_spec(Path.cwd()) if given is None else given
    except PySparkException as error:
        raise QueryError(first_line(error), remedy="--spec FILE, or run it in the project's folder") from error


def load(path: Path, frames: Frames, open: Callable[[PipelineProject], OuterSpark] | None = None) -> PipelineProject:
    """The project of a spec. Raises QueryError and CatalogError, with file and line where they are known.

    open: the Spark of the project, before its modules are imported: they may read tables, outside of the functions that define datasets.
    """
    if not path.is_file():
        raise QueryError(f"there is no file {path}", expected="the file of a pipeline: spark-pipeline.yml")
    try:
        spec = cli.load_pipeline_spec(path)
    except PySparkException as error:
        raise QueryError(f"{path}: {first_line(error)}") from error
    except Exception as error:  # PyYAML's, and TypeErrors of an entry that is missing
        raise QueryError(f"{path}: {error}", expected="a pipeline's specification in YAML") from error
    check_storage(path, spec.storage)
    names = Names.of(spec.catalog, spec.database)
    project = PipelineProject(spec.name, path.parent.resolve(), spec.storage, spec.configuration, names, frames)
    registry = Registry(project)
    frames.outside = None if open is None else open(project)
    with frames.active() as session, redirect_stdout(sys.stderr):  # PySpark's lines, and what modules print
        spark: Any = session
        try:
            cli.register_definitions(path, registry, spec, spark, GRAPH)
        except DelticError:
            raise
        except Exception as error:  # of the user's modules
            raise module_failure(error, project.folder) from error
    registry.attach()
    if not project.datasets:
        globs = ", ".join(str(library.include) for library in spec.libraries)
        raise CatalogError(f"{path}: the project defines no dataset", expected=f"files that define some, in {globs or 'libraries'}")
    return project


def check_storage(path: Path, storage: str) -> None:
    """Raises QueryError for a relative path: Spark takes it as relative to one folder in one place, and to another in others."""
    if not urlsplit(storage).scheme and not storage.startswith("/"):
        here = (path.parent.resolve() / storage).as_uri()
        raise QueryError(f"{path}: storage {storage!r} is a relative path", expected="a URL, such as file:///data/pipeline", remedy=here)


@dataclass(slots=True)
class Registry(GraphElementRegistry):
    """Collects what the files register."""

    project: PipelineProject
    flows: list[Flow] = field(default_factory=list)
    changes: list[ChangeFlow] = field(default_factory=list)

    def register_output(self, output: Output) -> None:
        """A dataset or sink."""
        kind = next((kind for cls, kind in _KINDS.items() if isinstance(output, cls)), None)
        if kind is None:
            raise QueryError(f"{output.name}: unknown kind of dataset {type(output).__name__}", expected="a dataset of Spark 4.2")
        names = self.project.names
        dataset = Dataset(
            names.key(output.name), names.identifier(output.name), kind, self._place(output.source_code_location), comment=output.comment
        )
        if isinstance(output, Table):
            dataset.format, dataset.schema = output.format, output.schema
            dataset.partitions = tuple(output.partition_cols or ())
            dataset.clusters = tuple(output.cluster_by or ())
            dataset.properties = dict(output.table_properties or {})
        elif isinstance(output, Sink):
            dataset.format, dataset.options = output.format, dict(output.options or {})
        self._add(dataset)

    def register_flow(self, flow: SparkFlow) -> None:
        """The query of a dataset, or another one that appends to it."""
        place = self._place(flow.source_code_location)
        self.flows.append(Flow(flow.name, flow.target, flow.func, place, self.project.names, dict(flow.spark_conf or {})))

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        """Changes of a keyed table."""
        self.changes.append(ChangeFlow(flow, flow.source, self._place(flow.source_code_location)))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        """The statements of a file."""
        names = self.project.names
        settings: dict[str, str] = {}
        for statement in parse_definitions(sql_text, str(file_path)):
            if isinstance(statement, UseStatement):
                names = names.within(statement.catalog, statement.schema)
            elif isinstance(statement, SetStatement):
                settings = {**settings, statement.key: statement.value}
            else:
                self._register(statement, names, settings)

    def _register(self, statement: DatasetStatement | FlowStatement, names: Names, settings: Mapping[str, str]) -> None:
        place = FilePlace(statement.span.name, statement.span.line)
        if isinstance(statement, FlowStatement):
            target = dotted(names.parts(statement.target.text))
            self.flows.append(Flow(statement.name.text, target, statement.query, place, names, settings))
            return
        clauses = statement.clauses
        columns = tuple(one for one in clauses.columns if isinstance(one, tree.ColumnDefinition))
        named = tuple(one.text for one in clauses.columns if isinstance(one, tree.Name))
        if columns and named:
            raise QueryError("some columns have a type, others have none", span=statement.name.span, expected="types of all, or of none")
        dataset = Dataset(
            names.key(statement.name.text), names.identifier(statement.name.text), statement.kind, place, statement.name.span,
            clauses.comment, clauses.provider, clauses.partitions, clauses.clusters, clauses.properties,
            schema=columns or None, names=named, policy=clauses.policy,
        )  # fmt: skip
        self._add(dataset)
        if statement.query is not None:
            target = dotted(names.parts(statement.name.text))
            self.flows.append(Flow(statement.name.text, target, statement.query, place, names, settings))

    def _add(self, dataset: Dataset) -> None:
        before = self.project.datasets.get(dataset.key)
        if before is not None:
            raise CatalogError(f"{dataset.place}: {dataset.key} is defined already, at {before.place}", remedy="give it another name")
        self.project.datasets[dataset.key] = dataset

    def attach(self) -> None:
        """Gives each dataset its flows. Raises CatalogError for flows to nothing, and datasets without flows."""
        datasets, names = self.project.datasets, self.project.names
        for flow in self.flows:
            self._target(flow.target, flow.place).flows.append(flow)
        for changes in self.changes:
            self._target(changes.flow.target, changes.place).changes.append(changes)
        for dataset in datasets.values():
            if dataset.kind in ("materialized view", "view", "temporary view") and len(dataset.flows) > 1:
                second = dataset.flows[1].place
                raise CatalogError(f"{second}: the {dataset.kind} {dataset.key} has a second flow", expected="one query")
        assert all(names.key(flow.target) in datasets for flow in self.flows)

    def _target(self, target: str, place: FilePlace) -> Dataset:
        dataset = self.project.datasets.get(self.project.names.key(target))
        if dataset is None:
            raise CatalogError(
                f"{place}: there is no dataset {target}", remedy="create_streaming_table, or CREATE STREAMING TABLE, defines one"
            )
        return dataset

    def _place(self, location: SourceCodeLocation) -> FilePlace:
        path = Path(location.filename)
        file = path.relative_to(self.project.folder) if path.is_relative_to(self.project.folder) else path
        return FilePlace(str(file), location.line_number or 1)


def module_failure(error: Exception, folder: Path) -> ModuleFailure:
    """The error of a module, with the user's last line that ran, or that cannot be parsed."""
    if isinstance(error, SyntaxError) and error.filename is not None and Path(error.filename).is_relative_to(folder):
        return ModuleFailure(f"{Path(error.filename).relative_to(folder)}:{error.lineno}: {type(error).__name__}: {error.msg}")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(folder)]
    place = f"{Path(frames[-1].filename).relative_to(folder)}:{frames[-1].lineno}: " if frames else ""
    kind = "" if isinstance(error, PySparkException) else f"{type(error).__name__}: "
    return ModuleFailure(f"{place}{kind}{first_line(error)}")
