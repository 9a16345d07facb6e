"""A process that is killed while several threads commit: what a call has returned for is there, and nothing is half there.

The steps of the log itself are interrupted one by one in tests/storage/test_crashes.py, alone and in groups.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from threading import Lock, Thread

import pytest

import deltic
from parts import slow

SCRIPT = """
CREATE TABLE entries (id BIGINT NOT NULL, account BIGINT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW balances AS SELECT account, sum(amount) AS balance, count(*) AS n FROM entries GROUP BY account;
CREATE MATERIALIZED VIEW listed AS SELECT id FROM entries;
"""
THREADS = 8


def _work(folder: str) -> None:
    """Commits transfers of two rows each, from several threads, and says so after each; until it is killed."""
    session = deltic.Session(state=folder, commit_log=True)
    session.sql(SCRIPT)
    said = Lock()
    first = max((row["id"] for row in session.view("listed").rows()), default=-1) // 2 + 1

    def work(thread: int) -> None:
        number = first + (thread - first) % THREADS
        while True:
            halves = [{"_op": "insert", "id": 2 * number + i, "account": (number + i) % 5, "amount": 7 - 14 * i} for i in (0, 1)]
            session.apply({"entries": halves})
            with said:
                os.write(1, f"{number}\n".encode())
            number += THREADS

    for thread in range(THREADS):
        Thread(target=work, args=(thread,)).start()


@pytest.mark.parametrize("kills", [1, *slow(25)])
def test_a_kill_loses_no_commit_of_any_thread(tmp_path: Path, kills: int) -> None:
    rng, returned = random.Random(kills), set[int]()
    folder = tmp_path / "state"
    for _ in range(kills):
        path = os.pathsep.join([str(Path(__file__).parent.parent / "support"), *sys.path])
        with subprocess.Popen(
            [sys.executable, __file__, str(folder)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        ) as process:
            assert process.stdout is not None
            left = rng.randrange(1, 200)
            for line in process.stdout:
                returned.add(int(line))
                left -= 1
                if left == 0:
                    process.send_signal(signal.SIGKILL)
        with deltic.Session(state=folder) as session:
            session.sql(SCRIPT)
            ids = {row["id"] for row in session.view("listed").rows()}
            found = {id // 2 for id in ids}
            assert ids == {2 * number + i for number in found for i in (0, 1)}, "a half of a tick"
            assert returned <= found and len(found - returned) <= THREADS
            assert sum(row["balance"] for row in session.view("balances").rows()) == 0
            assert sum(row["n"] for row in session.view("balances").rows()) == len(ids)
        returned = found
    assert returned


if __name__ == "__main__":
    _work(sys.argv[1])
