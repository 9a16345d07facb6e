"""first_value and last_value over frames that are ranges of keys: the first row of the frame in the window's order, or backwards."""

from __future__ import annotations

from deltic.circuit.extremes import Extreme
from deltic.circuit.nodes import Shape
from deltic.circuit.operators.order import Sort
from deltic.circuit.terms import BYTES_WORDS, Term
from deltic.lowering.frames import frames_of, is_by_rows, kept_firsts, keys_of, with_rows, with_terms_of_limits, without_equal_rows
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import Arranged, none_is_null
from deltic.lowering.window_rows import SortedRows, by_partition, sorted_rows
from deltic.plan.nodes import Filter
from deltic.plan.window_nodes import Window, WindowCall
from deltic.schema import BIGINT, Field, Schema

WORD = Field("w", BIGINT, False)


def is_picked(call: WindowCall) -> bool:
    """Whether the value is that of one row of a frame that is a range of keys."""
    edges = (call.frame.start, call.frame.end)
    is_first = call.function in ("first_value", "last_value") or (call.function == "nth_value" and call.number == 1)
    return is_first and not any(edge.kind == "rows" and edge.rows for edge in edges) and not call.frame.is_whole


def lower_picks(lowering: PlanLowering, plan: Window) -> int:
    """The rows with the value, for each of the calls, which are equal."""
    of_rows, columns = is_by_rows(plan.calls[0][1].frame), len(plan.input.schema)
    plan = Window(without_equal_rows(lowering, plan.input), plan.keys, plan.order, plan.calls) if of_rows else with_terms_of_limits(plan)
    _, call = plan.calls[0]
    rows = sorted_rows(lowering, plan, whole=of_rows)
    frames = (None if of_rows else frames_of(lowering, plan, call.frame)) or keys_of(lowering, plan, rows)
    value = Field("value", call.type)
    entries, extreme = _entries(lowering, plan, rows, value)
    return with_rows(lowering, plan, rows, kept_firsts(lowering, entries, frames, extreme, rows, call.frame, value), columns)


def _entries(lowering: PlanLowering, plan: Window, rows: SortedRows, value: Field) -> tuple[Arranged, Extreme]:
    """(partition, key) → the words of the whole row in the order in which the frame's first one is sought, then the value."""
    streams, (_, call) = lowering.streams, plan.calls[0]
    backwards = call.function == "last_value"
    present = none_is_null(call.arguments[-1:]) if call.ignore_nulls else None
    source = plan if present is None else Window(Filter(plan.input, present), plan.keys, plan.order, plan.calls)
    whole = sorted_rows(lowering, source, whole=True, values=call.arguments[:1])
    schema, texts = streams.schema(whole.stream), dict(whole.texts)
    parts: list[int | Term] = list(range(rows.width))
    fields, terms = [*schema.fields[: rows.width]], list[Term]()
    word = whole.key
    while word < whole.width:
        size = BYTES_WORDS if word + BYTES_WORDS in texts else 1
        parts += [Term(i, WORD, descending=True) if backwards else i for i in range(word, word + size)]
        word += size
        if size == 1:
            terms.append(Term(0, WORD))
        else:  # the string's id follows
            terms.append(Term(0, Field("text", schema[word].type, False), texts[word] != backwards))
            parts.append(word)
            word += 1
    for term in terms:
        fields += term.order_fields
    terms += [Term(0, WORD)] * len(whole.values[0])
    parts += whole.values[0]
    shape = Shape(Schema((*fields, value)))
    stream = streams.builder.add(Sort(tuple(parts)), (whole.stream,), shape, _kept(lowering, whole))
    entries = by_partition(lowering, stream, bool(plan.keys), rows.key, rows.key)
    return entries, Extreme(entries.id, rows.width, tuple(terms), tuple(term.field for term in terms))


def _kept(lowering: PlanLowering, rows: SortedRows) -> tuple[int, ...] | None:
    """The partition of the rows, if it is by the words of theirs."""
    partition = lowering.streams.partition(rows.stream)
    return partition if partition is not None and all(word < rows.key for word in partition) else None
