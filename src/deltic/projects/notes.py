"""What the state says about a project's tables: committed with the ticks and the definitions of its session."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from deltic.session import Session

NOTE: Final = "pipelines"


@dataclass(slots=True)
class ProjectNotes:
    """By key: of views that are written, arrangement and epoch; of tables that grow, the files that have been read; the locations of the
    files of views; the versions of Delta tables of which Deltic holds the rows; the ids of Delta tables that views are written to;
    what tables say about themselves, as of `layout.TableAnnotations`; of what is fed by streams, whether it is being emptied;
    the names of the flows that feed a streaming table of files by one checkpoint; how often checkpoints and events that cannot be removed
    were exchanged for new ones; and at which of these times the rows of a streaming table of files were."""

    published: dict[str, list[Any]] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    locations: dict[str, str] = field(default_factory=dict)
    versions: dict[str, list[Any]] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, dict[str, Any]] = field(default_factory=dict)
    resets: dict[str, bool] = field(default_factory=dict)
    flows: dict[str, str] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, session: Session) -> Self:
        noted = session.notes.get(NOTE) or {}
        notes = cls(*(dict(noted.get(part.name, {})) for part in fields(cls)))
        if "rows" not in noted:  # by a version that exchanged checkpoints and not rows, or both and noted one number
            notes.rows = {key: number for key, number in notes.generations.items() if notes._has_read(key, f"/rows@{number}/")}
        return notes

    def _has_read(self, key: str, folder: str) -> bool:
        return any(folder in file for file in self.files.get(key, ()))

    def json(self) -> dict[str, Any]:
        return {NOTE: {part.name: dict(getattr(self, part.name)) for part in fields(self)}}

    def keep(self, tables: Collection[str], views: Collection[str]) -> None:
        """Forgets what has been read of all tables but these, whose rows the session does not hold; and which other views are written."""
        kept = set(tables)
        self.published = {key: published for key, published in self.published.items() if key in views}
        self.files = {key: files for key, files in self.files.items() if key in kept}
        self.versions = {key: version for key, version in self.versions.items() if key in kept}
