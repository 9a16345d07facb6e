"""Relations that add, rename, drop and fill columns of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyspark.sql.connect.proto as pb

from deltic.errors import QueryError, TypeMismatch
from deltic.frontends.dataframes.binder import FrameBinder, read_by
from deltic.frontends.dataframes.frame import BoundFrame, FrameColumn, over
from deltic.frontends.dataframes.literals import cast_call, literal
from deltic.frontends.dataframes.types import type_of
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_pivot import common_value_type
from deltic.schema import Type

Change = Callable[[FrameColumn, pb.Expression.Literal], tree.Expression]
Values = Mapping[FrameColumn, pb.Expression.Literal]
_NUMBERS: Final = ("byte", "short", "integer", "long", "float", "double", "decimal")


def with_columns(message: pb.WithColumns, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """Columns are replaced where they are, and new ones follow."""
    items = binder.items(frame)
    expressions = binder.expressions(frame)
    for alias in message.aliases:
        name = alias.name[0]
        item = tree.SelectItem(expressions.node(alias.expr), (tree.Name(name, binder.here),), binder.here)
        places = [i for i, column in enumerate(frame.columns) if column.name.lower() == name.lower()]
        for i in places:
            items[i] = item
        if not places:
            items.append(item)
    return binder.project(frame, items)


def renamed(message: pb.WithColumnsRenamed, frame: BoundFrame) -> BoundFrame:
    """withColumnRenamed, one after the other; a name that no column has is ignored, as in Spark."""
    renames = [*message.rename_columns_map.items(), *((one.col_name, one.new_col_name) for one in message.renames)]
    columns = frame.columns
    for old, new in renames:
        columns = tuple(replace(column, name=new) if column.name.lower() == old.lower() else column for column in columns)
    return replace(frame, columns=columns)


def to_df(message: pb.ToDF, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """toDF(name, …)."""
    if len(message.column_names) != len(frame.columns):
        expected = f"{len(frame.columns)}, found {len(message.column_names)}"
        raise TypeMismatch("toDF has another number of names than the DataFrame has columns", span=binder.here, expected=expected)
    named = zip(frame.columns, message.column_names, strict=True)
    return replace(frame, columns=tuple(replace(column, name=name, qualifier=None) for column, name in named))


def to_schema(message: pb.ToSchema, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """to(schema): its columns, by name, cast to its types."""
    expressions = binder.expressions(frame)
    items = []
    for field in message.schema.struct.fields:
        column = expressions.column(field.name, binder.here).written(binder.here)
        value = cast_call(column, type_of(field.data_type, binder.here), binder.here)
        items.append(tree.SelectItem(value, (tree.Name(field.name, binder.here),), binder.here))
    return binder.project(frame, items)


def drop(message: pb.Drop, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """drop; what the DataFrame lacks is ignored, as in Spark."""
    dropped = {column.id for column in frame.columns if column.name.lower() in {name.lower() for name in message.column_names}}
    expressions = binder.expressions(frame)
    for one in message.columns:
        try:
            column = binder.read(frame, expressions.node(one))
        except QueryError:
            continue
        dropped.update(() if column is None else (column.id,))
    kept = tuple(column for column in frame.columns if column.id not in dropped)
    return replace(frame, columns=kept, below=(*frame.below, *(column for column in frame.columns if column.id in dropped)))


def drop_na(message: pb.NADrop, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """Rows with at least min_non_nulls values; NaN counts as NULL."""
    columns = _selected(message.cols, frame, binder)
    present = [_present(column, frame, binder) for column in columns]
    if not present:
        return frame
    least = message.min_non_nulls if message.HasField("min_non_nulls") else len(present)
    if least >= len(present):
        condition: tree.Expression = tree.Operation(("AND",) * (len(present) - 1), tuple(present), binder.here)
        return binder.filter(frame, condition if len(present) > 1 else present[0])
    one, none = tree.NumberText("1", binder.here), tree.NumberText("0", binder.here)
    counts = tuple(tree.SearchedCase(None, ((test, one),), none, binder.here) for test in present)
    total = tree.Operation(("+",) * (len(counts) - 1), counts, binder.here) if len(counts) > 1 else counts[0]
    return binder.filter(frame, tree.Operation((">=",), (total, tree.NumberText(str(least), binder.here)), binder.here))


def _present(column: FrameColumn, frame: BoundFrame, binder: FrameBinder) -> tree.Expression:
    written = column.written(binder.here)
    test = tree.IsTest(written, "NULL", True, binder.here)
    if not _type(column, frame).is_float:
        return test
    number = tree.Prefix("NOT", binder.call("isnan", written), binder.here)
    return tree.Operation(("AND",), (test, number), binder.here)


def fill_na(message: pb.NAFill, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """fillna: a value in the columns whose type fits it; values by columns are cast to the types of these."""
    if len(message.values) > 1:
        values: Values = dict(zip(_selected(message.cols, frame, binder), message.values, strict=True))
    else:
        values = _fitting(message.values[0], _selected(message.cols, frame, binder), frame)
    return _changed(frame, binder, values, lambda column, value: _filled(column, value, frame, binder))


def _filled(column: FrameColumn, value: pb.Expression.Literal, frame: BoundFrame, binder: FrameBinder) -> tree.Expression:
    written, type = column.written(binder.here), _type(column, frame)
    filled = binder.call("nanvl", written, tree.KeywordExpression("NULL", binder.here)) if type.is_float else written
    return binder.call("coalesce", filled, cast_call(literal(value, binder.here), type, binder.here))


def replace_values(message: pb.NAReplace, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """replace: values by others, in the columns of their type."""
    if not message.replacements:
        return frame
    columns = _fitting(message.replacements[0].old_value, _selected(message.cols, frame, binder), frame)

    def replaced(column: FrameColumn, _: pb.Expression.Literal) -> tree.Expression:
        written, type = column.written(binder.here), _type(column, frame)
        branches = []
        for one in message.replacements:
            old = literal(one.old_value, binder.here)
            new = cast_call(literal(one.new_value, binder.here), type, binder.here)
            branches.append((tree.Operation(("=",), (written, old), binder.here), new))
        return tree.SearchedCase(None, tuple(branches), written, binder.here)

    return _changed(frame, binder, columns, replaced)


def _changed(frame: BoundFrame, binder: FrameBinder, values: Values, change: Change) -> BoundFrame:
    items = []
    for column in frame.columns:
        value = values.get(column)
        if value is None:
            items.append(binder.item(column))
        else:
            items.append(tree.SelectItem(change(column, value), (tree.Name(column.name, binder.here),), binder.here))
    return binder.project(frame, items)


def _fitting(value: pb.Expression.Literal, columns: Sequence[FrameColumn], frame: BoundFrame) -> Values:
    """The value for those of the columns whose type it fits."""
    return {column: value for column in columns if _fits(value, _type(column, frame))}


def _fits(value: pb.Expression.Literal, type: Type) -> bool:
    kind = value.WhichOneof("literal_type")
    return (
        (kind in _NUMBERS and type.is_numeric)
        or (kind == "string" and type.name == "STRING")
        or (kind == "boolean" and type.name == "BOOLEAN")
    )


def _selected(names: Sequence[str], frame: BoundFrame, binder: FrameBinder) -> Sequence[FrameColumn]:
    """The columns of these names; all without any."""
    expressions = binder.expressions(frame)
    return [expressions.column(name, binder.here) for name in names] if names else frame.columns


def _type(column: FrameColumn, frame: BoundFrame) -> Type:
    return frame.plan.schema[column.index].type


def unpivot(message: pb.Unpivot, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """A row for each of the value columns, with its name."""
    expressions = binder.expressions(frame)
    ids = [item for one in message.ids for item in expressions.items(one)]
    if message.HasField("values"):
        values = [item for one in message.values.values for item in expressions.items(one)]
    else:
        read = {column.id for column in read_by(ids, frame) if column is not None}
        values = [binder.item(column) for column in frame.columns if column.id not in read]
    if not values:
        expected = "a column that is not one of the ids"
        raise TypeMismatch("there are no columns to unpivot", span=binder.here, expected=expected)
    names = (message.variable_column_name, message.value_column_name)
    types = [field.type for field in binder.select(frame, values).schema]
    common = common_value_type(types, binder.here)
    rows = []
    for item, type in zip(values, types, strict=True):
        value = item.expression if type == common else cast_call(item.expression, common, binder.here)
        rows += [tree.StringText(binder.name(item), binder.here), value]
    stacked = binder.call("stack", tree.NumberText(str(len(values)), binder.here), *rows)
    made = tree.SelectItem(stacked, tuple(tree.Name(name, binder.here) for name in names), binder.here)
    return over(binder.select(frame, [*ids, made]))
