"""How far loads, and fills of new views, are: what they report, and to whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from deltic.errors import SetupError


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load of a table, or the fill of new views, is.

    what: "orders" for a load of the table orders, "new views" for a fill. rows: of tables, read so far. total: rows in all; None if that is
    not known. seconds: since it began.
    """

    what: str
    rows: int
    total: int | None
    seconds: float


Listener: TypeAlias = Callable[[LoadProgress], object]
ProgressOption: TypeAlias = bool | Listener
"""False: nothing. True: a bar on a terminal or in a notebook, else nothing. A function is called after each chunk."""


def checked_progress(progress: object) -> None:
    """Raises SetupError for what is no ProgressOption."""
    if not isinstance(progress, bool) and not callable(progress):
        raise SetupError(f"invalid option progress={progress!r}", expected="True, False, or a function that takes a deltic.LoadProgress")


@contextmanager
def reported(option: ProgressOption, what: str, total: int | None) -> Iterator[Callable[[int, int | None], object]]:
    """What to call with the number of rows so far, and of all rows."""
    start = time.perf_counter()

    def reports(listener: Listener) -> Callable[[int, int | None], object]:
        return lambda rows, total: listener(LoadProgress(what, rows, total, time.perf_counter() - start))

    if callable(option):
        yield reports(option)
    elif not option:
        yield lambda rows, total: None
    else:
        from deltic.session.progress_bar import bar  # noqa: PLC0415  rich is slow to import, and few sessions draw

        with bar(what, total) as listener:
            yield reports(listener)
