"""Joins of every kind, from three operators: join, semijoin, antijoin.

An outer join is the inner join plus the rows of the preserved side without a match, padded with NULLs. A residual condition is tested on
the joined rows, or looks them up by its comparisons (ranges.py); for semi and anti joins it yields the left rows that match, which are then
compared as whole rows. Where it is one comparison, the extreme of the right side decides (plan/extremes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from deltic.circuit.nodes import Shape
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.keys import ONE, Keys
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.table import TableInput
from deltic.expr.nodes import Column, Expr, Literal
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.ranges import lower_range_join
from deltic.lowering.streams import ZERO, Arranged, Nulls, Streams, any_is_null, none_is_null
from deltic.plan.columns import all_columns, is_not_null, is_null, normalized, reference
from deltic.plan.divided_joins import divided
from deltic.plan.extremes import by_extreme
from deltic.plan.guarded_keys import exchanged
from deltic.plan.key_order import with_ordered_keys
from deltic.plan.nodes import Filter, Join, Plan, Project, Union, Weighted, references, union_of
from deltic.plan.null_patterns import by_null_patterns
from deltic.plan.signs import may_be_negative
from deltic.plan.time_joins import is_pairing
from deltic.plan.tried_keys import by_tried_keys
from deltic.schema import Field, Schema
from deltic.trace.encoding import words_of


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: the arrangement, and for each payload field its words there.

    content: the identity of its rows that have a key. values: the words of the key, without flags. nulls: the words that are NULL in rows
    without a key, which match nothing; () if it has no such rows.
    """

    arranged: Arranged
    payload: tuple[tuple[int, ...], ...]
    content: str
    values: tuple[int, ...]
    nulls: Nulls = ()

    @staticmethod
    def of(streams: Streams, arranged: Arranged, fields: Sequence[int], content: str, keys: int) -> Side:
        """The payload is that of these fields. The first `keys` of a row are the key, without flags: it is not NULL in a match."""
        fields_of = enumerate(zip(streams.schema(arranged.node), arranged.fields, strict=True))
        words = tuple(w[-words_of(f.type, False) :] if i < keys else w for i, (f, w) in fields_of)
        values = tuple(word for key in words[:keys] for word in key)
        return Side(arranged, tuple(words[f] for f in fields), content, values, streams.nulls(arranged.node, keys))

    def key_from(self, other: Side) -> tuple[int, ...]:
        """The words of this side's key, as positions in the rows of the other side, whose keys are of the same types."""
        values = dict(zip(self.values, other.values, strict=True))
        return tuple(values.get(word, ONE) for word in range(self.arranged.key))


def lower_join(lowering: PlanLowering, plan: Join) -> int:
    assert not is_pairing(plan), "a join of two streams has not been rewritten"
    if plan.evaluates_pairs:
        return lowering.relation(by_tried_keys(plan))
    plan = with_ordered_keys(plan)
    match plan.kind:
        case "inner":
            return _inner(lowering, plan)
        case "semi" | "anti":
            return _semi(lowering, plan)
        case "not_in":
            return lowering.relation(_not_in(plan))
        case _:
            _share_matches(lowering, plan)
            return lowering.relation(_outer(plan))


def side(lowering: PlanLowering, stream: int, keys: Sequence[Expr], payload: Sequence[Expr]) -> Side:
    """Arranges `payload` (expressions over the stream) by `keys`, with the rows that have a NULL key only if the streams keep them."""
    key_fields = [Field(f"k{i}", k.type, k.nullable) for i, k in enumerate(keys)]
    places: list[int] = []
    extra: list[Expr] = []
    origins = lowering.streams.origins([*keys, *payload], stream)
    placed = {origin: i for i, origin in reversed([*enumerate(origins[: len(keys)])]) if not origin.type.has_zeros}
    for expr, origin in zip(payload, origins[len(keys) :], strict=True):
        if origin not in placed:
            placed[origin] = len(keys) + len(extra)
            extra.append(expr)
        places.append(placed[origin])
    fields = [*key_fields, *(Field(f"p{i}", e.type, e.nullable) for i, e in enumerate(extra))]
    mapped = lowering.streams.map(stream, [*map(normalized, keys), *extra], Schema(tuple(fields)))
    return table_side(lowering, stream, mapped, keys, payload, places) or arranged_by_key(lowering, mapped, keys, places)


def with_key(lowering: PlanLowering, mapped: int, keys: int) -> int:
    """The rows whose first `keys` fields are not NULL, which these fields then state."""
    schema = lowering.streams.schema(mapped)
    columns = all_columns(schema)
    target = Schema(tuple(replace(f, nullable=f.nullable and i >= keys) for i, f in enumerate(schema)))
    return mapped if target == schema else lowering.streams.map(mapped, columns, target, none_is_null(columns[:keys]))


