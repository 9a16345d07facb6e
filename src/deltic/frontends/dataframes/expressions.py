"""Expressions of Spark Connect's messages as those of SQL's syntax tree, which SQL's binder gives types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pyspark.sql.connect.proto as pb
from pyspark import cloudpickle

from deltic.errors import AmbiguousName, CircuitError, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.frontends.dataframes.frame import BoundFrame, FrameColumn
from deltic.frontends.dataframes.literals import cast_call, literal
from deltic.frontends.dataframes.places import name_of_text, of_origin
from deltic.frontends.dataframes.types import type_of
from deltic.frontends.python.scalars import UDF
from deltic.frontends.sql import tree
from deltic.frontends.sql.named_arguments import in_order
from deltic.frontends.sql.parse_statement import parse_item, parse_type
from deltic.frontends.sql.user_functions import parameters_of
from deltic.frontends.statements import PythonAggregate
from deltic.plan.nodes import Plan

_OPERATORS: Final = {
    **{sign: sign for sign in ("=", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "&", "|", "^", "<>", "||")},
    "==": "=",
    "!=": "<>",
    "and": "AND",
    "or": "OR",
    "&&": "AND",
    "div": "DIV",
}
_PREFIXES: Final = {"not": "NOT", "!": "NOT", "-": "-", "~": "~", "positive": "+"}
_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
TRY: Final = pb.Expression.Cast.EVAL_MODE_TRY


def name_parts(text: str) -> list[str]:
    """The parts of a name: `a.b`, in which back quotes hold dots together."""
    return [plain or quoted.replace("``", "`") for quoted, plain in _PART.findall(text)]


@dataclass(frozen=True, slots=True)
class Expressions:
    """Expressions over a frame. here: the place of the DataFrame, for columns that have none.

    subqueries: the plans of the DataFrames in its columns, by id; each takes these expressions, whose columns it may read, and the
    environment of the subquery. outer: of such a DataFrame, the expressions around it.
    """

    frame: BoundFrame
    here: Span
    subqueries: Mapping[int, Callable[[Expressions, Any], Plan]] = field(default_factory=dict)
    outer: Expressions | None = None

    def items(self, message: pb.Expression) -> list[tree.SelectItem]:
        """The columns of a select list that an expression stands for."""
        span = self._span(message)
        match message.WhichOneof("expr_type"):
            case "unresolved_star":
                return self._star(message.unresolved_star, span)
            case "unresolved_regex":
                return [_item(column, span) for column in self._matching(message.unresolved_regex)]
            case "alias":
                names = tuple(tree.Name(name, span) for name in message.alias.name)
                return [tree.SelectItem(self.node(message.alias.expr), names, span)]
            case "expression_string":
                item = parse_item(message.expression_string.expression, name_of_text("expr", span))
                if isinstance(item.expression, tree.Star) and not (item.expression.qualifier or item.expression.excluded):
                    return [_item(column, span) for column in self.frame.columns]
                return [item]
            case "cast" if message.cast.expr.WhichOneof("expr_type") == "unresolved_attribute":
                attribute = message.cast.expr.unresolved_attribute
                named = tree.Name(name_parts(attribute.unparsed_identifier)[-1], span)
                return [tree.SelectItem(self.node(message), (named,), span)]
            case "unresolved_attribute" if isinstance(node := self.node(message), tree.FieldOf):
                return [tree.SelectItem(node, (node.field,), span)]
            case _:
                return [tree.SelectItem(self.node(message), (), span)]

    def node(self, message: pb.Expression) -> tree.Expression:
        """The expression. Raises QueryError for what has no meaning here."""
        kind = message.WhichOneof("expr_type")
        span = self._span(message)
        rule: Callable[[Any, Span], tree.Expression] | None = getattr(self, f"_{kind}", None)
        if kind is None or rule is None:
            raise Unsupported(f"the expression {kind} of a DataFrame is not supported", span=span)
        return rule(getattr(message, kind), span)

    def nodes(self, messages: Iterable[pb.Expression]) -> tuple[tree.Expression, ...]:
        return tuple(self.node(message) for message in messages)

    def column(self, name: str, span: Span) -> FrameColumn:
        """The column that a name stands for."""
        columns = self._named(name_parts(name), span)
        if columns is None or len(name_parts(name)) - columns[1] > 0:
            raise self._unknown(name, span)
        return columns[0]

    def _span(self, message: pb.Expression) -> Span:
        origin = message.common.origin.python_origin
        return (of_origin(origin.call_site, origin.fragment) if origin.call_site else None) or self.here

    def _literal(self, message: pb.Expression.Literal, span: Span) -> tree.Expression:
        return literal(message, span)

    def _unresolved_attribute(self, message: pb.Expression.UnresolvedAttribute, span: Span) -> tree.Expression:
        parts = name_parts(message.unparsed_identifier)
        if message.HasField("plan_id"):
            return _fields(self._of_plan(message.plan_id, parts, span).written(span, parts[0]), parts[1:], span)
        columns = self._named(parts, span)
        around = self.outer
        while columns is None and around is not None:
            columns, around = around._named(parts, span), around.outer
        if columns is None:  # an alias of the same select list, or an error that the binder words
            return tree.ColumnName(tuple(tree.Name(part, span) for part in parts), span)
        column, used = columns
        return _fields(column.written(span, parts[used - 1]), parts[used:], span)

    def _of_plan(self, plan_id: int, parts: Sequence[str], span: Span) -> FrameColumn:
        """The column of a DataFrame that is within this one."""
        name = parts[0]
        ids = self.frame.ids.get(plan_id)
        if ids is None and self.outer is not None:
            return self.outer._of_plan(plan_id, parts, span)
        if ids is None:
            remedy = "a column of this DataFrame, or col(…)"
            raise UnknownName(f"the column {name!r} belongs to a DataFrame that is not in this one", span=span, remedy=remedy)
        for columns in (self.frame.columns, self.frame.below):
            of_name = [column for column in columns if column.id in ids and column.name.lower() == name.lower()]
            if len(of_name) > 1:
                raise AmbiguousName(f"the column {name!r} is ambiguous", span=span, remedy="df.alias(…), and col('alias.column')")
            if of_name:
                return of_name[0]
        raise self._unknown(name, span)

    def _named(self, parts: Sequence[str], span: Span) -> tuple[FrameColumn, int] | None:
        """(the column, how many parts of the name it took)."""
        for columns in (self.frame.columns, self.frame.below):
            for used in (2, 1):
                of_name = [column for column in columns if _is_called(column, parts, used)]
                if len({column.id for column in of_name}) > 1:
                    raise AmbiguousName(f"the column {'.'.join(parts)!r} is ambiguous", span=span, remedy="df.alias(…), or df['column']")
                if of_name:
                    return of_name[0], used
        return None

    def _unknown(self, name: str, span: Span) -> UnknownName:
        remedy = did_you_mean(name, [column.name for column in self.frame.columns])
        return UnknownName(f"there is no column {name!r}", span=span, remedy=remedy)

    def _star(self, message: pb.Expression.UnresolvedStar, span: Span) -> list[tree.SelectItem]:
        columns = list(self.frame.columns)
        if message.HasField("plan_id"):
            ids = self.frame.ids.get(message.plan_id, frozenset())
            columns = [column for column in columns if column.id in ids]
        if message.HasField("unparsed_target"):
            parts = name_parts(message.unparsed_target.removesuffix(".*"))
            of_frame = [column for column in columns if (column.qualifier or "").lower() == parts[-1].lower()]
            if not of_frame and (named := self._named(parts, span)) is not None:
                return self._fields_of(*named, parts, span)
            if not of_frame:
                raise UnknownName(f"there is no DataFrame {parts[-1]!r}", span=span, remedy="df.alias(…) names one")
            columns = of_frame
        return [_item(column, span) for column in columns]

    def _fields_of(self, column: FrameColumn, used: int, parts: Sequence[str], span: Span) -> list[tree.SelectItem]:
        """The fields of a STRUCT: `column.*`, or `column.field.*`."""
        value, type = _fields(column.written(span), parts[used:], span), self.frame.plan.schema[column.index].type
        for name in parts[used:]:
            type = next((part.type for part in type.parts if part.name.lower() == name.lower()), type)
        if type.name != "STRUCT":
            raise TypeMismatch(f"* of a {type.sql}", span=span, expected="a DataFrame, or a STRUCT")
        names = [tree.Name(part.name, span) for part in type.parts]
        return [tree.SelectItem(tree.FieldOf(value, name, span), (name,), span) for name in names]

    def _matching(self, message: pb.Expression.UnresolvedRegex) -> list[FrameColumn]:
        pattern = re.compile(message.col_name.strip("`"), re.IGNORECASE)
        return [column for column in self.frame.columns if pattern.fullmatch(column.name)]

    def _unresolved_star(self, message: pb.Expression.UnresolvedStar, span: Span) -> tree.Expression:
        return tree.Star(None, (), span)

    def _alias(self, message: pb.Expression.Alias, span: Span) -> tree.Expression:
        return self.node(message.expr)

    def _expression_string(self, message: pb.Expression.ExpressionString, span: Span) -> tree.Expression:
        return parse_item(message.expression, name_of_text("expr", span)).expression

    def _cast(self, message: pb.Expression.Cast, span: Span) -> tree.Expression:
        lenient = message.eval_mode == TRY
        if message.WhichOneof("cast_to_type") == "type_str":
            return tree.CastCall(self.node(message.expr), parse_type(message.type_str, "<type>"), lenient, span)
        return cast_call(self.node(message.expr), type_of(message.type, span), span, lenient=lenient)

    def _unresolved_function(self, message: pb.Expression.UnresolvedFunction, span: Span) -> tree.Expression:
        return _call(message.function_name, self._arguments(message.arguments), message.is_distinct, span)

    def _call_function(self, message: pb.CallFunction, span: Span) -> tree.Expression:
        return _call(name_parts(message.function_name)[-1], self._arguments(message.arguments), False, span)

    def _arguments(self, messages: Iterable[pb.Expression]) -> tuple[tree.Expression, ...]:
        """Those of a call; an aliased one is a field of struct(…)."""
        arguments: list[tree.Expression] = []
        for message in messages:
            if message.WhichOneof("expr_type") == "alias" and len(message.alias.name) == 1:
                span = self._span(message)
                arguments.append(tree.NamedValue(self.node(message.alias.expr), tree.Name(message.alias.name[0], span), span))
            else:
                arguments.append(self.node(message))
        return tuple(arguments)

    def _unresolved_extract_value(self, message: pb.Expression.UnresolvedExtractValue, span: Span) -> tree.Expression:
        """getItem and getField."""
        return tree.Subscript(self.node(message.child), self.node(message.extraction), span)

    def _update_fields(self, message: pb.Expression.UpdateFields, span: Span) -> tree.Expression:
        """withField, and dropFields without a value."""
        value = self.node(message.value_expression) if message.HasField("value_expression") else None
        return tree.UpdatedField(self.node(message.struct_expression), tuple(name_parts(message.field_name)), value, span)

    def _named_argument_expression(self, message: pb.NamedArgumentExpression, span: Span) -> tree.Expression:
        return tree.NamedArgument(tree.Name(message.key, span), self.node(message.value), span)

    def _lambda_function(self, message: pb.Expression.LambdaFunction, span: Span) -> tree.Expression:
        names = tuple(tree.Name(argument.name_parts[-1], span) for argument in message.arguments)
        return tree.LambdaText(names, self.node(message.function), span)

    def _unresolved_named_lambda_variable(self, message: pb.Expression.UnresolvedNamedLambdaVariable, span: Span) -> tree.Expression:
        return tree.ColumnName(tuple(tree.Name(part, span) for part in message.name_parts), span)

    def _window(self, message: pb.Expression.Window, span: Span) -> tree.Expression:
        """call.over(Window.partitionBy(…).orderBy(…).rowsBetween(…))."""
        call = self.node(message.window_function)
        if not isinstance(call, tree.FunctionCall):
            raise Unsupported("over() is for calls of window functions and aggregates", span=span)
        ignores = False
        if call.name == "nth_value" and len(call.arguments) == 3:  # PySpark writes ignoreNulls as an argument
            *arguments, last = call.arguments
            call, ignores = replace(call, arguments=tuple(arguments)), isinstance(last, tree.KeywordExpression) and last.word == "TRUE"
        order = tuple(self.term(term) for term in message.order_spec)
        frame = self._frame(message.frame_spec, span) if message.HasField("frame_spec") else None
        window = tree.WindowText(None, self.nodes(message.partition_spec), order, frame, span)
        return tree.OverCall(call, ignores, window, span)

    def term(self, message: pb.Expression.SortOrder) -> tree.OrderTerm:
        """A term of an order."""
        descending = message.direction == pb.Expression.SortOrder.SORT_DIRECTION_DESCENDING
        return tree.OrderTerm(self.node(message.child), descending, message.null_ordering != pb.Expression.SortOrder.SORT_NULLS_LAST)

    def _frame(self, message: pb.Expression.Window.WindowFrame, span: Span) -> tree.FrameText:
        unit = "ROWS" if message.frame_type == pb.Expression.Window.WindowFrame.FRAME_TYPE_ROW else "RANGE"
        return tree.FrameText(unit, self._bound(message.lower, False, span), self._bound(message.upper, True, span), span)

    def _bound(self, message: pb.Expression.Window.WindowFrame.FrameBoundary, following: bool, span: Span) -> tree.BoundText:
        """A distance below 0 is before the current row."""
        if message.unbounded:
            return tree.BoundText("UNBOUNDED", following, None, span)
        if message.current_row:
            return tree.BoundText("ROW", following, None, span)
        value = self.node(message.value)
        if isinstance(value, tree.NumberText) and value.text.startswith("-"):
            return tree.BoundText("VALUE", False, replace(value, text=value.text[1:]), span)
        if isinstance(value, tree.NumberText) and value.text.rstrip("L") == "0":
            return tree.BoundText("ROW", following, None, span)
        return tree.BoundText("VALUE", True, value, span)

    def _subquery_expression(self, message: pb.SubqueryExpression, span: Span) -> tree.Expression:
        """scalar(), exists() and isin(DataFrame)."""
        plan = self.subqueries[message.plan_id]
        query = tree.GivenQuery(partial(plan, self), span)
        match pb.SubqueryExpression.SubqueryType.Name(message.subquery_type):
            case "SUBQUERY_TYPE_SCALAR":
                return tree.ScalarQuery(query, span)
            case "SUBQUERY_TYPE_EXISTS":
                return tree.ExistsTest(query, span)
            case "SUBQUERY_TYPE_IN":
                operands = self.nodes(message.in_subquery_values)
                return tree.InQuery(operands[0] if len(operands) == 1 else tree.RowValue(operands, span), query, False, span)
            case _:
                raise Unsupported("a DataFrame as an argument of a table function is not supported", span=span)

    def _common_inline_user_defined_function(self, message: pb.CommonInlineUserDefinedFunction, span: Span) -> tree.Expression:
        """A function in Python; its message was written by this process, and holds what udf() was given."""
        if message.WhichOneof("function") != "python_udf":
            raise Unsupported(f"the function {message.function_name} is not in Python", span=span, remedy="a function of PySpark's udf")
        function = cloudpickle.loads(message.python_udf.command)[0]
        returned = type_of(message.python_udf.output_type, span)
        described: Any = SimpleNamespace(
            evalType=message.python_udf.eval_type,
            deterministic=message.deterministic,
            func=function,
            returnType=SimpleNamespace(simpleString=lambda: returned.sql),
        )
        try:
            defined = UDF(message.function_name or "udf", described).defined
        except CircuitError as error:
            error.move(span)
            raise
        arguments = in_order(defined.name, self.nodes(message.arguments), parameters_of(defined), span)
        if isinstance(defined, PythonAggregate):
            return tree.FunctionCall(defined.name, arguments, False, None, False, span, function=defined)
        return tree.DefinedCall(defined.name, defined, None, arguments, span)


def _item(column: FrameColumn, span: Span) -> tree.SelectItem:
    return tree.SelectItem(column.written(span), (), span)


def _is_called(column: FrameColumn, parts: Sequence[str], used: int) -> bool:
    """Whether the first parts of the name are the column's: its own name, or the qualifier and its name."""
    if len(parts) < used or column.name.lower() != parts[used - 1].lower():
        return False
    return used == 1 or (column.qualifier or "").lower() == parts[0].lower()


