"""Which build of the kernels this process uses: the usual one or, with DELTIC_CHECKED=1 in its environment, the checked one."""

from __future__ import annotations

import os
from typing import Final

CHECKED: Final = os.environ.get("DELTIC_CHECKED", "") not in ("", "0")
"""Whether every load, store and array index of a kernel is checked against its bounds (`bounds.py`). Some 5 times slower."""
