"""A shard's arrangements while epochs are in the commit log: those of the files, and above them what the log has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltic.storage.reading import ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.spine import Spine


class LoggedArrangements(Mapping[str, Spine]):
    """A value, like its spines. stored: as of the last manifest."""

    __slots__ = ("_above", "_grown", "stored")

    def __init__(self, stored: ShardArrangements, above: Mapping[str, Spine], grown: Mapping[str, Spine]) -> None:
        """above: by arrangement what the log has. grown: that and what is stored."""
        self.stored, self._above, self._grown = stored, above, grown

    def __getitem__(self, arrangement: str) -> Spine:
        spine = self._grown.get(arrangement)
        return self.stored[arrangement] if spine is None else spine

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def above(self, arrangement: str) -> int:
        """How many rows the log has."""
        return self._above[arrangement].rows if arrangement in self._above else 0

    def appended(self, batches: Mapping[str, Batch]) -> LoggedArrangements:
        """With one more epoch. Raises WeightOverflow."""
        above, grown = {**self._above}, {**self._grown}
        for name, batch in batches.items():
            stored = self.stored[name]
            above[name] = (above[name] if name in above else Spine(stored.columns, stored.weights)).appended(batch)
            grown[name] = above[name].above(stored)
        return LoggedArrangements(self.stored, above, grown)


ArrangementsOfShard = ShardArrangements | LoggedArrangements


def stored_part(arrangements: ArrangementsOfShard) -> ShardArrangements:
    """What the files have."""
    return arrangements.stored if isinstance(arrangements, LoggedArrangements) else arrangements
