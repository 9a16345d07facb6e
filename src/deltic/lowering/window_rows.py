"""The rows of a window laid out in its order: the words of the partition, those of the terms, then the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.order import Sort
from deltic.circuit.terms import Term
from deltic.expr import Expr
from deltic.lowering.joins import Side, content_of
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import Arranged
from deltic.plan.columns import all_columns, normalized
from deltic.plan.window_nodes import Window
from deltic.schema import BIGINT, BINARY, Field, Schema


def by_partition(lowering: PlanLowering, stream: int, keyed: bool, fields: int, words: int | None = None) -> Arranged:
    """The stream arranged by its first `fields` fields, each partition on one shard. words: of the partition, if it has fewer."""
    streams = lowering.streams
    slices = streams.shape(stream).layout.slices
    width = slices[fields - 1].stop if words is None else words
    return streams.arrange(streams.exchange(stream, tuple(range(width)) if keyed else ()), fields)


def side_of(lowering: PlanLowering, arranged: Arranged, keys: int) -> Side:
    """The fields after the keys; rows match where all words of the keys are equal."""
    content = content_of(lowering, arranged.node, range(keys, len(arranged.fields)))
    return Side(arranged, arranged.fields[keys:], content, tuple(range(arranged.key)))


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows laid out in the order of their partitions: the words of the partition, those of the order, the row.

    key: the number of words of the partition. width: with those of the order. row: for each column of the input its words.
    texts: the string ids in the order, and whether they descend. values: the words of further values.
    """

    stream: int
    key: int
    width: int
    row: tuple[tuple[int, ...], ...]
    texts: tuple[tuple[int, bool], ...]
    values: tuple[tuple[int, ...], ...] = ()


def sorted_rows(lowering: PlanLowering, plan: Window, *, whole: bool, values: Sequence[Expr] = ()) -> SortedRows:
    """whole: rows are part of the order, after its terms. values: of each row, nullable in the result."""
    streams, schema = lowering.streams, plan.input.schema
    keys = tuple(Field(f"k{i}", key.type, key.nullable) for i, key in enumerate(plan.keys))
    terms = tuple(Field(f"o{i}", term.expr.type, term.expr.nullable) for i, term in enumerate(plan.order))
    exprs = [*map(normalized, plan.keys), *(normalized(term.expr) for term in plan.order)]
    exprs += [*all_columns(schema), *values]
    more = tuple(Field(f"v{i}", value.type) for i, value in enumerate(values))
    mapped = streams.map(lowering.relation(plan.input), exprs, Schema((*keys, *terms, *schema, *more)))
    slices = streams.shape(mapped).layout.slices
    parts: list[int | Term] = list(range(slices[len(keys) - 1].stop if keys else 0))
    fields = [Field("w", BIGINT, False)] * max(len(parts), 1)
    key = len(fields)
    places = zip(slices[len(keys) :], terms, plan.order, strict=False)
    sort = [Term(place.start, field, term.descending, term.nulls_first) for place, field, term in places]
    row: list[tuple[int, ...]] = []
    texts: list[tuple[int, bool]] = []
    for term in sort:
        parts.append(term)
        fields += term.order_fields
        texts += [(len(fields) - 1, term.descending)] if term.field.type.has_bytes else []
    width = len(fields)
    for place, field in zip(slices[len(keys) + len(terms) :], schema, strict=False):
        begin = words_in(fields)
        if whole and field.type.has_bytes:
            term = Term(place.start, field)
            parts.append(term)
            fields += (*term.order_fields[:-1], _identified(term.order_fields[-1]))
            texts.append((len(fields) - 1, False))
            row.append((len(fields) - 1,))
        else:
            parts += range(place.start, place.stop)
            fields += [Field("w", BIGINT, False)] * (place.stop - place.start) if whole else [field]
            row.append(tuple(range(begin, begin + place.stop - place.start)))
    sorted_by = words_in(fields) if whole else width
    places_of = []
    for place, field in zip(slices[len(slices) - len(more) :], more, strict=True):
        places_of.append(tuple(range(words_in(fields), words_in(fields) + place.stop - place.start)))
        parts += range(place.start, place.stop)
        fields.append(field)
    shape = Shape(Schema(tuple(fields)))
    partition = streams.partition(mapped)
    kept = partition if plan.keys and partition is not None and all(word < key for word in partition) else None
    types = tuple(field.type for field in fields)
    stream = streams.builder.add(Sort(tuple(parts), not plan.keys, types), (mapped,), shape, kept)
    return SortedRows(stream, key, sorted_by, tuple(row), tuple(texts), tuple(places_of))


def _identified(field: Field) -> Field:
    """The id of a value as the field of a key that keeps the signs of its zeros, as words do: that of its bytes."""
    return replace(field, type=BINARY) if field.type.has_zeros else field


def words_in(fields: Sequence[Field]) -> int:
    return Shape(Schema(tuple(fields))).layout.width
