"""The seeds of random tests. The fast suite has few, fixed seeds; the slow suite has different ones every day.

DELTIC_ROTATION fixes them: pytest prints the number of a run in its header, and the same number repeats the run's seeds. DELTIC_TIMES=10
runs ten times as many.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from typing import Final

ROTATION: Final = int(os.environ.get("DELTIC_ROTATION") or datetime.now(UTC).date().toordinal())
TIMES: Final = int(os.environ.get("DELTIC_TIMES") or 1)
KEY: Final = hashlib.sha256(os.environ.get("DELTIC_ROTATION", "").encode()).digest()[:16]
"""The key of string ids."""
STRIDE: Final = 1_000_000
"""A multiple of all that tests take seeds modulo, so that the mix of cases stays as it is."""


def rotating(count: int) -> range:
    """The first `count` seeds of this run, or a multiple of so many."""
    first = ROTATION * STRIDE
    return range(first, first + count * TIMES)
