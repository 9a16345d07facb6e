"""Test support: keys that are typed into a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput


def typed(converse: Callable[..., Any], runner: Any, keys: str) -> list[str]:
    """The history of a shell after these keys."""
    history = InMemoryHistory()
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        converse(runner, history=history, input=pipe, output=DummyOutput())
    return history.get_strings()
