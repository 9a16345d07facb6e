"""BINARY written as text: HEX, BASE64 and UTF-8, read strictly."""

from __future__ import annotations

import base64
import re
from typing import Final

_HEX: Final = re.compile("[0-9a-fA-F]*")
_BASE64: Final = re.compile("([A-Za-z0-9+/]*)(=*)")
_NO_BLANKS: Final = "\x85\xa0\u2007\u202f"
"""White space in Python, but not in Java."""


def bytes_of(text: str, form: str) -> bytes | None:
    """The bytes; None if the text is not of the form. form: hex, base64 or utf-8."""
    if form == "utf-8":
        return text.encode()
    if form == "hex":
        return bytes.fromhex("0" * (len(text) % 2) + text) if _HEX.fullmatch(text) else None
    match = _BASE64.fullmatch("".join(c for c in text if not c.isspace() or c in _NO_BLANKS))
    if match is None:
        return None
    letters, padding = match[1], len(match[2])
    if (len(letters) + padding) % 4 if padding else len(letters) % 4 == 1:
        return None
    return None if padding > 2 else base64.b64decode(letters + "=" * (-len(letters) % 4))
