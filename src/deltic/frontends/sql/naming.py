"""Names of output columns that have no alias, as Spark derives them: `sum(x)`, `(a + b)`, `CAST(x AS INT)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

from deltic.errors import QueryError
from deltic.expr import Cast, Expr, Literal
from deltic.expr.interpreter import evaluate
from deltic.frontends.sql import interval_literals, literals, tree
from deltic.frontends.sql.function_naming import WORDED, call_name
from deltic.frontends.sql.scope import Scope
from deltic.frontends.sql.sql_types import read_type
from deltic.frontends.sql.window_naming import window_name
from deltic.schema import DATE, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ
from deltic.types import quoted

_LOWER: Final = {"DIV": "div"}
_TYPES: Final = {type.name: type for type in (DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ)}
_PARAMETER: Final = "namedlambdavariable()"


def output_name(item: tree.SelectItem, scope: Scope | None = None) -> str:
    """The name of a select item: its alias, or the name that Spark derives from its expression. scope: its columns, if they are known."""
    if item.names:
        return item.names[0].text
    node = item.expression
    inner = tree.unnest(node)
    if isinstance(inner, tree.CastCall) and isinstance(column := tree.unnest(inner.operand), tree.ColumnName) and _is_column(column, scope):
        return expression_name(column)
    if scope is None or isinstance(inner, tree.ColumnName):
        return expression_name(node)
    return expression_name(_with_fields(node, scope))


def _is_column(node: tree.ColumnName, scope: Scope | None) -> bool:
    """Whether a name is that of a column, and not of a field of one or a variable."""
    *qualifier, name = (part.text for part in node.parts)
    if scope is None:
        return len(qualifier) < 2
    if not qualifier and node.variable is None:
        return True
    scopes = (scope, *(outer.scope for outer in scope.around()))
    return any(one.find(name, ".".join(qualifier) or None) for one in scopes)


def field_name(node: tree.Expression) -> str:
    """The name that a column, a variable, a field, the value of a MAP under a constant, or AS gives to a field of it; "" for others."""
    match tree.unnest(node):
        case tree.NamedValue(name=name) | tree.FieldOf(field=name):
            return name.text
        case tree.UpdatedField(struct=struct, in_null=True):  # of EXCEPT, which keeps the name
            return field_name(struct)
        case tree.ColumnName(parts=(*_, name)):
            return name.text
        case tree.Subscript(index=index) if isinstance(key := tree.unnest(index), tree.StringText):
            return key.text
        case tree.PathOf(field=str(field)):
            return field
        case tree.KeywordExpression(word=word) as inner if word not in ("TRUE", "FALSE", "NULL"):
            return inner.span.written
        case _:
            return ""


def expression_name(node: tree.Expression) -> str:
    """A column's name, or the expression's text in Spark's form."""
    match node:
        case tree.ColumnName():
            return node.parts[-1].text
        case tree.FieldOf(value=tree.FunctionCall(name="window" | "session_window" as name, function=None)):
            return f"{name}.{node.field.text}"
        case tree.FunctionCall(name="window" | "session_window" as name, function=None):
            return name
        case tree.FieldOf():
            return f"{expression_name(node.value)}.{node.field.text}"
        case tree.UpdatedField():
            set_or_dropped = "dropfield()" if node.value is None else f"WithField({expression_name(node.value)})"
            return f"update_fields({expression_name(node.struct)}, {set_or_dropped})"
        case tree.PathOf():
            return f"variant_get({expression_name(node.value)}, {node.path})" if node.field is None else node.field
        case tree.CastCall(operand=tree.PathOf(field=str(field))):
            return field
        case tree.CastCall() if node.type.parts is not None:
            return expression_name(node.operand)
        case tree.CastCall() if (type := _type_name(node.type)) is not None:
            return f"{'TRY_' * node.lenient}CAST({expression_name(node.operand)} AS {type})"
        case tree.SearchedCase():
            return _case(node)
        case tree.TypedText():
            return _typed(node)
        case tree.IntervalText():
            return _interval(node)
        case tree.Subscript():
            return f"{expression_name(node.value)}[{expression_name(node.index)}]"
        case tree.Parenthesised():
            return expression_name(node.inner)
        case tree.RowValue():
            return f"named_struct({', '.join(_field(item, i) for i, item in enumerate(node.items, 1))})"
        case tree.NumberText():
            return _number(node)
        case tree.StringText():
            return node.text
        case tree.KeywordExpression():
            return node.word if node.word == "NULL" else node.word.lower()
        case tree.Star():
            return "1"
        case tree.ParameterValue():
            return _argument(node)
        case tree.NamedArgument():
            return expression_name(node.value)
        case tree.NamedValue():
            return f"{expression_name(node.value)} AS {quoted(node.name.text)}"
        case tree.FunctionCall() if not node.keywords or node.name in WORDED:
            call = call_name(node, expression_name)
            return call if node.condition is None else f"{call} FILTER (WHERE {expression_name(node.condition)})"
        case tree.OverCall():
            return window_name(node, expression_name)
        case tree.DefinedCall():
            return f"{node.name}({', '.join(expression_name(part) for part in node.arguments)})"
        case tree.ExtractCall():
            return f"extract({node.field.text} FROM {expression_name(node.source)})"
        case tree.InList():
            test = f"({expression_name(node.operand)} IN ({', '.join(expression_name(part) for part in node.values)}))"
            return f"(NOT {test})" if node.negated else test
        case tree.BetweenTest():
            test = f"between({expression_name(node.operand)}, {expression_name(node.low)}, {expression_name(node.high)})"
            return f"(NOT {test})" if node.negated else test
        case tree.LikeTest():
            return _like(node)
        case tree.LambdaText():
            return _lambda(node)
        case tree.IsTest(state="NULL"):
            return f"({expression_name(node.operand)} IS {'NOT ' * node.negated}NULL)"
        case tree.Prefix():
            return _prefix(node)
        case tree.Operation():
            return _operation(node)
        case _:
            return _text(node)


