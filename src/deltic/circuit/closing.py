"""Errors in windows that a tick closes: every later tick closes them too, so the error says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operator import Tick
from deltic.circuit.operators.watermark import WatermarkOperator
from deltic.errors import EvaluationError

_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_US: Final = -62_135_596_800_000_000
"""The first microsecond of the calendar."""


def error_in_window(error: EvaluationError, circuit: Dataflow, node: int, tick: Tick) -> EvaluationError:
    """The error of a node; where it computes with rows of windows that the tick closes, its remedy names them."""
    table = next((table for table in _closing(circuit, node) if table in tick.watermarks), None)
    if table is not None and tick.fresh is None:
        moment = _EPOCH + timedelta(microseconds=max(tick.watermarks[table][1], _FIRST_US))
        window = f"it is in a window of {table} that ends at or before the watermark {moment}, so every later tick fails"
        way_out = "replace the view by one without the error, which begins without the rows of streams so far"
        error.remedy = "; ".join(filter(None, (error.remedy, window, way_out)))
    return error


def _closing(circuit: Dataflow, node: int) -> Iterator[str]:
    """The tables whose closing windows the node depends on."""
    waiting, seen = [node], {node}
    for one in waiting:
        operator = circuit.nodes[one].operator
        if isinstance(operator, WatermarkOperator) and operator.closed:
            yield operator.table
        waiting += (below := set(circuit.nodes[one].inputs) - seen)
        seen |= below
