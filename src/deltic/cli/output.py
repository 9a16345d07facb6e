"""Results on stdout."""

from __future__ import annotations

import os
import sys


def emit(text: str) -> None:
    """Prints `text`. That a reader such as `head` has had enough is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
