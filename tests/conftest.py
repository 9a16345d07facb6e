"""Puts this folder on sys.path, so that tests of every room can import the test support that stands in it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
