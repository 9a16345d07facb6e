"""Statistics of a state folder, for display."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from deltic.storage.folder import StateFolder
from deltic.storage.history import chain, epochs_in
from deltic.storage.manifest import Manifest
from deltic.storage.parsing import Json, Malformed, count, items, mapping, reading


@dataclass(frozen=True, slots=True)
class EpochLine:
    """One epoch. at_us: commit time, 0 if unknown. written_bytes: of its own data files. state_bytes: of all files of the state."""

    epoch: int
    at_us: int
    generation: int
    shards: int
    files: int
    written_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class ArrangementLine:
    """One arrangement. kind: table, stream, view or inner. rows: as stored, including rows that cancel.

    bytes: of their words; None if unknown. batches: in all shards; most: in the shard with most. ranged: how many of them also hold rows of
    other shards. holds: the table whose rows it holds, then its columns in sort order; () if the rows are computed.
    """

    arrangement: str
    kind: str
    name: str
    rows: int
    bytes: int | None
    batches: int
    most: int
    files: int
    ranged: int
    holds: tuple[str, ...] = ()


def epoch_lines(folder: StateFolder, oldest: int, last: int) -> Iterator[EpochLine]:
    """The epochs from `oldest` to `last`, ascending. Raises CorruptState."""
    manifest: Manifest | None = None
    for link in chain(folder, epochs_in(folder)[0], last, lambda stored: stored.epoch <= oldest):
        manifest = link.whole if manifest is None else link.onto(manifest)
        assert manifest is not None
        if link.epoch >= oldest:
            written = sum(file.size_bytes for file in link.change.files)
            total = sum(file.size_bytes for file in manifest.files.values())
            yield EpochLine(link.epoch, link.at_us, link.generation, link.shards, len(link.change.files), written, total)


def arrangement_lines(manifest: Manifest) -> list[ArrangementLine]:
    """Tables first, then streams, views, and the inner state of views."""
    specs, called = manifest.program.arrangements, manifest.program.called
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    ranged: Counter[str] = Counter()
    for segment in manifest.segments():
        rows[segment.arrangement][segment.file] = segment.rows
        counts[segment.arrangement][segment.shard] += 1
        ranged[segment.arrangement] += bool(segment.ranged)
    lines = []
    for name in {*rows, *specs}:
        by_file, count = rows[name], counts[name]
        kind, user = called.get(name, ("inner", name))
        total = sum(by_file.values())
        spec = specs.get(name)
        lines.append(
            ArrangementLine(
                name,
                kind,
                user,
                total,
                None if spec is None else 8 * (spec.columns + spec.weights) * total,
                sum(count.values()),
                max(count.values(), default=0),
                len(by_file),
                ranged[name],
                () if spec is None else spec.holds,
            )
        )
    return sorted(lines, key=lambda line: (("table", "stream", "view", "inner").index(line.kind), line.name))


def sources(notes: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """By table: the number of consumed files, their rows and bytes, and [name, rows] of a partly consumed one.

    Raises CorruptState.
    """
    result: dict[str, dict[str, Json]] = {}
    for key, value in notes.items():
        kind, _, rest = key.partition(":")
        table = unquote(rest.partition(":")[0])
        if kind not in ("taken", "cursor"):
            continue
        entry = result.setdefault(table, {"files": 0, "rows": 0, "bytes": 0, "cursor": None})
        with reading(f"the note {key}"):
            match items(value, kind):
                case [int(size_bytes), _, _, int(rows)] if kind == "taken":
                    entry["files"], entry["rows"], entry["bytes"] = entry["files"] + 1, entry["rows"] + rows, entry["bytes"] + size_bytes
                case [str(name), int(rows), *_] if kind == "cursor":
                    entry["cursor"] = [name, rows]
                case _:
                    raise Malformed("expected a consumed file or a cursor")
    return dict(sorted(result.items()))


def sinks(notes: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    """By sink: its view, and the last epoch delivered to it. Raises CorruptState."""
    with reading("the note sinks"):
        return {name: mapping(sink, name) for name, sink in mapping(notes.get("sinks", {}), "sinks").items()}


def batches(notes: Mapping[str, Json]) -> dict[str, int]:
    """By streaming query: the number of its last batch. Raises CorruptState."""
    with reading("the note batches"):
        return {name: count(batch, name) for name, batch in mapping(notes.get("batches", {}), "batches").items()}
