"""Kernels are sealed by the first thread that needs them, while others wait."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import deltic
from deltic.trace import workers

workers.DIVIDED_ROWS = 1
with deltic.Session(shards=3, threads=3) as session:
    session.sql("CREATE TABLE t (id BIGINT, k BIGINT, PRIMARY KEY (id))")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
    session.apply({"t": [{"id": i, "k": i % 7, "_op": "insert"} for i in range(70)]})
    print(sorted((row["k"], row["n"]) for row in session.view("v").rows()))
"""


def test_the_first_tick_of_a_process_may_be_divided() -> None:
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
        assert done.stdout.strip() == str([(k, 10) for k in range(7)]), done.stderr
