"""What a catalog has of a table, and what a project says about it: format, columns and partitions, and texts that readers see."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deltic.projects.declared import declared_notes
from deltic.projects.definitions import Dataset
from deltic.schema import Schema
from deltic.types import backquoted

_QUOTED: Final = re.compile("`((?:[^`]|``)*)`")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Of a table. format: "" of a view. columns: their types in SQL, by name in lower case. partitions: None if they are not known."""

    format: str
    columns: Mapping[str, str]
    partitions: tuple[str, ...] | None = None

    @property
    def shown(self) -> str:
        return f"partitioned by ({', '.join(self.partitions)})" if self.partitions else "not partitioned"

    def has_partitions(self, dataset: Dataset) -> bool:
        """Whether it is partitioned as a dataset declares."""
        return self.partitions is None or self.partitions == tuple(name.lower() for name in dataset.partitions)

    def is_of(self, dataset: Dataset, format: str, schema: Schema) -> bool:
        """Whether a dataset of this format and these columns can be written to the table as it is."""
        columns = {field.name.lower(): field.type.read.sql for field in schema}
        return self.format == format and self.columns == columns and self.has_partitions(dataset)


def partitions_of(listed: Mapping[str, str]) -> tuple[str, ...]:
    """The columns by which a table is partitioned, of what SHOW TABLE EXTENDED says about it."""
    return tuple(name.replace("``", "`").lower() for name in _QUOTED.findall(listed.get("Partition Columns", "")))


@dataclass(frozen=True, slots=True)
class TableAnnotations:
    """Of a dataset's table, what readers see of it and what it does not depend on: its comment, its properties, the comments of columns."""

    comment: str | None
    properties: Mapping[str, str]
    columns: Mapping[str, str]

    @classmethod
    def of(cls, dataset: Dataset, properties: Mapping[str, Any], fixed: Collection[str] = ()) -> TableAnnotations:
        """fixed: columns whose comments cannot be changed."""
        left_out = {name.lower() for name in fixed}
        declared = declared_notes(dataset).items()
        columns = {name: comment for name, (_, comment) in declared if comment is not None and name not in left_out}
        return cls(dataset.comment, {str(key): str(value) for key, value in properties.items()}, columns)

    def json(self) -> dict[str, Any]:
        return {"comment": self.comment, "properties": dict(self.properties), "columns": dict(self.columns)}

    def changing(self, before: TableAnnotations, identifier: str) -> Iterator[str]:
        """The statements by which a table with other remarks gets these. A property that is gone stays, as in Spark."""
        if self.comment != before.comment:
            yield f"COMMENT ON TABLE {identifier} IS {'NULL' if self.comment is None else text(self.comment)}"
        properties = {key: value for key, value in self.properties.items() if before.properties.get(key) != value}
        if properties:
            yield f"ALTER TABLE {identifier} SET TBLPROPERTIES ({pairs(properties)})"
        for name in {**before.columns, **self.columns}:
            if (comment := self.columns.get(name, "")) != before.columns.get(name, ""):
                yield f"ALTER TABLE {identifier} ALTER COLUMN {backquoted(name)} COMMENT {text(comment)}"


def text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def pairs(properties: Mapping[str, Any]) -> str:
    """Properties in SQL."""
    return ", ".join(f"{text(str(key))} = {text(str(value))}" for key, value in properties.items())
