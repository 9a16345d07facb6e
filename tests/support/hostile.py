"""A crafted state folder: files are changed, and all checksums recomputed.

`python tests/support/hostile.py FOLDER SEED CASES` makes a small state and tries CASES changes of it. For each it forks a process, which
verifies, reads and opens the folder. Prints those that crash, hang, or raise anything but an error of Deltic's; if there are any, its
exit code is 1.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deltic import Session
from deltic.errors import DelticError
from deltic.runtimes.stored_view import StoredView
from deltic.storage.layout import HEADER_BYTES, aligned, header_of, parse_directory, read_header, sealed
from deltic.storage.maintenance import compact
from deltic.storage.reader import StateReader
from deltic.storage.state import State
from deltic.storage.verify import VerifyProgress, verify

SCRIPT = """
CREATE TABLE orders (id BIGINT NOT NULL, name STRING, amount DECIMAL(20, 2), price DOUBLE, day DATE, done BOOLEAN, PRIMARY KEY (id));
CREATE TABLE edges (a BIGINT, b BIGINT);
CREATE MATERIALIZED VIEW spend AS SELECT name, SUM(amount) AS total, AVG(price) AS price, MAX(day) AS day, COUNT(*) AS n
  FROM orders GROUP BY name;
CREATE MATERIALIZED VIEW named AS SELECT id, name, amount, price, day, done FROM orders WHERE name IS NOT NULL;
CREATE MATERIALIZED VIEW first AS SELECT id, name FROM orders ORDER BY price, id LIMIT 5;
CREATE MATERIALIZED VIEW triangles AS SELECT x.a, y.a AS b, z.a AS c FROM edges x, edges y, edges z
  WHERE x.b = y.a AND y.b = z.a AND z.b = x.a;
"""
SECONDS = 300
_WORDS = [0, 1, -1, 2, 63, 64, 4096, 2**31, 2**53, -(2**31), 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
_VALUES: list[Any] = [None, True, -1, 0, 1, 2, 10**6, 2**31, 2**63, 10**30, 1.5, "", "x", "../../x", "batch", [], [[]], [1], {}, {"a": 1}]


def make(folder: Path) -> None:
    """A state of one manifest and few files, some with an index and pages that are verified one by one."""
    with Session(state=str(folder)) as session:
        session.sql(SCRIPT)
        for start, rows in ((0, 20_000), (20_000, 300)):
            session.apply({"orders": _orders(start, rows), "edges": _edges(start, rows // 10)})
    compact(folder, keep=0)


def _orders(start: int, rows: int) -> pa.Table:
    ids = range(start, start + rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if i % 11 == 0 else f"customer {i % 97}é" for i in ids],
            "amount": pa.array([Decimal(i) for i in range(rows)], pa.decimal128(20, 2)),
            "price": pa.array([i % 13 / 4 for i in ids], pa.float64()),
            "day": pa.array([i % 1000 for i in ids], pa.int32()).cast(pa.date32()),
            "done": [i % 2 == 0 for i in ids],
            "_op": ["insert"] * rows,
        }
    )


def _edges(start: int, rows: int) -> pa.Table:
    pairs = [(i % 50, (i * 7 + start) % 50) for i in range(rows)]
    return pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "_weight": [1] * rows})


@dataclass
class Parts:
    """The parts of a data file. directory: its JSON. blocks: those of each segment, then of the dictionary, as written."""

    directory: dict[str, Any]
    blocks: list[list[bytearray]]


def take_apart(path: Path) -> Parts:
    content = path.read_bytes()
    _, size, _ = read_header(content[:HEADER_BYTES], path.name)
    text = content[HEADER_BYTES : HEADER_BYTES + size]
    places = parse_directory(text, HEADER_BYTES + size, len(content), path.name)
    end = places.dictionary
    segments = [(*s.columns, *s.weights, *([s.index] if s.index else [])) for s in places.segments]
    blocks = [
        [bytearray(content[b.offset : b.offset + b.size_bytes]) for b in parts] for parts in (*segments, (end.ids, end.offsets, end.text))
    ]
    return Parts(json.loads(text), blocks)


def put_together(parts: Parts, change: Callable[[dict[str, Any]], None] = lambda _: None) -> bytes:
    """The file with valid checksums. change: a final change of the directory."""
    entries = [*parts.directory["segments"], parts.directory["dictionary"]]
    offset, stored = 0, b""
    for entry, blocks in zip(entries, parts.blocks, strict=True):
        entry["offset"], entry["checksums"] = offset, []
        for block in blocks:
            pieces, crc = sealed(bytes(block))
            entry["checksums"].append(crc)
            for piece in pieces:
                raw = bytes(piece)
                stored += raw.ljust(aligned(len(raw)), b"\0")
        offset = len(stored)
    change(parts.directory)
    text = json.dumps(parts.directory, separators=(",", ":")).encode()
    text = text.ljust(aligned(len(text)))
    return header_of(text, HEADER_BYTES + len(text) + len(stored)) + text + stored


def rewrite_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The newest manifest, changed, with a valid checksum."""
    path = max((folder / "manifests").iterdir())
    body = json.loads(path.read_bytes().partition(b"\n")[2])
    change(body)
    text = json.dumps(body, separators=(",", ":")).encode()
    path.write_bytes(b'{"crc":%d}\n%s\n' % (zlib.crc32(text), text))


