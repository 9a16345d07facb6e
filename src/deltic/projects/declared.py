"""The columns that a dataset declares."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.connect.proto as pb
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.types import StructType

from deltic.errors import CatalogError, QueryError, Span, TypeMismatch, Unsupported
from deltic.frontends.dataframes.sources import described
from deltic.frontends.dataframes.types import type_of
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_statement import parse_columns
from deltic.frontends.sql.sql_types import schema_of, sql_type
from deltic.projects.definitions import LIVE, LIVE_FORMAT, Dataset
from deltic.schema import Field, Schema


def declared_schema(dataset: Dataset) -> Schema | None:
    """The columns of a dataset's schema; None if it declares none. Raises QueryError."""
    match dataset.schema:
        case None:
            return None
        case str() as text:
            return schema_of(parse_columns(text, f"the schema of {dataset.key}"))
        case StructType() as row:
            return Schema(tuple(type_of(pyspark_types_to_proto_types(row), None).parts))
        case tuple() as columns:
            defined = [column for column in columns if isinstance(column, tree.ColumnDefinition)]
            return Schema(tuple(Field(column.name.text, sql_type(column.type), not column.required) for column in defined))
    raise CatalogError(f"{dataset.place}: invalid schema of {dataset.key}", expected="a StructType, or a text")


def declared_notes(dataset: Dataset) -> dict[str, tuple[bool, str | None]]:
    """Of the columns of a dataset's schema, by name in lower case: whether it is NOT NULL, and its comment. Raises QueryError."""
    match dataset.schema:
        case str() as text:
            parts = parse_columns(text, f"the schema of {dataset.key}")
            return {part.name.text.lower(): (part.required, part.comment) for part in parts if part.name is not None}
        case StructType() as row:
            return {field.name.lower(): (not field.nullable, field.metadata.get("comment")) for field in row.fields}
        case tuple() as columns:
            defined = [column for column in columns if isinstance(column, tree.ColumnDefinition)]
            return {column.name.text.lower(): (column.required, column.comment) for column in defined}
    return {}


def source_schema(message: pb.Relation) -> Schema | None:
    """The columns that a read of files or of a connector declares."""
    text = message.read.data_source.schema
    if not text:
        return None
    return described(text, Span(text, 0, len(text), "<schema>"))


def check_columns(dataset: Dataset, schema: Schema) -> None:
    """Raises CatalogError if a query returns other columns, or other types, than its dataset declares; Spark refuses that too."""
    declared = declared_schema(dataset)
    if declared is None:
        return
    own, types = ({one.name.lower(): one.type.read for one in columns} for columns in (schema, declared))
    differing = next((name for name in [*own, *types] if own.get(name) != types.get(name)), None)
    if differing is not None:
        written, expected = (", ".join(f"{one.name} {one.type.sql}" for one in columns) for columns in (schema, declared))
        message = (
            f"{dataset.place}: the query of {dataset.key} does not return the column {differing} that is declared: it returns {written}"
        )
        if differing not in types:
            message = f"{dataset.place}: the query of {dataset.key} returns the column {differing}, which is not declared"
        raise CatalogError(message, expected=expected, remedy="change the query, or the schema")


def check_declared(dataset: Dataset, schema: Schema) -> None:
    """Raises CatalogError as `check_columns`, and TypeMismatch if a query has its columns in another order."""
    check_columns(dataset, schema)
    declared = declared_schema(dataset)
    if declared is not None and [one.name.lower() for one in schema] != [one.name.lower() for one in declared]:
        written = ", ".join(f"{one.name} {one.type.sql}" for one in schema)
        raise TypeMismatch(f"the query of {dataset.key} returns the columns of its schema in another order: {written}", span=dataset.span)


def check_carried(schema: Schema, key: str, span: Span | None = None) -> None:
    """Raises Unsupported for a column whose values PySpark can neither send nor fetch."""
    for field in schema:
        if field.type.has_months:
            message = f"PySpark cannot carry {field.type.sql}, the type of {field.name} in {key}"
            raise Unsupported(message, span=span, remedy="cast it to a number of months")


def check_live(dataset: Dataset, refusal: QueryError | None) -> None:
    """Raises CatalogError for a table property deltic.table that the dataset cannot have. refusal: why Deltic does not keep it."""
    value = dataset.properties.get(LIVE)
    if value is not None and not dataset.live:
        raise CatalogError(f"{dataset.place}: invalid {LIVE} {value!r} of {dataset.key}", expected="live")
    if not dataset.live:
        return
    if dataset.partitions or dataset.clusters or (dataset.format or LIVE_FORMAT).lower() != LIVE_FORMAT:
        message = f"{dataset.place}: the live table {dataset.key} has a format, partitions or clusters"
        raise CatalogError(message, remedy=f"leave them out: it reads Deltic's state; or leave out {LIVE}")
    if refusal is not None:
        message = f"{dataset.place}: the live table {dataset.key} is recomputed by Spark: {refusal.message}"
        raise CatalogError(message, remedy=f"leave out {LIVE}")


def merged(dataset: Dataset, schemas: Sequence[Schema]) -> Schema:
    """The columns of all flows of a dataset, by name. Raises CatalogError if one has two types."""
    fields: dict[str, Field] = {}
    for schema in schemas:
        for one in schema:
            before = fields.setdefault(one.name.lower(), one)
            if before.type != one.type:
                types = f"{before.type.sql} and {one.type.sql}"
                raise CatalogError(
                    f"{dataset.place}: the flows of {dataset.key} return {types} as {one.name}", remedy="cast it in one of them"
                )
    return Schema(tuple(fields.values()))
