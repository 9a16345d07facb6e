"""A session on the engine that was asked for, and all that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltic.session import Session


@contextmanager
def open_session(engine: str, shards: int | None) -> Iterator[Session]:
    """Closes the session at the end."""
    with Session(shards=shards) as session:
        yield session
