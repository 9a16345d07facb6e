"""The examples in the docstrings of the room, and of what draws circuits."""

from __future__ import annotations

import doctest
import importlib

import pytest

ROOM = ("weights", "zset", "operators", "linear", "nodes", "circuit")


@pytest.mark.parametrize("name", [*(f"deltic.dbsp.{module}" for module in ROOM), "deltic.drawing"])
def test_examples_of_the_room(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
