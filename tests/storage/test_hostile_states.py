"""Crafted state folders: whatever their bytes, opening them raises an error of Deltic, and nothing is overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hostile
from deltic.errors import CorruptState, StateError
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import GUARDED_ROWS, Content, DataFile, FileRef, Origin, write_file
from deltic.storage.layout import HEADER_BYTES, read_header
from deltic.storage.manifest import LAST_EPOCH, Change, SegmentRef, manifest_name
from deltic.storage.merging import merge_segments
from deltic.storage.names import DATA
from deltic.storage.reader import StateReader
from deltic.storage.reading import OpenFiles, ShardArrangements
from deltic.storage.state import State
from deltic.storage.verify import VerifyProgress, verify
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.probe import probe
from stored import append, batch_of, dictionary_of

ROWS = [5000, 2 * GUARDED_ROWS]
"""Of batches with an index: read at once, and page by page."""


def written(root: str, rows: int, dictionary: Dictionary | None = None, strings: tuple[int, ...] = ()) -> FileRef:
    batch = Batch([np.arange(rows), np.arange(rows) % 7], [np.ones(rows, np.int64)])
    return write_file(root, Origin(1, 1, 0, 0), [Content("a", batch, strings)], dictionary or Dictionary.empty())


def resealed(root: str, ref: FileRef, change: Callable[[hostile.Parts], None]) -> FileRef:
    """The file, changed, with right checksums."""
    path = Path(root, DATA, ref.name)
    parts = hostile.take_apart(path)
    change(parts)
    content = hostile.put_together(parts)
    path.write_bytes(content)
    return FileRef(ref.name, len(content), read_header(content[:HEADER_BYTES], ref.name)[0])


def set_word(block: int, at: int, word: int) -> Callable[[hostile.Parts], None]:
    """Of the first segment: its two columns, its weight, its index."""

    def change(parts: hostile.Parts) -> None:
        np.frombuffer(parts.blocks[0][block], np.int64)[at] = word

    return change


def read_all(root: str, ref: FileRef) -> None:
    """As joins read it, and then as merges do."""
    segments = {"a": [SegmentRef(0, "a", ref.name, 1)]}
    spine = ShardArrangements(OpenFiles(root), {ref.name: ref}, segments, {"a": (2, 1)})["a"]
    probe(spine, [np.arange(0, 40_000, 7)], [0, 1], Counters())
    spine.scan(Counters()).verified()


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("at", "word"), [(0, -1), (0, 10**6), (2, 64), (2, -1), (3, 10**9), (3, 0), (4, -(2**40)), (40, 2**50), (4000, 10**6), (-1, 2**62)]
)
def test_an_index_that_names_rows_outside_of_the_batch(root: str, rows: int, at: int, word: int) -> None:
    ref = resealed(root, written(root, rows), set_word(3, at, word))
    with pytest.raises(CorruptState, match="index points outside the batch, though the checksum is correct"):
        read_all(root, ref)


@pytest.mark.parametrize("rows", [3, *ROWS])
@pytest.mark.parametrize(("column", "at", "word"), [(0, 1, 2**62), (0, -1, -(2**63)), (0, 0, 2), (0, 512, 0), (2, 1, 0)])
def test_rows_out_of_order_or_without_weight(root: str, rows: int, column: int, at: int, word: int) -> None:
    if at >= rows:
        pytest.skip("the batch has no such row")
    ref = resealed(root, written(root, rows), set_word(column, at, word))
    with pytest.raises(CorruptState, match="rows of batch of a are out of order, or without weight, though the checksum is correct"):
        read_all(root, ref)


def test_verify_detects_an_index_of_other_rows(root: str) -> None:
    ref = resealed(root, written(root, 5000), set_word(3, 40, 17))
    with pytest.raises(CorruptState, match="index does not match the rows"):
        DataFile(root, ref).verify()


@pytest.mark.parametrize(
    ("block", "content", "said"),
    [
        (0, np.array([5, 3], np.int64), "ids are out of order"),
        (0, np.array([-(2**63), 3], np.int64), "ids are out of order"),
        (1, np.array([0, 2**40, 4], np.int64), "offsets are not within its text"),
        (1, np.array([0, -8, 4], np.int64), "offsets are not within its text"),
        (1, np.array([1, 2, 4], np.int64), "offsets are not within its text"),
        (1, np.array([0, 2, 3], np.int64), "offsets are not within its text"),
    ],
)
def test_an_invalid_dictionary(root: str, block: int, content: np.ndarray[Any, Any], said: str) -> None:
    ref = written(root, 3, dictionary_of(aa=3, bb=5))

    def change(parts: hostile.Parts) -> None:
        parts.blocks[-1][block][:] = content.tobytes()

    with pytest.raises(CorruptState, match=said):
        DataFile(root, resealed(root, ref, change)).dictionary()


def test_a_large_dictionary_is_checked_where_it_is_read(root: str) -> None:
    ref = written(root, 3, dictionary_of(**{f"key{i}": i for i in range(GUARDED_ROWS)}))

    def change(parts: hostile.Parts) -> None:
        np.frombuffer(parts.blocks[-1][1], np.int64)[9000] = 2**50

    dictionary = DataFile(root, resealed(root, ref, change)).dictionary()
    assert dictionary.find(np.array([5]))[0].all()
    for sought in (8999, 9000):
        with pytest.raises(CorruptState, match="offsets are not within its text"):
            dictionary.find(np.array([sought]))


def test_verify_detects_strings_that_the_dictionary_lacks(root: str) -> None:
    with pytest.raises(CorruptState, match="strings that the dictionary lacks"):
        DataFile(root, written(root, 3, dictionary_of(a=0, b=2), (0,))).verify()


def test_batches_of_another_shape(root: str) -> None:
    ref = written(root, 3)
    with pytest.raises(CorruptState, match=r"a batch has 2 columns and 1 weights\nexpected: 1 and 1\n"):
        ShardArrangements(OpenFiles(root), {ref.name: ref}, {"a": [SegmentRef(0, "a", ref.name, 3)]}, {"a": (1, 1)})["a"]
    other = write_file(root, Origin(1, 1, 0, 0), [Content("a", batch_of((1, 1)))], Dictionary.empty())
    with pytest.raises(CorruptState, match="a batch has 1 columns and 1 weights"):
        refs = {ref.name: ref, other.name: other}
        merge_segments(root, refs, [SegmentRef(0, "a", name, 3) for name in refs], Origin(1, 1, 0, 0))


@pytest.mark.parametrize(
    ("entry", "name", "value"),
    [
        ("segments", "rows", 2**62),
        ("segments", "rows", -1),
        ("segments", "columns", 10**9),
        ("segments", "weights", 0),
        ("segments", "offset", 8),
        ("segments", "offset", 2**62),
        ("segments", "strings", [2]),
        ("segments", "role", "else"),
        ("segments", "checksums", []),
        ("dictionary", "count", 2**60),
        ("dictionary", "bytes", None),
    ],
)
def test_a_directory_of_more_blocks_than_the_file_has(root: str, entry: str, name: str, value: object) -> None:
    path = Path(root, DATA, (ref := written(root, 3)).name)

    def change(directory: dict[str, Any]) -> None:
        part = directory[entry]
        (part[0] if isinstance(part, list) else part)[name] = value

    content = hostile.put_together(hostile.take_apart(path), change)
    path.write_bytes(content)
    with pytest.raises(CorruptState, match=f"{ref.name}: the directory: "):
        DataFile(root, FileRef(ref.name, len(content), read_header(content[:HEADER_BYTES], ref.name)[0]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One manifest, with one file."""
    state = State.open(tmp_path / "state", retain=0, whole_every=0)
    append(state, 1)
    state.sweep()
    state.close()
    return tmp_path / "state"


