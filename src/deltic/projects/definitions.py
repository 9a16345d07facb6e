"""What a project defines: datasets, and the flows that fill them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from deltic.errors import Span
from deltic.frontends.sql.parse_dataset import DatasetKind, Policy, QueryText
from deltic.projects.names import Names

if TYPE_CHECKING:
    from pyspark.pipelines.flow import AutoCdcFlow

Kind: TypeAlias = DatasetKind | str
SINK = "sink"
LIVE = "deltic.table"
"""A table property of a materialized view: `live` makes its table one over Deltic's state, without a copy of the rows."""
LIVE_FORMAT = "deltic"


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file, relative to the project's folder, and a line counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Flow:
    """A query that fills the dataset `target`. query: a function that makes a DataFrame, or a text. names: what its names are relative to.

    settings: Spark settings under which it runs.
    """

    name: str
    target: str
    query: Callable[..., Any] | QueryText
    place: FilePlace
    names: Names
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangeFlow:
    """create_auto_cdc_flow."""

    flow: AutoCdcFlow
    source: str
    place: FilePlace


@dataclass(slots=True)
class Dataset:
    """key: its name as `Names.key` has it. identifier: its name for Spark. format: None is Spark's default. options: of a sink.

    schema: columns that are declared: a StructType, DDL, or those of a statement. names: of a view, its columns.
    """

    key: str
    identifier: str
    kind: Kind
    place: FilePlace
    span: Span | None = None
    comment: str | None = None
    format: str | None = None
    partitions: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    schema: Any = None
    names: tuple[str, ...] = ()
    policy: Policy | None = None
    flows: list[Flow] = field(default_factory=list)
    changes: list[ChangeFlow] = field(default_factory=list)

    @property
    def live(self) -> bool:
        """Whether its table reads Deltic's state."""
        return self.kind == "materialized view" and self.properties.get(LIVE, "").lower() == "live"

    @property
    def stored(self) -> bool:
        """Whether it is a table of the catalog."""
        return self.kind in ("materialized view", "streaming table")
