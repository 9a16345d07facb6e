"""`deltic demo`: whole pipelines over real data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App, Parameter, validators

from deltic.cli.engine_options import AT_LEAST_ONE, Engine
from deltic.cli.exits import Exit
from deltic.cli.output import emit
from deltic.examples.flights.data import read
from deltic.examples.flights.feed import build
from deltic.examples.flights.files import write as write_files
from deltic.examples.flights.run import DemoOptions, run

app = App(name="demo", help="Run a whole pipeline over real data.", help_format="plaintext")

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600}
_LONGEST_S: Final = 12 * 3_600


def seconds(text: str) -> int:
    """A length of time such as 12h, 90m or 1h30m, in seconds. Raises ValueError.

    >>> seconds("1h30m")
    5400
    """
    parts = re.findall(r"(\d+)([smh])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"invalid length of time {text!r}; expected one such as 12h, 90m or 1h30m")
    total = sum(int(number) * _UNITS_S[unit] for number, unit in parts)
    if not 0 < total <= _LONGEST_S:
        raise ValueError(f"a tick is longer than 0 and at most 12h long, not {text}")
    return total


def _length(type_: Any, tokens: Any) -> int:
    return seconds(tokens[0].value)


@app.command
def flights(
    *,
    engine: Engine = "spark",
    limit: Annotated[int | None, AT_LEAST_ONE] = None,
    every: Annotated[int, Parameter(converter=_length, metavar="TIME", show_default=lambda _: "12h")] = _LONGEST_S,
    shards: Annotated[int | None, AT_LEAST_ONE] = None,
    write: Annotated[Path | None, Parameter(validator=validators.Path(file_okay=False))] = None,
) -> int:
    """Replay every flight that left New York City in 2013, and keep six views exact through it.

    Parameters
    ----------
    engine
        Where ticks run: on a local Spark session, or in this process.
    limit
        Stop after the tick that reaches this many changes. Default: the whole year.
    every
        Event time in one tick, at most 12h.
    shards
        The number of parts into which the state is split. Default: the engine's choice.
    write
        Instead of replaying the changes, write them to this folder, one file for each tick and table, with a script for `deltic run`.
    """
    if write is not None:
        changes = write_files(build(read()), write, limit=limit, every_s=every)
        emit(f"{changes:,} changes are in {write}; run them with: deltic run {write / 'flights.sql'}")
        return Exit.OK
    agreed = run(DemoOptions(engine=engine, limit=limit, every_s=every, shards=shards))
    return Exit.OK if agreed else Exit.DIFFERS
