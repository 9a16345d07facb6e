"""Each worked example of the published text on linear operators, corrected where it errs."""

from collections.abc import Iterable
from random import Random

from deltic.dbsp.linear import Logic, explode, filter, flat_map, followed_by, join_function, map, temporal_filter
from deltic.dbsp.operators import minus, plus
from deltic.dbsp.zset import IndexedZSet, ZSet

NAMES = ZSet.of([("frank", 6, 1), ("frank", 8, 1), ("david", 8, 1), ("frank", 9, -2)])


def content(stream: ZSet, time: int) -> dict[object, int]:
    """The collection at `time`: the sum of the changes until then."""
    return {row: weight for (row, _), weight in ZSet.of((row, None, w) for row, t, w in stream.triples() if t <= (time,)).items()}


def test_a_collection_is_the_sum_of_its_changes() -> None:
    assert [content(NAMES, time) for time in (5, 6, 7, 8, 9)] == [
        {},
        {"frank": 1},
        {"frank": 1},
        {"david": 1, "frank": 2},
        {"david": 1},
    ]


def test_changes_are_the_differences_of_collections() -> None:
    moments = [ZSet.of((row, time, w) for row, w in content(NAMES, time).items()) for time in range(10)]
    at_one = [ZSet.of((row, None, w) for (row, _), w in moment.items()) for moment in moments]
    changes = [minus(now, before) for before, now in zip([ZSet(), *at_one], at_one, strict=False)]
    assert ZSet.of((row, time, w) for time, change in enumerate(changes) for row, _, w in change.triples()) == NAMES


def test_map_of_the_example() -> None:
    expected = [(("frank", 5), 6, 1), (("frank", 5), 8, 1), (("david", 5), 8, 1), (("frank", 5), 9, -2)]
    assert join_function(map(lambda x: (x, len(x))), NAMES) == ZSet.of(expected)


def test_filter_is_a_join_function() -> None:
    assert join_function(filter(lambda x: x < "e"), NAMES) == ZSet.of([("david", 8, 1)])


def test_flat_map_is_a_join_function() -> None:
    assert join_function(flat_map(lambda x: x[:2]), ZSet.of([("ab", 3, 2)])) == ZSet.of([("a", 3, 2), ("b", 3, 2)])


def test_explode_multiplies_weights() -> None:
    counts = ZSet.of([(("x", 1_000_000), 1, 1), (("y", -2), 1, 3), (("x", 1_000_000), 4, -1)])
    expected = [("x", 1, 1_000_000), ("y", 1, -6), ("x", 4, -1_000_000)]
    assert join_function(explode(lambda row: [row]), counts) == ZSet.of(expected)


def test_temporal_filter_takes_the_later_of_both_times() -> None:
    """(data, lower, +1), (data, upper, -1), neither before the change itself; an empty interval gives nothing."""
    window = temporal_filter(lambda row: row[0], lambda row: row[1])
    assert join_function(window, ZSet.of([((2, 5), 0, 1)])) == ZSet.of([((2, 5), 2, 1), ((2, 5), 5, -1)])
    assert join_function(window, ZSet.of([((2, 5), 3, 2)])) == ZSet.of([((2, 5), 3, 2), ((2, 5), 5, -2)])
    assert not join_function(window, ZSet.of([((2, 5), 7, 1), ((5, 5), 0, 1), ((6, 5), 0, 1)]))
    inserted_and_deleted = ZSet.of([((2, 5), 0, 1), ((2, 5), 3, -1)])
    assert [bool(content(join_function(window, inserted_and_deleted), t)) for t in range(6)] == [False, False, True, False, False, False]


def test_copies_from_one_time_until_another() -> None:
    """The example of join_function: x copies of 2x from time 3x until 4x."""
    logic = lambda x: [(2 * x, 3 * x, x), (2 * x, 4 * x, -x)]  # noqa: E731
    stream = join_function(logic, ZSet.of([(x, 0, 1) for x in range(10)]))
    for time in range(42):
        assert content(stream, time) == {2 * x: x for x in range(1, 10) if 3 * x <= time < 4 * x}


def test_join_function_is_a_join_with_a_large_collection() -> None:
    """LARGE has (data, value) at value's time and weight: joined on data, times are joined and weights multiplied."""
    logic: Logic = lambda x: [(x % 3, x, 2), (-x, 3, -1)]  # noqa: E731
    stream = ZSet.of([(1, 2, 1), (4, 0, -3), (5, 6, 2)])
    large = IndexedZSet.of([((x, row), time, weight) for x in range(10) for row, time, weight in logic(x)])
    joined = [
        (row, max(time[0], due[0]), weight * w)
        for x, time, weight in stream.triples()
        for (key, row), due, w in large.triples()
        if key == x and time and due
    ]
    assert join_function(logic, stream) == ZSet.of(joined)


def random_logic(random: Random) -> Logic:
    a, b, c = (random.randrange(5) for _ in range(3))

    def logic(x: int) -> Iterable[tuple[int, int, int]]:
        return [((x + i * a) % 5, (b * x + i) % 4, c - i - 1) for i in range(random_width)]

    random_width = random.randrange(3)
    return logic


def random_stream(random: Random) -> ZSet:
    return ZSet.of([(random.randrange(5), random.randrange(4), random.randrange(-2, 3)) for _ in range(6)])


def test_random_logics_are_linear_and_fuse() -> None:
    """OP(x + y) = OP(x) + OP(y), and a chain of three is one pass of what they are fused to."""
    random = Random(904)
    for _ in range(200):
        one, other = random_stream(random), random_stream(random)
        logics = [random_logic(random) for _ in range(3)]
        assert join_function(logics[0], plus(one, other)) == plus(join_function(logics[0], one), join_function(logics[0], other))
        chained = one
        for logic in logics:
            chained = join_function(logic, chained)
        assert join_function(followed_by(*logics), one) == chained


def test_a_chain_with_a_temporal_filter_is_one_pass() -> None:
    window = temporal_filter(lambda row: row[0], lambda row: row[1])
    chain = followed_by(map(lambda x: (x, x + 3)), window, filter(lambda row: row[0] != 1), explode(lambda row: [(row[0], -2)]))
    assert join_function(chain, ZSet.of([(1, 0, 1), (2, 4, 5)])) == ZSet.of([(2, 4, -10), (2, 5, 10)])


def test_table_functions_are_join_functions() -> None:
    """generate_series makes rows and a counter, repeat_row copies, negative ones too."""
    series = flat_map(lambda row: [(row[0], i) for i in range(1, row[1] + 1)])
    assert join_function(series, ZSet.of([(("a", 3), 0, 1)])) == ZSet.of([(("a", i), 0, 1) for i in (1, 2, 3)])
    assert join_function(explode(lambda row: [(row[0], row[1])]), ZSet.of([(("a", -2), 0, 1)])) == ZSet.of([("a", 0, -2)])
