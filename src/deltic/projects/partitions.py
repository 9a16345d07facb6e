"""Versions of a partitioned table in a file format that share the files of partitions without changes.

A new version has new files of the partitions that changed, and links to the files of the others, so that the table still changes in one
statement. Of folders of this machine: an object store has no links.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from deltic.schema import Schema

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_PLAIN: Final = frozenset({"STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE"})
"""Types whose values have one text in the names of folders."""


def named(schema: Schema, columns: Sequence[str]) -> bool:
    """Whether the folders of partitions by these columns can be told from their values."""
    types = [schema[schema.find(name)[0]].type for name in columns]
    return all(type.name in _PLAIN and not type.collation for type in types)


def shown(key: Sequence[Any]) -> tuple[str, ...]:
    """A partition's values as the names of its folders have them."""
    return tuple(map(_text, key))


def _text(value: Any) -> str:
    match value:
        case None | "":
            return NULL
        case bool():
            return str(value).lower()
        case date():
            return value.isoformat()
        case _:
            return str(value)


def link_others(old: Path, new: Path, depth: int, changed: Collection[tuple[str, ...]]) -> int:
    """Links the files of partitions that have not changed into a new version; returns how many partitions they are. depth: of folders."""
    linked = 0
    for folder in _leaves(old, depth):
        key = tuple(unquote(part.partition("=")[2]) for part in folder.parts)
        if key in changed:
            continue
        (new / folder).mkdir(parents=True)
        for file in (old / folder).iterdir():
            os.link(file, new / folder / file.name)
        linked += 1
    return linked


def _leaves(root: Path, depth: int) -> Iterator[Path]:
    """The folders of partitions, relative to the root."""
    pattern = "/".join(["*=*"] * depth)
    return (folder.relative_to(root) for folder in sorted(root.glob(pattern)))
