"""Test support: file systems of a few kilobytes, where the machine permits them."""

from __future__ import annotations

import subprocess

import pytest


def mount(*arguments: str) -> None:
    """Runs `mount`; skips the test if nothing can be mounted."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
