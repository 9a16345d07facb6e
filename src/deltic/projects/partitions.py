"""Versions of a partitioned table in a file format that share the files of partitions without changes.

A new version has new files of the partitions that changed, and links to the files of the others, so that the table still changes in one
statement. Of folders of this machine: an object store has no links.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from deltic.schema import Schema

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
AS_NULL: Final = (None, "", NULL)
"""Strings whose rows are in the folder of NULL."""
_PLAIN: Final = frozenset({"STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE"})
"""Types whose values have one text in the names of folders."""


def named(schema: Schema, columns: Sequence[str]) -> bool:
    """Whether the folders of partitions by these columns can be told from their values."""
    types = [schema[schema.find(name)[0]].type for name in columns]
    return all(type.name in _PLAIN and not type.collation for type in types)


def sharing(keys: Iterable[tuple[Any, ...]], schema: Schema, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The keys whose rows are in the folders of some keys' rows, these included: Spark writes an empty string as it writes NULL."""
    texts = [schema[schema.find(name)[0]].type.name == "STRING" for name in columns]
    alike = ([AS_NULL if text and value in AS_NULL else (value,) for value, text in zip(key, texts, strict=True)] for key in keys)
    return list(dict.fromkeys(one for values in alike for one in product(*values)))


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
