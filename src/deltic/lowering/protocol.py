"""The interface between the lowering of one kind of plan node and that of whole plans, which `lower.py` implements."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from typing import Protocol

from deltic.lowering.streams import Streams
from deltic.plan.nodes import Plan


class PlanLowering(Protocol):
    """Lowers plans to streams of one scope, each plan once."""

    @property
    def streams(self) -> Streams:
        """The dataflow under construction."""
        ...

    @property
    def scoped(self) -> bool:
        """Whether the streams are in the scope of a recursion."""
        ...

    @property
    def spread(self) -> bool:
        """Whether several shards divide the work of a multiway join."""
        ...

    @property
    def stored(self) -> Set[Plan]:
        """The integrals of streams that views of the program keep."""
        ...

    def relation(self, plan: Plan) -> int:
        """The stream of the plan's changes, laid out by its schema."""
        ...

    def once(self, key: Hashable, make: Callable[[], int]) -> int:
        """The stream under this key; `make` adds it on the first call."""
        ...

    def distinct(self, stream: int) -> int:
        """Each row of the stream once."""
        ...
