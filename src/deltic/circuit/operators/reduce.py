"""aggregate by a user's function, which computes the rows of each changed group from all rows of the group.

Costs O(rows of the changed groups) and one call for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.groups import Row, members, read_groups, replaced
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.expr.nodes import UserFunction
from deltic.expr.python import rows_of_reduction
from deltic.schema import Schema
from deltic.trace.encoding import Layout


@dataclass(frozen=True, slots=True)
class ReduceOperator:
    """arrangement: rows of `key` words and the words of `values`. memory: the emitted rows, of the key and the words of `returned`."""

    arrangement: str
    memory: str
    key: int
    values: Schema
    returned: Schema
    function: UserFunction

    @property
    def name(self) -> str:
        return "aggregate"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        groups = distinct_rows([delta], self.key)
        width, emitted = Layout.of(self.values).width, Layout.of(self.returned).width
        now = context.old(self.arrangement, self.key + width, 1).with_batch(delta)
        positions: list[int] = []
        rows: list[Row] = []
        for group, pairs in members(read_groups(now, groups, width, context), self.values, context):
            reduced = rows_of_reduction(self.function, self.returned, pairs)
            positions += [group] * len(reduced)
            rows += reduced
        old = read_groups(context.old(self.memory, self.key + emitted, 1), groups, emitted, context)
        change = replaced(groups, old, positions, rows, self.returned, context)
        context.append(self.memory, change)
        return change
