"""What every runtime with a state folder has in common; only how rows move between its levels differs."""

from __future__ import annotations

from deltic.runtimes.durable.core import Durable

__all__ = ["Durable"]
