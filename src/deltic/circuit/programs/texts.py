"""The ids of the texts of a program, in the strings of a state."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.trace.strings import StringTable

NO_ID: Final = np.int64(-(2**63))
"""That of NULL, which equals no id of a value that is present."""

Ids = npt.NDArray[np.int64]


class TextIds:
    """Texts, and their ids in string tables, which are kept while they are valid. made: those that are values, so that tables have them."""

    def __init__(self, texts: tuple[str, ...], made: tuple[str, ...]) -> None:
        self._texts, self._made = pa.array(texts, pa.string()), pa.array(made, pa.string())
        self._ids: WeakKeyDictionary[StringTable, tuple[object, Ids]] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._texts)

    def of(self, strings: StringTable) -> Ids:
        """The id of each text; NO_ID if the table does not have it. Adds those that are values. Raises CollidingStrings."""
        version, length = strings.version, len(strings)
        kept = self._ids.get(strings)
        if kept is not None and kept[0] in ((version, None), (version, length)):
            return kept[1]
        if len(self._made):
            strings.intern(self._made)
            version, length = strings.version, len(strings)
        ids = strings.known(self._texts)
        present, _ = strings.find(ids)
        ids = np.where(present, ids, NO_ID)
        # Strings that are absent now may be added later.
        self._ids[strings] = (version, None if present.all() else length), ids
        return ids
