"""Puts this folder on sys.path, so that tests of every room can import the test support that stands in it; golden files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from goldens import Goldens


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden files anew from what the code gives now")


@pytest.fixture
def goldens(request: pytest.FixtureRequest) -> Goldens:
    """The golden file beside the test file, of its name without `test_`."""
    return Goldens(request.path.with_name(f"{request.path.stem.removeprefix('test_')}.txt"), request.config.getoption("--update-goldens"))
