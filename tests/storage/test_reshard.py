"""Resharding: over all shards each row is found once, at the shard that its hash says, whatever the numbers of shards and the merges."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, DataFile, write_file
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.merging import merge_segments, own_rows
from deltic.storage.reshard import resharded, torn
from deltic.storage.state import State
from deltic.trace.batch import Batch
from deltic.trace.partition import partition
from deltic.trace.rows import Rows
from stored import as_rows, batch_of

SPREAD = {"a": [0], "home": [], "any": None, "every": None}
NOTE = {
    "arrangements": {
        name: {"columns": 1, "weights": 1, "partition": where, "view": None, "table": None}
        | ({"replicated": True} if name == "every" else {})
        for name, where in SPREAD.items()
    }
}


def hashed(keys: list[int], shards: int) -> list[list[int]]:
    rows = Rows([np.array(keys, np.int64)], [np.ones(len(keys), np.int64)])
    return [part.columns[0].tolist() for part in partition(rows, [0], shards)]


def append(state: State, keys: list[int]) -> None:
    """One epoch with these rows in every arrangement, where they belong."""
    files, added = [], []
    for shard, own in enumerate(hashed(keys, state.manifest.shards)):
        contents = [Content("a", _batch(own))] if own else []
        contents += [Content("home", _batch(keys))] if not shard else []
        contents += [Content("any", _batch(keys))] if shard == state.manifest.shards - 1 else []
        contents += [Content("every", _batch(keys))]
        ref = write_file(state.root, state.origin(shard, 0), contents, Dictionary.empty())
        files.append(ref)
        added += [SegmentRef(shard, content.arrangement, ref.name, len(content.batch)) for content in contents]
    state.commit(Change(tuple(files), tuple(added)))


def _batch(keys: list[int]) -> Batch:
    return batch_of(*((key, 1) for key in sorted(keys)))


def merge_some(state: State, shard: int, arrangement: str, count: int) -> None:
    """The last `count` batches become one."""
    chosen = state.manifest.shard_states[shard].get(arrangement, ())[-count:]
    if not chosen:
        return
    file, segment = merge_segments(
        state.root, state.manifest.files, chosen, state.origin(shard, 0), partition=SPREAD[arrangement], shards=state.manifest.shards
    )
    assert segment is None or not segment.ranged
    state.commit(Change(() if file is None else (file,), () if segment is None else (segment,), tuple(chosen)))


def content(state: State, arrangement: str) -> list[Counter[int]]:
    """The rows of each shard."""
    manifest = state.manifest
    batches = []
    for shard_state in manifest.shard_states:
        rows: Counter[int] = Counter()
        for segment in shard_state.get(arrangement, ()):
            batch = DataFile(state.root, manifest.files[segment.file]).batch(arrangement)
            rows.update({key: weight for key, weight in as_rows(own_rows(batch, segment, SPREAD[arrangement], manifest.shards))})
        batches.append(rows)
    return batches


def check(state: State, keys: list[int]) -> None:
    shards = state.manifest.shards
    assert content(state, "a") == [Counter(own) for own in hashed(keys, shards)]
    assert content(state, "home") == [Counter(keys), *([Counter[int]()] * (shards - 1))]
    assert sum(content(state, "any"), Counter[int]()) == Counter(keys)
    assert content(state, "every") == [Counter(keys)] * shards
    assert set(state.manifest.files) == {segment.file for segment in state.manifest.segments()} == set(state.manifest.uses)


STEP = st.one_of(
    st.tuples(st.just("reshard"), st.integers(1, 5)),
    st.tuples(st.just("append"), st.integers(1, 30)),
    st.tuples(st.just("merge"), st.integers(0, 4), st.sampled_from(sorted(SPREAD)), st.integers(1, 3)),
)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.lists(STEP, max_size=12))
def test_each_row_occurs_once_after_any_sequence_of_reshards_and_merges(
    tmp_path_factory: pytest.TempPathFactory, shards: int, steps: list[tuple]
) -> None:
    root = tmp_path_factory.mktemp("state")
    state = State.open(root, shards=shards, facts=NOTE)
    keys = list(range(20))
    append(state, keys)
    for kind, *what in steps:
        if kind == "append":
            new = list(range(len(keys), len(keys) + what[0]))
            append(state, new)
            keys += new
        elif kind == "merge" and what[0] < state.manifest.shards:
            merge_some(state, *what)
        elif kind == "reshard":
            state.close()
            state = State.open(root, shards=what[0], retain=2)
            assert state.manifest.shards == what[0]
        check(state, keys)
    state.close()
    again = State.open(root)
    check(again, keys)
    again.close()


def test_twice_as_many_shards_write_no_data(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=2, facts=NOTE)
    append(state, list(range(50)))
    before = set((tmp_path / "data").iterdir())
    state.close()
    again = State.open(tmp_path, shards=4)
    assert set((tmp_path / "data").iterdir()) == before
    assert [[s.ranged for s in shard_state["a"]] for shard_state in again.manifest.shard_states] == [[2]] * 4
    assert [len(shard_state.get("home", ())) for shard_state in again.manifest.shard_states] == [1, 0, 0, 0]


def test_half_as_many_shards_need_no_filter(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=4, facts=NOTE)
    append(state, list(range(50)))
    state.close()
    again = State.open(tmp_path, shards=2)
    assert not any(segment.ranged for segment in again.manifest.segments())
    check(again, list(range(50)))


def test_resharding_back_restores_the_state() -> None:
    segments = tuple(SegmentRef(shard, "a", f"f{shard}", 5) for shard in range(3))
    manifest = Manifest.before(3).after(Change(added=segments, notes=NOTE), 1)
    there = resharded(manifest, 6)
    assert [sorted(s.file for s in shard_state["a"]) for shard_state in there.shard_states] == [["f0"], ["f1"], ["f2"]] * 2
    back = resharded(there, 3)
    assert (back.shard_states, back.uses) == (manifest.shard_states, manifest.uses)
    assert not any(segment.ranged for segment in back.segments())


def test_a_file_is_kept_while_any_shard_lists_it(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=1, facts=NOTE)
    append(state, list(range(50)))
    state.close()
    again = State.open(tmp_path, shards=3, retain=0)
    (shared,) = {segment.file for segment in again.manifest.segments() if segment.arrangement == "a"}
    for shard in range(3):
        assert (tmp_path / "data" / shared).exists()
        merge_some(again, shard, "a", 1)
    for shard, name in [(0, "home"), (0, "any"), (0, "every"), (1, "every"), (2, "every")]:
        assert (tmp_path / "data" / shared).exists()
        merge_some(again, shard, name, 1)
    check(again, list(range(50)))
    assert not (tmp_path / "data" / shared).exists()


def test_replicated_segments_are_taken_from_the_first_shard(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=3, facts=NOTE)
    append(state, list(range(50)))
    written = [shard_state["every"][0].file for shard_state in state.manifest.shard_states]
    for shard, name in [(1, "a"), (2, "a"), (2, "any")]:
        merge_some(state, shard, name, 1)
    state.close()
    again = State.open(tmp_path, shards=2, retain=0)
    assert [[segment.file for segment in shard_state["every"]] for shard_state in again.manifest.shard_states] == [[written[0]]] * 2
    check(again, list(range(50)))
    again.commit(Change())
    assert [(tmp_path / "data" / name).exists() for name in written] == [True, False, False]


def test_split_segments_are_merged_first(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=1, facts=NOTE)
    append(state, list(range(50)))
    state.close()
    state = State.open(tmp_path, shards=3)
    assert not list(torn(state.manifest))
    merge_some(state, 1, "a", 1)
    assert [group[0].shard for group in torn(state.manifest)] == [0, 2]
    state.close()
    again = State.open(tmp_path, shards=2)
    assert again.epoch == state.epoch + 3
    check(again, list(range(50)))


def test_past_epochs_keep_their_shards(tmp_path: Path) -> None:
    state = State.open(tmp_path, shards=2, facts=NOTE, whole_every=1000)
    append(state, list(range(10)))
    state.close()
    State.open(tmp_path, shards=3).close()
    append(again := State.open(tmp_path), list(range(10, 20)))
    again.close()
    check(State.open(tmp_path), list(range(20)))
