"""unionByName: the sides of a union with the same columns, and the same fields of STRUCTs, in one order."""

from __future__ import annotations

from deltic.errors import UnknownName
from deltic.expr import common_type
from deltic.frontends.dataframes.binder import FrameBinder
from deltic.frontends.dataframes.frame import BoundFrame, FrameColumn, over
from deltic.frontends.dataframes.literals import cast_call
from deltic.frontends.sql import tree
from deltic.schema import Field, Type
from deltic.types import struct


def by_name(left: BoundFrame, right: BoundFrame, missing: bool, binder: FrameBinder) -> tuple[BoundFrame, BoundFrame]:
    """The two frames with the columns of both, those of the left one first.

       missing: NULL stands for what a side lacks, fields of STRUCTs included.
    Raises UnknownName.
    """
    names = [column.name for column in left.columns]
    names += [column.name for column in right.columns if column.name.lower() not in {name.lower() for name in names}]
    columns = {side: [_column(name, frame, side, missing, binder) for name in names] for frame, side in ((left, "left"), (right, "right"))}
    sides: dict[str, list[tree.SelectItem]] = {"left": [], "right": []}
    for name, one, other in zip(names, columns["left"], columns["right"], strict=True):
        left_type, right_type = _type(one, left), _type(other, right)
        common = None if left_type is None or right_type is None else _common(left_type, right_type, missing)
        sides["left"].append(_item(name, one, left_type, common, binder))
        sides["right"].append(_item(name, other, right_type, common, binder))
    return over(binder.select(left, sides["left"])), over(binder.select(right, sides["right"]))


def _column(name: str, frame: BoundFrame, side: str, missing: bool, binder: FrameBinder) -> FrameColumn | None:
    columns = [column for column in frame.columns if column.name.lower() == name.lower()]
    if len(columns) > 1 or not (columns or missing):
        what = "has several columns" if columns else "has no column"
        remedy = None if columns else "allowMissingColumns=True fills it with NULL"
        raise UnknownName(f"the {side} DataFrame {what} {name!r}", span=binder.here, remedy=remedy)
    return columns[0] if columns else None


def _type(column: FrameColumn | None, frame: BoundFrame) -> Type | None:
    return None if column is None else frame.plan.schema[column.index].type


def _item(name: str, column: FrameColumn | None, type: Type | None, common: Type | None, binder: FrameBinder) -> tree.SelectItem:
    if column is None or type is None:
        return tree.SelectItem(tree.KeywordExpression("NULL", binder.here), (tree.Name(name, binder.here),), binder.here)
    if common is None or common == type or type.name != "STRUCT":
        return binder.item(column, name)
    return tree.SelectItem(_as(column.written(binder.here), type, common, binder), (tree.Name(name, binder.here),), binder.here)


def _common(left: Type, right: Type, missing: bool) -> Type | None:
    """The type of both; of STRUCTs with the fields of the left one first. None where there is none, which UNION refuses."""
    if left.name != "STRUCT" or right.name != "STRUCT":
        return left if left == right else common_type([left, right])
    others = {field.name.lower(): field for field in right.parts}
    names = {field.name.lower() for field in left.parts}
    if not missing and names != others.keys():
        return None
    fields = []
    for field in (*left.parts, *(one for key, one in others.items() if key not in names)):
        other = others.get(field.name.lower(), field)
        common = _common(field.type, other.type, missing)
        if common is None:
            return None
        fields.append(Field(field.name, common))
    return struct(tuple(fields))


def _as(value: tree.Expression, type: Type, target: Type, binder: FrameBinder) -> tree.Expression:
    """A value of a STRUCT with the fields of the target, in their order; NULL stays NULL."""
    if type == target:
        return value
    if target.name != "STRUCT":
        return cast_call(value, target, binder.here)
    own = {field.name.lower(): field for field in type.parts}
    arguments: list[tree.Expression] = []
    for field in target.parts:
        arguments.append(tree.StringText(field.name, binder.here))
        mine = own.get(field.name.lower())
        if mine is None:
            arguments.append(cast_call(tree.KeywordExpression("NULL", binder.here), field.type, binder.here))
        else:
            part = tree.FieldOf(value, tree.Name(mine.name, binder.here), binder.here)
            arguments.append(_as(part, mine.type, field.type, binder))
    null = tree.KeywordExpression("NULL", binder.here)
    made = binder.call("named_struct", *arguments)
    return tree.SearchedCase(None, ((tree.IsTest(value, "NULL", False, binder.here), null),), made, binder.here)
