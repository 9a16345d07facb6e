"""Messages between tasks: few large rows (shard, payload), which Spark moves without interpreting them.

A payload begins with its level and its kind. It is for the task that runs that level on that shard; those for later levels pass
through, and level LAST is the driver's. Then follows JSON, or blocks: a JSON line that describes them, then int64 words (the columns and
weights of some Rows), then the dictionary of the strings that occur in them. Deltic's own tasks write and read payloads, within one tick.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from deltic.circuit.stage import Failure
from deltic.errors import Span
from deltic.runtimes.durable.outcome import Outcome
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import FileRef
from deltic.storage.manifest import SegmentRef
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.strings import CollidingStrings, StringTable

LAST: Final = 1 << 30
CHUNK_BYTES: Final = 1 << 22
"""The size at which payloads are cut: Spark holds each of them several times in memory."""

FRAME: Final = StructType([StructField("shard", IntegerType()), StructField("payload", BinaryType())])
"""The schema of messages in Spark. Only two columns: each costs the driver calls to the JVM in every stage of every tick."""
SCHEMA: Final = pa.schema([("shard", pa.int32()), ("payload", pa.binary())])


class Kind(IntEnum):
    """The content of a payload."""

    ASSIGNMENT = 0  # JSON: the tick, and the files of the shard's state (task.py)
    ROWS = 1  # blocks: rows of ports
    OUTCOME = 2  # JSON: a task's files and counters
    CHANGE = 3  # blocks: small changes of views, for the driver
    FAILURE = 4  # JSON: a user's error; no task computes or writes after it
    BUNDLE = 5  # several messages of one shard; `level` is their number
    STRINGS = 6  # blocks: strings of a task that are not in its shard's files, for the driver
    FILE_STRINGS = 7  # instead, if they are many: the name of the file that contains them
    COLLISION = 8  # JSON: strings that need other ids; no task computes or writes after it either


STOPS: Final = frozenset((Kind.FAILURE, Kind.COLLISION))
"""The kinds that end a tick's work."""


@dataclass(frozen=True, slots=True)
class Message:
    shard: int
    level: int
    kind: Kind
    payload: bytes


_MARK: Final = struct.Struct("<ii")  # level and kind, before each payload
_ENTRY: Final = struct.Struct("<iiQ")  # level, kind and size of each payload in a bundle


def bundle(shard: int, messages: Sequence[Message]) -> Message:
    """One message that contains others of its shard: without an exchange, all of a row is in one task."""
    entries = b"".join(_ENTRY.pack(m.level, m.kind, len(m.payload)) for m in messages)
    return Message(shard, len(messages), Kind.BUNDLE, b"".join([entries, *(m.payload for m in messages)]))


def _unbundle(bundled: Message) -> Iterator[Message]:
    offset = bundled.level * _ENTRY.size
    for level, kind, size in _ENTRY.iter_unpack(bundled.payload[:offset]):
        yield Message(bundled.shard, level, Kind(kind), bundled.payload[offset : offset + size])
        offset += size


