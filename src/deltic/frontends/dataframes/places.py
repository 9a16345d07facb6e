"""Where in the user's program a DataFrame or a Column was made."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pyspark
from pyspark.sql.connect.plan import LogicalPlan

from deltic.errors import Span

_OURS = str(Path(__file__).parents[2])
_PYSPARK = str(Path(pyspark.__file__).parent)
_FRESH = "_fresh_plan_id"
_OUTSIDE = str(Path(__file__).with_name("making.py")), "define"
"""The function that calls a user's function: code that calls it is not at the place of what that makes."""


@dataclass(frozen=True, slots=True)
class Site:
    """A call of PySpark in a user's file. called: the name of the method or function."""

    file: str
    line: int
    called: str

    @property
    def span(self) -> Span:
        """The place, in the text of the file; where there is none, such as in a shell, in a text that names the call."""
        lines = linecache.getlines(self.file)
        if not 0 < self.line <= len(lines):
            return Span(self.called, 0, len(self.called), f"{self._shown}, line {self.line}")
        start = sum(map(len, lines[: self.line - 1]))
        line = lines[self.line - 1].rstrip()
        column = line.find(f"{self.called}(")
        first = column if column >= 0 else len(line) - len(line.lstrip())
        last = column + len(self.called) if column >= 0 else len(line)
        return Span("".join(lines), start + first, start + max(last, first + 1), self._shown)

    @property
    def _shown(self) -> str:
        """The file below the working folder; one that is elsewhere with its folder, since several may have its name."""
        path = Path(self.file)
        if not path.is_absolute():
            return self.file
        return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(*path.parts[-2:]))


@dataclass(slots=True)
class Sites:
    """The places of DataFrames, by the ids of their plans."""

    by_plan: dict[int, Site] = field(default_factory=dict)

    def span(self, plan_id: int) -> Span | None:
        site = self.by_plan.get(plan_id)
        return None if site is None else site.span

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Records them. A relation's message has no place, so the allocation of its id is observed; a PySpark that allocates ids in another
        way only leaves errors without places."""
        allocate: Any = getattr(LogicalPlan, _FRESH, None)
        if allocate is None:
            yield
            return

        def recording() -> int:
            number: int = allocate()
            if (site := caller(sys._getframe(1))) is not None:
                self.by_plan[number] = site
            return number

        setattr(LogicalPlan, _FRESH, staticmethod(recording))
        try:
            yield
        finally:
            setattr(LogicalPlan, _FRESH, staticmethod(allocate))


def caller(frame: FrameType | None) -> Site | None:
    """The innermost call by a user's code, if the function that makes a DataFrame is the user's."""
    called = ""
    while frame is not None and not is_users(frame):
        if (frame.f_code.co_filename, frame.f_code.co_name) == _OUTSIDE:
            return None
        called = frame.f_code.co_name
        frame = frame.f_back
    return None if frame is None else Site(frame.f_code.co_filename, frame.f_lineno, called)


def is_users(frame: FrameType) -> bool:
    """Whether the code of a frame is neither PySpark's nor Deltic's, nor Python's own that calls it."""
    return not frame.f_code.co_filename.startswith((_PYSPARK, _OURS, "<frozen "))


def of_origin(call_site: str, fragment: str) -> Span | None:
    """The place that a Column has in its message: `file:line` of the call, and the name of the method. None of a call by Deltic."""
    file, _, line = call_site.partition("\n")[0].rpartition(":")
    return Site(file, int(line), fragment).span if line.isdecimal() and not file.startswith(_OURS) else None


def name_of_text(kind: str, call: Span) -> str:
    """The name of a text, for errors in it: that of the call that has it, and its kind."""
    return f"{call.name}:{call.line}, {kind}"
