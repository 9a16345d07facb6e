"""Binds table functions: explode and similar functions in a select list, LATERAL VIEW and FROM; generate_series, repeat_row, range.

explode takes an ARRAY or a MAP. generate_series(…) is an array only there; array(…), sequence(…) and split(…) have a faster form there,
which makes no arrays, for the arguments that are most frequent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from deltic.errors import Span, SyntaxFailure, TypeMismatch, Unsupported, most_like
from deltic.expr import Expr, Literal, cast, common_type, known_functions, resolve
from deltic.expr.collating import agreed_values
from deltic.expr.functions.signature import INTEGER, LONG, TEXT, accept, check_count, constant, wrong_type
from deltic.expr.nodes import PythonFunction
from deltic.expr.table_functions import BesideRow
from deltic.expr.typing import type_names
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_function import check_arguments
from deltic.frontends.sql.parse_query import TABLE_FUNCTIONS
from deltic.frontends.sql.refusals import FUNCTIONS, flink
from deltic.frontends.sql.scope import Scope, ScopeColumn, ScopedRelation, check_names
from deltic.frontends.statements import PythonTable
from deltic.plan.columns import named_columns, reference
from deltic.plan.nodes import FlatMap, Generate, Plan, Project, TableFunction
from deltic.schema import BIGINT, DATE, DAYS, INT, NULL, STRING, Schema

EXPLODES: Final = {"explode": (False, False), "explode_outer": (False, True), "posexplode": (True, False), "posexplode_outer": (True, True)}
"""Whether the position stands before the element, and whether a row without an element stays."""

VARIANTS: Final = ("variant_explode", "variant_explode_outer")
INLINES: Final = ("inline", "inline_outer")
SERIES: Final = "generate_series"
MOST_ROWS: Final = 10_000
"""Of stack()."""
BUILTIN_TABLE_FUNCTIONS: Final = (*EXPLODES, *INLINES, *VARIANTS, SERIES, "stack", "json_tuple", "repeat_row", "range")
_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}")


@dataclass(frozen=True, slots=True)
class TableFunctionCall:
    """A bound call of a table function over the rows of a scope."""

    function: TableFunction
    arguments: tuple[Expr, ...]
    names: tuple[str, ...]
    position: bool
    outer: bool
    span: Span
    split: bool = False
    """The element is a STRUCT, whose fields are columns: an entry of a MAP, or what inline() takes."""

    def over(self, plan: Plan) -> Plan:
        """Each row of the plan with the rows that the function returns for it."""
        if not self.split:
            return FlatMap(plan, self.function, self.arguments, self.names, self.position, self.outer, self.span)
        names = (*self.names[: self.position], "element")
        made = FlatMap(plan, self.function, self.arguments, names, self.position, self.outer, self.span)
        element = reference(made.schema, len(made.schema) - 1)
        fields = [resolve("field", [element, Literal(part.name, STRING)]) for part in element.type.parts]
        kept = [(field.name, reference(made.schema, i)) for i, field in enumerate(made.schema.fields[:-1])]
        return Project(made, (*kept, *zip(self.names[self.position :], fields, strict=True)))

    def named(self, names: Sequence[str], span: Span) -> TableFunctionCall:
        """The call with its columns renamed; () keeps their names."""
        if not names:
            return self
        check_names(names, len(self.names), span)
        return replace(self, names=tuple(names))


def makes_rows(node: tree.Expression) -> bool:
    """Whether a select item's expression is a call of a table function."""
    return isinstance(node, tree.FunctionCall) and node.name in BUILTIN_TABLE_FUNCTIONS


def bind_item(item: tree.SelectItem, binder: ExpressionBinder) -> TableFunctionCall:
    """A table function as a select item, under the item's names."""
    assert isinstance(item.expression, tree.FunctionCall)
    call = bind_table_function(item.expression, binder)
    assert isinstance(call, TableFunctionCall)
    if not call.names:
        raise Unsupported("repeat_row() returns no columns", span=call.span, expected="FROM t LATERAL VIEW repeat_row(n)")
    return call.named([name.text for name in item.names], item.span)


