"""The values at given ranks of each group, under deletions: PERCENTILE, MEDIAN and their like.

The values of each group are sorted in an arrangement (group, order words) → weight. The row of a group stores for each rank the value
that is there, and how many values precede it. A change before that value moves the count; the search for the rank then walks from the
value, in either direction, over as many values as the rank moved by. So a change of m values costs O(m) steps, for a group of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from deltic.aggregates.definition import Rank
from deltic.circuit.extremes import known_starts, null_words, old_words, replaced
from deltic.circuit.operator import Context
from deltic.circuit.terms import MARKER, Term
from deltic.errors import Span
from deltic.expr.rows.frequencies import MOST, checked_total
from deltic.intervals import whole_units
from deltic.schema import BIGINT, Field, Type
from deltic.trace.batch import Batch
from deltic.trace.encoding import decode, encode, words_of
from deltic.trace.probe import first_of_each, probe, ranked
from deltic.trace.spine import Spine
from deltic.trace.sums import join64

Words = tuple[np.ndarray, ...]
BEFORE = Field("before", BIGINT, False)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The values of a group at `ranks` by `term`, which is never NULL in the arrangement (key words, order words) → weight.

    counted: the weight in the sums that counts the values, or the two that add up their frequencies if `wide`.
    result: the field of what is computed from them. `fields` of the row of a group:
    the result, then for each rank the value there, or the first of the two around it, and the number of values before it.
    """

    arrangement: str
    key: int
    term: Term
    ranks: tuple[Rank, ...]
    counted: int
    result: Field
    wide: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def fields(self) -> tuple[Field, ...]:
        value = Field("value", self.term.field.type)
        return (self.result, *(field for _ in self.ranks for field in (value, BEFORE)))

    @property
    def width(self) -> int:
        """The number of order words of a value."""
        return self.term.width

    @property
    def identity(self) -> object:
        """What determines the values, beside the rows of the arrangement."""
        return tuple((rank.fraction, rank.interpolated) for rank in self.ranks)


def new_ranking(
    ranking: Ranking, groups: Words, old: Sequence[Words], existed: np.ndarray, sums: Words, delta: Batch, context: Context
) -> Sequence[Words]:
    """The words of each field for each group after `delta`. old, existed: as for `new_extremes`. sums: of each group, after `delta`."""
    old = old_words(ranking.fields, old, existed)
    if not len(delta):
        return old
    key, width = ranking.key, ranking.term.width
    now = context.old(ranking.arrangement, key + width, 1).with_batch(delta)
    source, columns, weights = probe(Spine.of(delta), groups, range(key, key + width), context.counters)
    changed = source[first_of_each(source)]
    counts = np.maximum(_counts(ranking, sums), 0)
    present = changed[counts[changed] > 0]
    results: list[tuple[pa.Array, pa.Array, np.ndarray]] = []
    words: list[Words] = []
    for i, rank in enumerate(ranking.ranks):
        value, before = old[1 + 2 * i], old[2 + 2 * i][0]
        starts, remembered = _starts(ranking, value, context)
        preceding = before + _shift(starts, remembered, source, columns, weights[0])
        low, high, shares = _places(rank, counts[present])
        prefixes = [g[present] for g in groups]
        lower, preceding, higher = ranked(now, prefixes, [s[present] for s in starts], (preceding[present], low, high), context.counters)
        results.append((_decoded(ranking, lower, context), _decoded(ranking, higher, context), shares))
        words += [_stored(ranking, lower), (preceding,)]
    words.insert(0, encode(_result(ranking, results), ranking.result, context.strings))
    nulls = [null_words(field) for field in ranking.fields]
    return [replaced(one, null, changed, present, new) for one, null, new in zip(old, nulls, words, strict=True)]


def _counts(ranking: Ranking, sums: Words) -> np.ndarray:
    """How many values each group has. Raises ArithmeticOverflow."""
    if not ranking.wide:
        return sums[ranking.counted]
    counts, overflowing = join64(*sums[ranking.counted : ranking.counted + 2])
    if overflowing.any():
        checked_total(MOST + 1, ranking.span)
    return counts


def _starts(ranking: Ranking, value: Words, context: Context) -> tuple[Words, np.ndarray]:
    """(the order words of the remembered values, the least words where there are none; where there are some)."""
    remembered = value[0] != null_words(Field("value", ranking.term.field.type))[0]
    words = known_starts((ranking.term,), [value], remembered, context.strings)
    return tuple(np.where(remembered, word, MARKER) for word in words), remembered


def _shift(starts: Words, remembered: np.ndarray, source: np.ndarray, columns: Words, weights: np.ndarray) -> np.ndarray:
    """The weights of the changes before the start of each group; 0 where no value is remembered. source: the group of each change."""
    less = np.zeros(len(source), bool)
    same = remembered[source]
    for start, column in zip(starts, columns, strict=True):
        less |= same & (column < start[source])
        same = same & (column == start[source])
    shift = np.zeros(len(remembered), np.int64)
    np.add.at(shift, source[less], weights[less])
    return shift


def _places(rank: Rank, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`Rank.places` of each count."""
    places = [rank.places(n) for n in counts.tolist()]
    low, high = (np.array([place[i] for place in places], np.int64) for i in (0, 1))
    return low, high, np.array([place[2] for place in places], np.float64)


def _stored(ranking: Ranking, order: Words) -> Words:
    """The words of the nullable field of a value, from its order words."""
    words = ranking.term.values(order)
    missing = words_of(ranking.term.field.type, True) - len(words)
    return (np.ones(len(words[0]), np.int64), *words) if missing else words


def _decoded(ranking: Ranking, order: Words, context: Context) -> pa.Array:
    return decode(ranking.term.values(order), ranking.term.field, context.strings)


def _result(ranking: Ranking, results: Sequence[tuple[pa.Array, pa.Array, np.ndarray]]) -> pa.Array:
    """The result of each group."""
    type = ranking.term.field.type
    columns = [
        _interval(*each, type) if type.is_interval else _between(*each) if rank.interpolated else each[0]
        for rank, each in zip(ranking.ranks, results, strict=True)
    ]
    if ranking.result.type.name != "ARRAY":
        return columns[0]
    rows = [list(values) for values in zip(*(each.to_pylist() for each in columns), strict=True)]
    return pa.array(rows, ranking.result.type.arrow)


def _interval(low: pa.Array, high: pa.Array, shares: np.ndarray, type: Type) -> pa.Array:
    """As `_between`, of intervals."""
    first, second = (each.cast(pa.int64()).cast(pa.float64(), safe=False) for each in (low, high))
    units = [whole_units(each, type) for each in _between(first, second, shares).to_pylist()]
    return pa.array(units, pa.int64()).cast(type.arrow)


def _between(low: pa.Array, high: pa.Array, shares: np.ndarray) -> pa.Array:
    """The number at that share of the way from the lower to the higher one, as Spark computes it; one of them where they are equal."""
    lower, higher = low.to_numpy(), high.to_numpy()
    same = (lower == higher) | (shares == 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        return pa.array(np.where(same, lower, (1.0 - shares) * lower + shares * higher))
