"""Large batches and dictionaries are verified page by page, as they are read: no more than that, and nothing less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from deltic.errors import CorruptState
from deltic.kernels.table import address
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import GUARDED_ROWS, Content, DataFile, FileRef, Origin, write_file
from deltic.storage.layout import FileBlock, stored_bytes
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.guard import AHEAD, OFTEN, PAGE_BYTES
from deltic.trace.merge import merge
from deltic.trace.paging import Paging
from deltic.trace.probe import first, lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

ROWS = 3 * GUARDED_ROWS
MARKER = np.iinfo(np.int64).min


def large(seed: int, *, spread: int = 2**60, nulls: int = 0, flagged: bool = False) -> Batch:
    """flagged: a word goes before the others that is 0 for NULL, and 1 otherwise."""
    random = np.random.default_rng(seed)
    leading = random.integers(-spread, spread, ROWS)
    leading[:nulls] = 0 if flagged else MARKER
    flags = [np.where(np.arange(ROWS) < nulls, 0, 1)] if flagged else []
    return consolidate(Rows([*flags, leading, random.permutation(ROWS)], [np.ones(ROWS, np.int64)]))


def written(root: str, batch: Batch, dictionary: Dictionary | None = None) -> FileRef:
    return write_file(root, Origin(1, 1, 0, 0), [Content("a", batch)], dictionary or Dictionary.empty())


def damage(root: str, ref: FileRef, at: int) -> None:
    path = Path(root) / "data" / ref.name
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def blocks(root: str, ref: FileRef) -> list[FileBlock]:
    (place,) = DataFile(root, ref).directory.segments
    assert place.index is not None
    return [*place.columns, *place.weights, place.index]


@pytest.mark.parametrize("flagged", [False, True])
def test_opening_verifies_nothing_of_a_large_batch_and_a_probe_only_what_it_reads(root: str, flagged: bool) -> None:
    batch = large(1, flagged=flagged)
    file = DataFile(root, written(root, batch))
    spine = Spine.over(2 + flagged, 1, [file.batch("a")])
    file.dictionary()
    opened = file.verified_bytes
    assert opened <= PAGE_BYTES
    keys = [column[[5, 40_000]] for column in batch.columns[: 1 + flagged]]
    assert lookup(spine, keys, Counters())[0].tolist() == [1, 1]
    pages = 1 + 2 * (2 + 3)  # the index' header; for each key at most two pages of the index, and one of each column and weight
    pages += 3 * flagged  # the index' last word, and a column more
    assert 0 < file.verified_bytes - opened <= pages * PAGE_BYTES
    again = file.verified_bytes
    lookup(spine, keys, Counters())
    assert file.verified_bytes == again
    assert np.array_equal(spine.scan(Counters()).columns[0], batch.columns[0])
    file.verify()
    size = sum(-(-block.size_bytes // 64) * 64 for block in blocks(root, written(root, batch)))
    assert file.verified_bytes == size + opened


@pytest.mark.parametrize("flagged", [False, True])
def test_a_batch_that_is_often_read_is_verified_to_its_end_and_then_read_like_one_in_memory(
    root: str, flagged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Paging, "observe", lambda self: False)  # as on a machine that is not busy
    batch = large(6, flagged=flagged)
    file = DataFile(root, written(root, batch))
    spine = Spine.over(2 + flagged, 1, [file.batch("a")])
    keys = [column[[5]] for column in batch.columns[: 1 + flagged]]
    pages = sum(-(-block.size_bytes // PAGE_BYTES) for block in blocks(root, written(root, batch)))
    for call in range(OFTEN + pages // AHEAD * 2 + 4):
        before = file.verified_bytes
        assert lookup(spine, keys, Counters())[0].tolist() == [1]
        assert spine.located == (0, -1) or call >= OFTEN
        assert call == 0 or file.verified_bytes - before <= (call >= OFTEN) * 2 * AHEAD * PAGE_BYTES
    assert spine.located == (address(spine.view[1]), 1)
    whole = file.verified_bytes
    file.batch("a").verified()
    assert file.verified_bytes == whole


def test_a_damaged_page_is_left_to_who_reads_it(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, calls = large(7), list[int]()
    verified = DataFile._verify
    monkeypatch.setattr(DataFile, "_verify", lambda *arguments: (calls.append(1), verified(*arguments))[1])
    for block in blocks(root, ref := written(root, batch)):
        ref = written(root, batch)
        damage(root, ref, block.offset + block.size_bytes // 2)
        spine = Spine.over(2, 1, [DataFile(root, ref).batch("a")])
        calls.clear()
        for _ in range(3 * OFTEN):
            assert spine.located == (0, -1)
            assert lookup(spine, [batch.columns[0][[5]]], Counters())[0].tolist() == [1]
        assert len(calls) < OFTEN, "a page that is damaged is not verified again and again"
        with pytest.raises(CorruptState, match=r"is damaged \(bytes \d+ to \d+\)"):
            spine.scan(Counters())


def test_a_process_that_waits_for_pages_asks_for_them(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = large(8)
    spine = Spine.over(2, 1, [DataFile(root, written(root, batch)).batch("a")])
    spine.batches[0].verified()
    monkeypatch.setattr(Paging, "observe", lambda self: False)
    assert spine.located[1] == 1
    monkeypatch.setattr(Paging, "observe", lambda self: True)
    assert spine.located == (0, -1)


@pytest.mark.parametrize("spread", [2**60, 40, 1])
@pytest.mark.parametrize("reader", ["lookup", "probe", "first"])
@pytest.mark.parametrize("flagged", [False, True])
def test_a_reader_returns_the_right_rows_or_raises(root: str, spread: int, reader: str, flagged: bool) -> None:
    batch = large(2, spread=spread, nulls=5_000, flagged=flagged)
    random = np.random.default_rng(3)
    places = [block.offset + int(random.integers(block.size_bytes)) for block in blocks(root, written(root, batch)) for _ in range(4)]
    detected = 0
    for at in places:
        ref = written(root, batch)
        damage(root, ref, at)
        spine, good = Spine.over(2 + flagged, 1, [DataFile(root, ref).batch("a")]), Spine.of(batch)
        some = random.integers(0, len(batch), 30)
        sought = list(zip(*(column[some].tolist() for column in batch.columns[: 1 + flagged]), strict=True))
        for words in [*sought, *(((1, word) if flagged else (word,)) for word in (MARKER, 2**62, -(2**62)))]:
            keys = [np.array([word], np.int64) for word in words]
            try:
                assert same(reader, spine, keys) == same(reader, good, keys)
            except CorruptState:
                detected += 1
        with pytest.raises(CorruptState, match="is damaged"):
            merge([spine.batches[0], batch])
    assert detected > 0


def same(reader: str, spine: Spine, keys: list[np.ndarray]) -> list[list[int]]:
    if reader == "lookup":
        return [lookup(spine, keys, Counters())[0].tolist()]
    at, columns, weights = probe(spine, keys, (0, 1), Counters()) if reader == "probe" else first(spine, keys, None, 3, Counters())
    return [part.tolist() for part in (at, *columns, *weights)]


def test_a_damaged_row_is_never_returned(root: str) -> None:
    batch = large(4)
    row = 12_345
    for block in blocks(root, ref := written(root, batch))[:3]:
        ref = written(root, batch)
        damage(root, ref, block.offset + 8 * row)
        spine = Spine.over(2, 1, [DataFile(root, ref).batch("a")])
        for _ in range(2):  # also when it is read again
            with pytest.raises(CorruptState, match=r"is damaged \(bytes \d+ to \d+\)"):
                lookup(spine, [batch.columns[0][[row]]], Counters())
        assert lookup(spine, [batch.columns[0][[row + 5_000]]], Counters())[0].tolist() == [1]


def test_a_damaged_table_of_checksums_is_detected(root: str) -> None:
    batch = large(5)
    for block in blocks(root, written(root, batch)):
        ref = written(root, batch)
        damage(root, ref, block.offset + stored_bytes(block.size_bytes) - 1)
        with pytest.raises(CorruptState, match="is damaged"):
            DataFile(root, ref).verify()


def strings(count: int) -> tuple[Dictionary, np.ndarray, list[bytes]]:
    ids = np.unique(np.random.default_rng(6).integers(-(2**62), 2**62, count))
    texts = [f"text {i}".encode() for i in range(len(ids))]
    offsets = np.cumsum([0, *map(len, texts)])
    return Dictionary(ids, offsets, np.frombuffer(b"".join(texts), np.uint8)), ids, texts


def test_a_large_dictionary_is_verified_as_it_is_read(root: str) -> None:
    dictionary, ids, texts = strings(2 * GUARDED_ROWS)
    file = DataFile(root, written(root, large(7), dictionary))
    stored = file.dictionary()
    assert file.verified_bytes == 0
    sought = np.array([ids[70], ids[70] + 1, ids[0] - 1, ids[-1] + 1])
    here, at = stored.find(sought)
    assert here.tolist() == [True, False, False, False]
    assert stored.values.take(pa.array(at[here])).to_pylist() == [texts[70]]
    assert 0 < file.verified_bytes <= 8 * PAGE_BYTES
    assert stored.export().values.to_pylist() == texts


def test_a_damaged_dictionary_never_answers_wrongly(root: str) -> None:
    dictionary, ids, texts = strings(2 * GUARDED_ROWS)
    random = np.random.default_rng(8)
    place = DataFile(root, written(root, large(7), dictionary)).directory.dictionary
    detected = 0
    for block in (place.ids, place.offsets, place.text):
        for _ in range(12):
            ref = written(root, large(7), dictionary)
            damage(root, ref, block.offset + int(random.integers(block.size_bytes)))
            stored = DataFile(root, ref).dictionary()
            for row in random.integers(0, len(ids), 40).tolist():
                try:
                    here, at = stored.find(ids[[row]])
                    assert here.tolist() == [True] and stored.values.take(pa.array(at)).to_pylist() == [texts[row]]
                    assert stored.find(ids[[row]] + 1)[0].tolist() == [ids[row] + 1 in ids[row + 1 : row + 2]]
                except CorruptState:
                    detected += 1
            with pytest.raises(CorruptState, match="is damaged"):
                stored.export()
    assert detected > 0
