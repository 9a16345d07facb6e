"""`deltic explain`: what a script's views are turned into."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from deltic.cli.exits import Exit
from deltic.cli.output import emit
from deltic.cli.script import read_script
from deltic.session import Session


def explain(
    script: Annotated[Path, Parameter(validator=validators.Path(exists=True, dir_okay=False))],
    view: str | None = None,
    /,
    *,
    json: bool = False,
) -> int:
    """Show plan and circuit of a script's views: operators by name, class, key, state, exchanges and sharing.

    Nothing is run but the definitions, in this process and on empty tables.

    Parameters
    ----------
    script
        A file of CREATE TABLE and CREATE MATERIALIZED VIEW statements.
    view
        One view of it. Default: all of them together.
    json
        Print one JSON object instead of text.
    """
    text = read_script(script)
    with Session() as session:
        session.sql(text, name=str(script))
        explanation = session.explain(view)
    emit(encoder.dumps(explanation.json(), indent=2) if json else str(explanation))
    return Exit.OK
