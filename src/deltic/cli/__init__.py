"""The command `deltic`: explain, run, sql, datalog, edn, state, doctor, demo. Each has a module of its own, imported only when it runs.

Errors of the user's text or data go to stderr without a traceback, with an exit code of their own (cli/exits.py); a traceback is a defect
of Deltic.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from io import TextIOWrapper

from cyclopts import App

from deltic import __version__
from deltic.cli.exits import HELP, Exit
from deltic.cli.output import OutputFailure, has_failed, standard_output
from deltic.cli.signals import ended_by_sigterm
from deltic.errors import DelticError, SetupError

app = App(
    name="deltic",
    help="SQL views kept exact under inserts, updates and deletes: in one Python process, and on Spark.",
    help_epilogue=HELP,
    help_format="plaintext",
    version=f"deltic {__version__}",
)
app.command("deltic.cli.explain:explain", name="explain", help="Show plan and circuit of a script's views.")
app.command("deltic.cli.run:run", name="run", help="Run a pipeline: files in, views kept exact, sinks out; it resumes where it left off.")
app.command(
    "deltic.cli.pipelines:app", name="pipelines", help="Run a Declarative Pipelines project of Apache Spark, with incremental views."
)
app.command("deltic.cli.sql:sql", name="sql", help="Run SQL over a state or an empty session: queries, definitions, changes of rows.")
app.command("deltic.cli.datalog:datalog", name="datalog", help="Run a Datalog program: facts in, commands, changes of its relations out.")
app.command("deltic.cli.edn:edn", name="edn", help="Open a store of facts: queries and transactions in EDN, or a shell.")
app.command("deltic.cli.state:app", name="state", help="Inspect a state folder, verify it, shrink it.")
app.command("deltic.cli.doctor:doctor", name="doctor", help="Report what is installed, what is missing, and what would make ticks faster.")
app.command("deltic.cli.warm_up:warm_up", name="warm-up", help="Compile the kernels now, for example when an image is built.")
app.command("deltic.cli.demo:app", name="demo", help="Run a whole pipeline over real data.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the console script's entry point. Returns the exit code, but a usage error raises SystemExit(2)."""
    command = next(iter(sys.argv[1:] if arguments is None else arguments), None)
    output = None
    try:
        with ended_by_sigterm() if command == "run" else nullcontext(), standard_output() as output:
            code = _main(arguments)
    except OutputFailure:
        code = Exit.INPUT
    if output is not None and output.failure is not None:
        print(f"deltic: standard output cannot be written: {output.failure}", file=sys.stderr)
        return Exit.INPUT
    return code


def _main(arguments: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")  # characters that the terminal's encoding lacks
    try:
        code = app(arguments, result_action="return_value")
    except SetupError as error:
        print(f"deltic: {error}", file=sys.stderr)
        return Exit.SETUP
    except DelticError as error:
        if not has_failed():  # else the error is that a subscriber could not print
            print(f"deltic: {error}", file=sys.stderr)
        return Exit.INPUT
    except KeyboardInterrupt:
        print("deltic: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    return code if isinstance(code, int) else Exit.OK