def bind_lateral_view(node: tree.LateralView, left: ScopedRelation) -> ScopedRelation:
    """LATERAL VIEW [OUTER] f(…) v AS x, y: the rows of `left`, each joined with the rows that the function returns for it."""
    if node.name is None and not node.columns and node.call.name in EXPLODES:
        raise SyntaxFailure("LATERAL VIEW without a name", span=node.span, expected="LATERAL VIEW f(…) v AS x")
    call = bind_table_function(node.call, ExpressionBinder(left.scope, "LATERAL VIEW")).named(
        [name.text for name in node.columns], node.span
    )
    return _beside(left, _outer(call) if node.outer else call, None if node.name is None else node.name.text)


def _outer(call: TableFunctionCall | UserTableFunctionCall) -> TableFunctionCall | UserTableFunctionCall:
    """The call with a row of NULLs where it returns none. Raises Unsupported."""
    if not call.names:
        raise Unsupported("OUTER is not supported with repeat_row()", span=call.span, remedy="leave it out")
    return replace(call, outer=True)


def bind_lateral(node: tree.TableCall, left: ScopedRelation, *, outer: bool = False) -> ScopedRelation:
    """LATERAL f(…) AS v(x, y): the rows of `left`, each joined with the rows that the function returns for it. outer: or with NULLs."""
    columns = () if node.alias is None else node.alias.columns
    call = bind_table_function(node.call, ExpressionBinder(left.scope, "LATERAL")).named([name.text for name in columns], node.span)
    return _beside(left, _outer(call) if outer else call, None if node.alias is None else node.alias.name.text)


def bind_from_function(node: tree.FunctionCall | tree.DefinedCall, start: ScopedRelation) -> ScopedRelation:
    """A table function in FROM. start: a relation of one row without columns."""
    return _beside(start, bind_table_function(node, ExpressionBinder(start.scope, "FROM")), None)


def _beside(left: ScopedRelation, call: TableFunctionCall | UserTableFunctionCall, qualifier: str | None) -> ScopedRelation:
    plan, width = call.over(left.plan), len(left.plan.schema)
    columns = tuple(ScopeColumn(name, qualifier, width + i) for i, name in enumerate(call.names))
    return ScopedRelation(plan, Scope(left.scope.columns + columns, plan.schema, left.scope.outer))


@dataclass(frozen=True, slots=True)
class UserTableFunctionCall:
    """A bound call of a user's table function over the rows of a scope."""

    table: PythonTable
    arguments: tuple[Expr, ...]
    names: tuple[str, ...]
    outer: bool
    span: Span

    def over(self, plan: Plan) -> Plan:
        """Each row of the plan with the rows that the function returns for its arguments."""
        kept = len(plan.schema)
        columns = named_columns(plan.schema)
        given = Project(plan, (*columns, *((f"argument{i}", argument) for i, argument in enumerate(self.arguments))))
        fields = zip(self.table.returned, self.names, strict=True)
        renamed = (replace(field, name=name, nullable=field.nullable or self.outer) for field, name in fields)
        returned = Schema((*plan.schema.fields, *renamed))
        function = self.table.function
        parts = enumerate(self.table.returned)
        checked = tuple(PythonFunction(function, self.arguments, i, field.type, field.nullable, self.span) for i, field in parts)
        beside = replace(function, parameters=(given.schema.names,), width=len(returned), call=BesideRow(checked, kept, self.outer))
        return Generate(given, beside, returned)

    def named(self, names: Sequence[str], span: Span) -> UserTableFunctionCall:
        """The call with its columns renamed; () keeps their names."""
        if not names:
            return self
        check_names(names, len(self.names), span)
        return replace(self, names=tuple(names))


