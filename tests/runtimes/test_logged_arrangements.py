"""Arrangements above a commit log: whatever has been read between its epochs, each version is the sum of the files and of its epochs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from deltic.runtimes.durable.logged import LoggedArrangements
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import Content, Origin, write_file
from deltic.storage.manifest import SegmentRef
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.probe import lookup
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from seeds import rotating

NAMES = ("read", "sometimes", "never", "new")


def random_batch(random: np.random.Generator, most: int) -> Batch:
    n = int(random.integers(1, most))
    return consolidate(
        Rows([random.integers(0, 30, n), random.integers(0, 5, n)], [random.integers(1, 3, n) - 3 * random.integers(0, 2, n)])
    )


def listed(batch: Batch) -> dict[tuple[int, ...], int]:
    keys = zip(*(column.tolist() for column in batch.columns), strict=True)
    return dict(zip(keys, batch.weights[0].tolist(), strict=True))


def stored(root: Path, batches: Mapping[str, Batch]) -> ShardArrangements:
    (root / "data").mkdir()
    ref = write_file(str(root), Origin(1, 1, 0, 0), [Content(name, batch) for name, batch in batches.items()], Dictionary.empty())
    segments = {name: [SegmentRef(0, name, ref.name, len(batch))] for name, batch in batches.items()}
    return ShardArrangements(OpenFiles(str(root)), {ref.name: ref}, segments, dict.fromkeys(NAMES, (2, 1)))


def check(arrangements: LoggedArrangements, name: str, batches: list[Batch]) -> None:
    expected = listed(merge([*batches, Batch.empty(2, 1)]))
    spine = arrangements[name]
    assert listed(spine.scan(Counters())) == expected
    keys = np.arange(30)
    totals = [sum(weight for (key, _), weight in expected.items() if key == word) for word in keys.tolist()]
    assert lookup(spine, [keys], Counters())[0].tolist() == totals
    place, count = spine.located
    assert (place, count) == (spine.view[1].ctypes.data, len(spine.batches))


@pytest.mark.parametrize("seed", rotating(8))
def test_each_version_is_the_sum_of_files_and_epochs(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    files = {name: random_batch(random, 200) for name in NAMES[:3]}
    versions = [(LoggedArrangements(stored(tmp_path, files)), {name: [batch] for name, batch in files.items()})]
    for _ in range(60):
        newest = len(versions) - 1 if random.random() < 0.9 else int(random.integers(len(versions)))  # a failed tick is followed by another
        arrangements, content = versions[newest]
        appended = {name: random_batch(random, 60) for name in NAMES if random.random() < 0.7}
        after = {name: [*content.get(name, ()), *([appended[name]] if name in appended else [])] for name in NAMES}
        versions.append((arrangements.appended(appended), after))
        check(versions[-1][0], "read", after["read"])
        if random.random() < 0.2:
            check(versions[-1][0], "sometimes", after["sometimes"])
    for arrangements, content in versions:
        for name in NAMES:
            check(arrangements, name, content.get(name, []))


def test_rows_of_the_log_are_those_above_the_files(tmp_path: Path) -> None:
    first, second = (consolidate(Rows([np.arange(i, i + 3)] * 2, [np.ones(3, np.int64)])) for i in (0, 10))
    arrangements = LoggedArrangements(stored(tmp_path, {"read": first}))
    assert arrangements.above("read") == arrangements.above("new") == 0
    arrangements = arrangements.appended({"read": second})
    for _ in range(2):
        assert arrangements.above("read") == 3
        assert arrangements["read"].rows == 6
    arrangements = arrangements.appended({"read": consolidate(Rows([np.arange(20, 24)] * 2, [np.ones(4, np.int64)])), "new": first})
    assert (arrangements.above("read"), arrangements.above("new")) == (7, 3)


def test_batches_of_files_are_not_merged_with_those_of_the_log(tmp_path: Path) -> None:
    batch = random_batch(np.random.default_rng(1), 200)
    arrangements = LoggedArrangements(stored(tmp_path, {"read": batch}))
    below = arrangements["read"].batches
    for i in range(100):
        arrangements = arrangements.appended({"read": consolidate(Rows([np.array([i]), np.array([9])], [np.array([1])]))})
        spine: Spine = arrangements["read"]
        assert spine.batches[: len(below)] == below
    assert len(arrangements["read"].batches) < 40
