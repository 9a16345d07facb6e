"""Subqueries as plan nodes: a dependent join evaluates its right side for each row of its left side (Neumann and Kemper 2015).

Front ends create them, and unnesting (plan/unnest.py) replaces them by joins before anything else reads the plan. The oracle evaluates
them as they are defined, so that unnesting is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.nodes import Expr
from deltic.plan.node import PlanNode, computed
from deltic.schema import BOOLEAN, Field, Schema

if TYPE_CHECKING:
    from deltic.plan.nodes import Plan

_numbers: Final = count(1)

DependentKind = OneOf["inner", "left", "semi", "anti", "not_in", "mark"]


@dataclass(frozen=True, slots=True, eq=False)
class DependentJoin(PlanNode):
    """The rows of `left`, each joined with the rows of `right` that are evaluated for it.

    outer: (number, expression over left): the values of the OuterColumns in `right`, which may have others, of queries further out.
    condition: over (left, right); must be TRUE for two rows to match.
    kind: as of Join; `mark` adds to each left row a BOOLEAN, whether it has a match.
    value: of `not_in`, as in Join. span: the place of the right side in the text.
    """

    left: Plan
    right: Plan
    kind: DependentKind
    outer: tuple[tuple[int, Expr], ...] = ()
    condition: Expr | None = None
    value: tuple[Expr, Expr] | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert self.condition is None or self.condition.type == BOOLEAN
        assert (self.value is not None) == (self.kind == "not_in")

    @computed
    def schema(self) -> Schema:
        match self.kind:
            case "semi" | "anti" | "not_in":
                return self.left.schema
            case "mark":
                return Schema((*self.left.schema, Field("mark", BOOLEAN, False)))
            case "left":
                return Schema((*self.left.schema, *self.right.schema.nullable))
            case "inner":
                return Schema((*self.left.schema, *self.right.schema))


def outer_number() -> int:
    """A number for an OuterColumn, different from all others in the process."""
    return next(_numbers)


Unnest = Callable[[DependentJoin], "Plan"]
"""How the joins with subqueries are made: unnested, or, for the oracle, as they are."""
