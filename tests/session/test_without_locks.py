"""On a system without POSIX file locks, such as Windows, sessions in memory work, and a state folder is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys

for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
import deltic

with deltic.Session() as session:
    session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    with session.transaction() as tx:
        tx.insert("t", [{"a": 41}, {"a": 1}])
    print(session.view("v").rows())
try:
    deltic.Session(state=sys.argv[1])
except deltic.errors.SetupError as error:
    print(error)
"""


def test_a_session_in_memory_works_where_there_are_no_file_locks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "state")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert not done.returncode, done.stderr
    first, second, *_ = done.stdout.splitlines()
    assert first == "[{'s': 42}]"
    assert second == f"[DELTIC-7000] the state folder {tmp_path / 'state'} cannot be locked: this system has no POSIX file locks"