def rewrite_data(folder: Path, path: Path, content: bytes) -> None:
    """(a data file, its reference in the manifest)."""
    path.write_bytes(content)
    crc = read_header(content[:HEADER_BYTES], path.name)[0]

    def change(body: dict[str, Any]) -> None:
        body["whole"]["files"] = [[path.name, len(content), crc] if f[0] == path.name else f for f in body["whole"]["files"]]

    rewrite_manifest(folder, change)


def vary_words(folder: Path, draw: random.Random) -> str:
    """Changes a few words of a block: sets, copies or reverses them."""
    path = draw.choice(sorted((folder / "data").iterdir()))
    parts = take_apart(path)
    segment = draw.randrange(len(parts.blocks))
    block = draw.choice([b for b in parts.blocks[segment] if b] or [bytearray(8)])
    words = np.frombuffer(block, np.uint8 if len(block) % 8 else np.int64)
    for _ in range(draw.choice([1, 1, 2, 20])):
        at = draw.choice([0, 1, 2, 3, len(words) - 1, draw.randrange(len(words))]) % len(words)
        value = draw.choice([*_WORDS, draw.randrange(-(2**63), 2**63), int(words[at]) + 1, int(words[draw.randrange(len(words))])])
        words[at] = value % 256 if words.dtype == np.uint8 else (value + 2**63) % 2**64 - 2**63
    if draw.random() < 0.1:
        words[:] = words[::-1].copy()
    rewrite_data(folder, path, put_together(parts))
    return f"words of segment {segment} of {path.name}"


def vary_directory(folder: Path, draw: random.Random) -> str:
    path = draw.choice(sorted((folder / "data").iterdir()))
    said: list[str] = []
    rewrite_data(folder, path, put_together(take_apart(path), lambda directory: said.append(vary_json(directory, draw))))
    return f"directory of {path.name}: {said}"


def vary_manifest(folder: Path, draw: random.Random) -> str:
    said: list[str] = []
    rewrite_manifest(folder, lambda body: said.append(vary_json(body, draw)))
    return f"manifest: {said}"


def vary_json(value: Any, draw: random.Random) -> str:
    """Changes one nested value."""
    places = list(_places(value))
    holder, key = draw.choice(places)
    if isinstance(holder, dict) and draw.random() < 0.2:
        del holder[key]
        return f"without {key}"
    new = draw.choice([*_VALUES, draw.choice(places)[0]])
    if draw.random() < 0.3 and isinstance(holder[key], int):
        new = holder[key] + draw.choice([-1, 1, 64])
    with suppress(ValueError):  # a value may not hold itself
        json.dumps(new)
        holder[key] = json.loads(json.dumps(new))
    return f"{key} = {str(new)[:60]}"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


VARIATIONS = [vary_words, vary_words, vary_words, vary_directory, vary_manifest]


def use(folder: Path) -> list[str]:
    """Runs all operations on a folder of unknown origin; returns their errors."""
    return [_said(act, folder) for act in (_verify, _read, _tick)]


def _said(act: Callable[[Path], None], folder: Path) -> str:
    try:
        act(folder)
    except DelticError as error:
        return f"{type(error).__name__}: {error.message}"
    return ""


def _verify(folder: Path) -> None:
    for finding in verify(folder, VerifyProgress(), lease_s=None):
        raise DelticError(finding.problem)


def _read(folder: Path) -> None:
    with StateReader.open(folder, lease_s=None) as reader:
        for name in ("spend", "named", "first", "triangles"):
            StoredView(reader, name).to_arrow().to_pylist()
            StoredView(reader, name).changes().to_pylist()


def _tick(folder: Path) -> None:
    with Session(state=str(folder)) as session:
        session.sql(SCRIPT)
        session.view("named").lookup(17)
        session.view("spend").lookup("customer 5é")
        for start in (30_000, 40_000):
            session.apply({"orders": _orders(start, 50), "edges": _edges(start, 20)})
        for name in ("spend", "named", "first", "triangles"):
            session.view(name).rows()
    State.open(folder, shards=2).close()


def main(work: Path, seed: int, cases: int) -> int:
    assert _ended(lambda: _made_and_used(work)) == 0
    unnoticed = failed = 0
    for case in range(seed, seed + cases):
        folder = Path(shutil.copytree(work / "sound", work / "case"))
        draw = random.Random(case)
        said = draw.choice(VARIATIONS)(folder, draw)
        code = _ended(lambda folder=folder: use(folder))
        if code not in (0, 2):
            print(f"case {case}, {said}: ended with {code}", flush=True)
            failed += 1
        unnoticed += code == 0
        shutil.rmtree(folder)
    print(json.dumps({"cases": cases, "unnoticed": unnoticed, "failed": failed}))
    return int(failed > 0)


def _made_and_used(work: Path) -> list[str]:
    make(work / "sound")
    return use(Path(shutil.copytree(work / "sound", work / "used")))


def _ended(act: Callable[[], list[str]]) -> int:
    """The exit code of a separate process: 0 without an error, 2 for an error of Deltic, 3 for another one, negative for a signal."""
    if not os.fork():
        os._exit(_child(act))
    _, status = os.wait()
    return os.waitstatus_to_exitcode(status)


def _child(act: Callable[[], list[str]]) -> int:
    signal.alarm(SECONDS)
    try:
        return 2 if any(act()) else 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 3


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
