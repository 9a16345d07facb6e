"""Results on stdout."""

from __future__ import annotations

import os
import sys


def emit(text: str) -> None:
    """Prints `text`. A reader that closes the pipe, such as `head`, is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes again at exit
