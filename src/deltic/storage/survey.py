"""What is in a state folder, in numbers: for people who look at one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from deltic.storage.folder import Folder
from deltic.storage.history import chain, epochs_in
from deltic.storage.manifest import Manifest
from deltic.storage.parsing import Json


@dataclass(frozen=True, slots=True)
class EpochLine:
    """One epoch. at_us: when it was committed, 0 if unknown. written_bytes: its data files. state_bytes: all files of the state then."""

    epoch: int
    at_us: int
    generation: int
    shards: int
    files: int
    written_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class ArrangementLine:
    """One arrangement. kind: table, view or inner. rows: as stored, before what cancels is merged. bytes: of their words; None if unknown.

    batches: in all shards; most: in the fullest shard. ranged: how many of them hold rows of other shards too.
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


def epoch_lines(folder: Folder, oldest: int, last: int) -> Iterator[EpochLine]:
    """Those from `oldest` to `last`, ascending. Raises CorruptState."""
    manifest: Manifest | None = None
    for link in chain(folder, epochs_in(folder)[0], last, lambda stored: stored.epoch <= oldest):
        manifest = link.whole if manifest is None else link.onto(manifest)
        assert manifest is not None
        if link.epoch >= oldest:
            written = sum(file.size_bytes for file in link.change.files)
            total = sum(file.size_bytes for file in manifest.files.values())
            yield EpochLine(link.epoch, link.at_us, link.generation, link.shards, len(link.change.files), written, total)


def arrangement_lines(manifest: Manifest) -> list[ArrangementLine]:
    """Tables first, then views, then what views are made from."""
    specs: Mapping[str, Json] = manifest.notes.get("arrangements", {})
    called = _called(manifest.notes)
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    ranged: Counter[str] = Counter()
    for segment in manifest.segments():
        rows[segment.arrangement][segment.file] = segment.rows
        counts[segment.arrangement][segment.shard] += 1
        ranged[segment.arrangement] += bool(segment.ranged)
    lines = []
    for name in {*rows, *specs}:
        found, count = rows[name], counts[name]
        kind, user = called.get(name, ("inner", name))
        total = sum(found.values())
        size = _width(specs.get(name))
        lines.append(
            ArrangementLine(
                name,
                kind,
                user,
                total,
                None if size is None else 8 * size * total,
                sum(count.values()),
                max(count.values(), default=0),
                len(found),
                ranged[name],
            )
        )
    return sorted(lines, key=lambda line: (("table", "view", "inner").index(line.kind), line.name))


def _width(spec: Json) -> int | None:
    """Words per row."""
    return spec["columns"] + spec["weights"] if isinstance(spec, dict) else None


def _called(notes: Mapping[str, Json]) -> dict[str, tuple[str, str]]:
    return {
        **{entry["arrangement"]: ("table", name) for name, entry in notes.get("tables", {}).items()},
        **{entry["arrangement"]: ("view", name) for name, entry in notes.get("views", {}).items()},
    }


def sources(notes: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """By table: how many files were taken, with how many rows and bytes, and [name, rows taken] of the one that is half taken."""
    found: dict[str, dict[str, Json]] = {}
    for key, value in notes.items():
        kind, _, rest = key.partition(":")
        table = unquote(rest.partition(":")[0])
        if kind not in ("taken", "cursor"):
            continue
        entry = found.setdefault(table, {"files": 0, "rows": 0, "bytes": 0, "cursor": None})
        if kind == "taken":
            size_bytes, _, _, rows = value
            entry["files"], entry["rows"], entry["bytes"] = entry["files"] + 1, entry["rows"] + rows, entry["bytes"] + size_bytes
        else:
            entry["cursor"] = value[:2]
    return dict(sorted(found.items()))
