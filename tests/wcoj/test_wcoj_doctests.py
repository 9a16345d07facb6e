"""The examples in the docstrings of the room."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["trie", "extender", "index", "join", "nested", "edn", "query"])
def test_examples_of_wcoj(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"deltic.wcoj.{name}"))
    assert result.attempted > 0 and result.failed == 0
