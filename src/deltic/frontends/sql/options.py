"""Options of tables that do not depend on the connector: the watermark."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltic.errors import QueryError, did_you_mean
from deltic.frontends.sql.delays import FORM, delay_us
from deltic.frontends.statements import Timed
from deltic.options import Options
from deltic.schema import TIMESTAMP, TableSchema

WATERMARK: Final = ("watermark", "watermark_delay")


def timed_of(options: Options) -> tuple[Options, Timed | None]:
    """(the watermark of CREATE TABLE's OPTIONS, the remaining options, for the connector)."""
    column, delay = (options.given.get(name) for name in WATERMARK)
    rest = {key: option for key, option in options.given.items() if key not in WATERMARK}
    options = replace(options, given=rest, also=WATERMARK)
    if column is None and delay is not None:
        raise QueryError("watermark_delay is given, and no watermark", span=delay.key_span, expected="watermark 'column' beside it")
    if column is None:
        return options, None
    lag = 0 if delay is None else delay_us(delay.value)
    if lag is None:
        assert delay is not None
        raise QueryError(f"watermark_delay is {delay.value!r}", span=delay.span, expected=FORM)
    return options, Timed(column.value, lag, column.span)


def check_timed(table: TableSchema, timed: Timed) -> None:
    """Raises QueryError if the watermark's column is not in the table, or not a TIMESTAMP."""
    positions = table.schema.find(timed.column)
    if not positions:
        remedy = did_you_mean(timed.column, table.schema.names)
        raise QueryError(f"the watermark {timed.column!r} is not a column of table {table.name}", span=timed.span, remedy=remedy)
    if (type_ := table.schema[positions[0]].type) != TIMESTAMP:
        raise QueryError(f"the watermark {timed.column} is of type {type_.sql}", span=timed.span, expected="a column of type TIMESTAMP")