def content_of(lowering: PlanLowering, mapped: int, places: Sequence[int]) -> str:
    """A hash of a side's rows: the fields `places` of a stream whose first fields are the keys."""
    return lowering.streams.builder.digest(lowering.streams.builder.nodes[mapped].content, tuple(places))


def arranged_by_key(lowering: PlanLowering, mapped: int, keys: Sequence[Expr], places: Sequence[int]) -> Side:
    """The fields `places` of a stream arranged by its first fields, the keys."""
    streams, present = lowering.streams, with_key(lowering, mapped, len(keys))
    rows = mapped if streams.keeps_nulls else present
    slices = zip(streams.schema(rows).fields[: len(keys)], streams.shape(rows).layout.slices, strict=False)
    route = tuple(word for f, s in slices for word in range(s.stop - words_of(f.type, False), s.stop))
    arranged = streams.arrange(streams.exchange(rows, () if list(keys) == [ZERO] else route), len(keys))
    return Side.of(streams, arranged, places, content_of(lowering, present, places), len(keys))


def table_side(
    lowering: PlanLowering, stream: int, mapped: int, keys: Sequence[Expr], payload: Sequence[Expr], places: Sequence[int]
) -> Side | None:
    """The table's own arrangement, if it is partitioned by the keys or, on a single shard, sorted by them first; else None.

    mapped: the stream with the keys first; its fields `places` are the payload.
    It is sorted by the primary key, then by the other columns. The join must read plain columns that identify rows: with fewer columns,
    a separate arrangement has fewer rows, since equal ones are merged.
    """
    table_columns = lowering.streams.as_table(stream)
    if table_columns is None or not all(isinstance(e, Column) for e in (*keys, *payload)):
        return None
    source, fields = table_columns
    node = lowering.streams.builder.nodes[source]
    assert isinstance(node.operator, TableInput) and node.owns is not None
    key_fields = [fields[e.index] for e in keys if isinstance(e, Column)]
    if key_fields != list(range(len(key_fields))) or any(k.type.has_zeros for k in keys):
        return None
    if any(k.nullable for k in keys) and not lowering.streams.keeps_nulls:
        return None
    table = node.operator.table
    read = {fields[e.index] for e in (*keys, *payload) if isinstance(e, Column)}
    if not read.issuperset(range(len(table.key) or len(table.schema))):
        return None
    arranged = lowering.streams.arranged(source, node.owns, len(key_fields))
    if not lowering.streams.single and arranged.partition != tuple(range(arranged.key)):
        return None
    content = content_of(lowering, with_key(lowering, mapped, len(keys)), places)
    side = Side.of(lowering.streams, arranged, [fields[e.index] for e in payload if isinstance(e, Column)], content, len(keys))
    return replace(side, arranged=replace(arranged, partition=side.values))


def joined(
    lowering: PlanLowering,
    left: Side,
    right: Side,
    order: Sequence[tuple[int, int]],
    schema: Schema,
    weights: tuple[tuple[int, int], ...] = ((0, 0),),
    limbs: tuple[tuple[int, int], ...] = (),
) -> int:
    """The join of two arranged sides. order: (side, payload field) for each field of `schema`. The flag of a nullable key is added last."""
    a, b = left.arranged, right.arranged
    payload = [(left, right)[s].payload[i] for s, i in order]
    narrow, read = _narrowed(schema, payload)
    output = tuple((s, word) for (s, _), words in zip(order, read, strict=True) for word in words)
    keys = _sought(left, right)
    operator = JoinOperator(a.id, b.id, a.key, ((a.width, a.weights), (b.width, b.weights)), output, weights, limbs, keys=keys)
    partition = _joined_partition(left, right, output)
    builder, shape = lowering.streams.builder, Shape(narrow, len(weights))
    content = builder.digest("join", left.content, right.content, len(left.values), tuple(order), shape, weights, limbs)
    inputs = tuple(lowering.streams.not_null(side.arranged.node, side.nulls) for side in (left, right))
    return lowering.streams.conform(builder.add(operator, inputs, shape, partition, reads=(a.id, b.id), content=content), schema)


def _narrowed(schema: Schema, payload: Sequence[Sequence[int]]) -> tuple[Schema, list[Sequence[int]]]:
    """The schema, NOT NULL where the words of a field have no flag, and the words to read of each field.

    A field that is NOT NULL in `schema` but nullable in its side has no NULLs there: its flag word is not read.
    """
    fields = [replace(f, nullable=f.nullable and len(w) == words_of(f.type, True)) for f, w in zip(schema, payload, strict=True)]
    return Schema(tuple(fields)), [words[-words_of(f.type, f.nullable) :] for f, words in zip(fields, payload, strict=True)]


