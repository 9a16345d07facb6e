"""`deltic state`: what is in a state folder, whether it is what it should be, and how to shrink it."""

from __future__ import annotations

import json as encoder
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import App, Parameter, validators

from deltic.cli.exits import Exit
from deltic.cli.export import export_views
from deltic.cli.output import emit
from deltic.cli.state_text import amount, cared_text, ls_text, show_text
from deltic.connectors.files.writing import encoded
from deltic.runtimes.read_only import open as open_state
from deltic.runtimes.shown_rows import rows_text
from deltic.runtimes.stored_view import failing_views, first_changes, first_rows
from deltic.runtimes.view_errors import is_errors
from deltic.schema import Field
from deltic.storage.leases import LEASE_S
from deltic.storage.maintenance import MaintenanceResult, compact, gc, size_of
from deltic.storage.program import ProgramDescription, TableDescription, ViewDescription
from deltic.storage.reader import StateReader
from deltic.storage.state_statistics import arrangement_lines, batches, epoch_lines, sinks, sources
from deltic.storage.verify import VerifyProgress, verify

app = App(name="state", help="Inspect a state folder, verify it, shrink it.", help_format="plaintext")

_FLAG: Final = Parameter(negative=())
Flag = Annotated[bool, _FLAG]
_NOT_NEGATIVE: Final = Parameter(validator=validators.Number(gte=0))
Count = Annotated[int | None, _NOT_NEGATIVE]
Rows = Annotated[int, _NOT_NEGATIVE]
SHOWN_ROWS: Final = 20


@app.command
def ls(folder: str, /, *, json: Flag = False) -> int:
    """List the epochs that can be read: when each was committed, by which generation of writer, and how large it is.

    Parameters
    ----------
    folder
        The state folder, or its URL.
    json
        Print one JSON object instead of text.
    """
    with StateReader.open(folder, lease_s=None) as reader:
        epochs = reader.epochs()
        lines = list(epoch_lines(reader.folder, epochs.start, epochs.stop - 1))
        size = size_of(reader.folder)
    if json:
        emit(encoder.dumps({"root": reader.root, "size": asdict(size), "epochs": [asdict(line) for line in lines]}, indent=2))
    else:
        emit(ls_text(lines, size))
    return Exit.OK


@app.command
def show(folder: str, /, *, epoch: Count = None, json: Flag = False) -> int:
    """Show an epoch: tables, views and their state, what sources have read, and which epochs sinks have.

    Parameters
    ----------
    folder
        The state folder, or its URL.
    epoch
        One of those that can be read. Default: the last.
    json
        Print one JSON object instead of text.
    """
    with StateReader.open(folder, epoch, lease_s=None) as reader:
        shown = _shown(reader)
    emit(encoder.dumps(shown, indent=2) if json else show_text(shown))
    return Exit.OK


def _shown(reader: StateReader) -> dict[str, Any]:
    manifest, epochs = reader.manifest, reader.epochs()
    return {
        "root": reader.root,
        "epoch": manifest.epoch,
        "at_us": manifest.at_us,
        "generation": manifest.generation,
        "oldest": epochs.start,
        "newest": epochs.stop - 1,
        "shards": manifest.shards,
        "id": manifest.program.id,
        "files": len(manifest.files),
        "bytes": sum(file.size_bytes for file in manifest.files.values()),
        "arrangements": [asdict(line) for line in arrangement_lines(manifest)],
        "columns": _columns(manifest.program),
        "sources": sources(manifest.notes),
        "sinks": sinks(manifest.notes),
        "batches": batches(manifest.notes),
        "errors": failing_views(reader),
    }


def _columns(program: ProgramDescription) -> dict[str, list[str]]:
    """As users declared them: "name TYPE [DEFAULT expression]", in their order."""
    entries: list[tuple[str, TableDescription | ViewDescription]] = [
        *((f"{table.kind} {name}", table) for name, table in program.tables.items()),
        *((f"view {name}", view) for name, view in program.views.items() if not is_errors(name)),
    ]
    return {what: [_column(program, what.partition(" ")[2], field) for field in entry.columns] for what, entry in entries}


def _column(program: ProgramDescription, relation: str, field: Field) -> str:
    default = program.default_of(relation, field.name)
    return f"{field.name} {field.type.sql}{'' if default is None else f' DEFAULT {default}'}"


