"""`deltic run`: a program's tables read from sources, its views kept exact, its sinks written; it resumes where it left off."""

from __future__ import annotations

import importlib.util
import json as encoder
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter, validators

from deltic.cli.datalog import Dialect, opened
from deltic.cli.engine_options import AT_LEAST_ONE, Engine, EngineOptions
from deltic.cli.exits import Exit
from deltic.cli.fact_folder import load, reload, write
from deltic.cli.metrics import ADDRESS, address, measured
from deltic.cli.output import emit
from deltic.cli.progress import Report
from deltic.cli.script import opened_program
from deltic.cli.signals import Signals
from deltic.cli.spark import opened_spark
from deltic.kernels import prepare
from deltic.pipeline import Pipeline, Progress
from deltic.pipeline.dry_run import DryRun
from deltic.pipeline.dry_run import dry_run as dry_run_of
from deltic.session import Program
from deltic.session.collector import set_aside
from deltic.session.options import PIPELINE_RETAINS, OnViewError, RunOptions
from deltic.session.printing import to_stderr

_LENGTH: Final = Group("How long", validator=validators.mutually_exclusive, default_parameter=Parameter(negative=()))


def run(
    script: Annotated[Path, Parameter(validator=validators.Path(exists=True, dir_okay=False))],
    /,
    *,
    engine: Engine | None = None,
    master: str | None = None,
    state: str | None = None,
    once: Annotated[bool, Parameter(group=_LENGTH)] = False,
    follow: Annotated[bool, Parameter(group=_LENGTH)] = False,
    shards: Annotated[int | None, AT_LEAST_ONE] = None,
    threads: Annotated[int | None, AT_LEAST_ONE] = None,
    rows_per_tick: Annotated[int | None, AT_LEAST_ONE] = None,
    retain: Annotated[int, Parameter(validator=validators.Number(gte=0))] = PIPELINE_RETAINS,
    shared_state: Annotated[bool, Parameter(negative=())] = False,
    commit_log: Annotated[bool, Parameter(negative=())] = False,
    on_view_error: OnViewError = "isolate",
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    metrics: Annotated[str | None, ADDRESS] = None,
    dialect: Dialect = "ddlog",
) -> int:
    """Run a pipeline: read the new files of its tables, keep its views exact, and write its sinks. It resumes where it left off.

    The first Ctrl-C or SIGTERM ends it after the current tick; the second ends it at once, and that tick has not happened.

    Parameters
    ----------
    script
        A file of CREATE TABLE … USING …, CREATE MATERIALIZED VIEW and CREATE SINK statements, a Datalog program (.dl) whose relations
        have #[source = …] and #[sink = …], or a Python module (.py) whose variable
        `program` is a deltic.Program. Relative paths are relative to its folder.
    engine
        Where ticks run: on Spark, or in this process. Default: on Spark if PySpark is installed.
    master
        Spark's master. Default: this machine, all processors.
    state
        The state folder, or its URL in an object store. Default: the script's name with .state for
        .sql, .dl or .py, beside the script.
    once
        Read the files that exist, and end. This is the default.
    follow
        Wait for more files, until stopped.
    shards
        The number of parts into which the state is split; if it differs from the state's, the state is resharded. Default: the state's
        number, and for a new state 1, or Spark's parallelism.
    threads
        The most threads that compute a large tick in this process, each a shard or an operator at a time. Default: as many as there are
        processors.
    rows_per_tick
        The most rows of each table in one tick. Default: 100,000.
    retain
        The number of epochs before the last that stay readable.
    shared_state
        Declare that every machine of the Spark cluster has the state folder under this path.
    commit_log
        Make ticks durable in a log, which is faster for small ticks. Readers of the state see them about a second later.
    on_view_error
        isolate: a row on which a view's expression fails is an error of that view; its sinks wait until the row is gone, and other views go
        on. rollback: the tick is rolled back, and the run ends.
    dry_run
        Change nothing: check the script, read the pending files, and report what would be done.
    json
        Print one JSON object for the start, for each tick and for the end.
    metrics
        A port of 127.0.0.1, or HOST:PORT, at which /metrics has the counts of the run in Prometheus's format.
    dialect
        The syntax of a Datalog program: DDlog's or Soufflé's. A program of Soufflé's reads the files that .input names, R.facts by
        default, writes those that .output names, R.csv by default, and ends. With --state, the next run applies what has changed in them.
    """
    if dialect == "souffle":
        given = {"--master": master, "--follow": follow, "--rows-per-tick": rows_per_tick, "--shared-state": shared_state}
        given |= {"--metrics": metrics, "--dry-run": dry_run, "--json": json, "--retain": retain != PIPELINE_RETAINS}
        if refused := [name for name, value in given.items() if value]:
            print(f"deltic: {refused[0]} does not apply to --dialect souffle", file=sys.stderr)
            return Exit.USAGE
        return run_souffle(script, state, EngineOptions(engine or _default_engine(False), shards, threads))
    engine = engine or _default_engine(master is not None or shared_state)
    if engine == "embedded" and (master is not None or shared_state):
        print("deltic: --master and --shared-state require --engine spark", file=sys.stderr)
        return Exit.USAGE
    if engine == "spark" and threads is not None:
        print("deltic: --threads requires --engine embedded; --master local[N] says how many threads Spark has", file=sys.stderr)
        return Exit.USAGE
    folder = script.absolute().parent
    where = state if state is not None else str(folder / f"{script.stem}.state")
    options = RunOptions(
        state=where,
        shards=shards,
        threads=threads,
        retain=retain,
        shared_state=shared_state,
        commit_log=commit_log,
        clock="wall",
        rows_per_tick=rows_per_tick,
        on_view_error=on_view_error,
    )
    with opened_program(script) as module:
        if dry_run:
            outcome = dry_run_of(module.program, state=where, base=folder, on_view_error=on_view_error)
            emit(encoder.dumps(outcome.json()) if json else _pictured(outcome))
            return Exit.OK
        with Signals() as signals:
            spark = nullcontext() if engine == "embedded" else opened_spark(master, f"deltic run {script.name}", module.helpers)
            listens = None if metrics is None else address(metrics)
            _run(module.program, options, folder, spark, signals, Report(json=json), listens, follow=follow)
    return Exit.INTERRUPTED if signal.SIGINT in signals.caught else Exit.OK


