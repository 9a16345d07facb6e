"""`deltic pipelines`: a Declarative Pipelines project of Apache Spark, unchanged, with views that are kept incrementally."""

from __future__ import annotations

import importlib
import importlib.util
import json as encoder
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from deltic.cli.exits import Exit
from deltic.cli.metrics import ADDRESS, address, measured
from deltic.cli.output import emit
from deltic.errors import QueryError, SetupError
from deltic.kernels import prepare
from deltic.session.printing import to_stderr

app = App(name="pipelines", help="Run a Declarative Pipelines project of Apache Spark, with incremental views.")
_FLAG = Parameter(negative=())


@app.command
def run(
    *,
    spec: Path | None = None,
    refresh: Annotated[list[str] | None, _FLAG] = None,
    full_refresh: Annotated[list[str] | None, _FLAG] = None,
    full_refresh_all: Annotated[bool, _FLAG] = False,
    state: str | None = None,
    remote: str | None = None,
    strict: Annotated[bool, _FLAG] = False,
    json: Annotated[bool, _FLAG] = False,
    metrics: Annotated[str | None, ADDRESS] = None,
) -> int:
    """Refresh the datasets of a project, as `spark-pipelines run` does.

    Parameters
    ----------
    spec
        The project's file. Default: spark-pipeline.yml of this folder or the nearest one above it.
    refresh
        The datasets to refresh, separated by commas; may be given several times. Default: all.
    full_refresh
        Datasets to compute from nothing, separated by commas; may be given several times.
    full_refresh_all
        Compute all datasets from nothing.
    state
        Deltic's state: a folder or URL. Default: _deltic in the project's storage.
    remote
        The URL of a Spark Connect server, such as sc://host:15002. Default: one in this process.
    strict
        Fail, before anything runs, if Spark would have to recompute a view.
    json
        Print one JSON object for the start, for each tick and for the end; what is said about each dataset goes to stderr.
    metrics
        A port of 127.0.0.1, or HOST:PORT, at which /metrics has the counts of the run in Prometheus's format.
    """
    if full_refresh_all and (refresh or full_refresh):
        print("deltic: --full-refresh-all does not go with --refresh or --full-refresh", file=sys.stderr)
        return Exit.USAGE
    listens = None if metrics is None else address(metrics)
    say = to_stderr if json else emit
    show: Callable[[Any], None] = _show if json else _ignore
    prepare(to_stderr)
    with _Planned(spec, remote) as planned:
        planned.tell(strict, say)
        running = planned.room.running
        selection = running.Selection(
            running.chosen(planned.plan, _listed(refresh)), running.chosen(planned.plan, _listed(full_refresh)), full_refresh_all
        )
        location = running.state_of(planned.plan.project.storage, state)
        with ExitStack() as stack:
            started = stack.enter_context(running.ProjectRun(planned.plan, planned.server, location, say))
            epoch, ticked = started.session.epoch, show
            if listens is not None:
                ticked = stack.enter_context(measured(listens, epoch, to_stderr, ticked))
            show(planned.room.report.ProjectStart(epoch or None, planned.plan, planned.feeds))
            show(started.refresh(selection, ticked))
    return Exit.OK


@app.command(name="dry-run")
def dry_run(
    *, spec: Path | None = None, remote: str | None = None, strict: Annotated[bool, _FLAG] = False, json: Annotated[bool, _FLAG] = False
) -> int:
    """Check a project, and say how each dataset would be refreshed; nothing is read or written.

    Parameters
    ----------
    spec
        The project's file. Default: spark-pipeline.yml of this folder or the nearest one above it.
    remote
        The URL of a Spark Connect server. Default: one in this process, which is started only if the columns of a source must be looked up.
    strict
        Fail if Spark would have to recompute a view.
    json
        Print one JSON object.
    """
    with _Planned(spec, remote, offline=True) as planned:
        if json:
            emit(encoder.dumps(planned.room.report.as_json(planned.plan, planned.feeds)))
        planned.tell(strict, _ignore if json else emit)
    return Exit.OK


@app.command
def explain(dataset: str | None = None, /, *, spec: Path | None = None, remote: str | None = None) -> int:
    """Show how each dataset is refreshed, and the plans of the incremental ones.

    Parameters
    ----------
    dataset
        The plan of this one alone.
    spec
        The project's file. Default: spark-pipeline.yml of this folder or the nearest one above it.
    remote
        The URL of a Spark Connect server. Default: one in this process, which is started only if the columns of a source must be looked up.
    """
    with _Planned(spec, remote, offline=True) as planned:
        chosen = planned.room.running.chosen(planned.plan, _listed([dataset] if dataset else None))
        planned.tell(False, emit)
        emit(planned.room.report.explained(planned.plan, chosen, planned.feeds))
    return Exit.OK


def _show(event: Any) -> None:
    emit(encoder.dumps(event.json()))


def _ignore(_: object) -> None:
    pass


def _listed(given: list[str] | None) -> list[str]:
    return [name.strip() for names in given or () for name in names.split(",") if name.strip()]


class _Planned:
    """A project that is loaded and planned, and its Spark."""

    def __init__(self, spec: Path | None, remote: str | None, *, offline: bool = False) -> None:
        self._offline = offline
        self.room = _room()
        loading = self.room.loading
        frames = importlib.import_module("deltic.frontends.dataframes").Frames(lambda: None)
        with ExitStack() as opened:

            def opening(project: Any) -> Any:
                self.server = self.room.server.Server(project.names, project.configuration, remote)
                opened.callback(self.server.close)
                return self.server

            self._project = loading.load(loading.spec_path(spec), frames, opening)
            opened.pop_all()

    def __enter__(self) -> _Planned:
        try:
            with self.room.server.spark_errors():
                self.plan = self.room.planning.plan_project(self._project, self.server, offline=self._offline)
                self.feeds = self.room.feeds.with_feeds(self.server, self.plan.sources)
        except BaseException:
            self.server.close()
            raise
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            with self.room.server.spark_errors():
                if error is not None:
                    raise error
        finally:
            self.server.close()

    def tell(self, strict: bool, say: Callable[[str], None]) -> None:
        """Says how each dataset is refreshed. Raises QueryError if Spark recomputes one and `strict` forbids it."""
        report = self.room.report
        say(report.as_text(self.plan, self.feeds))
        recomputed = [one for one in self.plan.datasets.values() if one.refresh == "recomputed"]
        if strict and recomputed:
            raise QueryError(
                f"{recomputed[0].dataset.place}: --strict: {recomputed[0].dataset.key} would be recomputed by Spark: "
                f"{report.reason(recomputed[0])}"
            )


def _room() -> Any:
    """The room of projects, which requires an extra."""
    missing = [name for name in ("pyspark", "yaml", "grpc") if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(f"{missing[0]} is not installed", remedy='pip install "deltic[pipelines]"')
    for name in ("feeds", "loading", "planning", "running", "report", "server"):
        importlib.import_module(f"deltic.projects.{name}")
    return importlib.import_module("deltic.projects")
