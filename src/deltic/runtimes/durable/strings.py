"""The strings of a state: how they get ids, as its notes say, and the strings of its files, as string tables look them up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.errors import CorruptState, StateError
from deltic.storage.dictionary import Dictionary
from deltic.storage.manifest import Manifest
from deltic.storage.program import STRINGS
from deltic.trace.identity import Identity

HASH_VERSION: Final = 2
"""The version of the function that assigns rows to shards and ids to strings. 2: strings are hashed under a key."""


def identity_of(notes: Mapping[str, Any]) -> Identity:
    """How strings get ids in a state of this version with these notes. Raises CorruptState."""
    return Identity.of_note(notes.get(STRINGS))


def check_version(notes: Mapping[str, Any], root: str) -> None:
    """Raises StateError if the state can only be read."""
    if (version := notes.get("hash")) != HASH_VERSION:
        raise StateError(
            f"the state folder {root} has string ids of version {version}, and is read-only",
            expected=f"version {HASH_VERSION}",
            remedy="use the version of Deltic that wrote it; or build a new state from the sources, or from views by `deltic state export`",
        )


class StateStrings:
    """The strings of some files, as a StringTable looks them up."""

    def __init__(self, dictionaries: Sequence[Dictionary]) -> None:
        self._dictionaries = [d for d in dictionaries if len(d)]

    def find(self, ids: Any) -> tuple[Any, pa.BinaryArray]:
        """(bool[n]: whether id i is present, the bytes of those that are, in order)."""
        return find_strings(self._dictionaries, ids)


class CurrentStrings:
    """The strings of a state that is still written. dictionaries: returns the current ones, those of what `manifest` returns."""

    def __init__(self, dictionaries: Callable[[], Iterable[Dictionary]], manifest: Callable[[], Manifest]) -> None:
        self._dictionaries, self._manifest = dictionaries, manifest

    def find(self, ids: Any) -> tuple[Any, pa.BinaryArray]:
        """As StateStrings. A commit on another thread may delete files that it has replaced: then those of the new manifest are read."""
        while True:
            manifest = self._manifest()
            try:
                return find_strings(self._dictionaries(), ids)
            except CorruptState:
                if self._manifest() is manifest:
                    raise


def find_strings(dictionaries: Iterable[Dictionary], ids: Any) -> tuple[Any, pa.BinaryArray]:
    """The strings of `ids` that are in a dictionary, the first that contains them. O(n · dictionaries · log)."""
    present = np.zeros(len(ids), bool)
    places, values = [], []
    for dictionary in dictionaries:
        missing = np.flatnonzero(~present)
        if not len(missing):
            break
        matches, positions = dictionary.find(ids[missing])
        if matches.any():
            present[missing[matches]] = True
            places.append(missing[matches])
            values.append(dictionary.values.take(pa.array(positions[matches])))
    if not values:
        return present, pa.array([], pa.binary())
    order = np.argsort(np.concatenate(places), kind="stable")
    return present, pa.concat_arrays([v.cast(pa.binary()) for v in values]).take(pa.array(order))
