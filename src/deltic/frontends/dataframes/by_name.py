"""unionByName: the sides of a union with the same columns, and the same fields of STRUCTs, also in ARRAYs, in one order.

What UNION would match by position has the same names on both sides here, but for STRUCTs in MAPs: Spark, too, matches those by position.
"""

from __future__ import annotations

from deltic.errors import Span, TypeMismatch, UnknownName
from deltic.expr import common_type
from deltic.expr.typing import differ_in_names
from deltic.frontends.dataframes.binder import FrameBinder
from deltic.frontends.dataframes.frame import BoundFrame, FrameColumn, over
from deltic.frontends.dataframes.literals import cast_call
from deltic.frontends.sql import tree
from deltic.schema import Field, Type
from deltic.types import array_type, struct


def by_name(left: BoundFrame, right: BoundFrame, missing: bool, binder: FrameBinder) -> tuple[BoundFrame, BoundFrame]:
    """The two frames with the columns of both, those of the left one first.

       missing: NULL stands for what a side lacks, fields of STRUCTs included.
    Raises UnknownName for a column or field that only one side has, and TypeMismatch for two without a common type.
    """
    names = [column.name for column in left.columns]
    names += [column.name for column in right.columns if column.name.lower() not in {name.lower() for name in names}]
    columns = {side: [_column(name, frame, side, missing, binder) for name in names] for frame, side in ((left, "left"), (right, "right"))}
    sides: dict[str, list[tree.SelectItem]] = {"left": [], "right": []}
    common = _Common(missing, binder.here)
    for name, one, other in zip(names, columns["left"], columns["right"], strict=True):
        left_type, right_type = _type(one, left), _type(other, right)
        type = None if left_type is None or right_type is None else common.type(name, left_type, right_type)
        sides["left"].append(_item(name, one, left_type, type, binder))
        sides["right"].append(_item(name, other, right_type, type, binder))
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
    if common is None or not _has_struct(type):
        return binder.item(column, name)
    return tree.SelectItem(_as(column.written(binder.here), type, common, binder), (tree.Name(name, binder.here),), binder.here)


def _has_struct(type: Type) -> bool:
    """Whether it is a STRUCT, or an ARRAY of them, at any depth."""
    return type.name == "STRUCT" or (type.name == "ARRAY" and _has_struct(type.parts[0].type))


class _Common:
    """The types of both sides. span: of unionByName."""

    def __init__(self, missing: bool, span: Span) -> None:
        self.missing, self.span = missing, span

    def type(self, name: str, left: Type, right: Type) -> Type:
        """That of a column or field; of STRUCTs with the fields of the left one first. name: in errors, such as `address.street`."""
        if left.name == right.name == "ARRAY":
            return array_type(self.type(name, left.parts[0].type, right.parts[0].type))
        if left.name == right.name == "STRUCT":
            return self._struct(name, left, right)
        common = left if differ_in_names(left, right) else common_type([left, right])
        if common is None:
            raise TypeMismatch(
                f"column {name!r} of unionByName has no common type",
                span=self.span,
                expected=f"{left.sql} as on the left, found {right.sql}",
                remedy="cast one of them",
            )
        return common

    def _struct(self, name: str, left: Type, right: Type) -> Type:
        one, two = ({field.name.lower(): field for field in type.parts} for type in (left, right))
        if not self.missing:
            self._check_fields(name, "left", one, two)
            self._check_fields(name, "right", two, one)
        fields = []
        for key, field in (one | {key: field for key, field in two.items() if key not in one}).items():
            types = [side[key].type for side in (one, two) if key in side]
            fields.append(Field(field.name, self.type(f"{name}.{field.name}", types[0], types[1]) if len(types) == 2 else field.type))
        return struct(tuple(fields))

    def _check_fields(self, name: str, side: str, own: dict[str, Field], other: dict[str, Field]) -> None:
        lacking = next((field.name for key, field in other.items() if key not in own), None)
        if lacking is not None:
            raise UnknownName(
                f"{name!r} of the {side} DataFrame has no field {lacking!r}",
                span=self.span,
                remedy="allowMissingColumns=True fills it with NULL",
            )


def _as(value: tree.Expression, type: Type, target: Type, binder: FrameBinder) -> tree.Expression:
    """A value with the fields of the target's STRUCTs, in their order; NULL stays NULL."""
    if type == target:
        return value
    if type.name == "ARRAY" and _has_struct(type):
        element = tree.Name("element", binder.here)
        body = _as(tree.ColumnName((element,), binder.here), type.parts[0].type, target.parts[0].type, binder)
        return binder.call("transform", value, tree.LambdaText((element,), body, binder.here))
    if type.name != "STRUCT":
        return cast_call(value, target, binder.here)
    null = tree.KeywordExpression("NULL", binder.here)
    own = {field.name.lower(): field for field in type.parts}
    arguments: list[tree.Expression] = []
    for field in target.parts:
        arguments.append(tree.StringText(field.name, binder.here))
        mine = own.get(field.name.lower())
        if mine is None:
            arguments.append(cast_call(null, field.type, binder.here))
        else:
            part = tree.FieldOf(value, tree.Name(mine.name, binder.here), binder.here)
            arguments.append(_as(part, mine.type, field.type, binder))
    made = binder.call("named_struct", *arguments)
    return tree.SearchedCase(None, ((tree.IsTest(value, "NULL", False, binder.here), null),), made, binder.here)
