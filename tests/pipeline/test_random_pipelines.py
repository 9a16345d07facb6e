"""Random runs of pipelines against a model: every sink has its view's content, whatever fails, restarts or is redefined in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from parts import slow
from pipeline_programs import RandomRun
from seeds import rotating


@pytest.mark.parametrize("seed", [*range(3), *slow(*rotating(100))])
@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("over", [False, True])
def test_sinks_receive_what_their_views_are(tmp_path: Path, seed: int, in_memory: bool, over: bool) -> None:
    run = RandomRun(seed, tmp_path, in_memory=in_memory, over=over)
    try:
        run.run(30)
    except Exception as error:  # any: what happened before it reproduces it
        error.add_note("\n".join(run.log))
        raise
