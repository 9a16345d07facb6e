"""Names of the files in a state folder. Some come from listings and manifests, so each is checked before it becomes a path."""

from __future__ import annotations

import re
from typing import Final

from deltic.errors import CorruptState

DATA: Final = "data"
MANIFESTS: Final = "manifests"
GENERATIONS: Final = "generations"
LEASES: Final = "leases"
"""The subfolders: data files, one manifest for each epoch, one object for each writer, one for each reader."""
LOG: Final = "log"
"""The commit log of each writer whose epochs are not all folded."""
LOCK: Final = "lock"
CHECKPOINTS: Final = "checkpoints"
"""Spark's checkpoints of the streams that feed the state."""
PROBE: Final = "probe"
"""Files by which tasks show that they can reach the folder."""
ENTRIES: Final = frozenset({DATA, MANIFESTS, GENERATIONS, LEASES, LOG, LOCK, CHECKPOINTS, PROBE})
"""All entries of a state folder."""
_PART: Final = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")


def checked(name: str) -> str:
    """The name itself, if it is plain words between slashes and so cannot leave the state folder. Raises CorruptState."""
    if not all(_PART.fullmatch(part) for part in name.split("/")):
        raise CorruptState(f"invalid file name {name!r} in a state folder", remedy="restore the state folder from a copy")
    return name
