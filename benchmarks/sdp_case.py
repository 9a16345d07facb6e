"""One refresh of a project by Deltic, in a process of its own: `python -m benchmarks.sdp_case SPEC REMOTE`. Prints its figures as JSON.

First what Spark runs is refreshed, streaming tables and sinks, with the tick that takes their rows, then what Deltic keeps, which takes
`refresh_s`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from deltic.frontends.dataframes import Frames
from deltic.kernels import prepare
from deltic.projects.feeds import with_feeds
from deltic.projects.loading import load
from deltic.projects.planning import plan_project
from deltic.projects.running import ProjectRun, Selection, state_of
from deltic.projects.server import Server
from deltic.session.catalog import Catalog


def refreshed(spec: Path, remote: str) -> dict[str, object]:
    """Runs the project as two of `deltic pipelines run --refresh` do."""
    prepare()
    start, said = time.perf_counter(), list[str]()
    project = load(spec, Frames(Catalog))
    server = Server(project.names, project.configuration, remote)
    try:
        plan = plan_project(project, server)
        with_feeds(server, plan.sources)
        kept = frozenset(one.dataset.key for one in plan.incremental)
        times, before = [time.perf_counter()], server.rows_read
        for chosen in (frozenset(plan.datasets) - kept, kept):
            with ProjectRun(plan, server, state_of(project.storage, None), said.append) as run:
                run.refresh(Selection(chosen))
            times.append(time.perf_counter())
        return {
            "plan_s": times[0] - start,
            "streams_s": times[1] - times[0],
            "refresh_s": times[2] - times[1],
            "rows_read": server.rows_read - before,
            "said": said,
        }
    finally:
        server.close()


if __name__ == "__main__":
    print(json.dumps(refreshed(Path(sys.argv[1]), sys.argv[2])))
