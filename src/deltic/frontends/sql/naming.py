"""Names of output columns that have no alias, as Spark makes them up: `sum(x)`, `(a + b)`, `CAST(x AS INT)`."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from deltic.frontends.sql.bind_call import function_name
from deltic.frontends.sql.spans import Places

_INFIX: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}


def output_name(node: exp.Expr, places: Places) -> str:
    """The name of a select item: its alias, its column's name, or its text put as Spark puts it."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column():
            return str(node.name)
        case exp.Paren():
            return output_name(node.this, places)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return node.name if isinstance(node, exp.Literal) else node.sql().lower() if isinstance(node, exp.Boolean) else "NULL"
        case exp.Star():
            return "1"
        case exp.Anonymous():
            return f"{function_name(node)}({', '.join(output_name(part, places) for part in node.expressions)})"
        case exp.Distinct():
            return f"DISTINCT {', '.join(output_name(part, places) for part in node.expressions)}"
        case exp.Filter():
            return f"{output_name(node.this, places)} FILTER (WHERE {output_name(node.expression.this, places)})"
        case exp.Extract():
            return f"extract({node.this.name} FROM {output_name(node.expression, places)})"
        case _:
            return _operator(node, places)


def _operator(node: exp.Expr, places: Places) -> str:
    match node:
        case exp.NEQ():
            return f"(NOT ({output_name(node.this, places)} = {output_name(node.expression, places)}))"
        case exp.Not():
            inner = node.this
            if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
                return f"({output_name(inner.this, places)} IS NOT NULL)"
            return f"(NOT {output_name(inner, places)})"
        case exp.Is():
            return f"({output_name(node.this, places)} IS {output_name(node.expression, places)})"
        case exp.Neg():
            inner = node.this
            return f"-{inner.name}" if isinstance(inner, exp.Literal) else f"(- {output_name(inner, places)})"
        case exp.DPipe():
            return f"concat({output_name(node.this, places)}, {output_name(node.expression, places)})"
        case exp.In() if not node.args.get("query"):
            return f"({output_name(node.this, places)} IN ({', '.join(output_name(part, places) for part in node.expressions)}))"
        case exp.Binary() if type(node) in _INFIX:
            return f"({output_name(node.this, places)} {_INFIX[type(node)]} {output_name(node.expression, places)})"
        case _:
            span = places.of(node)
            return " ".join(span.text[span.start : span.end].split())
