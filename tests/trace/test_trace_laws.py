"""Laws of rows, batches and spines: everything against plain dictionaries."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltic.errors import WeightOverflow
from deltic.kernels.memory import Words
from deltic.kernels.merge import BATCH_INDEX
from deltic.kernels.table import address
from deltic.trace import levels as levels_module
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.merge import CANCELLING_ROWS, Merge, merge
from deltic.trace.partition import partition
from deltic.trace.probe import first, lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.weights import add_checked, multiply
from parts import slow

LOW, HIGH = -(2**63), 2**63 - 1
Record = tuple[tuple[int, ...], tuple[int, ...]]
Table = tuple[int, int, list[list[Record]]]
Content = dict[tuple[int, ...], tuple[int, ...]]

words = st.one_of(st.integers(-2, 2), st.sampled_from([LOW, LOW + 1, HIGH, HIGH - 1, 0]), st.integers(LOW, HIGH))
small_weights = st.integers(-2, 2)


def make(records: Sequence[Record], columns: int, weights: int) -> Rows:
    return Rows(
        [np.array([key[c] for key, _ in records], np.int64) for c in range(columns)],
        [np.array([weight[w] for _, weight in records], np.int64) for w in range(weights)],
    )


def content(records: Sequence[Record]) -> Content:
    """The sums of equal records, in order; fails if a sum leaves 64 bits."""
    sums: dict[tuple[int, ...], list[int]] = {}
    for key, weight in records:
        total = sums.setdefault(key, [0] * len(weight))
        for w, x in enumerate(weight):
            total[w] += x
    return {key: tuple(total) for key, total in sorted(sums.items()) if any(total)}


def listed(rows: Rows) -> list[Record]:
    keys = zip(*(c.tolist() for c in rows.columns), strict=True) if rows.columns else [()] * rows.length
    return list(zip(keys, zip(*(w.tolist() for w in rows.weights), strict=True), strict=True))


def flat(parts: Iterable[Sequence[Record]]) -> list[Record]:
    return [record for part in parts for record in part]


@st.composite
def tables(draw: st.DrawFn, parts: int = 1, word: st.SearchStrategy[int] = words) -> Table:
    columns, weights = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    record = st.tuples(st.tuples(*[word] * columns), st.tuples(*[small_weights] * weights))
    return columns, weights, [draw(st.lists(record, max_size=40)) for _ in range(parts)]


@settings(deadline=None)
@given(tables())
def test_consolidate_sums_equal_rows(table: Table) -> None:
    columns, weights, [records] = table
    batch = consolidate(make(records, columns, weights))
    assert listed(batch) == list(content(records).items())
    Batch(batch.columns, batch.weights)


@pytest.mark.parametrize("n", [25, 65, 1000, 4096, 20_000])
@pytest.mark.parametrize("spread", [1, 30, 2**31, 2**63 - 1, *slow(3, 1000, 2**40)])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_consolidate_of_many_rows(n: int, spread: int, columns: int) -> None:
    """All ways through the radix sort: narrow and wide columns, ties, runs that must be refined, equal rows."""
    rng = np.random.default_rng([n, spread % 1009, columns])
    rows = Rows([rng.integers(-spread, spread, n, endpoint=True) for _ in range(columns)], [rng.integers(-1, 2, n)])
    rows.columns[0][: n // 2] = rows.columns[0][0]
    assert listed(consolidate(rows)) == list(content(listed(rows)).items())


@pytest.mark.parametrize("at", [LOW, -1, HIGH - 50])
def test_consolidate_of_many_rows_in_a_narrow_range(at: int) -> None:
    """The rows are sorted as a whole, wherever their range begins; a sum beyond 64 bits is an error there too."""
    rng = np.random.default_rng(0)
    rows = Rows([rng.integers(0, 50, 10_000) + at, rng.integers(-40, 1, 10_000) - 1], [rng.integers(-1, 2, 10_000)])
    assert listed(consolidate(rows)) == list(content(listed(rows)).items())
    with pytest.raises(WeightOverflow):
        consolidate(Rows(rows.columns, [np.full(10_000, HIGH)]))


def test_consolidate_refines_long_runs_of_wide_words() -> None:
    """The leading columns have a few values from all of 64 bits, so that the first word does not distinguish the rows."""
    rng = np.random.default_rng(7)
    wide = rng.integers(LOW, HIGH, 3)
    n = 5000
    columns = wide[rng.integers(0, 3, n)], wide[rng.integers(0, 3, n)] + rng.integers(0, 2, n), rng.integers(LOW, HIGH, n)
    rows = Rows(columns, [np.ones(n, np.int64)])
    doubled = Rows.concat([rows, rows])
    assert listed(consolidate(doubled)) == list(content(listed(doubled)).items())


def test_consolidated_rows_are_shared_not_copied() -> None:
    rows = make([((1, 2), (1,)), ((1, 3), (-1,))], 2, 1)
    batch = consolidate(rows)
    assert all(a is b for a, b in zip(batch.columns, rows.columns, strict=True))
    assert consolidate(batch) is batch


def test_sorted_rows_with_equal_or_zero_rows_are_still_consolidated() -> None:
    assert listed(consolidate(make([((1,), (1,)), ((1,), (2,)), ((2,), (0,))], 1, 1))) == [((1,), (3,))]
    assert listed(consolidate(make([((1,), (1,)), ((2,), (0,))], 1, 1))) == [((1,), (1,))]


@settings(deadline=None)
@given(tables(parts=3))
def test_merge_is_consolidate_of_concat(table: Table) -> None:
    columns, weights, parts = table
    rows = [make(part, columns, weights) for part in parts]
    merged = merge([consolidate(part) for part in rows])
    assert listed(merged) == listed(consolidate(Rows.concat(rows))) == list(content(flat(parts)).items())
    Batch(merged.columns, merged.weights)


@settings(deadline=None)
@given(tables(parts=3), st.integers(1, 9))
def test_resumed_merge_equals_merge_at_once(table: Table, fuel: int) -> None:
    columns, weights, parts = table
    batches = [consolidate(make(part, columns, weights)) for part in parts]
    running = Merge(batches)
    steps = 1
    while running.work(fuel) == 0:
        steps += 1
    assert steps <= 2 * sum(batch.length for batch in batches) // fuel + 3
    once, stepwise = merge(batches), running.result()
    assert listed(stepwise) == listed(once)
    if stepwise.length and columns:
        rebuilt = Spine.of(Batch.trusted(stepwise.columns, stepwise.weights))
        key = [stepwise.columns[0]]
        assert_same(lookup(Spine.of(stepwise), key, Counters()), lookup(rebuilt, key, Counters()))


def assert_same(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> None:
    assert [x.tolist() for x in left] == [x.tolist() for x in right]


def spine_of(parts: Sequence[Sequence[Record]], columns: int, weights: int) -> Spine:
    """A spine that keeps each part as a separate batch."""
    return Spine.over(columns, weights, [consolidate(make(part, columns, weights)) for part in parts])


@pytest.mark.parametrize("sizes", [(3000, 3000), (5_000, 40), (40, 5_000), (6000, 700, 90), (1, 2000)])
@pytest.mark.parametrize("spread", [3, 10**5, *slow(500, 2**62)])
@pytest.mark.parametrize("fuel", [700, 10**9])
def test_merge_of_long_and_short_runs(sizes: tuple[int, ...], spread: int, fuel: int) -> None:
    """Alternating rows, long runs, ties on the leading word, rows that cancel, NULL markers; and the index that is built along."""
    rng = np.random.default_rng([spread % 1009, *sizes])
    parts = [Rows([rng.integers(-spread, spread, n), rng.integers(0, 50, n)], [rng.integers(-2, 3, n)]) for n in sizes]
    for part in parts:
        part.columns[0][part.columns[0] == 1] = LOW
    cancelling = consolidate(parts[0])
    batches = [consolidate(part) for part in parts] + [Batch.trusted(cancelling.columns, [-cancelling.weights[0]])]
    running = Merge(batches)
    while running.work(fuel) == 0:
        pass
    merged = running.result()
    assert listed(merged) == list(content(flat(listed(part) for part in parts[1:])).items())
    keys = [np.concatenate([batch.columns[0] for batch in batches])]
    rebuilt = Batch.trusted(merged.columns, merged.weights)
    assert_same(lookup(Spine.of(merged), keys, Counters()), lookup(Spine.of(rebuilt), keys, Counters()))
    assert_same(lookup(Spine.of(merged), keys, Counters()), lookup(Spine.over(2, 1, batches), keys, Counters()))


@pytest.mark.parametrize("fuel", [1, 300, 10**9])
@pytest.mark.parametrize("weights", [1, 2])
def test_merge_of_rows_that_cancel_in_long_runs(weights: int, fuel: int) -> None:
    """Runs of all lengths cancel, between rows that only one side has and rows whose weights add up to something else."""
    rng = np.random.default_rng([weights, 7])
    numbers = np.arange(6000)
    pairs = [numbers // 100, numbers % 100]
    added = Batch.trusted(pairs, [np.where(numbers % 997 == 0, LOW + 1, 2)] * weights)
    kept, partial = np.zeros(6000, np.bool_), np.zeros(6000, np.bool_)
    for length in (1, 7, 8, 9, 40, 700):
        start = int(rng.integers(6000 - length))
        kept[start : start + length] = True
        partial[rng.integers(0, 6000, 2)] = True
    removed = Batch.trusted(
        [each[~kept] for each in pairs],
        [-added.weights[0][~kept], *([-added.weights[0][~kept] + partial[~kept]] if weights == 2 else [])],
    )
    running = Merge([added, removed])
    while running.work(fuel) == 0:
        pass
    rows = [listed(added), listed(removed)]
    assert listed(running.result()) == list(content(flat(rows)).items())


def test_the_least_weight_cancels_nothing() -> None:
    rows = [[((n, 1), (LOW if n == 12 else 1,)) for n in range(20)], [((n, 1), (LOW if n == 12 else -1,)) for n in range(20)]]
    with pytest.raises(WeightOverflow):
        merge([consolidate(make(part, 2, 1)) for part in rows])


@pytest.mark.parametrize("spread", [20, 3000, 2**62])
def test_many_keys_on_several_batches(spread: int) -> None:
    """More keys than a block has, on batches of all sizes: short and long buckets, heavy and missing keys."""
    rng = np.random.default_rng(spread % 1009)
    parts = [Rows([rng.integers(-spread, spread, n), rng.integers(0, 9, n)], [rng.integers(1, 3, n)]) for n in (40_000, 3000, 5)]
    batches = [consolidate(part) for part in parts]
    spine = Spine.over(2, 1, batches)
    keys = np.concatenate([rng.integers(-spread - 9, spread + 9, 700), batches[0].columns[0][:700], [LOW, HIGH]])
    sums: dict[int, int] = {}
    rows: dict[int, int] = {}
    for batch in batches:
        for key, weight in zip(batch.columns[0].tolist(), batch.weights[0].tolist(), strict=True):
            sums[key] = sums.get(key, 0) + weight
            rows[key] = rows.get(key, 0) + 1
    assert lookup(spine, [keys], Counters())[0].tolist() == [sums.get(key, 0) for key in keys.tolist()]
    source, (second,), _ = probe(spine, [keys], [1], Counters())
    assert np.bincount(source, minlength=len(keys)).tolist() == [rows.get(key, 0) for key in keys.tolist()]
    pairs = [keys[source], second]
    assert (lookup(spine, pairs, Counters())[0] > 0).all()
    whole, (leading, least), _ = first(spine, [keys], None, 1, Counters())
    assert keys[whole].tolist() == leading.tolist()
    smallest = {key: int(second[source == i].min()) for i, key in enumerate(keys.tolist()) if (source == i).any()}
    assert least.tolist() == [smallest[key] for key in leading.tolist()]


@settings(deadline=None)
@given(tables(parts=3), st.integers(0, 3), st.lists(st.tuples(words, words, words), max_size=8))
def test_lookup_and_probe_equal_a_scan(table: Table, width: int, strangers: list[tuple[int, int, int]]) -> None:
    columns, weights, parts = table
    width = min(width, columns)
    spine = spine_of(parts, columns, weights)
    records = flat(listed(batch) for batch in spine.batches)
    sought = [key[:width] for key, _ in records] + [stranger[:width] for stranger in strangers] if width else [()]
    keys = [np.array([key[c] for key in sought], np.int64) for c in range(width)]
    counters = Counters()
    sums = lookup(spine, keys, counters)
    for i, key in enumerate(sought):
        matches = [weight for row, weight in records if row[:width] == key]
        assert [int(s[i]) for s in sums] == [sum(w[j] for w in matches) for j in range(weights)]
    expected = list(range(columns))[::-1]
    source, matches, row_weights = probe(spine, keys, expected, counters)
    got = sorted(zip(source.tolist(), listed(Rows(matches, row_weights)), strict=True))
    want = sorted((i, (row[::-1], weight)) for i, key in enumerate(sought) for row, weight in records if row[:width] == key)
    assert got == want
    assert source.tolist() == sorted(source.tolist())
    assert counters.batches == 2 * len(spine.batches) and counters.touched >= len(want)


@settings(deadline=None)
@given(
    tables(parts=3, word=st.one_of(st.integers(-2, 2), st.sampled_from([LOW, HIGH]))),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(1, 6),
)
def test_first_equals_a_scan(table: Table, prefix: int, width: int, limit: int) -> None:
    columns, weights, parts = table
    prefix = min(prefix, columns)
    width = min(width, columns - prefix)
    spine = spine_of(parts, columns, weights)
    records = list(content(flat(listed(batch) for batch in spine.batches)).items())
    sought = sorted({key[: prefix + width] for key, _ in records} | {(-1, 0, 1)[: prefix + width]}) if prefix + width else [()]
    prefixes = [np.array([key[c] for key in sought], np.int64) for c in range(prefix)]
    starts = [np.array([key[prefix + c] for key in sought], np.int64) for c in range(width)]
    source, matches, row_weights = first(spine, prefixes, starts or None, limit, Counters())
    want = []
    for i, key in enumerate(sought):
        copies = 0
        for row, weight in records:
            if row[:prefix] == key[:prefix] and row[prefix:] >= key[prefix:] and weight[0] > 0 and copies < limit:
                want.append((i, (row, weight)))
                copies += weight[0]
    assert list(zip(source.tolist(), listed(Rows(matches, row_weights)), strict=True)) == want


@pytest.mark.parametrize("spine", [Spine(2, 1), spine_of([[((1, 2), (1,))]], 2, 1)])
def test_no_keys_have_no_matches(spine: Spine) -> None:
    none = [np.empty(0, np.int64)]
    assert_same(lookup(spine, none, Counters()), none)
    for source, columns, weights in (probe(spine, none, [0, 1], Counters()), first(spine, none, None, 3, Counters())):
        assert_same((source, *columns, *weights), none * 4)


def test_an_empty_spine_has_nothing() -> None:
    keys = [np.arange(3)]
    assert_same(lookup(Spine(1, 2), keys, Counters()), [np.zeros(3, np.int64)] * 2)
    assert len(probe(Spine(1, 1), keys, [0], Counters())[0]) == len(first(Spine(1, 1), keys, None, 1, Counters())[0]) == 0
    assert Spine(1, 2).scan(Counters()).length == 0


def test_first_grows_its_output() -> None:
    n = 3000
    spine = Spine.of(consolidate(Rows([np.repeat(np.arange(3), n // 3), np.arange(n)], [np.ones(n, np.int64)])))
    source, columns, _ = first(spine, [np.arange(3)], None, 10**15, Counters())
    assert source.tolist() == columns[0].tolist() and columns[1].tolist() == list(range(n))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2),
    st.lists(st.lists(st.tuples(st.tuples(st.integers(0, 60), st.integers(0, 1)), st.tuples(small_weights)), max_size=60), max_size=30),
)
@example(0, [[((1, 1), (1,))], [((1, 1), (-1,))]])
def test_spine_is_the_sum_of_its_appends(columns: int, appends: list[list[Record]]) -> None:
    """With tiny levels, so that merges of all levels run and overlap."""
    appends = [[(key[:columns], weight) for key, weight in part] for part in appends]
    base, levels_module.BASE = levels_module.BASE, 16
    least, levels_module.LEAST_FUEL = levels_module.LEAST_FUEL, 1
    try:
        spine = Spine(columns, 1)
        done: list[Record] = []
        for part in appends:
            snapshot, was = spine, list(content(done).items())
            spine = spine.appended(consolidate(make(part, columns, 1)))
            done += part
            assert listed(spine.scan(Counters())) == list(content(done).items())
            assert listed(snapshot.scan(Counters())) == was
            assert all(batch.length for batch in spine.batches)
    finally:
        levels_module.BASE, levels_module.LEAST_FUEL = base, least


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(-3, 3)), min_size=1, max_size=40))
def test_versions_keep_their_content_whichever_is_appended_to(appends: list[tuple[int, int]]) -> None:
    """As after ticks that failed: each append is to some version so far, often the newest."""
    versions: list[tuple[Spine, list[Record]]] = [(Spine(1, 1), [])]
    for number, (back, weight) in enumerate(appends):
        spine, records = versions[-1 if back > 20 else back % len(versions)]
        record = ((number % 5,), (weight or 1,))
        versions.append((spine.appended(consolidate(make([record], 1, 1))), [*records, record]))
    for spine, records in versions:
        assert dict(listed(spine.scan(Counters()))) == content(records)
        (sums,) = lookup(spine, [np.arange(5)], Counters())
        assert sums.tolist() == [content(records).get((key,), (0,))[0] for key in range(5)]


def test_few_batches_whatever_the_sizes() -> None:
    """At most SMALL_BATCHES_UNSOUGHT small ones, and about two for each level."""
    rng = np.random.default_rng(3)
    for size in (1, 37, 1200, 9000):
        spine = Spine(1, 1)
        most = 0
        for _ in range(200_000 // size if size > 1 else 3000):
            spine = spine.appended(consolidate(Rows([rng.integers(0, 2**40, size)], [np.ones(size, np.int64)])))
            most = max(most, len(spine.batches))
        assert most <= levels_module.SMALL_BATCHES_UNSOUGHT + 2 * 3
        assert sum(batch.length < levels_module.BASE for batch in spine.batches) <= levels_module.SMALL_BATCHES_UNSOUGHT


def test_bulk_appends_become_runs_at_once() -> None:
    n = 200_000
    spine = Spine(1, 1)
    spine = spine.appended(consolidate(Rows([np.arange(n)], [np.ones(n, np.int64)])))
    assert len(spine.batches) == 1
    spine = spine.appended(consolidate(Rows([np.arange(n)], [-np.ones(n, np.int64)])))
    assert not spine.batches
    spine = spine.appended(consolidate(Rows([np.array([5])], [np.array([1])])))
    assert listed(spine.scan(Counters())) == [((5,), (1,))]


@pytest.mark.parametrize("size", [CANCELLING_ROWS + 3, 5_000, 40_000])
def test_a_batch_that_cancels_most_rows_leaves_none_of_them(size: int) -> None:
    """Whichever levels they are in, also while these are merged."""
    rng, number = np.random.default_rng(size), np.arange(size)
    for parts in (1, 2, 30):
        spine = Spine(1, 1)
        for _ in range(5):
            for part in np.array_split(rng.permutation(number), parts):
                spine = spine.appended(consolidate(Rows([part], [np.ones(len(part), np.int64)])))
            before, kept = spine, number[:3]
            spine = spine.appended(consolidate(Rows([number[3:]], [-np.ones(size - 3, np.int64)])))
            assert spine.rows == 3 and before.rows >= size
            spine = spine.appended(consolidate(Rows([kept], [-np.ones(3, np.int64)])))
            assert not listed(spine.scan(Counters()))
    spine = Spine(1, 1).appended(consolidate(Rows([number], [np.full(size, HIGH)])))
    spine = spine.appended(consolidate(Rows([number], [np.full(size, -HIGH)])))
    assert not spine.batches


def overflowing(parts: Sequence[int]) -> list[Batch]:
    return [consolidate(Rows([np.array([7])], [np.array([1]), np.array([part])])) for part in parts]


def test_overflow_is_an_error_everywhere() -> None:
    rows = Rows([np.array([1, 1])], [np.array([HIGH, 1])])
    with pytest.raises(WeightOverflow, match="weight overflow: adding equal rows"):
        consolidate(rows)
    batches = overflowing([HIGH, 1])
    with pytest.raises(WeightOverflow, match="weight overflow: merging"):
        merge(batches)
    spine = Spine(1, 2)
    for batch in batches:
        spine = spine.appended(batch)
    for read in (lambda: lookup(spine, [np.array([7])], Counters()), lambda: first(spine, [np.array([7])], None, 9, Counters())):
        with pytest.raises(WeightOverflow, match="weight overflow: "):
            read()
    with pytest.raises(WeightOverflow, match=r"weight overflow: the product 2 \* 4611686018427387904"):
        multiply(np.array([1, 2]), np.array([HIGH, 2**62]))
    with pytest.raises(WeightOverflow, match="weight overflow: the sum"):
        add_checked(np.array([LOW]), np.array([-1]))
    assert multiply(np.array([LOW, 3]), np.array([1, -3])).tolist() == [LOW, -9]
    assert add_checked(np.array([HIGH]), np.array([LOW])).tolist() == [-1]


def test_only_the_total_must_fit() -> None:
    rows = Rows([np.zeros(4, np.int64)], [np.array([HIGH, HIGH, LOW, LOW])])
    assert listed(consolidate(rows)) == [((0,), (-2,))]
    spine = spine_of([listed(batch) for batch in overflowing([HIGH, 5, -5])], 1, 2)
    assert [int(x[0]) for x in lookup(spine, [np.array([7])], Counters())] == [3, HIGH]


@pytest.mark.parametrize("rows", [0, 3000])
def test_batches_are_merged_if_only_a_sum_of_some_leaves_64_bits(rows: int) -> None:
    """Two at a time, the smallest first, +HIGH and +HIGH are added before the larger batch with -HIGH."""
    larger = [((7,), (-HIGH,)), *(((key,), (1,)) for key in range(10, rows + 10))]
    batches = [consolidate(make(records, 1, 1)) for records in (larger, [((7,), (HIGH,))], [((7,), (HIGH,)), ((8,), (1,))])]
    assert listed(merge(batches)) == list(content(flat([larger, [((7,), (HIGH,)), ((7,), (HIGH,)), ((8,), (1,))]])).items())
    with pytest.raises(WeightOverflow):
        merge([*batches, batches[-1]])


@pytest.mark.parametrize("size", [1, 9, 40])
def test_a_spine_has_few_batches_whatever_partial_sums_leave_64_bits(size: int) -> None:
    """With tiny levels, and weights of which every total fits, but seldom the sum of some."""
    rng = np.random.default_rng(size)
    base, levels_module.BASE = levels_module.BASE, 16
    least, levels_module.LEAST_FUEL = levels_module.LEAST_FUEL, 1
    try:
        spine, totals = Spine(1, 1), dict.fromkeys(range(60), 0)
        for _ in range(300):
            part = []
            for key in rng.choice(60, size, replace=False).tolist():
                weight = int(rng.integers(max(LOW, LOW - totals[key]), min(HIGH, HIGH - totals[key]), endpoint=True))
                totals[key] += weight
                part.append(((key,), (weight,)))
            spine = spine.appended(consolidate(make(part, 1, 1)))
            assert listed(spine.scan(Counters())) == [((key,), (total,)) for key, total in totals.items() if total]
            assert len(spine.batches) <= levels_module.SMALL_BATCHES_UNSOUGHT + 4
    finally:
        levels_module.BASE, levels_module.LEAST_FUEL = base, least


def test_a_failed_append_does_not_change_the_spine() -> None:
    spine = Spine(1, 2)
    good = overflowing([HIGH])[0]
    spine = spine.appended(good)
    for _ in range(3):
        spine = spine.appended(consolidate(Rows([np.array([8])], [np.array([1]), np.array([1])])))
    before = spine.batches
    bad = overflowing([HIGH])[0]
    with pytest.raises(WeightOverflow):
        for _ in range(40):
            before = spine.batches
            spine = spine.appended(bad)
    assert spine.batches == before


@settings(deadline=None)
@given(tables(), st.integers(1, 5))
def test_partition_keeps_rows_and_keys_together(table: Table, shards: int) -> None:
    columns, weights, [records] = table
    key = list(range(columns))[:2]
    parts = partition(make(records, columns, weights), key, shards)
    assert len(parts) == shards
    assert sorted(flat(listed(part) for part in parts)) == sorted(records)
    homes: dict[tuple[int, ...], int] = {}
    for shard, part in enumerate(parts):
        for row, _ in listed(part):
            assert homes.setdefault(row[:2], shard) == shard
        assert listed(part) == [record for record in records if homes.get(record[0][:2]) == shard]


def test_partition_spreads_and_is_the_same_everywhere() -> None:
    n = 40_000
    rows = Rows([np.arange(n) * 64], [np.ones(n, np.int64)])
    sizes = [part.length for part in partition(rows, [0], 8)]
    assert min(sizes) > n / 8 * 0.9
    nulls = Rows([np.array([LOW, 0])], [np.array([1, 1])])
    assert sorted(part.length for part in partition(nulls, [0], 3)) == [0, 0, 2]
    assert [part.columns[0].tolist() for part in partition(Rows([np.arange(10)], [np.ones(10, np.int64)]), [0], 3)] == [
        [6, 7, 8, 9],
        [0],
        [1, 2, 3, 4, 5],
    ]


def test_rows_select_take_concat_and_pickle() -> None:
    rows = make([((1, 2), (3,)), ((4, 5), (6,))], 2, 1)
    assert listed(rows.select([1, 0])) == [((2, 1), (3,)), ((5, 4), (6,))]
    assert listed(rows.take(np.array([1]))) == [((4, 5), (6,))]
    assert listed(Rows.concat([Rows.empty(2, 1), rows, rows])) == listed(rows) * 2
    batch = consolidate(rows)
    batch.table, batch.entry  # noqa: B018  a pickle must not carry addresses
    again = pickle.loads(pickle.dumps(batch))
    assert listed(again) == listed(batch) and again._table is None


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros(6, np.int64)[::2], np.zeros(2, np.int64), np.zeros((3, 1), np.int64)])
def test_an_invalid_column_never_reaches_a_kernel(bad: np.ndarray) -> None:
    with pytest.raises((TypeError, ValueError)):
        consolidate(Rows([bad], [np.ones(3, np.int64)]))


def test_unsorted_arrays_are_refused() -> None:
    with pytest.raises(AssertionError):
        Batch([np.array([2, 1])], [np.array([1, 1])])


def test_read_only_arrays_with_a_stored_index_make_a_batch() -> None:
    batch = consolidate(Rows([np.array([LOW, 5, 9])], [np.array([1, 2, 3])]))
    arrays = [array.copy() for array in (*batch.columns, *batch.weights, batch.index)]
    for array in arrays:
        array.flags.writeable = False
    mapped = Batch.trusted(arrays[:1], arrays[1:2], arrays[2])
    assert lookup(Spine.of(mapped), [np.array([9, LOW, 6])], Counters())[0].tolist() == [3, 1, 0]


def test_concurrent_readers_build_one_index(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.arange(100)
    batch = Batch([keys], [np.ones(100, np.int64)])
    build = Batch._built_index
    others: list[threading.Thread] = []

    def slowly(batch: Batch) -> Words:
        """Another thread asks meanwhile; it has a moment to build one too."""
        index = build(batch)
        if not others:
            others.append(threading.Thread(target=lambda: batch.entry))
            others[0].start()
            others[0].join(0.1)
        return index

    monkeypatch.setattr(Batch, "_built_index", slowly)
    index = batch.index
    others[0].join()
    assert batch.index is index
    assert batch.entry[BATCH_INDEX] == address(index)