def _sought(left: Side, right: Side) -> Keys:
    """The words by which each side looks up the other; () if these are the first of both."""
    keys = (right.key_from(left), left.key_from(right))
    return () if keys[0] == keys[1] == tuple(range(left.arranged.key)) else keys


def _joined_partition(left: Side, right: Side, output: tuple[tuple[int, int], ...]) -> tuple[int, ...] | None:
    """The places in the output of the words by which the left side is partitioned, part of its key."""
    if not left.arranged.partition:
        return left.arranged.partition
    places = {pair: place for place, pair in reversed(list(enumerate(output)))}
    same = dict(zip(left.values, right.values, strict=True))
    words = [places.get((0, word), places.get((1, same[word]))) for word in left.arranged.partition]
    return None if None in words else tuple(word for word in words if word is not None)


def _inner(lowering: PlanLowering, plan: Join) -> int:
    if (split := divided(plan)) is not None:
        return lowering.streams.plus([lowering.relation(part) for part in split])
    ranged = lower_range_join(lowering, plan)
    if ranged is not None:
        return ranged
    keys = plan.keys or ((ZERO, ZERO),)
    left, right = lowering.relation(plan.left), lowering.relation(plan.right)
    sides = [
        side(lowering, s, [k[i] for k in keys], [reference(p.schema, j) for j in range(len(p.schema))])
        for i, (s, p) in enumerate(((left, plan.left), (right, plan.right)))
    ]
    order = [(i, j) for i, p in enumerate((plan.left, plan.right)) for j in range(len(p.schema))]
    stream = joined(lowering, sides[0], sides[1], order, plan.schema)
    return stream if plan.residual is None else lowering.streams.filter(stream, plan.residual)


def _semi(lowering: PlanLowering, plan: Join) -> int:
    left = lowering.relation(plan.left)
    fields = all_columns(plan.left.schema)
    anti = plan.kind == "anti"
    if not lowering.scoped and (extremes := by_extreme(plan)) is not None:
        extreme_rows = lowering.relation(extremes)
        return lowering.streams.minus(left, extreme_rows) if anti else extreme_rows
    if (anti or not lowering.scoped) and (others := by_null_patterns(plan)) is not None:
        rest = lowering.relation(others)
        return rest if anti else lowering.streams.minus(left, rest)
    if plan.residual is not None:
        matches = _matches(plan)
        if not fields:
            return lowering.relation(Join(plan.left, matches, plan.kind))
        return _semi_whole(lowering, left, lowering.relation(matches), anti)
    keys = plan.keys or ((ZERO, ZERO),)
    left_keys, right_keys = [k[0] for k in keys], [k[1] for k in keys]
    if lowering.scoped:
        named = Schema(tuple(Field(f"k{i}", k.type, False) for i, k in enumerate(right_keys)))
        present = lowering.streams.map(lowering.relation(plan.right), [*map(normalized, right_keys)], named, none_is_null(right_keys))
        return _semi_scoped(lowering, left, side(lowering, left, left_keys, fields), present, anti)
    left_side = side(lowering, left, left_keys, fields)
    right_side = side(lowering, lowering.relation(plan.right), right_keys, ())
    result = _semi_keyed(lowering, left_side, right_side, plan.left.schema, anti)
    without_key = any_is_null(left_keys) if anti else None
    return result if without_key is None else lowering.streams.plus([result, lowering.streams.filter(left, without_key)])


def _matches(plan: Join) -> Project:
    """The left rows that match, once for each match, of a join with a residual."""
    fields = all_columns(plan.left.schema)
    return Project(Join(_once(plan.left), plan.right, "inner", plan.keys, plan.residual), tuple((f.name, f) for f in fields))


def _share_matches(lowering: PlanLowering, plan: Join) -> None:
    """Takes the rows of an outer join that match from its inner join, so that neither side is arranged for them again."""
    if plan.residual is None:
        return
    inner = Join(plan.left, plan.right, "inner", plan.keys, plan.residual)
    for side, start in (("left", 0), ("right", len(plan.left.schema))):
        each = _unmatched(plan, side)
        if each is None or may_be_negative(each.left) or by_extreme(each) is not None or by_null_patterns(each) is not None:
            continue
        columns = [reference(inner.schema, start + i) for i in range(len(each.left.schema))]
        matches = _matches(each)
        lowering.once(matches, partial(lowering.streams.map, lowering.relation(inner), columns, matches.schema))


def _unmatched(plan: Join, side: str) -> Join | None:
    """The rows of a side without a match; None if the outer join does not have them."""
    if plan.kind not in (side, "full"):
        return None
    if side == "left":
        return Join(plan.left, plan.right, "anti", plan.keys, plan.residual)
    return exchanged(Join(plan.left, plan.right, "anti", plan.keys, plan.residual))


