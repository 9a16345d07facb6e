"""Grouping sets as a plan node: GROUP BY ROLLUP, CUBE and GROUPING SETS are an Aggregate over an Expand, which reads its input once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltic.expr.nodes import Expr
from deltic.plan.node import PlanNode, computed
from deltic.schema import BIGINT, Field, Schema

if TYPE_CHECKING:
    from deltic.plan.nodes import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Expand(PlanNode):
    """Each row once for each grouping set: the row, the keys, of which those that the set leaves out are NULL, and the set's number.

    sets: different numbers. The last len(keys) bits are GROUPING_ID: the bit of the last key is the least, and 1 means left out. The bits
    before these distinguish sets that are equal.
    """

    input: Plan
    keys: tuple[tuple[str, Expr], ...]
    sets: tuple[int, ...]
    name: str

    def __post_init__(self) -> None:
        assert self.sets and len(set(self.sets)) == len(self.sets)

    @computed
    def schema(self) -> Schema:
        masks = self.masks
        keys = (
            Field(name, expr.type, expr.nullable or any(number & mask for number in self.sets))
            for (name, expr), mask in zip(self.keys, masks, strict=True)
        )
        return Schema((*self.input.schema, *keys, Field(self.name, BIGINT, False)))

    @computed
    def masks(self) -> tuple[int, ...]:
        """The bit of each key."""
        return tuple(1 << place for place in reversed(range(len(self.keys))))
