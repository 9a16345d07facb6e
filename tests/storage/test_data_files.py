"""Data files: what is written is read, and no damaged byte passes."""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltic.errors import CorruptState, StateError
from deltic.storage import layout
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import INDEXED_ROWS, Content, DataFile, FileRef, Origin, origin_of, write_file
from deltic.storage.layout import FORMAT_VERSION, HEADER_BYTES, LAST_WITH_CRC, OLDEST_VERSION, checksum
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.guard import PAGE_BYTES
from deltic.trace.probe import lookup
from deltic.trace.spine import Spine
from stored import as_rows, batch_of, dictionary_of

ORIGIN = Origin(3, 7, 1, 2)
WORDS = st.integers(-(2**63), 2**63 - 1)


def _path(root: str, ref: FileRef) -> Path:
    return Path(root) / "data" / ref.name


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.tuples(WORDS, WORDS, st.integers(1, 5), st.integers(-5, 5)), min_size=1, max_size=40))
def test_round_trip(rows: list[tuple[int, ...]], tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("state")
    (root / "data").mkdir()
    batch = batch_of(*rows, weights=2)
    ref = write_file(str(root), ORIGIN, [Content("a", batch), Content("a", batch.slice(0, 1), role="change")], Dictionary.empty())
    file = DataFile(str(root), ref)
    assert as_rows(file.batch("a")) == as_rows(batch)
    assert as_rows(file.batch("a", "change")) == as_rows(batch)[:1]
    assert file.batch("a") is file.batch("a")


def test_zero_columns_and_no_segments(root: str) -> None:
    single = Batch.trusted([], [np.array([5], np.int64)])
    file = DataFile(root, write_file(root, ORIGIN, [Content("a", single)], Dictionary.empty()))
    assert as_rows(file.batch("a")) == [(5,)]
    assert DataFile(root, write_file(root, ORIGIN, [], Dictionary.empty())).directory.segments == ()


def test_blocks_are_aligned_and_mapped(root: str) -> None:
    batch = batch_of(*((i, -i, 1) for i in range(INDEXED_ROWS + 3)))
    ref = write_file(root, ORIGIN, [Content("a", batch, (1,)), Content("b", batch_of((1, 1)))], dictionary_of(x=1, yy=2))
    file = DataFile(root, ref)
    large, small = file.directory.segments
    assert large.strings == (1,)
    assert large.index is not None and small.index is None
    assert all(block.offset % 64 == 0 for block in (*large.columns, *large.weights, large.index, *small.columns))
    read = file.batch("a")
    assert not any(word.flags.owndata or word.flags.writeable for word in (*read.columns, *read.weights, read.index))
    assert np.array_equal(read.index, batch.index)
    key = [np.array([5, INDEXED_ROWS * 2], np.int64)]
    assert lookup(Spine.of(read), key, Counters())[0].tolist() == [1, 0]


def test_arrays_outlive_the_file(root: str) -> None:
    ref = write_file(root, ORIGIN, [Content("a", batch_of((1, 2), (3, 4)))], Dictionary.empty())
    batch = DataFile(root, ref).batch("a")
    os.unlink(_path(root, ref))
    assert as_rows(batch) == [(1, 2), (3, 4)]


def test_file_names_contain_their_origin(root: str) -> None:
    ref = write_file(root, ORIGIN, [], Dictionary.empty())
    assert origin_of(ref.name) == ORIGIN
    assert origin_of("something else") is None
    assert ORIGIN.new_name() != ORIGIN.new_name()


def test_every_damaged_byte_is_detected(root: str) -> None:
    ref = write_file(root, ORIGIN, [Content("a", batch_of((1, 2), (3, 4))), Content("b", batch_of((5, 6)))], dictionary_of(x=1, yy=2))
    path = _path(root, ref)
    whole = path.read_bytes()
    DataFile(root, ref).verify()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(CorruptState, match=ref.name):
            DataFile(root, ref).verify()


def test_block_errors_name_file_and_block(root: str) -> None:
    ref = write_file(root, ORIGIN, [Content("orders", batch_of((1, 2, 1), (3, 4, 1)))], Dictionary.empty())
    block = DataFile(root, ref).directory.segments[0].columns[1]
    damaged = bytearray(_path(root, ref).read_bytes())
    damaged[block.offset] ^= 1
    _path(root, ref).write_bytes(damaged)
    file = DataFile(root, ref)
    with pytest.raises(CorruptState, match=rf"{ref.name}: batch of orders, column 1 is damaged \(bytes {block.offset} to "):
        file.batch("orders")


@pytest.mark.parametrize("keep", [0, 10, HEADER_BYTES, HEADER_BYTES + 10, -1])
def test_a_truncated_file_is_detected_when_it_is_opened(root: str, keep: int) -> None:
    ref = write_file(root, ORIGIN, [Content("a", batch_of((1, 2)))], Dictionary.empty())
    _path(root, ref).write_bytes(_path(root, ref).read_bytes()[:keep])
    with pytest.raises(CorruptState, match=rf"{ref.name}: the file has \d+ bytes\nexpected: {ref.size_bytes} bytes"):
        DataFile(root, ref)


def test_a_missing_file_and_segment(root: str) -> None:
    with pytest.raises(CorruptState, match="the file is missing, though the manifest names it"):
        DataFile(root, FileRef("missing.deltic", 64, 0))
    ref = write_file(root, ORIGIN, [Content("a", batch_of((1, 2)))], Dictionary.empty())
    with pytest.raises(CorruptState, match="has no batch of b"):
        DataFile(root, ref).batch("b")


def test_a_sound_file_in_place_of_another_is_detected(root: str) -> None:
    ref = write_file(root, ORIGIN, [Content("a", batch_of((1, 2)))], Dictionary.empty())
    other = write_file(root, ORIGIN, [Content("a", batch_of((1, 3)))], Dictionary.empty())
    os.replace(_path(root, other), _path(root, ref))
    with pytest.raises(CorruptState, match="the directory is damaged"):
        DataFile(root, ref)


def test_a_newer_format_is_refused_by_name(root: str) -> None:
    ref = write_file(root, ORIGIN, [], Dictionary.empty())
    whole = bytearray(_path(root, ref).read_bytes())
    whole[8:12] = struct.pack("<I", FORMAT_VERSION + 1)
    whole[60:64] = struct.pack("<I", zlib.crc32(whole[:60]))
    _path(root, ref).write_bytes(whole)
    with pytest.raises(
        StateError, match=f"format version {FORMAT_VERSION + 1}\nexpected: version {FORMAT_VERSION}\nhelp: use a newer Deltic"
    ):
        DataFile(root, ref)


@pytest.mark.parametrize("version", range(OLDEST_VERSION, LAST_WITH_CRC + 1))
def test_files_of_older_versions_open(root: str, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def crcs(data: memoryview) -> Any:
        return np.array([checksum(data[start : start + PAGE_BYTES]) for start in range(0, len(data), PAGE_BYTES)], "<u4")

    with monkeypatch.context() as patched:
        patched.setattr(layout, "sums_of", crcs)
        rows = 3000
        ref = write_file(root, ORIGIN, [Content("a", batch_of(*((i, -i, 1) for i in range(rows))))], Dictionary.empty())
    whole = bytearray(_path(root, ref).read_bytes())
    whole[8:12] = struct.pack("<I", version)
    whole[60:64] = struct.pack("<I", zlib.crc32(whole[:60]))
    _path(root, ref).write_bytes(whole)
    file = DataFile(root, ref)
    assert len(file.batch("a").verified()) == rows
    assert file.verified_bytes >= 16 * rows
    whole[file.place("a").columns[1].offset + PAGE_BYTES] ^= 1
    _path(root, ref).write_bytes(whole)
    with pytest.raises(CorruptState, match="column 1 is damaged"):
        DataFile(root, ref).batch("a")


def test_the_directory_is_plain_json(root: str) -> None:
    ref = write_file(root, ORIGIN, [Content("a", batch_of((1, 2)))], Dictionary.empty())
    data = _path(root, ref).read_bytes()
    size = struct.unpack_from("<Q", data, 16)[0]
    assert json.loads(data[HEADER_BYTES : HEADER_BYTES + size])["segments"][0]["arrangement"] == "a"
    assert replace(ref, checksum=0) != ref
