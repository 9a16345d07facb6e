"""A shard's arrangements while epochs are in the commit log: those of the files, and above them what the log has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from deltic.storage.reading import ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.spine import Spine

NOTHING: Final[Mapping[str, Spine]] = MappingProxyType({})


class LoggedArrangements(Mapping[str, Spine]):
    """A value, like its spines. stored: as of the last manifest."""

    __slots__ = ("_above", "_sums", "stored")

    def __init__(self, stored: ShardArrangements, above: Mapping[str, Spine] = NOTHING) -> None:
        """above: by arrangement what the log has."""
        self.stored, self._above = stored, above
        self._sums: dict[str, Spine] = {}
        """That and what is stored, of the arrangements that have been read."""

    def __getitem__(self, arrangement: str) -> Spine:
        spine = self._sums.get(arrangement)
        if spine is None:
            stored, above = self.stored[arrangement], self._above.get(arrangement)
            spine = self._sums[arrangement] = stored if above is None else above.above(stored)
        return spine

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def above(self, arrangement: str) -> int:
        """How many rows the log has."""
        return self._above[arrangement].rows if arrangement in self._above else 0

    def appended(self, batches: Mapping[str, Batch]) -> LoggedArrangements:
        """With one more epoch. Raises WeightOverflow."""
        above = {**self._above}
        for name, batch in batches.items():
            above[name] = (above[name] if name in above else Spine(*batch.shape)).appended(batch)
        return LoggedArrangements(self.stored, above)


ArrangementsOfShard = ShardArrangements | LoggedArrangements


def stored_part(arrangements: ArrangementsOfShard) -> ShardArrangements:
    """What the files have."""
    return arrangements.stored if isinstance(arrangements, LoggedArrangements) else arrangements
