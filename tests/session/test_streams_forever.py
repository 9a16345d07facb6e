"""Many transactions over streams leave state, files and memory where they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import transactions


@pytest.mark.slow
@pytest.mark.parametrize(("early", "late", "durable"), [(600, 2_400, True), (10_000, 100_000, False)], ids=["durable", "in_memory"])
def test_transactions_leave_nothing_behind(early: int, late: int, durable: bool, tmp_path: Path) -> None:
    """`python -m benchmarks.streams --cases transactions transactions_in_memory` has the figures of a million."""
    figures = transactions.run((early, late), tmp_path if durable else None)
    before, after = figures["after"].values()
    assert figures["correct"]
    assert all(after[name] <= 1.5 * before[name] for name in ("state_rows", "files", "bytes")), figures
    assert after["peak_mb"] <= before["peak_mb"] + 50, figures
