"""Deltic through a real Spark Connect server: ticks of a plain session, streams, and functions of the user's own queries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.connect import connect_server

pytestmark = [pytest.mark.spark, pytest.mark.slow]
CLIENT = Path(__file__).with_name("connect_client.py")


def test_sessions_streams_and_functions_through_a_connect_server(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with connect_server(tmp_path) as url:
        command = [sys.executable, str(CLIENT), url, str(tmp_path)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-6000:]
    actual = json.loads(run.stdout.splitlines()[-1])
    assert actual["plain"] == [[{"g": "a", "total": 45, "n": 10}]] * 2
    views, batches, pickled, progress = actual["streams"]
    assert views == [[{"g": "a", "total": 5, "n": 1}], [{"g": "a", "total": 25, "n": 2}]]
    assert {name: seen[0] for name, seen in batches.items()} == {"query:streams": 1}
    assert batches["query:streams"][1] is not None, "the query's id is known"
    assert [[tables for tables, _ in run] for run in progress] == [[["t", "u"]], [["t"]]], "the worker's progress is heard here"
    assert pickled < 10_000, "only the definition travels"
    assert actual["functions"] == [[{"g": "a", "total": 55, "n": 3}], ["table:t", "table:u"]]
    feed = [json.loads(line) for file in sorted((tmp_path / "feed").glob("changes-*")) for line in file.read_text().splitlines()]
    assert [(row["total"], row["_weight"]) for row in feed] in ([(5, 1), (5, -1), (25, 1)], [(5, 1), (25, 1), (5, -1)])
