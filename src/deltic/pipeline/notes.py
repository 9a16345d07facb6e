"""What a pipeline notes in the state of its sinks and dead letters. The notes of a tick are committed with its changes, both or neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from deltic.connectors.source import Json

SINKS: Final = "sinks"
CLAIMS: Final = "sink claims"
"""By sink, the id of its claim on the location that its offset is about. What a user has noted under this name is ignored."""
LETTERS: Final = "letters"


@dataclass(frozen=True, slots=True)
class SinkOffset:
    """The offset of a sink. view: its view, in lower case; arrangement: the id of the view's arrangement.

    epoch: the last one that it has received, or that did not change its view.

    first: the epoch whose delivery is not its change but the whole content of the view after it, or, if the view was redefined, the
    difference between the content after epoch `base` and that after `first`.
    """

    view: str
    arrangement: str
    epoch: int
    first: int
    base: int | None = None

    @property
    def following(self) -> int:
        """The first epoch whose delivery it lacks."""
        return max(self.epoch + 1, self.first)

    @property
    def needs(self) -> int:
        """The first epoch that must stay readable."""
        return self.epoch if self.base is None or self.epoch >= self.first else min(self.base, self.epoch)

    def json(self) -> dict[str, Json]:
        return asdict(self)


def sink_offsets(notes: Mapping[str, Json]) -> dict[str, SinkOffset]:
    """The offset of each sink, by name."""
    return {name: SinkOffset(**value) for name, value in notes.get(SINKS, {}).items()}


def claims_of(notes: Mapping[str, Json]) -> dict[str, str]:
    """The id of each sink's claim, by name, where it is known."""
    match notes.get(CLAIMS):
        case dict(claims):
            return {name: claim for name, claim in claims.items() if isinstance(claim, str)}
        case _:
            return {}
