"""The name of a column with a window function, as Spark derives it: the call, its window and its frame, with what is not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deltic.frontends.sql import tree

_UPPER: Final = ("rank", "dense_rank", "percent_rank")
_UP_TO: Final = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_FIXED: Final = {
    **dict.fromkeys(("row_number", "ntile", *_UPPER), f"ROWS {_UP_TO}"),
    "cume_dist": f"RANGE {_UP_TO}",
}
_PLAIN: Final = {"first_value": "first", "last_value": "last"}

Named = Callable[[tree.Expression], str]


def window_name(node: tree.OverCall, named: Named) -> str:
    """named: the names of expressions."""
    window = node.window
    if window.name is not None:
        return f"{_call(node, named)} OVER {window.name.text}"
    parts = [f"PARTITION BY {', '.join(map(named, window.partition))}"] if window.partition else []
    parts += [f"ORDER BY {', '.join(_term(term, named) for term in window.order)}"] if window.order else []
    return f"{_call(node, named)} OVER ({' '.join([*parts, _frame(node, named)])})"


def _call(node: tree.OverCall, named: Named) -> str:
    call, name = node.call, node.call.name
    arguments = [*map(named, call.arguments)]
    if name in _UPPER:
        return f"{name.upper()}()"
    if name in ("lag", "lead"):
        arguments += ["1", "NULL"][len(arguments) - 1 :]
    elif name == "ntile":
        arguments = arguments or ["1"]
    elif name in _PLAIN and node.ignore_nulls:
        name = _PLAIN[name]
    elif name not in ("row_number", "cume_dist", "nth_value"):
        return named(call)
    ignores = " ignore nulls" if node.ignore_nulls and name == "nth_value" else ""
    return f"{name}({', '.join(arguments)}){ignores}"


def _term(term: tree.OrderTerm, named: Named) -> str:
    return f"{named(term.expression)} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"


def _frame(node: tree.OverCall, named: Named) -> str:
    call, frame = node.call, node.window.frame
    if call.name in _FIXED:
        return _FIXED[call.name]
    if call.name in ("lag", "lead"):
        rows = named(call.arguments[1]) if len(call.arguments) > 1 else "1"
        rows = rows if call.name == "lead" else rows.removeprefix("-") if rows.startswith("-") else f"-{rows}" if rows != "0" else rows
        return f"ROWS BETWEEN {rows} FOLLOWING AND {rows} FOLLOWING"
    if frame is not None:
        return f"{frame.unit} BETWEEN {_bound(frame.start, named)} AND {_bound(frame.end, named)}"
    return f"RANGE {_UP_TO}" if node.window.order else "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _bound(bound: tree.BoundText, named: Named) -> str:
    if bound.kind == "ROW":
        return "CURRENT ROW"
    distance = "UNBOUNDED" if bound.value is None else named(bound.value)
    return f"{distance} {'FOLLOWING' if bound.following else 'PRECEDING'}"
