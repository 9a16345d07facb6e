"""Values and rows as DDlog prints them, and their order."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from deltic.frontends.datalog.declarations import DatalogRelation
from deltic.frontends.datalog.kinds import BOOL, MOMENT_KINDS, Kind, MapKind, TupleKind, UnionKind, VectorKind

Row: TypeAlias = dict[str, Any]


def shown_row(relation: DatalogRelation, row: Mapping[str, Any]) -> str:
    """A row as DDlog prints it: R{.a = 1, .b = "x"}."""
    kind = relation.row
    if isinstance(kind, UnionKind) and not kind.is_tagged:
        fields = ", ".join(f".{name} = {shown_value(inner, row[name])}" for name, inner in relation.columns)
        return f"{kind.constructors[0].name}{{{fields}}}"
    return shown_value(kind, row[relation.columns[0][0]])


def shown_value(kind: Kind, value: Any) -> str:
    """A value, in the syntax of terms."""
    match kind:
        case UnionKind():
            own = kind.constructors[0]
            if kind.is_tagged:
                own = next(one for one in kind.constructors if one.name == value["tag"])
            return f"{own.name}{{{', '.join(f'.{name} = {shown_value(inner, value[name])}' for name, inner in own.fields)}}}"
        case TupleKind():
            return f"({', '.join(shown_value(item, value[f'_{i}']) for i, item in enumerate(kind.items))})"
        case VectorKind():
            return f"[{', '.join(shown_value(kind.item, one) for one in value)}]"
        case MapKind():
            entries = sorted(value, key=lambda entry: order_of(entry[0]))
            shown = [f"{shown_value(kind.key, key)} -> {shown_value(kind.value, one)}" for key, one in entries]
            return f"[{', '.join(shown)}]" if shown else "map_empty()"
        case _ if kind == BOOL:
            return "true" if value else "false"
        case _ if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        case _ if kind in MOMENT_KINDS:
            return json.dumps(str(value))
        case _ if isinstance(value, float):
            return repr(value) if math.isfinite(value) else str(value)
        case _:
            return str(value)


def sorted_rows(relation: DatalogRelation, rows: Sequence[Row]) -> list[Row]:
    """In the order of their columns."""
    names = [name for name, _ in relation.columns]
    return sorted(rows, key=lambda row: [order_of(row[name]) for name in names])


def order_of(value: Any) -> tuple[Any, ...]:
    """Sorts values of one kind as their parts are sorted."""
    if isinstance(value, dict):
        return (2, tuple(order_of(one) for one in value.values()))
    if isinstance(value, list | tuple):
        return (3, tuple(order_of(one) for one in value))
    return (0, 0) if value is None else (1, value)
