"""A new aggregate is one file: a temporary module that registers it for SQL, with DISTINCT, FILTER, deletions and shards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from deltic.aggregates import is_aggregate

SAMPLE = '''
"""RMS: the root of the mean square."""

from fractions import Fraction

from deltic.aggregates import AggregateFunction, register
from deltic.aggregates.definition import UNIT, Digits, Linear
from deltic.aggregates.exact import decimal_root, nearest_root
from deltic.aggregates.rules import doubles


def _finish(totals, signature):
    return nearest_root(totals.product(0), totals.count << 2 * UNIT)


def _reference(rows, signature):
    return decimal_root(sum(Fraction(x) ** 2 * weight for (x,), weight in rows) / sum(weight for _, weight in rows))


register(AggregateFunction("rms", doubles, Linear(lambda arguments: (Digits("product", arguments * 2),), _finish), _reference))
'''

PROGRAM = """
import rms
import deltic
from deltic.frontends.sql import bind_query

for shards in (1, 3):
    session = deltic.Session(shards=shards)
    session.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, x DECIMAL(5, 1))")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, RMS(x) AS r, rms(DISTINCT x) FILTER (WHERE id < 4) + 1 AS d FROM t GROUP BY k")
    session.sql("CREATE MATERIALIZED VIEW w AS SELECT rms(x) AS r FROM t")
    with session.transaction() as tx:
        tx.insert("t", [dict(id=i, k=i // 5, x=x) for i, x in enumerate((3, 4, 4, 4, 1000, 7, None))])
    with session.transaction() as tx:
        tx.delete("t", [0, 4])
    print(sorted(tuple(row.values()) for row in session.view("v").rows()), session.view("w").rows())
"""


def test_an_aggregate_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "rms.py").write_text(SAMPLE, encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 1
    paths = [str(tmp_path), str(Path(__file__).resolve().parents[2] / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[(0, 4.0, 5.0), (1, 7.0, None)] [{'r': 4.924428900898052}]"] * 2
    assert not is_aggregate("rms")
