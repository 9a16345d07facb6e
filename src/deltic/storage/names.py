"""Names of what is in a state folder. They come from listings and manifests too, so they are checked before they become a path."""

from __future__ import annotations

import re
from typing import Final

from deltic.errors import CorruptState

DATA: Final = "data"
MANIFESTS: Final = "manifests"
GENERATIONS: Final = "generations"
LEASES: Final = "leases"
"""The subfolders: data files, one manifest for each epoch, one object for each opener, one for each reader."""
LOCK: Final = "lock"
CHECKPOINTS: Final = "checkpoints"
"""Those of the streams that feed the state, which Spark keeps."""
PROBE: Final = "probe"
"""Files by which tasks show that they reach the folder."""
ENTRIES: Final = frozenset({DATA, MANIFESTS, GENERATIONS, LEASES, LOCK, CHECKPOINTS, PROBE})
"""All that there is in a state folder."""
_PART: Final = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")


def checked(name: str) -> str:
    """The name itself: plain words between slashes, so that nothing outside the state folder can be meant. Raises CorruptState."""
    if not all(_PART.fullmatch(part) for part in name.split("/")):
        raise CorruptState(f"{name!r} is no name of a file in a state folder", remedy="restore the state folder from a copy")
    return name
