"""`deltic explain`: plan and circuit of the views of a script or module."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import Annotated, Literal, assert_never

from cyclopts import Parameter, validators

from deltic.cli.exits import Exit
from deltic.cli.output import emit
from deltic.cli.script import opened_program
from deltic.explain import Explanation
from deltic.session import Session

Format = Literal["text", "mermaid", "dot", "json"]


def explain(
    script: Annotated[Path, Parameter(validator=validators.Path(exists=True, dir_okay=False))],
    view: str | None = None,
    /,
    *,
    format: Format = "text",
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Show plan and circuit of the views of a script or module: operators by name, class, key, state, exchanges and sharing.

    Only the definitions are run, in this process and on empty tables.

    Parameters
    ----------
    script
        A file of CREATE TABLE and CREATE MATERIALIZED VIEW statements, a Datalog program (.dl), or a Python module (.py) whose
        variable `program` is a deltic.Program.
    view
        One of its views. Default: all of them together.
    format
        What to print: text, a Mermaid flowchart, a Graphviz digraph (dot), or one JSON object.
    json
        The same as --format json.
    """
    with opened_program(script) as module, Session(clock="wall") as session:
        session.program(module.program)
        explanation = session.explain(view)
    emit(_pictured(explanation, "json" if json else format))
    return Exit.OK


def _pictured(explanation: Explanation, format: Format) -> str:
    match format:
        case "text":
            return str(explanation)
        case "mermaid":
            return explanation.mermaid()
        case "dot":
            return explanation.graphviz()
        case "json":
            return encoder.dumps(explanation.json(), indent=2)
        case _:
            assert_never(format)
