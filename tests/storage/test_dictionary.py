from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deltic.storage.dictionary import NULL_ID, Dictionary, named
from deltic.trace.rows import Rows
from stored import dictionary_of

STRINGS = st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), st.integers(-(2**40), 2**40), max_size=20).filter(
    lambda actual: len(set(actual.values())) == len(actual)
)


def _content(dictionary: Dictionary) -> dict[int, bytes]:
    return dict(zip(dictionary.ids.tolist(), dictionary.values.to_pylist(), strict=True))


@given(STRINGS)
def test_export_and_of_are_inverse_and_ids_ascend(strings: dict[str, int]) -> None:
    dictionary = dictionary_of(**strings)
    assert _content(dictionary) == {i: s.encode() for s, i in strings.items()}
    assert dictionary.ids.tolist() == sorted(strings.values())
    assert _content(Dictionary.of(dictionary.export())) == _content(dictionary)


@given(STRINGS, st.data())
def test_restrict_and_union(strings: dict[str, int], data: st.DataObject) -> None:
    some = data.draw(st.sets(st.sampled_from(sorted(strings))) if strings else st.just(set()))
    whole = dictionary_of(**strings)
    expected = np.array([strings[s] for s in some] + [2**50], np.int64)
    part, rest = whole.restrict(expected), whole.restrict(np.setdiff1d(whole.ids, expected))
    assert _content(part) == {strings[s]: s.encode() for s in some}
    assert _content(Dictionary.union([rest, part, whole])) == _content(whole)


def test_find() -> None:
    here, at = dictionary_of(a=5, b=9).find(np.array([9, 4, 5, 10], np.int64))
    assert here.tolist() == [True, False, True, False]
    assert at[here].tolist() == [1, 0]
    assert not Dictionary.empty().find(np.array([1], np.int64))[0].any()


def test_named_skips_null_and_other_columns() -> None:
    words = [np.array(column, np.int64) for column in ([3, NULL_ID, 3], [1, 1, 1], [7, 3, NULL_ID])]
    rows = Rows(words, [np.ones(3, np.int64)])
    assert sorted(named(rows, (0, 2)).tolist()) == [3, 7]
    assert named(rows, ()).tolist() == []
