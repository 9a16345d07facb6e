"""The bar of a load or fill: on standard error if that is a terminal, and in a notebook. Elsewhere nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from deltic.session.load_progress import LoadProgress


@contextmanager
def bar(what: str, total: int | None, console: Console | None = None) -> Iterator[Callable[[LoadProgress], object]]:
    """A bar that is removed at the end. console: by default that of standard error, or of the notebook."""
    console = console or Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield lambda progress: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]}", markup=False),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=total, rows="")

        def draw(progress: LoadProgress) -> None:
            rate = progress.rows / max(progress.seconds, 1e-9)
            of_all = "" if progress.total is None else f" of {progress.total:,}"
            rows = f"{progress.rows:,}{of_all} rows, {rate:,.0f}/s"
            shown.update(task, completed=progress.rows, total=progress.total, rows=rows, refresh=console.is_jupyter)

        yield draw
