"""The examples in the docstrings of the trace room."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ("probe", "time"))
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"deltic.trace.{name}"))
    assert result.attempted > 0 and result.failed == 0
