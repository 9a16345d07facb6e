"""Errors in windows that a tick closes: every later tick closes them too, so the error says what to do."""

from __future__ import annotations

from collections.abc import Iterator

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operator import Tick
from deltic.circuit.operators.watermark import WatermarkOperator
from deltic.errors import EvaluationError


def error_in_window(error: EvaluationError, circuit: Dataflow, node: int, tick: Tick) -> EvaluationError:
    """The error of a node; where it computes with rows of windows that the tick closes, its remedy names them."""
    closing = next((operator for operator in _closing(circuit, node) if operator.key in tick.watermarks), None)
    if closing is not None and tick.fresh is None:
        watermark = closing.table.shown_time(tick.watermarks[closing.key][1])
        window = f"it is in a window of {closing.table.name} that ends at or before the watermark {watermark}, so every later tick fails"
        way_out = "replace the view by one without the error, which begins without the rows of streams so far"
        error.remedy = "; ".join(filter(None, (error.remedy, window, way_out)))
    return error


def _closing(circuit: Dataflow, node: int) -> Iterator[WatermarkOperator]:
    """Those whose closing windows the node depends on."""
    waiting, seen = [node], {node}
    for one in waiting:
        operator = circuit.nodes[one].operator
        if isinstance(operator, WatermarkOperator) and operator.closed:
            yield operator
        waiting += (below := set(circuit.nodes[one].inputs) - seen)
        seen |= below