def opens(folder: Path) -> list[str]:
    """What opening, reading and verifying it say."""
    said = []
    for act in (lambda: State.open(folder), lambda: StateReader.open(folder, lease_s=None), lambda: list(verify(folder, VerifyProgress()))):
        try:
            said += [finding.problem for finding in act()] if isinstance(act(), list) else []
        except StateError as error:
            said.append(error.message)
    return said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shards", 10**9),
        ("shards", 0),
        ("shards", True),
        ("epoch", -1),
        ("epoch", LAST_EPOCH + 1),
        ("oldest", 99),
        ("at", 10**30),
        ("parent", [1]),
        ("token", None),
        ("notes", []),
        ("notes", {"keep": "x"}),
        ("names", [1]),
        ("files", [["x"]]),
        ("added", [[0, 0, 7, 1]]),
        ("added", [[7, 0, 0, 1]]),
        ("added", [[0, -1, 0, 1]]),
        ("dropped", {"a": 1}),
        ("whole", {"files": [], "segments": [[0, 0, 0, 1]], "notes": {}}),
        ("whole", []),
        ("version", "2"),
    ],
)
def test_a_manifest_of_invalid_values(folder: Path, name: str, value: object) -> None:
    hostile.rewrite_manifest(folder, lambda body: body.update({name: value}))
    said = opens(folder)
    assert len(said) == 3, said


