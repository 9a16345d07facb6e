"""The counters of a level that ran as a program: made when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from deltic.kernels import instructions as op
from deltic.trace.counters import Counters


class LevelCounters(Mapping[str, Counters]):
    """Node → counters. names: of the nodes, by number. words: those of the runner. inner: of nodes in scopes.

    stepped: of nodes whose `step` ran. seconds: of one unit of the runner's clock.
    """

    __slots__ = ("_inner", "_made", "_names", "_words", "seconds", "stepped")

    def __init__(self, names: Sequence[str], words: npt.NDArray[np.int64], inner: Mapping[str, Counters]) -> None:
        self._names, self._words, self._inner = names, words, inner
        self.stepped: dict[str, Counters] = {}
        self.seconds = 0.0
        self._made: dict[str, Counters] | None = None

    def _all(self) -> dict[str, Counters]:
        if self._made is None:
            made = {}
            rows = self._words.reshape(-1, op.COUNTERS).tolist()
            for name, (ran, rows_in, rows_out, touched, batches, cycles) in zip(self._names, rows, strict=True):
                if ran:
                    made[name] = self.stepped.get(name) or Counters(rows_in, rows_out, touched, batches, cycles * self.seconds)
            self._made = {**made, **self._inner}
        return self._made

    def __getitem__(self, name: str) -> Counters:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        """One node on each line."""
        return "\n".join(f"{name}: {counters}" for name, counters in self._all().items())
