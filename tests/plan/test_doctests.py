"""The examples in the docstrings of the plan's modules."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["relation", "evaluate", "fingerprint", "columns", "show", "traits", "recursion"])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"deltic.plan.{name}"))
    assert result.attempted > 0 and result.failed == 0
