"""The text output of `deltic state`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from deltic.runtimes.shown_rows import table
from deltic.storage.maintenance import MaintenanceResult, Size
from deltic.storage.state_statistics import EpochLine

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")


def amount(size_bytes: int) -> str:
    """
    >>> amount(0), amount(999), amount(1000), amount(12_345_678)
    ('0 bytes', '999 bytes', '1.0 kB', '12.3 MB')
    """
    size, unit = float(size_bytes), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size_bytes} bytes"


def moment(at_us: int) -> str:
    """
    >>> moment(1_700_000_000_000_000), moment(0)
    ('2023-11-14 22:13:20 UTC', '-')
    """
    return f"{datetime.fromtimestamp(at_us // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC" if at_us else "-"


def size_text(size: Size) -> str:
    """One line."""
    data, manifests = amount(size.data_bytes), amount(size.manifest_bytes)
    return f"{amount(size.bytes)}: {size.files:,} data files with {data}, {size.manifests:,} manifests with {manifests}"


def ls_text(lines: Sequence[EpochLine], size: Size) -> str:
    """The output of `ls`."""
    head = ("epoch", "committed", "generation", "shards", "files", "written", "state")
    rows = [
        (line.epoch, moment(line.at_us), line.generation, line.shards, line.files, amount(line.written_bytes), amount(line.state_bytes))
        for line in lines
    ]
    return f"{table(head, rows)}\n{size_text(size)}"


def show_text(shown: Mapping[str, Any]) -> str:
    """The output of `show`."""
    lines = [
        f"{shown['root']}",
        f"epoch {shown['epoch']}, committed {moment(shown['at_us'])} by generation {shown['generation']}; "
        f"epochs {shown['oldest']} to {shown['newest']} can be read",
        f"shards {shown['shards']}, {shown['files']:,} files with {amount(shown['bytes'])}, id {shown['id'] or '-'}",
        "",
    ]
    head = ("what", "rows stored", "bytes", "batches", "most in a shard", "files")
    rows = [
        (
            _label(line) + (" (ranged)" if line["ranged"] else ""),
            line["rows"],
            "-" if line["bytes"] is None else amount(line["bytes"]),
            line["batches"],
            line["most"],
            line["files"],
        )
        for line in shown["arrangements"]
    ]
    lines += [table(head, rows), ""] if rows else []
    held = Counter(line["holds"][0] for line in shown["arrangements"] if line["holds"])
    lines += [f"rows of {name} are held in {count} arrangements" for name, count in held.items() if count > 1]
    lines += [f"{name} ({', '.join(columns)})" for name, columns in shown["columns"].items()]
    lines += [_source(name, source) for name, source in shown["sources"].items()]
    lines += [f"sink {name}: view {sink.get('view', '-')}, has epoch {sink.get('epoch', '-')}" for name, sink in shown["sinks"].items()]
    lines += [f"query {name}: batch {batch}" for name, batch in shown["batches"].items()]
    lines += [f"view {view} has {count:,} error{'s' * (count > 1)}" for view, count in shown["errors"].items()]
    return "\n".join(lines).rstrip()


def _label(line: Mapping[str, Any]) -> str:
    """The arrangement's name; of a copy of a table, the table and its columns."""
    if line["kind"] == "inner" and line["holds"]:
        table, *columns = line["holds"]
        return f"copy of {table} ({', '.join(columns)})"[:60]
    return f"{line['kind']} {line['name'][:40]}"


def _source(name: str, source: Mapping[str, Any]) -> str:
    cursor = source["cursor"]
    half = f"; {cursor[1]:,} rows of {cursor[0]}" if cursor else ""
    return f"source of {name}: read {source['files']:,} files with {source['rows']:,} rows, {amount(source['bytes'])}{half}"


def cared_text(cared: MaintenanceResult) -> str:
    """The output of `compact` and `gc`."""
    before, after = cared.before, cared.after
    freed = before.bytes - after.bytes
    size_change = f"freed {amount(freed)}" if freed >= 0 else f"added {amount(-freed)}"
    batches = f"{cared.batches[0]:,} batches became {cared.batches[1]:,}\n" if cared.batches[0] != cared.batches[1] else ""
    kept = f"{before.files:,} data files and {before.manifests:,} manifests became {after.files:,} and {after.manifests:,}"
    epochs = f"epochs {cared.epochs.start} to {cared.epochs.stop - 1} can be read"
    return f"{batches}{kept}; {size_change}, {amount(after.bytes)} remain\n{epochs}"
