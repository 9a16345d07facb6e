"""Which columns of its streams a circuit does not read: their strings need not be looked up, since a stream keeps no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltic.circuit.nodes import Dataflow, Node
from deltic.circuit.operators.chain import Chain
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.table import StreamInput
from deltic.expr.nodes import Expr, columns_of


def unread_strings(circuit: Dataflow) -> Mapping[str, frozenset[int]]:
    """By stream the positions of the STRING and BINARY columns that no operator reads; without streams that have none. O(nodes)."""
    sources = [node for node in circuit.nodes if isinstance(node.operator, StreamInput)]
    if not sources:
        return {}
    shown = {*circuit.views.values(), *(name for node in circuit.nodes for name in node.reads)}
    readers: dict[int, list[Node]] = {}
    for node in circuit.nodes:
        for i in node.inputs:
            readers.setdefault(i, []).append(node)
    unread: dict[str, frozenset[int]] = {}
    for source in sources:
        assert isinstance(source.operator, StreamInput)
        table = source.operator.table
        strings = {i for i, field in enumerate(table.schema) if field.type.has_bytes and not field.type.held.is_nested}
        if strings and shown.isdisjoint(source.owned):
            for reader in readers.get(source.id, ()):
                strings -= _read(reader, len(table.schema))
            if strings:
                unread[table.name] = unread.get(table.name, frozenset(strings)) & strings
    return unread


def _read(reader: Node, width: int) -> frozenset[int]:
    """The fields of its input, of `width` fields, that a node reads: all of them, unless it is a map."""
    operator = reader.operator.steps[0] if isinstance(reader.operator, Chain) else reader.operator
    if not isinstance(operator, Map) or len(reader.inputs) != 1:
        return frozenset(range(width))
    exprs: Iterable[Expr] = (*operator.columns, *(measure.argument for measure in operator.measures))
    read = frozenset[int]().union(*map(columns_of, exprs))
    return read if operator.predicate is None else read | columns_of(operator.predicate)
