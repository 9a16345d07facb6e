"""The checked build (DELTIC_CHECKED=1): kernels that leave the bounds of an array are caught, and Deltic's own do not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import deltic

ROOT = Path(__file__).parents[2]
KERNELS = Path(deltic.__file__).parent / "kernels"
PLANTED = """
import json
import numpy as np
import pyarrow as pa
from deltic.kernels.bounds import OutOfBounds
from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import address_of, copy_bytes, load, load_byte, store
from deltic.kernels.table import address, block, buffer_address

@part
def element(words, i):
    return words[i]

@kernel("int64(int64, int64)", sealed=True)
def read(words, i):
    return load(words, i)

@kernel("void(int64, int64, int64)", sealed=True)
def write(words, i, word):
    store(words, i, word)

@kernel("int64(int64)", sealed=True)
def read_byte(place):
    return load_byte(place)

@kernel("void(int64, int64, int64)", sealed=True)
def copy(target, source, length):
    copy_bytes(target, source, length)

@kernel("int64(int64[::1], int64)", sealed=True)
def index(words, i):
    return element(words, i)

@kernel("int64(int64)", sealed=True)
def own(i):
    words = np.zeros(4, np.int64)
    return load(address_of(words), i)

words, text = np.arange(10), pa.array(["ab"]).buffers()[2]
columns, table = block(2, 3)
released = np.arange(10)
freed, start, bytes_ = address(released), address(words), buffer_address(text, text)
write(start, 9, 7)
copy(start, bytes_, 2)
assert read(start, 9) == 7 == words[9] and index(words, 9) == 7 and own(3) == 0 and read_byte(bytes_ + 1) == ord("b") == words[0] >> 8
assert read(freed, 5) == 5 and address(words) == start
del released
accesses = {
    "past the end": lambda: read(start, 10),
    "before the start": lambda: read(start, -1),
    "past a slice": lambda: read(address(words[2:5]), 3),
    "past a column of a block": lambda: write(table[0], 3, 1),
    "past a buffer": lambda: read_byte(bytes_ + text.size),
    "a copy past the end": lambda: copy(start, bytes_, text.size + 1),
    "a copy of negative length": lambda: copy(start, bytes_, -1),
    "between words": lambda: read(start + 4, 0),
    "a machine address": lambda: read(words.ctypes.data, 0),
    "nothing": lambda: read(0, 0),
    "released": lambda: read(freed, 5),
    "past an array of the kernel": lambda: own(4),
    "an index in a part": lambda: index(words, 10),
}
errors = {}
for name, access in accesses.items():
    try:
        errors[name] = f"read {access()}"
    except OutOfBounds as error:
        errors[name] = str(error)
print(json.dumps(errors))
"""
CAUGHT = {
    "past the end": "kernel __main__.read: 8 bytes at offset 80 of an array of 80 bytes passed to the kernel",
    "before the start": "kernel __main__.read: 8 bytes at offset -8 of an array of 80 bytes passed to the kernel",
    "past a slice": "kernel __main__.read: 8 bytes at offset 24 of an array of 24 bytes passed to the kernel",
    "past a column of a block": "kernel __main__.write: 8 bytes at offset 24 of an array of 24 bytes passed to the kernel",
    "past a buffer": "kernel __main__.read_byte: 1 bytes at offset 2 of an array of 2 bytes passed to the kernel",
    "a copy past the end": "kernel __main__.copy: 3 bytes at offset 0 of an array of 2 bytes passed to the kernel",
    "a copy of negative length": "kernel __main__.copy: -1 bytes at offset 0 of an array of 80 bytes passed to the kernel",
    "between words": "kernel __main__.read: 8 bytes at offset 4 of an array of 80 bytes passed to the kernel",
    "a machine address": "kernel __main__.read: 8 bytes at address …, which no array has",
    "nothing": "kernel __main__.read: 8 bytes at address …, which no array has",
    "released": "kernel __main__.read: 8 bytes at offset 40 of an array passed to the kernel that has been released",
    "past an array of the kernel": "kernel __main__.own: 8 bytes at offset 32 of an array of 32 bytes allocated by the kernel",
    "an index in a part": "kernel __main__.index: index is out of bounds",
}
"""What each access raises, without its address."""


def checked(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DELTIC_CHECKED": "1"}
    return subprocess.run([sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


def test_accesses_out_of_bounds_are_caught() -> None:
    run = checked("-c", PLANTED)
    assert run.returncode == 0, run.stderr
    errors = {name: re.sub(r" \(address 0x[0-9a-f]+\)$", "", error) for name, error in json.loads(run.stdout).items()}
    assert {name: re.sub(r"address 0x[0-9a-f]+,", "address …,", error) for name, error in errors.items()} == CAUGHT


def test_kernels_reach_memory_through_checked_functions_alone() -> None:
    """`raw` is for memory, table and bounds, `linked` calls kernels, `foreign` C functions; nobody else follows a machine address."""
    allowed = {"raw.py", "bounds.py", "linked.py", "foreign.py", "memory.py", "table.py"}
    for path in sorted(KERNELS.parent.rglob("*.py")):
        if path.parent != KERNELS or path.name not in allowed:
            assert not re.search(r"\.ctypes|__array_interface__|inttoptr|kernels import .*\braw\b|kernels\.raw", path.read_text()), path


@pytest.mark.slow
@pytest.mark.parametrize(
    "tests",
    [
        ("tests/trace", "tests/kernels", "tests/circuit"),
        ("tests/lowering", "tests/aggregates"),
        ("tests/runtimes/test_embedded_differential.py", "tests/runtimes/test_cyclic_joins.py"),
        ("tests/runtimes/test_negative_weights.py", "tests/runtimes/test_colliding_strings.py"),
        (
            "tests/storage/test_pages.py",
            "tests/storage/test_reading.py",
            "tests/storage/test_merging.py",
            "tests/storage/test_dictionary.py",
        ),
    ],
    ids=lambda tests: "-".join(Path(test).stem.removeprefix("test_") for test in tests),
)
def test_deltic_keeps_within_bounds(tests: tuple[str, ...]) -> None:
    """Trace laws, kernels, operators and random programs; with the seeds of the fast suite."""
    run = checked("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests)
    assert run.returncode == 0, run.stdout[-10_000:]