@app.command(name="verify")
def verify_(folder: str, /, *, no_lease: Flag = False, json: Flag = False) -> int:
    """Read every byte that a retained epoch needs, and report damage. Exits with 1 if there is any.

    Parameters
    ----------
    folder
        The state folder, or its URL.
    no_lease
        Write nothing: for a read-only folder. Without this option a lease keeps the files while they are read.
    json
        Print one JSON object for each finding, and one for the end.
    """
    checked, findings = VerifyProgress(), 0
    for finding in verify(folder, checked, lease_s=None if no_lease else LEASE_S):
        findings += 1
        emit(encoder.dumps(asdict(finding)) if json else f"{finding.file}: {finding.problem}\n  lost: {finding.lost}")
    if json:
        emit(encoder.dumps({**asdict(checked), "findings": findings}))
    else:
        read = f"{checked.manifests:,} manifests and {checked.files:,} files of {amount(checked.bytes)}"
        emit(f"{read}: {f'{findings:,} finding' + 's' * (findings > 1) if findings else 'no damage'}")
    return Exit.INPUT if findings else Exit.OK


@app.command(name="compact")
def compact_(folder: str, /, *, keep: Count = None, json: Flag = False) -> int:
    """Merge the batches of each arrangement into one per shard. No pipeline may be running on the folder.

    Parameters
    ----------
    folder
        The state folder, or its URL.
    keep
        The number of epochs before the last that stay readable; files that only older ones need are deleted. Default: those readable
        now.
    json
        Print one JSON object instead of text.
    """
    return _report(compact(folder, keep), json=json)


@app.command(name="gc")
def gc_(folder: str, /, *, keep: Count = None, json: Flag = False) -> int:
    """Delete files that no readable epoch needs. No pipeline may be running on the folder.

    Parameters
    ----------
    folder
        The state folder, or its URL.
    keep
        The number of epochs before the last that stay readable. Default: those that are readable now.
    json
        Print one JSON object instead of text.
    """
    return _report(gc(folder, keep), json=json)


def _report(cared: MaintenanceResult, *, json: bool) -> int:
    if json:
        epochs = [cared.epochs.start, cared.epochs.stop - 1]
        body = {"before": asdict(cared.before), "after": asdict(cared.after), "epochs": epochs, "batches": list(cared.batches)}
        emit(encoder.dumps(body, indent=2))
    else:
        emit(cared_text(cared))
    return Exit.OK


@app.command
def read(
    folder: str,
    view: str,
    /,
    *,
    epoch: Count = None,
    changes: Flag = False,
    limit: Rows = SHOWN_ROWS,
    no_lease: Flag = False,
    json: Flag = False,
) -> int:
    """Print rows of a view.

    Parameters
    ----------
    folder
        The state folder, or its URL.
    view
        The view; upper and lower case are the same.
    epoch
        One of those that can be read. Default: the last.
    changes
        Print the changes of the view in the epoch, with `_weight`, instead of its content.
    limit
        The most rows to print.
    no_lease
        Write nothing: for a read-only folder. Without this option a lease keeps the files while they are read.
    json
        Print one JSON object for each row instead of text.
    """
    with open_state(folder, epoch=epoch, lease=not no_lease) as state:
        stored = state.view(view)
        shown, rows = first_changes(stored, limit) if changes else first_rows(stored, limit)
    if json:
        emit(b"".join(bytes(part) for part in encoded(shown, "json")).decode().rstrip("\n"))
    else:
        emit(rows_text(shown, rows))
    return Exit.OK


@app.command
def export(
    folder: str,
    out: Annotated[Path, Parameter(validator=validators.Path(file_okay=False))],
    /,
    *,
    view: str | None = None,
    epoch: Count = None,
    format: Literal["parquet", "csv", "json"] = "parquet",
    no_lease: Flag = False,
    json: Flag = False,
) -> int:
    """Write the content of views to files, VIEW.parquet for each. Existing files are not overwritten.

    Characters that file names cannot contain are written as %XX, and a long name is truncated and ends with a hash; @views.json lists the
    view of each file.

    Parameters
    ----------
    folder
        The state folder, or its URL.
    out
        The folder for the files; created if it does not exist.
    view
        One view. Default: all of them.
    epoch
        One of those that can be read. Default: the last.
    format
        The format of the files. CSV has a header; JSON has one object per line.
    no_lease
        Write nothing to the state folder, such as a read-only one. Without this option a lease keeps the files while they are read.
    json
        Print one JSON object instead of text.
    """
    with open_state(folder, epoch=epoch, lease=not no_lease) as state:
        views = [state.view(name) for name in ([view] if view is not None else sorted(state.views))]
        written = export_views(views, out, format)
        exported = state.epoch
    if json:
        emit(encoder.dumps({"epoch": exported, "views": written}, indent=2))
    else:
        emit("\n".join([f"epoch {exported}", *(f"{w['view']}: {w['rows']:,} rows to {w['file']}" for w in written)]))
    return Exit.OK
