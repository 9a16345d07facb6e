"""A shard's arrangements while epochs are in the commit log: those of the files, and above them what the log has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltic.storage.reading import ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.spine import Spine


class LoggedArrangements(Mapping[str, Spine]):
    """A value, like its spines. stored: as of the last manifest."""

    __slots__ = ("_above", "_sums", "stored")

    def __init__(self, stored: ShardArrangements) -> None:
        self.stored = stored
        self._above: dict[str, Spine] = {}
        """By arrangement what the log has."""
        self._sums: dict[str, Spine] = {}
        """That and what is stored, of the arrangements that have been read since the last manifest; the log adds to these then."""

    def __getitem__(self, arrangement: str) -> Spine:
        spine = self._sums.get(arrangement)
        if spine is None:
            stored, above = self.stored[arrangement], self._above.get(arrangement)
            above = Spine(stored.columns, stored.weights) if above is None else above
            spine = self._sums[arrangement] = above.above(stored)
        return spine

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def above(self, arrangement: str) -> int:
        """How many rows the log has."""
        if arrangement in self._sums:
            return self._sums[arrangement].rows - self.stored[arrangement].rows
        return self._above[arrangement].rows if arrangement in self._above else 0

    def appended(self, batches: Mapping[str, Batch]) -> LoggedArrangements:
        """With one more epoch. Raises WeightOverflow."""
        after = LoggedArrangements(self.stored)
        after._above, after._sums = above, sums = {**self._above}, {**self._sums}
        for name, batch in batches.items():
            if name in sums:
                sums[name] = sums[name].appended(batch)
                above.pop(name, None)
            else:
                above[name] = (above[name] if name in above else Spine(*batch.shape)).appended(batch)
        return after


ArrangementsOfShard = ShardArrangements | LoggedArrangements


def stored_part(arrangements: ArrangementsOfShard) -> ShardArrangements:
    """What the files have."""
    return arrangements.stored if isinstance(arrangements, LoggedArrangements) else arrangements
