"""Whether the tree is the one that Spark's grammar gives.

sqlglot binds some operators in another order than Spark (`||` looser than `+`, `&` like `|`, `=` looser than `<`). A tree whose
every operand binds as tight as Spark wants it is Spark's own tree, since a text has only one; any other is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from deltic.errors import SyntaxFailure
from deltic.frontends.sql.dialect import CALL
from deltic.frontends.sql.spans import Places

_TABLE: Final = (
    (1, "Or"),
    (2, "And"),
    (3, "Not"),
    (4, "Is In Between Like Escape NullSafeNEQ"),
    (5, "EQ NEQ GT GTE LT LTE NullSafeEQ"),
    (6, "BitwiseOr"),
    (7, "BitwiseXor"),
    (8, "BitwiseAnd"),
    (10, "Add Sub DPipe"),
    (11, "Mul Div IntDiv Mod"),
    (12, "Neg BitwiseNot"),
)
LEVELS: Final[dict[type[exp.Expr], int]] = {getattr(exp, name): level for level, names in _TABLE for name in names.split()}
PREDICATE: Final = 4
COMPARISON: Final = 5
PRIMARY: Final = 13


def check_precedence(tree: exp.Expr, places: Places) -> None:
    """Raises SyntaxFailure at the first operand that Spark would have bound otherwise."""
    for node in tree.walk():
        for operand, needed in _operands(node):
            if isinstance(operand, exp.Expr) and _level(operand) < needed:
                raise SyntaxFailure(
                    "Spark reads these operators in another order", span=places.of(node), remedy="put the inner part in parentheses"
                )


def _level(node: exp.Expr) -> int:
    if isinstance(node, exp.Anonymous) and node.name == "positive":
        return LEVELS[exp.Neg]
    return PRIMARY if node.meta.get(CALL) else LEVELS.get(type(node), PRIMARY)


def _operands(node: exp.Expr) -> Iterator[tuple[exp.Expr | None, int]]:
    """The operands of an operator with the least level that each must have."""
    level = LEVELS.get(type(node))
    if node.meta.get(CALL):
        return
    if isinstance(node, exp.Cast):
        yield node.this, PRIMARY
    elif isinstance(node, exp.Escape):
        yield node.expression, COMPARISON
    elif level == PREDICATE:
        for argument in ("this", "expression", "low", "high"):
            yield node.args.get(argument), COMPARISON
    elif isinstance(node, exp.Unary) and level is not None:
        yield node.this, level
    elif level is not None:
        yield node.this, level
        yield node.expression, level if isinstance(node, exp.Connector) else level + 1
