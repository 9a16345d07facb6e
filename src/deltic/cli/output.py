"""Results on stdout: what happens if they cannot be written."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputFailure(Exception):
    """Standard output cannot be written."""


class StandardOutput(io.FileIO):
    """The file of stdout. A reader that closes the pipe, such as `head`, is no error; any other failure is an OutputFailure, raised once.

    After either, what is written is discarded. unread: whether a reader has closed the pipe. failure: the reason of another failure.
    """

    unread = False
    failure: str | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        if not self.unread and self.failure is None:
            try:
                return super().write(data)
            except BrokenPipeError:
                self.unread = True
            except OSError as error:
                self.failure = os.strerror(error.errno or errno.EIO)
                raise OutputFailure(self.failure) from error
        return memoryview(data).nbytes


@contextmanager
def standard_output() -> Iterator[StandardOutput | None]:
    """Makes sys.stdout a stream over a StandardOutput in the block, which it flushes. None if it is not the interpreter's own."""
    before = sys.stdout
    if not isinstance(before, io.TextIOWrapper) or before is not sys.__stdout__:
        yield None
        return
    with suppress(OSError):  # nothing has been written
        before.flush()
    output = StandardOutput(before.fileno(), "w", closefd=False)
    by_lines = before.line_buffering or before.write_through
    sys.stdout = stream = io.TextIOWrapper(io.BufferedWriter(output), before.encoding, before.errors, line_buffering=by_lines)
    try:
        yield output
    finally:
        with suppress(OutputFailure):  # which the StandardOutput keeps
            stream.flush()
        sys.stdout = before


def is_unread() -> bool:
    """Whether the reader of stdout has closed the pipe, so that nothing more is printed."""
    output = _output()
    return output is not None and output.unread


def has_failed() -> bool:
    """Whether stdout cannot be written, which `main` reports."""
    output = _output()
    return output is not None and output.failure is not None


def _output() -> StandardOutput | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, StandardOutput) else None


def emit(text: str) -> None:
    """Prints `text`. Raises OutputFailure."""
    print(text, flush=True)
