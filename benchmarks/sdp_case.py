"""One refresh of a project by Deltic, in a process of its own: `python -m benchmarks.sdp_case SPEC REMOTE`. Prints its figures as JSON."""

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
    """Runs the project as `deltic pipelines run` does."""
    prepare()
    start, said = time.perf_counter(), list[str]()
    project = load(spec, Frames(Catalog))
    server = Server(project.names, project.configuration, remote)
    try:
        plan = plan_project(project, server)
        with_feeds(server, plan.sources)
        planned, at_plan = time.perf_counter(), server.rows_read
        with ProjectRun(plan, server, state_of(project.storage, None), said.append) as run:
            run.refresh(Selection())
        return {
            "plan_s": planned - start,
            "refresh_s": time.perf_counter() - planned,
            "rows_read": server.rows_read - at_plan,
            "said": said,
        }
    finally:
        server.close()


if __name__ == "__main__":
    print(json.dumps(refreshed(Path(sys.argv[1]), sys.argv[2])))
