"""DataFrames that are read from nothing but their message: tables, SQL, rows of the program, ranges."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyspark.sql.connect.proto as pb
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.dataframes.binder import FrameBinder
from deltic.frontends.dataframes.expressions import name_parts
from deltic.frontends.dataframes.frame import BoundFrame, over
from deltic.frontends.dataframes.places import name_of_text
from deltic.frontends.dataframes.types import type_of
from deltic.frontends.sql import tree
from deltic.frontends.sql.arguments import Arguments
from deltic.frontends.sql.parse_statement import QueryStatement, parse, parse_columns
from deltic.frontends.sql.sql_types import schema_of
from deltic.plan.nodes import Values
from deltic.schema import Field, Schema, Type
from deltic.types import frozen_list

_MOST_ROWS: Final = 100_000
"""Of createDataFrame: they are in the view's plan."""


def read(message: pb.Read, binder: FrameBinder) -> BoundFrame:
    """A table or view of the session."""
    if message.WhichOneof("read_type") != "named_table":
        form = message.data_source.format or "files"
        remedy = "spark.table(name); CREATE TABLE … USING makes a table of files, and session.apply of a DataFrame"
        raise Unsupported(f"reading {form} within a view is not supported", span=binder.here, remedy=remedy)
    parts = name_parts(message.named_table.unparsed_identifier)
    name = tree.Name(parts[-1], binder.here)
    plan = binder.query(_all(tree.TableName(name, None, binder.here), binder))
    return over(plan, qualifier=parts[-1])


def _all(source: tree.Source, binder: FrameBinder) -> tree.SelectQuery:
    star = tree.SelectItem(tree.Star(None, (), binder.here), (), binder.here)
    return tree.SelectQuery((star,), False, None, source, (), None, None, None, binder.here)


def sql(message: pb.SQL, binder: FrameBinder) -> BoundFrame:
    """spark.sql(text)."""
    nothing = BoundFrame(Values(((),), Schema(())), ())
    named = {name: binder.constant(nothing, value) for name, value in message.named_arguments.items()}
    positional = [binder.constant(nothing, value) for value in message.pos_arguments]
    statements = parse(message.query, name_of_text("sql", binder.here), Arguments(named, positional))
    if len(statements) != 1 or not isinstance(statements[0], QueryStatement):
        raise SyntaxFailure("expected one query in spark.sql", span=binder.here, expected="SELECT …")
    return over(binder.query(statements[0].query))


def rows(message: pb.LocalRelation, binder: FrameBinder) -> BoundFrame:
    """createDataFrame: the rows are constants of the view."""
    data = pa.ipc.open_stream(message.data).read_all() if message.HasField("data") else None
    declared = described(message.schema, binder.here) if message.schema else None
    if data is None:
        assert declared is not None
        return over(Values((), declared))
    if len(data) > _MOST_ROWS:
        remedy = "a table of the session holds rows that are many"
        raise Unsupported(f"createDataFrame with {len(data):,} rows is not supported", span=binder.here, remedy=remedy)
    schema = declared or Schema(tuple(Field(field.name, _arrow_type(field.type, binder)) for field in data.schema))
    columns = [_values(data.column(i), field.type) for i, field in enumerate(schema)]
    return over(Values(tuple(zip(*columns, strict=True)), schema))


def _values(column: pa.ChunkedArray, type: Type) -> list[object]:
    return frozen_list(column.cast(type.arrow).combine_chunks())


def described(schema: str, span: Span) -> Schema:
    """The columns of a schema in JSON or DDL."""
    if not schema.lstrip().startswith("{"):
        return schema_of(parse_columns(schema, "<schema>")).read
    row = type_of(pyspark_types_to_proto_types(StructType.fromJson(json.loads(schema))), span)
    return Schema(row.parts).read


def _arrow_type(arrow: pa.DataType, binder: FrameBinder) -> Type:
    return type_of(pyspark_types_to_proto_types(from_arrow_type(arrow)), binder.here)


def numbers(message: pb.Range, binder: FrameBinder) -> BoundFrame:
    """spark.range."""
    bounds = (message.start if message.HasField("start") else 0, message.end, message.step)
    arguments = tuple(tree.NumberText(f"{bound}L", binder.here) for bound in bounds)
    call = tree.TableCall(binder.call("range", *arguments), None, False, binder.here)
    return over(binder.query(_all(call, binder)), ["id"])


def table_function(message: pb.UnresolvedTableValuedFunction, binder: FrameBinder, nothing: BoundFrame) -> BoundFrame:
    """spark.tvf: a table function of constants."""
    call = binder.call(message.function_name.lower(), *binder.expressions(nothing).nodes(message.arguments))
    return over(binder.query(_all(tree.TableCall(call, None, False, binder.here), binder)))
