"""Whether rows are distinct because their columns determine a row of every relation that they are joined from.

The columns that a row has, those equal to them, and those equal to constants are known; a relation with a unique key among what is known
is known as a whole, as in the chase of functional dependencies (Maier, Mendelzon and Sagiv 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from deltic.expr.nodes import Call, Column, Expr, Literal, unwidened
from deltic.plan.columns import conjuncts
from deltic.plan.nodes import Filter, Join, Plan, Project
from deltic.stacks import unbounded

UniqueKey: TypeAlias = "Callable[[Plan], frozenset[int] | None]"


def determines_rows(plan: Plan, unique_key: UniqueKey) -> bool:
    """Whether no two rows of inner joins of relations with unique keys are equal. O(size of the joins)."""
    relations = _Relations(unique_key)
    columns = relations.columns(plan)
    return columns is not None and relations.are_known({one for one in columns if one is not None})


@dataclass(slots=True)
class _Relations:
    """The relations of joins. keys: of each, the key and all columns, numbered throughout. equal: pairs of columns with one value."""

    unique_key: UniqueKey
    keys: list[tuple[set[int], set[int]]] = field(default_factory=list)
    equal: list[tuple[int, int]] = field(default_factory=list)
    constant: set[int] = field(default_factory=set)
    width: int = 0

    @unbounded
    def columns(self, plan: Plan) -> Sequence[int | None] | None:
        """What each column of the plan is; None for a computed one. None if the plan has a relation without a key."""
        match plan:
            case Filter():
                columns = self.columns(plan.input)
                if columns is not None:
                    for part in conjuncts(plan.predicate):
                        self._equate(part, columns)
                return columns
            case Project():
                columns = self.columns(plan.input)
                return None if columns is None else [_column(expr, columns) for _, expr in plan.columns]
            case Join(kind="inner"):
                left, right = self.columns(plan.left), self.columns(plan.right)
                if left is None or right is None:
                    return None
                for one, other in plan.keys:
                    if one.type.has_one_form:
                        self._pair(_column(one, left), _column(other, right))
                return [*left, *right]
            case Join(kind="semi" | "anti" | "not_in"):
                return self.columns(plan.left)
            case _:
                key = self.unique_key(plan)
                if key is None:
                    return None
                own = range(self.width, self.width + len(plan.schema))
                self.width = own.stop
                self.keys.append(({own[i] for i in key}, set(own)))
                return own

    def _equate(self, part: Expr, columns: Sequence[int | None]) -> None:
        if not isinstance(part, Call) or part.function != "equal" or not part.arguments[0].type.has_one_form:
            return
        left, right = part.arguments
        if isinstance(right, Literal):
            left, right = right, left
        if isinstance(left, Literal):
            column = _column(right, columns)
            self.constant |= {column} if column is not None else set()
        else:
            self._pair(_column(left, columns), _column(right, columns))

    def _pair(self, one: int | None, other: int | None) -> None:
        if one is not None and other is not None:
            self.equal.append((one, other))

    def are_known(self, known: set[int]) -> bool:
        """Whether these columns and the constants determine a row of each relation."""
        known |= self.constant
        pending = list(self.keys)
        while True:
            before = len(known), len(pending)
            for one, other in self.equal:
                if one in known or other in known:
                    known |= {one, other}
            for key, columns in list(pending):
                if key <= known:
                    known |= columns
                    pending.remove((key, columns))
            if before == (len(known), len(pending)):
                return not pending


def _column(expr: Expr, columns: Sequence[int | None]) -> int | None:
    own = unwidened(expr)
    return columns[own.index] if isinstance(own, Column) else None