def _once(plan: Plan) -> Plan:
    """The rows of a plan, each once if weights may be negative: whether a row has a match must not depend on its own weight."""
    if not may_be_negative(plan):
        return plan
    assert not references(plan), "a recursive relation that may be negative is a Multiset"
    weighted = Weighted(plan, "weight")
    return Project(weighted, tuple((f.name, reference(weighted.schema, i)) for i, f in enumerate(plan.schema)))


def _semi_keyed(lowering: PlanLowering, left: Side, right: Side, schema: Schema, anti: bool) -> int:
    a, b = left.arranged, right.arranged
    narrow, read = _narrowed(schema, left.payload)
    output = tuple(word for words in read for word in words)
    keys = _sought(left, right)
    shape = Shape(narrow)
    assert len(output) == shape.layout.width
    operator = SemiJoin(a.id, b.id, a.key, a.width, b.width, output, anti, keys)
    partition = _joined_partition(left, right, tuple((0, w) for w in output))
    builder = lowering.streams.builder
    unflagged = tuple(i for i, (kept, words) in enumerate(zip(read, left.payload, strict=True)) if kept != words)
    content = builder.digest("semijoin", left.content, right.content, len(left.values), anti, *unflagged)
    inputs = tuple(lowering.streams.not_null(side.arranged.node, side.nulls) for side in (left, right))
    node = builder.add(operator, inputs, shape, partition, reads=(a.id, b.id), content=content)
    return lowering.streams.conform(node, schema)


def _semi_whole(lowering: PlanLowering, left: int, matches: int, anti: bool) -> int:
    """Left rows that are, or are not, among `matches`, which are left rows too. NULL equals NULL here."""
    schema = lowering.streams.schema(left)
    width = lowering.streams.shape(left).layout.width
    if lowering.scoped:
        kept = lowering.streams.arrange(left, len(schema))
        return _semi_scoped(lowering, left, _whole(lowering, kept), matches, anti)
    arranged = [lowering.streams.arrange(lowering.streams.exchange(s, tuple(range(width))), len(schema)) for s in (left, matches)]
    sides = [_whole(lowering, a) for a in arranged]
    return _semi_keyed(lowering, sides[0], sides[1], schema, anti)


def _whole(lowering: PlanLowering, arranged: Arranged) -> Side:
    """The arrangement as a side whose keys are all of its fields."""
    return Side(arranged, arranged.fields, content_of(lowering, arranged.node, range(len(arranged.fields))), tuple(range(arranged.width)))


def _semi_scoped(lowering: PlanLowering, left: int, kept: Side, present: int, anti: bool) -> int:
    """In scopes: the join of `kept`, which is `left` by key, with the distinct keys of `present`; for anti, `left` without that."""
    streams = lowering.streams
    schema = streams.schema(left)
    keys = streams.arrange(lowering.distinct(present), len(streams.schema(present)))
    matches = joined(lowering, kept, replace(_whole(lowering, keys), payload=()), [(0, i) for i in range(len(schema))], schema)
    return streams.plus([left, streams.negate(matches)]) if anti else matches


def _outer(plan: Join) -> Plan:
    """LEFT, RIGHT and FULL as unions of the inner join and padded antijoins."""
    schema = plan.schema
    inner = Join(plan.left, plan.right, "inner", plan.keys, plan.residual)
    parts: list[Plan] = [Project(inner, tuple((f.name, reference(inner.schema, i)) for i, f in enumerate(schema)))]
    for side, start in (("left", 0), ("right", len(plan.left.schema))):
        rows = _unmatched(plan, side)
        if rows is not None:
            parts.append(_padded(rows, schema, start))
    return Union(tuple(parts))


def _padded(rows: Join, schema: Schema, start: int) -> Project:
    """The rows as the fields of `schema` from `start` on, with NULLs in the others."""
    width = len(rows.schema)
    return Project(
        rows,
        tuple(
            (f.name, reference(rows.schema, i - start) if start <= i < start + width else Literal(None, f.type))
            for i, f in enumerate(schema)
        ),
    )


def _not_in(plan: Join) -> Plan:
    """NOT IN by antijoins.

    A row whose value is NULL stays only if the right side has no row under its key. A NULL on the right removes all rows under its key.
    """
    assert plan.value is not None
    value, right_value = plan.value
    left, right = plan.left, plan.right
    valued: Plan = left
    parts: list[Plan] = []
    if value.nullable:
        valued = Filter(left, is_not_null(value))
        parts.append(Join(Filter(left, is_null(value)), right, "anti", plan.keys, plan.residual))
    parts.append(Join(valued, right, "anti", (*plan.keys, (value, right_value)), plan.residual))
    whole = union_of(parts)
    if not right_value.nullable:
        return whole
    nulls = Filter(right, is_null(right_value))
    return Join(whole, nulls, "anti", plan.keys, plan.residual)
