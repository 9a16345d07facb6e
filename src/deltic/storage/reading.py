"""Reading state: open files kept between ticks, and a shard's arrangements as spines over mapped batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from deltic.errors import CorruptState
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, DataFile, FileRef
from deltic.storage.manifest import SegmentRef
from deltic.storage.parsing import REMEDY
from deltic.trace.batch import Batch
from deltic.trace.share import Share
from deltic.trace.spine import Spine


def shaped(batch: Batch, widths: tuple[int, int], name: str) -> Batch:
    """A batch of the file `name`, of so many columns and weights. Raises CorruptState if it has others: kernels trust that it has not."""
    if (len(batch.columns), len(batch.weights)) != widths:
        raise CorruptState(
            f"{name}: a batch has {len(batch.columns)} columns and {len(batch.weights)} weights",
            expected=f"{widths[0]} and {widths[1]}",
            remedy=REMEDY,
        )
    return batch


class OpenFiles:
    """The data files of one state folder that are open here."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._open: dict[str, DataFile] = {}

    def __getitem__(self, ref: FileRef) -> DataFile:
        """Opens the file if it is not open yet. Raises CorruptState."""
        found = self._open.get(ref.name)  # once, since another thread may close it meanwhile
        if found is None:
            found = self._open[ref.name] = DataFile(self.root, ref)
        return found

    def remember(self, ref: FileRef, contents: Iterable[Content], dictionary: Dictionary) -> None:
        """Opens a file that was just written here, with what is small in it as it is in memory."""
        self[ref].remember(contents, dictionary)

    def keep(self, names: Iterable[str]) -> None:
        """Closes all but these; maps that a batch still uses live on with it."""
        wanted = set(names)
        for name in [name for name in list(self._open) if name not in wanted]:
            del self._open[name]


class ShardArrangements(Mapping[str, Spine]):
    """A shard's arrangements, each opened when it is first asked for.

    widths: arrangement → (columns, weights). segments: arrangement → its batches; one that is not there is empty.
    before: the same shard's arrangements of an earlier epoch, from which the unchanged ones are taken over. shares: arrangement → which
    rows are the shard's, for those of which a segment may be ranged.
    """

    def __init__(
        self,
        files: OpenFiles,
        refs: Mapping[str, FileRef],
        segments: Mapping[str, Sequence[SegmentRef]],
        widths: Mapping[str, tuple[int, int]],
        before: ShardArrangements | None = None,
        shares: Mapping[str, Share] | None = None,
    ) -> None:
        self._files, self._refs, self._segments, self._widths, self._shares = files, refs, segments, widths, shares or {}
        self._spines: dict[str, Spine] = {}
        # A copy, since a reader on another thread may open another arrangement meanwhile.
        for arrangement, spine in list(before._spines.items()) if before else ():
            if arrangement in widths and before is not None and before._marks(arrangement) == self._marks(arrangement):
                self._spines[arrangement] = spine

    def __getitem__(self, arrangement: str) -> Spine:
        if arrangement not in self._spines:
            share = self._shares.get(arrangement) if any(s.ranged for s in self.segments(arrangement)) else None
            self._spines[arrangement] = Spine.over(*self._widths[arrangement], self.batches(arrangement), share)
        return self._spines[arrangement]

    def __iter__(self) -> Iterator[str]:
        return iter(self._widths)

    def __len__(self) -> int:
        return len(self._widths)

    def segments(self, arrangement: str) -> Sequence[SegmentRef]:
        return self._segments.get(arrangement, ())

    def names(self, arrangement: str) -> tuple[str, ...]:
        """The files in which its batches stand."""
        return tuple(segment.file for segment in self.segments(arrangement))

    def _marks(self, arrangement: str) -> tuple[Any, ...]:
        """What tells its content from that of another version."""
        return self._shares.get(arrangement), *((segment.file, segment.ranged) for segment in self.segments(arrangement))

    def batches(self, arrangement: str) -> list[Batch]:
        """Its batches, mapped and checked."""
        return [shaped(self.file(name).batch(arrangement), self._widths[arrangement], name) for name in self.names(arrangement)]

    def file(self, name: str) -> DataFile:
        return self._files[self._refs[name]]

    def dictionaries(self) -> list[Dictionary]:
        """Those of all the files, the newest first: recent strings are asked for most."""
        names = {segment.file for segments in self._segments.values() for segment in segments}
        return [self.file(name).dictionary() for name in sorted(names, reverse=True)]