def _fields(value: tree.Expression, names: Iterable[str], span: Span) -> tree.Expression:
    for name in names:
        value = tree.FieldOf(value, tree.Name(name, span), span)
    return value


def _call(name: str, arguments: tuple[tree.Expression, ...], distinct: bool, span: Span) -> tree.Expression:
    """A call by its name in a message, in which operators are functions."""
    lower = name.lower()
    match lower, arguments:
        case _, (_, _) if lower in _OPERATORS:
            return tree.Operation((_OPERATORS[lower],), arguments, span)
        case _, (operand,) if lower in _PREFIXES:
            return tree.Prefix(_PREFIXES[lower], operand, span)
        case "when", _:
            pairs = tuple(zip(arguments[::2], arguments[1::2], strict=False))
            return tree.SearchedCase(None, pairs, arguments[-1] if len(arguments) % 2 else None, span)
        case "negate", _:
            return tree.FunctionCall("negative", arguments, distinct, None, False, span)
        case "isnull" | "isnotnull", (operand,):
            return tree.IsTest(operand, "NULL", lower == "isnotnull", span)
        case "in", (_,):  # isin([])
            return tree.KeywordExpression("FALSE", span)
        case "in", (operand, *values):
            return tree.InList(operand, tuple(values), False, span)
        case "like" | "ilike", (operand, pattern, *escape):
            return tree.LikeTest(operand, pattern, escape[0] if escape else None, False, lower == "ilike", span)
        case "percentile", (_, _, tree.NumberText(text="1")):  # PySpark writes the default frequency
            return tree.FunctionCall(lower, arguments[:2], distinct, None, False, span)
        case _:
            return tree.FunctionCall(lower, arguments, distinct, None, False, span)
