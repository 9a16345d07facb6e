"""Identity: which id a string has in a state.

An id is the string's SipHash-1-3 under a 128-bit key that was drawn for the state, so nobody who does not know the key can choose strings
whose ids meet, or whose rows go to one shard.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from deltic.errors import CorruptState

KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """The function string → id of a state. key: 16 bytes. bits: how many of the hash count; fewer than 64 only to provoke collisions."""

    key: bytes
    bits: int = 64

    def __post_init__(self) -> None:
        assert len(self.key) == KEY_BYTES and 1 <= self.bits <= 64

    @staticmethod
    def drawn() -> Identity:
        """A new one, from the system's entropy."""
        return Identity(secrets.token_bytes(KEY_BYTES))

    @property
    def words(self) -> tuple[int, int]:
        """The key's halves as signed words."""
        low, high = np.frombuffer(self.key, "<i8").tolist()
        return low, high

    def note(self) -> dict[str, Any]:
        """As JSON, for a state's notes."""
        return {"key": self.key.hex(), "bits": self.bits}

    @staticmethod
    def of_note(note: Any) -> Identity:
        """From `note`. Raises CorruptState if it is not one."""
        match note:
            case {"key": str(key), "bits": int(bits)} if 1 <= bits <= 64:
                try:
                    if len(found := bytes.fromhex(key)) == KEY_BYTES:
                        return Identity(found, bits)
                except ValueError:
                    pass
        raise CorruptState("the state's note `strings` is damaged: it does not say how strings get their ids", expected="a key of 16 bytes")
