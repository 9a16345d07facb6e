"""The laws of tries, and of what they propose."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltic.errors import DataError, ImpureFunction, WeightOverflow
from deltic.wcoj.extender import TrieExtender, VariableLevel
from deltic.wcoj.trie import IndexedZSetTrie, Prefix, Row, Trie, ZSetTrie, empty, trie

KEYS = st.integers(0, 3)
WEIGHTS = st.integers(-3, 3)
ZSETS = st.dictionaries(KEYS, WEIGHTS).map(ZSetTrie)
ROWS = st.dictionaries(st.tuples(KEYS, KEYS, KEYS), WEIGHTS, max_size=12)
PREFIXES = st.lists(KEYS, max_size=2).map(tuple)
LAW = settings(max_examples=30, deadline=None)
LEVELS = (VariableLevel(0), VariableLevel(1), VariableLevel(2))


def made(rows: dict[Row, int]) -> Trie:
    return trie(rows.items(), 3)


def content(node: Trie) -> dict[Row, int]:
    return dict(node.rows())


@LAW
@given(ROWS)
def test_a_trie_has_the_rows_that_it_is_made_of(rows: dict[Row, int]) -> None:
    assert content(made(rows)) == {row: weight for row, weight in rows.items() if weight}


@LAW
@given(ROWS, PREFIXES)
def test_get_by_prefix_has_what_begins_with_it(rows: dict[Row, int], prefix: Prefix) -> None:
    under = made(rows).get_by_prefix(prefix)
    assert under.depth == 3 - len(prefix)
    assert content(under) == {row[len(prefix) :]: w for row, w in rows.items() if w and row[: len(prefix)] == prefix}


@LAW
@given(ROWS, PREFIXES)
def test_a_zset_view_has_weights_at_the_last_level_alone(rows: dict[Row, int], prefix: Prefix) -> None:
    node = made(rows).get_by_prefix(prefix)
    view = node.as_zset_view()
    keys = {row[len(prefix)]: w if len(prefix) == 2 else 1 for row, w in rows.items() if w and row[: len(prefix)] == prefix}
    assert view == ZSetTrie(keys) and all(node.weight(key) == view.weight(key) for key in range(4))


@LAW
@given(ROWS, ROWS)
def test_absorbing_is_adding_and_undone_by_the_negative(one: dict[Row, int], other: dict[Row, int]) -> None:
    both = made(one)
    for row, weight in other.items():
        both.absorb(row, weight)
    assert content(both) == {row: w for row in {*one, *other} if (w := one.get(row, 0) + other.get(row, 0))}
    for row, weight in other.items():
        both.absorb(row, -weight)
    assert both == made(one)
    for row, weight in one.items():
        both.absorb(row, -weight)
    assert both == empty(3) and len(both) == 0


@LAW
@given(ROWS)
def test_extending_leaves_extends_each_path_by_its_own_zset(rows: dict[Row, int]) -> None:
    def function(path: Prefix, weight: int) -> ZSetTrie:
        return ZSetTrie({key: weight * (key - path[-1]) for key in range(4)})

    extended = made(rows).extend_leaves(function)
    assert extended.depth == 4
    assert content(extended) == {(*row, key): w * (key - row[-1]) for row, w in rows.items() for key in range(4) if w and key != row[-1]}


@LAW
@given(ZSETS, ZSETS, ZSETS)
def test_zsets_are_a_ring_of_functions(a: ZSetTrie, b: ZSetTrie, c: ZSetTrie) -> None:
    assert a.plus(b) == b.plus(a) and a.plus(b).plus(c) == a.plus(b.plus(c)) and a.plus(a.times(-1)) == ZSetTrie()
    assert a.equi_join(b) == b.equi_join(a) and a.equi_join(b).equi_join(c) == a.equi_join(b.equi_join(c))
    assert a.equi_join(b.plus(c)) == a.equi_join(b).plus(a.equi_join(c))


@LAW
@given(ROWS, PREFIXES, ZSETS)
def test_to_intersect_is_to_join_with_what_is_proposed(rows: dict[Row, int], prefix: Prefix, extensions: ZSetTrie) -> None:
    extender = TrieExtender((made(rows),), (), LEVELS)
    assert extender.intersect(prefix, extensions) == extensions.equi_join(extender.propose(prefix))
    assert extender.count(prefix) == len(extender.propose(prefix))


@LAW
@given(ROWS, ROWS, PREFIXES, ZSETS)
def test_old_and_change_are_the_new_version_and_inner_levels_at_most_say_too_much(
    old: dict[Row, int], change: dict[Row, int], prefix: Prefix, extensions: ZSetTrie
) -> None:
    parts = TrieExtender((made(old), made(change)), (), LEVELS)
    whole = TrieExtender((trie([*old.items(), *change.items()], 3),), (), LEVELS)
    proposed, right = parts.propose(prefix), whole.propose(prefix)
    assert {*right} <= {*proposed} and all(proposed.weight(key) == right.weight(key) for key in right)
    assert len(prefix) < 2 or proposed == right
    assert parts.count(prefix) >= len(proposed)
    assert parts.intersect(prefix, extensions) == extensions.equi_join(proposed)


def test_an_extender_reads_its_own_variables_of_a_prefix() -> None:
    """[?b :to ?d] in the order a, b, c, d."""
    facts = trie([((":to", 5, 6), 2), ((":at", 5, 7), 1)])
    extender = TrieExtender((facts,), (":to",), (VariableLevel(1), VariableLevel(3)))
    assert extender.propose(("a",)) == ZSetTrie({5: 1})
    assert extender.propose(("a", 5, "c")) == ZSetTrie({6: 2}) and extender.propose(("a", 6, "c")) == ZSetTrie()


def test_a_variable_of_two_columns_has_the_values_that_both_have() -> None:
    rows = trie([((a, b), a + 1) for a, b in product(range(3), range(3)) if a <= b])
    extender = TrieExtender((rows,), (), (VariableLevel(0, 2),))
    assert extender.propose(()) == ZSetTrie({0: 1, 1: 2, 2: 3})
    assert extender.intersect((), ZSetTrie({1: 5, 7: 1})) == ZSetTrie({1: 10}) and extender.count(()) == 3


def test_a_prefix_beyond_the_last_level_is_refused() -> None:
    for node in (ZSetTrie({1: 1}), trie([((1, 2), 1)])):
        with pytest.raises(DataError, match="is longer than the paths"):
            node.get_by_prefix((1, 2, 3))


@pytest.mark.usefixtures("repeated_calls")
def test_a_function_with_two_answers_is_refused() -> None:
    answers = iter(range(100))
    with pytest.raises(ImpureFunction):
        ZSetTrie({1: 1}).extend_leaves(lambda path, weight: ZSetTrie({next(answers): 1}))


def test_weights_beyond_64_bits_are_refused() -> None:
    large = ZSetTrie({1: 2**62})
    for overflow in (lambda: large.times(2), lambda: large.plus(large), lambda: large.equi_join(ZSetTrie({1: 2}))):
        with pytest.raises(WeightOverflow):
            overflow()
    with pytest.raises(WeightOverflow, match="z⁻¹"):
        TrieExtender((large, large), (), (VariableLevel(0),)).propose(())
    assert isinstance(trie([((1, 2), 1)]), IndexedZSetTrie)
