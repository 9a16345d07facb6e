"""Generations: one object per writer that opened a state folder. Its number fences off older writers; its content marks the last commit.

The mark is written after the manifest of its epoch is durable, and carried over by the next writer. So it never names an uncommitted
epoch, and a folder whose newest manifest is older than the mark has lost manifests. The mark is not synced, and a damaged one is ignored:
without it only this check is lost.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from typing import Final

from deltic.errors import StateError
from deltic.storage.folder import StateFolder
from deltic.storage.names import GENERATIONS
from deltic.storage.parsing import REMEDY

KEPT_GENERATIONS: Final = 64
LAST_GENERATION: Final = 0xFFFF_FFFF
_GENERATION: Final = re.compile(r"[0-9a-f]{8}")
_RECORD_BYTES: Final = 64
"""The length of every mark: a new one replaces all bytes of the old one."""
_log = logging.getLogger(__name__)


def next_generation(folder: StateFolder, above: int = 0) -> int:
    """Claims a generation greater than `above` and all existing ones. Raises StateError if none is left."""
    existing = _existing(folder)
    record = _record(marked_epoch(folder))
    generation = max([above, *(int(name, 16) for name in existing[-1:])]) + 1
    while generation <= LAST_GENERATION and not folder.create(generation_name(generation), record):
        generation += 1
    if generation > LAST_GENERATION:
        raise StateError(f"the state folder {folder.root} has no generation left", expected=f"at most {LAST_GENERATION:x}", remedy=REMEDY)
    # Only old ones: a writer that has listed them already must not claim a number that was deleted meanwhile.
    folder.delete([f"{GENERATIONS}/{name}" for name in existing if int(name, 16) < generation - KEPT_GENERATIONS])
    return generation


def marked_epoch(folder: StateFolder) -> int | None:
    """The last epoch that the newest writer marked as committed; None if it marked none."""
    existing = _existing(folder)
    content = folder.read(f"{GENERATIONS}/{existing[-1]}") if existing else None
    try:
        record = json.loads(content or b"{}")
        epoch, crc = record["epoch"], record["crc"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return epoch if type(epoch) is int and crc == _crc(epoch) else None


def mark(folder: StateFolder, generation: int, epoch: int) -> None:
    """Marks an epoch as committed. A failure is only logged: the epoch is committed without the mark."""
    try:
        folder.overwrite(generation_name(generation), _record(epoch))
    except StateError as error:
        _log.warning("epoch %d of %s could not be marked as committed: %s", epoch, folder.root, error)


def generation_name(generation: int) -> str:
    """
    >>> generation_name(17)
    'generations/00000011'
    """
    return f"{GENERATIONS}/{generation:08x}"


def _existing(folder: StateFolder) -> list[str]:
    return [name for name in folder.names(GENERATIONS) if _GENERATION.fullmatch(name)]


def _record(epoch: int | None) -> bytes:
    content = {} if epoch is None else {"epoch": epoch, "crc": _crc(epoch)}
    return json.dumps(content).encode().ljust(_RECORD_BYTES - 1) + b"\n"


def _crc(epoch: int) -> int:
    return zlib.crc32(b"%d" % epoch)
