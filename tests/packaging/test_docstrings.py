"""The examples in all docstrings of the package run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import deltic

ROOT = Path(deltic.__file__).parent
MODULES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_examples(path: Path) -> None:
    result = doctest.testmod(importlib.import_module(name_of(path)))
    assert result.attempted > 0 and result.failed == 0
