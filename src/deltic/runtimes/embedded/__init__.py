"""The embedded runtime: all shards in this process, state in memory."""

from __future__ import annotations

from deltic.runtimes.embedded.runtime import Embedded

__all__ = ["Embedded"]
