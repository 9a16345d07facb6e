"""Import and feedback: streams into a scope, and from one iteration to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from deltic.circuit.operator import Context, Delta
from deltic.errors import Span


@dataclass(frozen=True, slots=True)
class Import:
    """The child's input at `position`: whole at iteration 0, empty afterwards.

    arrangement: that of the parent whose change the stream is, if operators of the scope read it.
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
    """z⁻¹ in the innermost scope: the value of node `source` (a local id, possibly a later one) in the previous iteration.

    relation: its name in errors. span: the place of a reference to it in the program, for errors. is_set: it keeps each row once, likewise.
    """

    source: int
    relation: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    is_set: bool = field(default=False, compare=False, repr=False)

    @property
    def name(self) -> str:
        return "feedback"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return inputs[0]
