"""String tables with keys that tests choose."""

from __future__ import annotations

from deltic.trace.identity import KEY_BYTES, Identity
from deltic.trace.strings import StringSource, StringTable


def identity(seed: int, bits: int = 64) -> Identity:
    """A key made of a number."""
    return Identity((seed % 2**128).to_bytes(KEY_BYTES, "little"), bits)


def string_table(seed: int = 1, parent: StringSource | None = None, bits: int = 64) -> StringTable:
    return StringTable(identity(seed, bits), parent)
