"""How streams get into a scope, and around in it: import and feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from deltic.circuit.operator import Context, Delta


@dataclass(frozen=True, slots=True)
class Import:
    """Attaches the parent's stream at `position` among the child's inputs: whole at iteration 0, empty afterwards.

    arrangement: the parent's, if the stream is the change of one that operators of the scope read.
    """

    position: int
    arrangement: str | None = None

    @property
    def name(self) -> str:
        return "import"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return inputs[self.position]


@dataclass(frozen=True, slots=True)
class Feedback:
    """z⁻¹ in the innermost scope: what node `source` (a local id, perhaps a later one) gave in the previous iteration.

    relation: what it is called in errors.
    """

    source: int
    relation: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        return "feedback"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return inputs[0]