def to_arrow(messages: Sequence[Message]) -> pa.RecordBatch:
    """The messages as one batch of SCHEMA."""
    shards = pa.array([m.shard for m in messages], pa.int32())
    columns = [shards, pa.array([_MARK.pack(m.level, m.kind) + m.payload for m in messages], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def from_arrow(batches: Iterable[pa.RecordBatch]) -> list[Message]:
    """All messages of the batches. Reads them to the end: Spark kills a worker that leaves input unread."""
    messages: list[Message] = []
    for batch in batches:
        for shard, payload in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            level, kind = _MARK.unpack_from(payload)
            message = Message(shard, level, Kind(kind), payload[_MARK.size :])
            messages += _unbundle(message) if message.kind is Kind.BUNDLE else [message]
    return messages


def pack_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Rows with the name of their port or view. strings: the columns of string ids."""

    name: str
    rows: Rows
    strings: tuple[int, ...] = ()


def pack_parts(parts: Sequence[NamedRows], strings: StringTable) -> Iterator[bytes]:
    """Payloads that together hold the parts, each with the strings that occur in it."""
    gathered: list[NamedRows] = []
    size = 0
    for piece in _pieces(parts):
        if gathered and size + piece.rows.nbytes > CHUNK_BYTES:
            yield _pack(gathered, strings)
            gathered, size = [], 0
        gathered.append(piece)
        size += piece.rows.nbytes
    if gathered:
        yield _pack(gathered, strings)


def _pieces(parts: Sequence[NamedRows]) -> Iterator[NamedRows]:
    for part in parts:
        rows = part.rows
        step = max(1, CHUNK_BYTES // (8 * (len(rows.columns) + len(rows.weights))))
        if len(rows) <= step:
            yield part
            continue
        for start in range(0, len(rows), step):
            cut = slice(start, start + step)
            make = Batch.trusted if isinstance(rows, Batch) else Rows
            yield NamedRows(part.name, make([c[cut] for c in rows.columns], [w[cut] for w in rows.weights]), part.strings)


def _pack(parts: Sequence[NamedRows], strings: StringTable) -> bytes:
    return pack_blocks(parts, Dictionary.naming([(part.rows, part.strings) for part in parts], strings))


def pack_blocks(parts: Sequence[NamedRows], dictionary: Dictionary) -> bytes:
    """One payload of parts and strings."""
    entries = [[p.name, len(p.rows), len(p.rows.columns), len(p.rows.weights), isinstance(p.rows, Batch)] for p in parts]
    head = pack_json({"parts": entries, "strings": len(dictionary), "bytes": dictionary.text.nbytes}) + b"\n"
    blocks = [word for p in parts for word in (*p.rows.columns, *p.rows.weights)]
    blocks += [dictionary.ids, dictionary.offsets] if len(dictionary) else []
    body = b"".join(np.ascontiguousarray(block) for block in blocks)  # type: ignore[misc]
    return head.ljust(-(-len(head) // 8) * 8 - 1, b" ").replace(b"\n", b" ") + b"\n" + body + dictionary.text.tobytes()


def unpack_parts(payload: bytes) -> tuple[dict[str, Rows], Dictionary]:
    """The rows by name, batches as batches, and the strings that occur in them."""
    end = payload.index(b"\n") + 1
    head = json.loads(payload[:end])
    text_bytes = head["bytes"]
    # A copy, since Spark's buffers are not aligned and kernels read words.
    words = np.frombuffer(payload, np.int64, (len(payload) - end - text_bytes) // 8, end).copy()
    parts, offset = {}, 0
    for name, rows, columns, weights, is_batch in head["parts"]:
        blocks = [words[offset + i * rows : offset + (i + 1) * rows] for i in range(columns + weights)]
        parts[name] = (Batch.trusted if is_batch else Rows)(blocks[:columns], blocks[columns:])
        offset += rows * (columns + weights)
    if not head["strings"]:
        return parts, Dictionary.empty()
    ids, offsets = words[offset : offset + head["strings"]], words[offset + head["strings"] :]
    return parts, Dictionary(ids, offsets, np.frombuffer(payload, np.uint8, text_bytes, len(payload) - text_bytes))


def pack_failure(failure: Failure) -> bytes:
    return pack_json(asdict(failure))


def unpack_failure(payload: bytes) -> Failure:
    fields = json.loads(payload)
    span = fields.pop("span")
    refused = tuple((ordinal, message) for ordinal, message in fields.pop("refused"))
    return Failure(**fields, span=None if span is None else Span(**span), refused=refused)


def pack_collision(collision: CollidingStrings) -> bytes:
    return pack_json([string.hex() for string in sorted(collision.strings)])


def unpack_collision(payload: bytes) -> list[bytes]:
    return [bytes.fromhex(string) for string in json.loads(payload)]


def pack_outcome(outcome: Outcome) -> bytes:
    """JSON; segments are without their shard, which is that of the message."""
    file = outcome.file
    return pack_json(
        {
            "file": None if file is None else [file.name, file.size_bytes, file.checksum],
            "added": list(outcome.added),
            "dropped": [[s.arrangement, s.file, s.rows] for s in outcome.dropped],
            "views": list(outcome.views),
            "counters": {name: [c.rows_in, c.rows_out, c.touched, c.batches, c.seconds] for name, c in outcome.counters.items()},
        }
    )


def unpack_outcome(shard: int, payload: bytes) -> Outcome:
    fields = json.loads(payload)
    return Outcome(
        shard,
        None if fields["file"] is None else FileRef(*fields["file"]),
        [(name, rows) for name, rows in fields["added"]],
        [SegmentRef(shard, *segment) for segment in fields["dropped"]],
        [(name, rows) for name, rows in fields["views"]],
        {name: Counters(int(c[0]), int(c[1]), int(c[2]), int(c[3]), c[4]) for name, c in fields["counters"].items()},
    )
