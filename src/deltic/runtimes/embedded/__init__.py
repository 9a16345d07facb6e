"""The embedded runtime: all shards in this process, state in memory or in a folder."""

from __future__ import annotations

from deltic.runtimes.embedded.durable import DurableEmbedded
from deltic.runtimes.embedded.logged import LoggedEmbedded
from deltic.runtimes.embedded.runtime import Embedded

__all__ = ["DurableEmbedded", "Embedded", "LoggedEmbedded"]
