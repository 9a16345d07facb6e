"""Names of output columns that have no alias, as Spark derives them: `sum(x)`, `(a + b)`, `CAST(x AS INT)`."""

from __future__ import annotations

from typing import Final

from deltic.errors import QueryError
from deltic.expr import Literal
from deltic.frontends.sql import tree
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.sql.window_naming import window_name
from deltic.types import quoted

_LOWER: Final = {"DIV": "div"}


def output_name(item: tree.SelectItem) -> str:
    """The name of a select item: its alias, or the name that Spark derives from its expression."""
    return item.names[0].text if item.names else expression_name(item.expression)


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
            return node.field.text
        case tree.PathOf():
            return f"variant_get({expression_name(node.value)}, {node.path})" if node.field is None else node.field
        case tree.CastCall(operand=tree.PathOf(field=str(field))):
            return field
        case tree.CastCall() if (type := _type_name(node.type)) is not None:
            return f"{'TRY_' * node.lenient}CAST({expression_name(node.operand)} AS {type})"
        case tree.SearchedCase():
            return _case(node)
        case tree.TypedText():
            return f"{node.type.text.upper()} '{node.text}'"
        case tree.Subscript():
            return f"{expression_name(node.value)}[{expression_name(node.index)}]"
        case tree.Parenthesised():
            return expression_name(node.inner)
        case tree.NumberText():
            return node.text.rstrip("lLsSyYfFdDbB")
        case tree.StringText():
            return node.text
        case tree.KeywordExpression():
            return node.word if node.word == "NULL" else node.word.lower()
        case tree.Star():
            return "1"
        case tree.ParameterValue():
            return _argument(node)
        case tree.NamedValue():
            return f"{expression_name(node.value)} AS {quoted(node.name.text)}"
        case tree.FunctionCall(keywords=False):
            listed = ", ".join(expression_name(part) for part in node.arguments)
            call = f"{node.name}({'DISTINCT ' * node.distinct}{listed})"
            return call if node.condition is None else f"{call} FILTER (WHERE {expression_name(node.condition)})"
        case tree.OverCall():
            return window_name(node, expression_name)
        case tree.DefinedCall():
            return f"{node.name}({', '.join(expression_name(part) for part in node.arguments)})"
        case tree.ExtractCall():
            return f"extract({node.field.text} FROM {expression_name(node.source)})"
        case tree.InList(negated=False):
            return f"({expression_name(node.operand)} IN ({', '.join(expression_name(part) for part in node.values)}))"
        case tree.IsTest(state="NULL"):
            return f"({expression_name(node.operand)} IS {'NOT ' * node.negated}NULL)"
        case tree.Prefix():
            return _prefix(node)
        case tree.Operation():
            return _operation(node)
        case _:
            return " ".join(node.span.text[node.span.start : node.span.end].split())


def _argument(node: tree.ParameterValue) -> str:
    """A parameter's value, as Spark writes a constant; of an ARRAY, the parameter."""
    if not isinstance(node.value, Literal):
        return node.span.text[node.span.start : node.span.end]
    value = node.value.value
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _type_name(node: tree.TypeName) -> str | None:
    try:
        return sql_type(node).sql
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
