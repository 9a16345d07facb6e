"""The examples in the docstrings of the expression room."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("typing", "failing", "aggregates", "functions.operators", "rows.text", "rows.rendering")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"deltic.expr.{name}"))
    assert result.attempted > 0 and result.failed == 0
