"""What the definitions of a command drop from a state, reported on stderr."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from deltic.runtimes.view_errors import is_errors
from deltic.session import Session
from deltic.storage.program import ProgramDescription


@contextmanager
def reported(session: Session, state: str | None) -> Iterator[None]:
    """Prints the views and tables of the state that the definitions in the block drop."""
    before = ProgramDescription.of(session.notes)
    yield
    after = ProgramDescription.of(session.notes)
    kinds = {
        "views": [view for view in _without(before.views, after.views) if not is_errors(view)],
        "tables": list(_without(before.tables, after.tables)),
    }
    if dropped := "; ".join(f"{kind} dropped: {', '.join(names)}" for kind, names in kinds.items() if names):
        print(f"deltic: state {state}: {dropped}", file=sys.stderr)


def _without(before: Collection[str], after: Collection[str]) -> Iterator[str]:
    """The names before that are not among those after, in any case."""
    kept = {name.lower() for name in after}
    return (name for name in before if name.lower() not in kept)
