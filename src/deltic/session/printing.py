"""Prints the changes of views that are defined to be printed: those of Inspect in Datalog."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from deltic.frontends.statements import ShownChanges
from deltic.session.catalog import Catalog
from deltic.session.contents import Contents

PrintLine: TypeAlias = Callable[[str], object]


def to_stderr(line: str) -> None:
    """Prints a line on standard error."""
    print(line, file=sys.stderr)


class PrintedViews:
    """The subscriptions of a session to its printed views. A commit's lines are printed after it, view by view as they were defined."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._subscriptions: dict[str, tuple[ShownChanges, Callable[[], None]]] = {}

    def follow(self, catalog: Catalog, output: PrintLine = to_stderr) -> None:
        """Subscribes to views that are new in a catalog, which has been installed; their lines go to `output`."""
        for view in catalog.views.values():
            subscription = self._subscriptions.get(view.name)
            if view.printed is None or (subscription is not None and subscription[0] is view.printed):
                continue
            if subscription is not None:
                subscription[1]()
            end = self._contents.subscribe_with_epoch(view.name, _printer(view.printed, output))
            self._subscriptions[view.name] = view.printed, end


def _printer(printed: ShownChanges, output: PrintLine) -> Callable[[pa.Table, int], None]:
    def printer(changes: pa.Table, epoch: int) -> None:
        for line in printed(changes.to_pylist(), epoch):
            output(line)

    return printer