def _field(node: tree.Expression, place: int) -> str:
    """The name and the value of a field of a row in parentheses."""
    match node:
        case tree.ColumnName():
            return f"{node.parts[-1].text}, {expression_name(node)}"
        case tree.FieldOf():
            return f"{node.field.text}, {expression_name(node)}"
        case _:
            return f"col{place}, {expression_name(node)}"


def _argument(node: tree.ParameterValue) -> str:
    """A parameter's value, as Spark writes a constant; of an ARRAY, the parameter."""
    if not isinstance(node.value, Literal):
        return node.span.text[node.span.start : node.span.end]
    value = node.value.value
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _number(node: tree.NumberText) -> str:
    """As a cast to STRING writes it, 1.0 for 1D."""
    try:
        return _written(literals.number(node))
    except QueryError:  # reported where the expression is bound
        return node.text


def _typed(node: tree.TypedText) -> str:
    """DATE '…' with all digits, X'…' in upper case."""
    word = node.type.text.upper()
    if word == "X":
        return f"X'{node.text.upper().zfill(len(node.text) + len(node.text) % 2)}'"
    if word not in _TYPES:
        return f"{word} '{node.text}'"
    try:
        literal = literals.typed(
            node.text, {"DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ}[word], node.span
        )
        return f"{word} '{_written(literal)}'"
    except QueryError:
        return f"{word} '{node.text}'"


def _interval(node: tree.IntervalText) -> str:
    try:
        return _written(interval_literals.bound(node))
    except QueryError:
        return _text(node)


def _written(literal: Literal | Expr) -> str:
    return str(evaluate(Cast(literal, STRING, False, False, None), ()))


def _text(node: tree.Expression) -> str:
    return node.span.written


def _like(node: tree.LikeTest) -> str:
    value, pattern = expression_name(node.operand), expression_name(node.pattern)
    if node.folded:
        test = f"ilike({value}, {pattern})"
    else:
        escape = "" if node.escape is None else expression_name(node.escape)
        test = f"{value} LIKE {pattern}" + (f" ESCAPE '{escape}'" if escape not in ("", "\\") else "")
    return f"(NOT {test})" if node.negated else test


def _lambda(node: tree.LambdaText) -> str:
    """Spark's name shows that there are parameters, and not which."""
    names = {name.text.lower() for name in node.parameters}
    body = expression_name(_without_parameters(node.body, names))
    return f"lambdafunction({', '.join([body, *([_PARAMETER] * len(node.parameters))])})"


def _without_parameters(node: Any, names: set[str]) -> Any:
    """The tree with a call in place of each parameter, and of the fields of one."""
    if isinstance(node, tree.ColumnName) and node.parts[0].text.lower() in names:
        return _fields(tree.FunctionCall(_PARAMETER.removesuffix("()"), (), False, None, False, node.span), node.parts[1:])
    return _mapped(node, lambda part: _without_parameters(part, names))


def _with_fields(node: Any, scope: Scope) -> Any:
    """The tree with the fields of STRUCT columns, which are column names there, as fields: a column of a table is named without it.

    Functions of the time without parentheses are as with them.
    """
    if isinstance(node, tree.KeywordExpression) and node.now_us is not None and not scope.find(node.word, None):
        return tree.FunctionCall(node.word.lower(), (), False, None, False, node.span)
    if not isinstance(node, tree.ColumnName):
        return _mapped(node, lambda part: _with_fields(part, scope))
    words = [part.text for part in node.parts]
    for length in (1, 2):
        columns = scope.find(words[length - 1], ".".join(words[: length - 1]) or None) if length < len(words) else ()
        if len(columns) == 1 and not scope.find(words[-1], ".".join(words[:-1])):
            column = tree.ColumnName(node.parts[:length], node.span)
            if scope.schema[columns[0].index].type.name == "MAP":
                return tree.Subscript(column, tree.ColumnName(node.parts[length:], node.span), node.span)
            return _fields(column, node.parts[length:])
    return node


def _fields(value: tree.Expression, names: tuple[tree.Name, ...]) -> tree.Expression:
    for name in names:
        value = tree.FieldOf(value, name, name.span)
    return value


def _mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The node with its parts changed; of a query within it, nothing."""
    if isinstance(node, tuple):
        return tuple(map(change, node))
    if not tree.is_node(node) or isinstance(node, (tree.Name, *tree.QUERIES)):
        return node
    return replace(node, **{each.name: change(getattr(node, each.name)) for each in fields(node) if each.name != "span"})


def _type_name(node: tree.TypeName) -> str | None:
    try:
        return read_type(node).sql
    except QueryError:  # reported where the expression is bound
        return None


def _case(node: tree.SearchedCase) -> str:
    """As Spark prints it, which compares the subject in each branch."""
    words = ["CASE"]
    for condition, value in node.branches:
        test = expression_name(condition)
        words.append(
            f"WHEN {test if node.subject is None else f'({expression_name(node.subject)} = {test})'} THEN {expression_name(value)}"
        )
    if node.otherwise is not None:
        words.append(f"ELSE {expression_name(node.otherwise)}")
    return " ".join((*words, "END"))


def _prefix(node: tree.Prefix) -> str:
    inner = expression_name(node.operand)
    match node.operator:
        case "NOT":
            return f"(NOT {inner})"
        case "+":
            return f"positive({inner})"
        case _:
            return f"({node.operator} {inner})" if node.operator == "-" else f"{node.operator}{inner}"


def _operation(node: tree.Operation) -> str:
    name = expression_name(node.operands[0])
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        right = expression_name(operand)
        match operator:
            case "<>":
                name = f"(NOT ({name} = {right}))"
            case "||":
                name = f"concat({name}, {right})"
            case _:
                name = f"({name} {_LOWER.get(operator, operator)} {right})"
    return name
