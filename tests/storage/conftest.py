from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stored import dictionary_of

from deltic.storage.files import Content, FileRef, Origin, write_file
from deltic.storage.folder import open_folder
from deltic.storage.manifest import SegmentRef
from deltic.trace.batch import Batch


@pytest.fixture
def root(tmp_path: Path) -> str:
    """An empty state folder."""
    open_folder(tmp_path / "state").make()
    return str(tmp_path / "state")


@pytest.fixture
def store(root: str) -> Callable[..., tuple[FileRef, SegmentRef]]:
    """Writes a batch to a file of its own in `root`."""

    def write(batch: Batch, *, arrangement: str = "a", shard: int = 0, **strings: int) -> tuple[FileRef, SegmentRef]:
        positions = (0,) if strings else ()
        content = Content(arrangement, batch, positions)
        ref = write_file(root, Origin(1, 1, shard, 0), [content], dictionary_of(**strings))
        return ref, SegmentRef(shard, arrangement, ref.name, len(batch))

    return write