def run_souffle(script: Path, state: str | None, options: EngineOptions) -> int:
    """Reads the files of a program in Soufflé's dialect, and writes those of its outputs, in the program's folder."""
    folder = script.absolute().parent
    with opened(script, "souffle", state, options, to_stderr) as (session, binder, is_new):
        (load if is_new else reload)(session, binder, folder, "souffle")
        write(session, binder, folder, "souffle", emit)
    return Exit.OK


def _run(
    program: Program,
    options: RunOptions,
    folder: Path,
    spark: AbstractContextManager[Any],
    signals: Signals,
    report: Report,
    listens: tuple[str, int] | None,
    *,
    follow: bool,
) -> None:
    prepare(report.say)
    with ExitStack() as stack:
        engine = stack.enter_context(spark)
        signals.listen()  # PySpark has installed a handler of its own
        pipeline = stack.enter_context(Pipeline.of(program, options.on(engine), base=folder))
        signals.stop_by(pipeline.stop)
        report.started(str(options.folder), pipeline.start)
        stack.enter_context(set_aside())
        with report.ticks() as reported:
            on_progress: Callable[[Progress], None] = reported
            if listens is not None:
                on_progress = stack.enter_context(measured(listens, pipeline.session.epoch, report.say, reported))
            summary = pipeline.follow(on_progress=on_progress) if follow else pipeline.run_once(on_progress)
        report.ended(summary)


def _default_engine(needs_spark: bool) -> Engine:
    """Spark, if it is installed or an option requires it."""
    if needs_spark or importlib.util.find_spec("pyspark") is not None:
        return "spark"
    print('deltic: running in this process; to run on Spark: pip install "deltic[spark]"', file=sys.stderr)
    return "embedded"


def _pictured(outcome: DryRun) -> str:
    lines = [f"state {outcome.state}: {outcome.start}"]
    for source in outcome.sources:
        letters = f", {source.letters:,} of them to the dead letters" if source.letters else ""
        files = f"{len(source.files):,} files to read with {source.rows:,} rows{letters}" if source.files else "nothing to read"
        lines.append(f"table {source.table}: {files}, from {source.location}")
    for sink in outcome.sinks:
        position = "new" if sink.epoch is None else f"has epoch {sink.epoch}"
        lines.append(f"sink {sink.sink}: {sink.mode} of {sink.view}, {position}, to {sink.location}")
    return "\n".join(lines)
