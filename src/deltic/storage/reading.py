"""Reading state: a cache of open files, and a shard's arrangements as spines over mapped batches."""

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
    """The batch of the file `name`. Raises CorruptState unless it has `widths` columns and weights, which kernels rely on."""
    if (len(batch.columns), len(batch.weights)) != widths:
        raise CorruptState(
            f"{name}: a batch has {len(batch.columns)} columns and {len(batch.weights)} weights",
            expected=f"{widths[0]} and {widths[1]}",
            remedy=REMEDY,
        )
    return batch


class OpenFiles:
    """The open data files of one state folder."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._open: dict[str, DataFile] = {}

    def __getitem__(self, ref: FileRef) -> DataFile:
        """Opens the file if it is not open yet. Raises CorruptState."""
        file = self._open.get(ref.name)  # one access, since another thread may close it meanwhile
        if file is None:
            file = self._open[ref.name] = DataFile(self.root, ref)
        return file

    def remember(self, ref: FileRef, contents: Iterable[Content], dictionary: Dictionary) -> None:
        """Opens a file that this process just wrote, with its small contents from memory."""
        self[ref].remember(contents, dictionary)

    def keep(self, names: Iterable[str]) -> None:
        """Closes all files but these; a map lives as long as a batch uses it."""
        kept = set(names)
        for name in [name for name in list(self._open) if name not in kept]:
            del self._open[name]


class ShardArrangements(Mapping[str, Spine]):
    """A shard's arrangements, each opened at first use.

    widths: arrangement → (columns, weights). segments: arrangement → its batches; a missing one is empty. before: the shard's arrangements
    of an earlier epoch, whose unchanged spines are reused. shares: arrangement → the shard's rows, if its segments may be ranged.
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
        """The files of its batches."""
        return tuple(segment.file for segment in self.segments(arrangement))

    def _marks(self, arrangement: str) -> tuple[Any, ...]:
        """Equal for two versions with the same content."""
        return self._shares.get(arrangement), *((segment.file, segment.ranged) for segment in self.segments(arrangement))

    def batches(self, arrangement: str) -> list[Batch]:
        """Its batches, mapped and checked for shape."""
        return [shaped(self.file(name).batch(arrangement), self._widths[arrangement], name) for name in self.names(arrangement)]

    def file(self, name: str) -> DataFile:
        return self._files[self._refs[name]]

    def dictionaries(self) -> list[Dictionary]:
        """The dictionaries of all files, newest first: recent strings are looked up most."""
        names = {segment.file for segments in self._segments.values() for segment in segments}
        return [self.file(name).dictionary() for name in sorted(names, reverse=True)]
