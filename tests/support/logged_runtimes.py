"""Test support: the runtime of a session whose ticks are logged."""

from __future__ import annotations

import deltic
from deltic.runtimes.embedded import LoggedEmbedded


def logged_runtime(session: deltic.Session) -> LoggedEmbedded:
    assert isinstance(session._runtime, LoggedEmbedded)
    return session._runtime