def test_a_deeply_nested_manifest(folder: Path) -> None:
    path = max((folder / "manifests").iterdir())
    text = b"[" * 200_000 + b"]" * 200_000
    path.write_bytes(b'{"crc":%d}\n%s\n' % (zlib.crc32(text), text))
    assert all("invalid JSON" in said for said in opens(folder)) and len(opens(folder)) == 3


def test_a_change_that_does_not_fit_the_state_before_it(tmp_path: Path) -> None:
    state = State.open(tmp_path)
    segment = append(state, 1)
    state.commit(Change(dropped=(segment,)))
    state.close()
    hostile.rewrite_manifest(tmp_path, lambda body: body.update({"dropped": [[0, 0, 0, 5]], "names": ["other"]}))
    with pytest.raises(CorruptState, match="names segments or files that the state before it does not have"):
        State.open(tmp_path)


def test_the_greatest_epoch_has_no_successor(folder: Path) -> None:
    (path,) = (folder / "manifests").iterdir()
    path.rename(folder / manifest_name(LAST_EPOCH))
    hostile.rewrite_manifest(folder, lambda body: body.update({"epoch": LAST_EPOCH, "oldest": LAST_EPOCH}))
    with pytest.raises(StateError, match="has no epoch left"):
        State.open(folder)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
@pytest.mark.parametrize("place", ["manifests", "data", "lock", "generations"])
def test_only_regular_files_are_opened(folder: Path, tmp_path: Path, place: str, kind: str) -> None:
    (tmp_path / "precious").write_text("precious")
    path = (
        folder / "lock"
        if place == "lock"
        else max((folder / {"generation": "generations", "manifest": "manifests"}.get(place, place)).iterdir())
    )
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(tmp_path / "precious")
        case "folder":
            path.mkdir()
    with pytest.raises(StateError) as caught:
        state = State.open(folder)
        DataFile(state.root, next(iter(state.manifest.files.values())))
    assert "levels of symbolic links" not in str(caught.value)
    assert (f"{path.name} is a symbolic link" in str(caught.value)) is (kind == "link")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_with_a_huge_declared_size_is_not_read(folder: Path) -> None:
    os.truncate(max((folder / "manifests").iterdir()), 1 << 40)
    assert all("has 1099511627776 bytes" in said for said in opens(folder)) and len(opens(folder)) == 3


@pytest.mark.parametrize("name", ["data", "manifests", "generations", "leases"])
def test_a_subfolder_that_is_a_link_is_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    (folder / name).rename(other) if (folder / name).exists() else other.mkdir()
    (folder / name).symlink_to(other)
    before = sorted(other.iterdir())
    with pytest.raises(StateError, match=f"{name} is a symbolic link\nexpected: regular files, not symbolic links"):
        State.open(folder)
    assert sorted(other.iterdir()) == before


def _tried(work: Path, seed: int, cases: int) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, hostile.__file__, work, str(seed), str(cases)],
        capture_output=True,
        text=True,
        timeout=60 + 30 * cases,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return outcomes


@pytest.mark.slow
def test_changed_words_and_names_raise_errors_of_deltic(tmp_path: Path) -> None:
    outcomes = _tried(tmp_path, int.from_bytes(os.urandom(4)), 300)
    assert outcomes["unnoticed"] < outcomes["cases"] // 2