def _of_user(node: tree.DefinedCall, binder: ExpressionBinder) -> UserTableFunctionCall:
    if not isinstance(node.function, PythonTable):
        raise Unsupported(f"{node.name}() is not a table function", span=node.span, expected=TABLE_FUNCTIONS, remedy="name a table")
    table = node.function
    arguments = tuple(binder.bind(argument) for argument in node.arguments)
    check_arguments(table, arguments, node.span)
    if table.terminates and binder.clause != "FROM":
        remedy = "return all rows from eval()"
        raise Unsupported(f"{table.name} has terminate(), which LATERAL would call once for many rows", span=node.span, remedy=remedy)
    return UserTableFunctionCall(table, arguments, table.returned.names, False, node.span)


def bind_table_function(node: tree.FunctionCall | tree.DefinedCall, binder: ExpressionBinder) -> TableFunctionCall | UserTableFunctionCall:
    """A call of one of BUILTIN_TABLE_FUNCTIONS, or of a user's table function. Raises Unsupported or UnknownName for other functions."""
    if isinstance(node, tree.DefinedCall):
        return _of_user(node, binder)
    name, span = node.name, node.span
    if name not in BUILTIN_TABLE_FUNCTIONS:
        if (refusal := flink(name)) is not None:
            raise Unsupported(refusal[0], span=span, remedy=refusal[1])
        like = None if name in known_functions() else most_like(name, BUILTIN_TABLE_FUNCTIONS)
        remedy = FUNCTIONS.get(name) or ("name a table" if like is None else f"did you mean {like!r}? Otherwise, name a table")
        raise Unsupported(f"{name}() is not a table function", span=span, expected=TABLE_FUNCTIONS, remedy=remedy)
    if name in EXPLODES:
        check_count(name, node.arguments, 1, 1, span)
        function, arguments = _array(node.arguments[0], binder)
        position, outer = EXPLODES[name]
        split = function == "elements" and arguments[0].type.name == "MAP"
        names = (*("pos",) * position, *(("key", "value") if split else ("col",)))
        return TableFunctionCall(function, arguments, names, position, outer, span, split)
    if name in INLINES:
        return _inline(node, binder)
    if name in VARIANTS:
        return _variant(node, binder)
    if name in ("stack", "json_tuple"):
        return _stack(node, binder) if name == "stack" else _json_tuple(node, binder)
    if name == SERIES:
        return TableFunctionCall(SERIES, _steps(node, binder), ("col",), False, False, span)
    if name == "repeat_row":
        check_count(name, node.arguments, 1, 1, span)
        return TableFunctionCall("repeat_row", (accept(name, 1, binder.bind(node.arguments[0]), LONG, span),), (), False, False, span)
    assert name == "range"
    return TableFunctionCall(SERIES, _range(node, binder), ("id",), False, False, span)


def _inline(node: tree.FunctionCall, binder: ExpressionBinder) -> TableFunctionCall:
    """A row for each STRUCT of an ARRAY, a column for each field."""
    check_count(node.name, node.arguments, 1, 1, node.span)
    value = binder.bind(node.arguments[0])
    if value.type.name != "ARRAY" or value.type.parts[0].type.name != "STRUCT":
        message = f"{node.name}() does not accept {value.type.sql}"
        raise TypeMismatch(message, span=value.span or node.span, expected="an ARRAY of STRUCTs")
    names = tuple(part.name for part in value.type.parts[0].type.parts)
    return TableFunctionCall("elements", (value,), names, False, node.name == "inline_outer", node.span, True)


def _variant(node: tree.FunctionCall, binder: ExpressionBinder) -> TableFunctionCall:
    """A row for each field of an object or element of an array; only in FROM, as in Spark."""
    if binder.clause not in ("FROM", "LATERAL"):
        remedy = f"FROM t, LATERAL {node.name}(v)"
        raise Unsupported(f"{node.name}() is allowed in FROM only", span=node.span, expected="a table in FROM", remedy=remedy)
    check_count(node.name, node.arguments, 1, 1, node.span)
    entries = resolve("variant_entries", [binder.bind(node.arguments[0])], node.span, written=node.name)
    return TableFunctionCall("elements", (entries,), ("pos", "key", "value"), True, node.name.endswith("outer"), node.span, True)


