from __future__ import annotations

import subprocess
import sys
import time

import pytest

from benchmarks import processes

BURN = "import time\nwhile time.process_time() < 0.4: pass\nprint(flush=True)\ninput()"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_cpu_of_a_process_counts_while_it_runs_and_when_it_has_ended() -> None:
    before, own = processes.cpu_s(), time.process_time()
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running, own = processes.cpu_s(), time.process_time() - own
        child.communicate("\n", timeout=30)
    ended = processes.cpu_s()
    assert 0.3 < running - before - own < 1.5
    assert ended >= running - 0.05
