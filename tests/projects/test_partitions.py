"""Versions of partitioned tables: unchanged partitions are linked, changed and emptied ones are not."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from deltic.schema import BIGINT, DATE, DOUBLE, STRING, Field, Schema

pytest.importorskip("pyspark.sql.connect.proto")


def write(root: Path, folder: str) -> Path:
    file = root / folder / "part-0.json"
    file.parent.mkdir(parents=True)
    file.write_text(folder)
    return file


def test_partitions_without_changes_are_links(tmp_path: Path) -> None:
    from deltic.projects.partitions import NULL, link_others, shown  # noqa: PLC0415  needs the extra

    old, new = tmp_path / "old", tmp_path / "new"
    kept = write(old, f"day=2024-01-01/name={NULL}")
    write(old, "day=2024-01-01/name=a%2Fb%3Dc")
    write(old, "day=2024-01-02/name=x")
    changed = write(new, "day=2024-01-02/name=x")
    changed.write_text("new rows")
    keys = {shown((date(2024, 1, 2), "x")), shown((date(2024, 1, 1), "a/b=c")), shown((None, ""))}
    assert keys == {("2024-01-02", "x"), ("2024-01-01", "a/b=c"), (NULL, NULL)}
    assert link_others(old, new, 2, keys) == 1
    files = sorted(file.relative_to(new) for file in new.rglob("*.json"))
    assert files == sorted([kept.relative_to(old), changed.relative_to(new)])
    assert (new / kept.relative_to(old)).samefile(kept) and changed.read_text() == "new rows"


def test_types_of_partitions() -> None:
    from deltic.projects.partitions import named, shown  # noqa: PLC0415  needs the extra

    schema = Schema((Field("Day", DATE), Field("n", BIGINT), Field("x", DOUBLE), Field("s", STRING)))
    assert named(schema, ["day", "n", "s"]) and not named(schema, ["day", "x"])
    assert shown((True, -7, "é")) == ("true", "-7", "é")