def _stack(node: tree.FunctionCall, binder: ExpressionBinder) -> TableFunctionCall:
    """stack(n, value, …): n rows of the values, filled with NULLs."""
    name, span = node.name, node.span
    check_count(name, node.arguments, 2, None, span)
    bound = [binder.bind(part) for part in node.arguments]
    rows = constant(bound[0])
    if rows is None or rows.type != INT or not isinstance(rows.value, int) or not 0 < rows.value <= MOST_ROWS:
        message = f"the number of rows of {name} is invalid"
        raise TypeMismatch(message, span=bound[0].span or span, expected=f"a constant INT from 1 to {MOST_ROWS}")
    values = bound[1:]
    width = -(-len(values) // rows.value)
    columns = [_stacked(name, values[i::width], rows.value, span) for i in range(width)]
    structs = tuple(_row([column[i] for column in columns]) for i in range(rows.value))
    return TableFunctionCall("array", structs, tuple(f"col{i}" for i in range(width)), False, False, span, True)


def _stacked(name: str, values: Sequence[Expr], rows: int, span: Span) -> list[Expr]:
    """A column of stack(): values of one type, or NULL."""
    values = agreed_values(name, values, span)
    types = dict.fromkeys(value.type for value in values if value.type != NULL)
    if len(types) > 1:
        names = ", ".join(type.sql for type in types)
        raise TypeMismatch(
            f"a column of {name} has several types", span=span, expected=f"one type, found {names}", remedy="cast the values"
        )
    type = next(iter(types), NULL)
    filled = [*values, *[Literal(None, NULL)] * (rows - len(values))]
    return [cast(value, type) for value in filled]


def _row(values: Sequence[Expr]) -> Expr:
    names = [Literal(f"col{i}", STRING) for i in range(len(values))]
    return resolve("named_struct", [part for pair in zip(names, values, strict=True) for part in pair])


def _json_tuple(node: tree.FunctionCall, binder: ExpressionBinder) -> TableFunctionCall:
    """json_tuple(text, name, …): one row, of the fields with these names."""
    check_count(node.name, node.arguments, 2, None, node.span)
    bound = [binder.bind(part) for part in node.arguments]
    for i, argument in enumerate(bound, 1):
        if argument.type != STRING:
            raise wrong_type(node.name, i, argument, "STRING", node.span)
    fields = [resolve("json_field", [bound[0], name], node.span) for name in bound[1:]]
    return TableFunctionCall("array", (_row(fields),), tuple(f"c{i}" for i in range(len(fields))), False, False, node.span, True)


def _array(node: tree.Expression, binder: ExpressionBinder) -> tuple[TableFunction, tuple[Expr, ...]]:
    """The (function, arguments) of an array-valued expression."""
    node = tree.unnest(node)
    name = node.name if isinstance(node, tree.FunctionCall) else ""
    if isinstance(node, tree.FunctionCall) and name == "array" and node.arguments:
        return "array", _elements(node, binder)
    if isinstance(node, tree.FunctionCall) and name == SERIES:
        return "generate_series", _steps(node, binder)
    if isinstance(node, tree.FunctionCall) and name == "sequence" and _is_by_number_or_day(node, binder):
        return "sequence", _steps(node, binder)
    if isinstance(node, tree.FunctionCall) and name == "split" and (split := _split(node, binder)) is not None:
        return "split", split
    value = binder.bind(node)
    if value.type.name not in ("ARRAY", "MAP"):
        message = f"explode() does not accept {value.type.sql}"
        raise TypeMismatch(message, span=value.span or node.span, expected="an ARRAY or a MAP")
    return "elements", (value,)


def _is_by_number_or_day(node: tree.FunctionCall, binder: ExpressionBinder) -> bool:
    """Whether a sequence is of integers, or of dates by a number of days."""
    check_count(node.name, node.arguments, 2, 3, node.span)
    types = [binder.bind(part).type for part in node.arguments]
    type = common_type(types[:2])
    if type == DATE:
        return len(types) < 3 or types[2] == DAYS
    return type is not None and (type.is_integer or type == NULL)


def _elements(node: tree.FunctionCall, binder: ExpressionBinder) -> tuple[Expr, ...]:
    span = node.span
    check_count("array", node.arguments, 1, None, span)
    values = agreed_values("array", [binder.bind(part) for part in node.arguments], span)
    type = common_type([value.type for value in values])
    if type is None:
        raise TypeMismatch("the elements of array() have no common type", span=span, expected=f"one type, found {type_names(values)}")
    return tuple(cast(value, type) for value in values)


def _steps(node: tree.FunctionCall, binder: ExpressionBinder) -> tuple[Expr, ...]:
    """start, stop and step, cast to one integer type; or two dates and a number of days."""
    name, span = node.name, node.span
    check_count(name, node.arguments, 2, 3, span)
    ends = [binder.bind(part) for part in node.arguments[:2]]
    written = node.arguments[2:]
    steps = [binder.bind(part) for part in written]
    if common_type([end.type for end in ends]) == DATE:
        for step in steps:
            if not step.type.is_interval:
                raise TypeMismatch(f"the step of {name}() is not an INTERVAL", span=step.span, expected="INTERVAL 1 DAY")
            if step.type != DAYS:
                raise Unsupported(f"{name}() of dates requires a step in days", span=step.span, expected="INTERVAL n DAYS")
        return (*(cast(end, DATE) for end in ends), *(cast(step, INT) for step in steps))
    type = common_type([part.type for part in (*ends, *steps)])
    if type == NULL:
        type = INT
    if type is None or not type.is_integer:
        raise TypeMismatch(
            f"{name}() does not support these types",
            span=span,
            expected=f"integers, or DATEs and an INTERVAL of days, found {type_names(ends)}",
        )
    return tuple(cast(part, type) for part in (*ends, *steps))


def _range(node: tree.FunctionCall, binder: ExpressionBinder) -> tuple[Expr, ...]:
    """range(stop), range(start, stop) and range(start, stop, step) of constants; the stop is exclusive."""
    span = node.span
    check_count("range", node.arguments, 1, 3, span)
    numbers = []
    for i, part in enumerate(node.arguments, 1):
        bound = constant(accept("range", i, binder.bind(part), LONG, span))
        if bound is None or not isinstance(bound.value, int):
            place = part.span
            raise Unsupported("range() takes constants", span=place, expected="whole numbers", remedy="explode(sequence(a, b))")
        numbers.append(bound.value)
    start, stop, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if step == 0:
        raise TypeMismatch("the step of range() is 0", span=span, expected="a step other than 0")
    last = stop - (1 if step > 0 else -1)
    return tuple(Literal(number, BIGINT, span) for number in (start, last, step))


def _split(node: tree.FunctionCall, binder: ExpressionBinder) -> tuple[Expr, ...] | None:
    """text, delimiter and limit, if the delimiter is a constant that is not a pattern, and the limit is one too; else None."""
    span = node.span
    check_count("split", node.arguments, 2, 3, span)
    bound = [binder.bind(part) for part in node.arguments]
    text = accept("split", 1, bound[0], TEXT, span)
    pattern = constant(accept("split", 2, bound[1], TEXT, span))
    limit = constant(accept("split", 3, bound[2], INTEGER, span)) if len(bound) > 2 else Literal(-1, INT, span)
    delimiter = _plain(pattern.value) if pattern is not None and isinstance(pattern.value, str) else None
    if delimiter is None or limit is None or limit.value is None:
        return None
    assert pattern is not None
    return text, replace(pattern, value=delimiter), limit


def _plain(pattern: str) -> str | None:
    """The text matched by a regular expression without operators; None for other patterns and the empty one."""
    text, position = "", 0
    while position < len(pattern):
        if pattern[position] == "\\" and position + 1 < len(pattern) and not pattern[position + 1].isalnum():
            position += 1
        elif pattern[position] in _SPECIAL:
            return None
        text += pattern[position]
        position += 1
    return text or None
